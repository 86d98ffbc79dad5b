// git worktree add, list and remove; flock on the folder around a worktree.
#include "backend/command/worktrees.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <string_view>

#include "backend/command/git.h"
#include "base/text.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHomePrefix = "assay-checkout-";
constexpr size_t kRandomLetters = 6;  // of mkdtemp

// The home that a path lies in, by its name.
std::optional<fs::path> home_around(const fs::path& path) {
  fs::path home;
  for (const fs::path& part : path) {
    home /= part;
    const std::string name = part.string();
    if (name.starts_with(kHomePrefix) && name.size() == kHomePrefix.size() + kRandomLetters) {
      return home;
    }
  }
  return std::nullopt;
}

// Of a home that no process holds; none: one does, it is another user's, or it isn't there, which
// may mean that it lies in another container.
Descriptor lock_home(const fs::path& home) {
  Descriptor folder(::open(home.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat about {};
  if (!folder.ok() || ::fstat(folder.get(), &about) != 0 || about.st_uid != ::geteuid()) return {};
  if (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) return {};
  return folder;
}

std::vector<fs::path> listed_worktrees(Spawner& spawner, const fs::path& repo) {
  constexpr std::string_view kKey = "worktree ";
  std::vector<fs::path> worktrees;
  const auto list = run_git(spawner, repo, {"worktree", "list", "--porcelain"});
  if (!list) return worktrees;
  for (const std::string& line : split(*list, '\n')) {
    if (line.starts_with(kKey)) worktrees.emplace_back(line.substr(kKey.size()));
  }
  return worktrees;
}

}  // namespace

Result<WorktreeHome> WorktreeHome::make() {
  ASSAY_TRY(TemporaryFolder folder, TemporaryFolder::make(kHomePrefix));
  Descriptor lock = lock_home(folder.path());
  return WorktreeHome{std::move(folder), std::move(lock)};
}

Status add_worktree(Spawner& spawner, const fs::path& repo, const fs::path& folder,
                    const std::string& commit) {
  const auto added =
      run_git(spawner, repo, {"worktree", "add", "--detach", "--quiet", folder.string(), commit});
  if (added) return {};
  return bad_input("checkout: expected to make a worktree of {} at {}, found: {}", repo.string(),
                   commit, added.error().message);
}

bool remove_worktree(Spawner& spawner, const fs::path& repo, const fs::path& folder) {
  return run_git(spawner, repo, {"worktree", "remove", "--force", folder.string()}).has_value();
}

void remove_left_worktrees(Spawner& spawner, const fs::path& repo) {
  for (const fs::path& worktree : listed_worktrees(spawner, repo)) {
    const auto home = home_around(worktree);
    if (!home) continue;
    const Descriptor lock = lock_home(*home);
    // git removes only what is a worktree of this repository.
    if (!lock.ok() || !remove_worktree(spawner, repo, worktree)) continue;
    std::error_code error;
    if (worktree.parent_path() == *home) fs::remove_all(*home, error);
  }
}

}  // namespace assay
