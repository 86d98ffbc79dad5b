// git worktree add, list and remove.
#include "backend/command/worktrees.h"

#include <optional>
#include <string_view>

#include "backend/command/git.h"
#include "base/text/text.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHomePrefix = "assay-checkout-";

// The home that a path lies in, by its name.
std::optional<fs::path> home_around(const fs::path& path) {
  fs::path home;
  for (const fs::path& part : path) {
    home /= part;
    if (is_temporary_name(part.string(), kHomePrefix)) return home;
  }
  return std::nullopt;
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

Result<TemporaryFolder> make_worktree_home() {
  return TemporaryFolder::make(kHomePrefix);
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
    const Descriptor lock = lock_left_folder(*home);
    // git removes only a worktree of this repository.
    if (!lock.ok() || !remove_worktree(spawner, repo, worktree)) continue;
    std::error_code error;
    if (worktree.parent_path() == *home) fs::remove_all(*home, error);
  }
}

}  // namespace assay
