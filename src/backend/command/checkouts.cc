// git worktree add and remove.
#include "backend/command/checkouts.h"

#include "base/text.h"

namespace assay {
namespace {

constexpr double kGitSeconds = 300;  // of one call: a large tree takes its time to write

// The first line of what git had to say.
std::string first_words(const std::string& err) {
  const std::string line = err.substr(0, err.find('\n'));
  return line.empty() ? "no reason given" : line;
}

}  // namespace

Checkouts::~Checkouts() {
  for (const Made& made : made_) {
    // Where git can't, the folder goes all the same, and `git worktree prune` forgets it.
    const auto removed = git(made.repo, {"worktree", "remove", "--force", made.folder.string()});
    if (!removed) continue;
  }
}

Result<std::string> Checkouts::git(const std::filesystem::path& repo,
                                   std::vector<std::string> arguments) {
  // Without the variables by which a hook of git, say, would point it at another repository.
  std::vector<std::string> argv = {"env",
                                   "-u",
                                   "GIT_DIR",
                                   "-u",
                                   "GIT_WORK_TREE",
                                   "-u",
                                   "GIT_INDEX_FILE",
                                   "-u",
                                   "GIT_COMMON_DIR",
                                   "git",
                                   "-C",
                                   repo.string(),
                                   "-c",
                                   "core.hooksPath=/dev/null"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  ASSAY_TRY(const CommandOutput output, run_command(spawner_, std::move(argv), kGitSeconds));
  if (!output.end.ok()) {
    return bad_input("git {}: {}", arguments.front(), first_words(output.err));
  }
  std::string text = output.out;
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

Result<Checkout> Checkouts::make(const std::string& repo, const std::string& revision) {
  std::error_code error;
  const auto folder = std::filesystem::canonical(repo, error);
  if (error)
    return bad_input("checkout: expected a repository in {}, found: {}", repo, error.message());
  const bool as_it_is = revision == kAsItIs;
  const std::string commit = (as_it_is ? "HEAD" : revision) + std::string("^{commit}");
  auto sha = git(folder, {"rev-parse", "--verify", "--quiet", "--end-of-options", commit});
  if (!sha) {
    const auto is_repository = git(folder, {"rev-parse", "--git-dir"});
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
    ASSAY_TRY(const std::string changes, git(folder, {"status", "--porcelain"}));
    if (!changes.empty()) checkout.sha += "-dirty";
    checkout.folder = folder;
    return checkout;
  }
  ASSAY_TRY(TemporaryFolder parent, TemporaryFolder::make("assay-checkout-"));
  checkout.folder = parent.path() / folder.filename();
  ASSAY_CHECK(git(
      folder, {"worktree", "add", "--detach", "--quiet", checkout.folder.string(), checkout.sha}));
  made_.push_back({std::move(parent), folder, checkout.folder});
  return checkout;
}

const Result<Checkout>& Checkouts::get(const std::string& repo, const std::string& revision) {
  const std::pair key(repo, revision);
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  return known_.emplace(key, make(repo, revision)).first->second;
}

}  // namespace assay
