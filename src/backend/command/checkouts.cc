// git worktree add and remove.
#include "backend/command/checkouts.h"

#include "backend/command/git.h"
#include "base/hash.h"
#include "base/text.h"

namespace assay {
namespace {

constexpr size_t kChangeDigits = 12;

// What of the folder isn't as the commit has it: "-dirty", and before it the hash of the changes of
// tracked files, so that two states of one commit aren't taken for one. New files may be results,
// so they count as a change and not in the hash.
Result<std::string> dirtiness(Spawner& spawner, const std::filesystem::path& folder) {
  ASSAY_TRY(const std::string changes,
            run_git(spawner, folder, {"status", "--porcelain", "--untracked-files=normal"}));
  if (changes.empty()) return std::string();
  ASSAY_TRY(const std::string patch,
            run_git(spawner, folder,
                    {"diff", "--no-ext-diff", "--no-textconv", "--no-color", "--full-index",
                     "--submodule=short", "HEAD"}));
  if (patch.empty()) return std::string("-dirty");
  return fmt::format("-{}-dirty", sha256_hex(patch).substr(0, kChangeDigits));
}

}  // namespace

Checkouts::~Checkouts() {
  for (const Made& made : made_) {
    // Where git can't, the folder goes all the same, and `git worktree prune` forgets it.
    const auto removed =
        run_git(spawner_, made.repo, {"worktree", "remove", "--force", made.folder.string()});
    if (!removed) continue;
  }
}

Result<Checkout> Checkouts::make(const std::string& repo, const std::string& revision) {
  std::error_code error;
  const auto folder = std::filesystem::canonical(repo, error);
  if (error)
    return bad_input("checkout: expected a repository in {}, found: {}", repo, error.message());
  const bool as_it_is = revision == kAsItIs;
  const std::string commit = (as_it_is ? "HEAD" : revision) + std::string("^{commit}");
  auto sha =
      run_git(spawner_, folder, {"rev-parse", "--verify", "--quiet", "--end-of-options", commit});
  if (!sha) {
    const auto is_repository = run_git(spawner_, folder, {"rev-parse", "--git-dir"});
    if (!is_repository) {
      return bad_input("checkout: expected a git repository in {}, found: {}", repo,
                       is_repository.error().message);
    }
    return bad_input("checkout: expected a revision of {}, found {}", repo,
                     quoted_excerpt(revision));
  }
  // Older versions of git repeat the option.
  Checkout checkout{{}, sha->substr(sha->rfind('\n') + 1)};
  if (as_it_is) {
    ASSAY_TRY(const std::string dirty, dirtiness(spawner_, folder));
    checkout.sha += dirty;
    checkout.folder = folder;
    return checkout;
  }
  ASSAY_TRY(const std::string inside, run_git(spawner_, folder, {"rev-parse", "--show-prefix"}));
  ASSAY_TRY(TemporaryFolder parent, TemporaryFolder::make("assay-checkout-"));
  const std::filesystem::path root = parent.path() / folder.filename();
  checkout.folder = inside.empty() ? root : (root / inside).parent_path();
  ASSAY_CHECK(run_git(spawner_, folder,
                      {"worktree", "add", "--detach", "--quiet", root.string(), checkout.sha}));
  made_.push_back({std::move(parent), folder, root});
  return checkout;
}

const Result<Checkout>& Checkouts::get(const std::string& repo, const std::string& revision) {
  const std::pair key(repo, revision);
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  return known_.emplace(key, make(repo, revision)).first->second;
}

}  // namespace assay
