// Revisions to commits, and commits to worktrees with their submodules.
#include "backend/command/checkouts.h"

#include <algorithm>
#include <cctype>
#include <ranges>

#include "backend/command/git.h"
#include "backend/command/submodules.h"
#include "backend/command/worktrees.h"
#include "base/files/hash.h"
#include "base/text/text.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr size_t kChangeDigits = 12;

// The difference of the folder's tracked files to its commit, those of submodules included.
Result<std::string> changes_of(Spawner& spawner, const fs::path& folder) {
  ASSAY_TRY(std::string patch,
            run_git(spawner, folder,
                    {"diff", "--no-ext-diff", "--no-textconv", "--no-color", "--full-index",
                     "--submodule=short", "--ignore-submodules=untracked", "HEAD"}));
  ASSAY_TRY(const std::string top, run_git(spawner, folder, {"rev-parse", "--show-toplevel"}));
  ASSAY_TRY(const auto submodules, submodules_of(spawner, top, "HEAD"));
  for (const CommitSubmodule& submodule : submodules) {
    ASSAY_TRY(const std::string inside, changes_of(spawner, submodule.clone));
    if (!inside.empty()) patch += fmt::format("\nsubmodule {}\n{}", submodule.path, inside);
  }
  return patch;
}

// The suffix for a folder that differs from its commit: "-dirty", and before it the hash of the
// changes of tracked files, so that two states of one commit aren't taken for one. New files may be
// results, so they count as a change and not in the hash. Empty: there is no difference.
Result<std::string> dirtiness(Spawner& spawner, const fs::path& folder) {
  ASSAY_TRY(const std::string changes, run_git(spawner, folder,
                                               {"status", "--porcelain", "--untracked-files=normal",
                                                "--ignore-submodules=none"}));
  if (changes.empty()) return std::string();
  ASSAY_TRY(const std::string patch, changes_of(spawner, folder));
  if (patch.empty()) return std::string("-dirty");
  return fmt::format("-{}-dirty", sha256_hex(patch).substr(0, kChangeDigits));
}

bool git_says_true(Spawner& spawner, const fs::path& folder, const char* question) {
  const auto answer = run_git(spawner, folder, {"rev-parse", question});
  return answer && *answer == "true";
}

// The reason why a revision is no commit, as far as it is known; empty: it isn't.
std::string why_no_commit(Spawner& spawner, const fs::path& folder, const std::string& revision) {
  constexpr size_t kShortest = 4;  // beginning of a name that git looks up
  const bool hex = std::ranges::all_of(
      revision, [](unsigned char letter) { return std::isxdigit(letter) != 0; });
  if (hex && revision.size() >= kShortest) {
    const auto names = run_git(spawner, folder, {"rev-parse", "--disambiguate=" + revision});
    const auto several = names ? std::ranges::count(*names, '\n') : 0;
    if (several > 0) return fmt::format(", which the names of {} objects begin with", several + 1);
  }
  if (!git_says_true(spawner, folder, "--is-shallow-repository")) return "";
  return " in a shallow clone (`git fetch --unshallow` fetches the rest)";
}

Result<std::string> commit_of(Spawner& spawner, const fs::path& folder, const std::string& repo,
                              const std::string& revision) {
  const std::string commit = (revision == kAsItIs ? "HEAD" : revision) + "^{commit}";
  const auto sha =
      run_git(spawner, folder, {"rev-parse", "--verify", "--quiet", "--end-of-options", commit});
  // Older versions of git repeat the option.
  if (sha) return sha->substr(sha->rfind('\n') + 1);
  const auto is_repository = run_git(spawner, folder, {"rev-parse", "--git-dir"});
  if (!is_repository) {
    return bad_input("checkout: expected a git repository in {}, found: {}", repo,
                     is_repository.error().message);
  }
  return bad_input("checkout: expected a revision of {}, found {}{}", repo,
                   quoted_excerpt(revision), why_no_commit(spawner, folder, revision));
}

}  // namespace

Checkouts::~Checkouts() {
  // If git can't, the folder goes all the same, and `git worktree prune` forgets it.
  for (const Made& made : std::views::reverse(made_)) {
    remove_worktree(spawner_, made.repo, made.folder);
  }
}

void Checkouts::remove_left(const fs::path& repo, const std::string& commit) {
  const auto top = run_git(spawner_, repo, {"rev-parse", "--show-toplevel"});
  const auto submodules =
      top ? submodules_of(spawner_, *top, commit) : Result<std::vector<CommitSubmodule>>();
  if (submodules) {
    for (const CommitSubmodule& submodule : *submodules) {
      remove_left(submodule.clone, submodule.commit);
    }
  }
  remove_left_worktrees(spawner_, repo);
}

Status Checkouts::check_out(const fs::path& repo, const fs::path& folder,
                            const std::string& commit) {
  ASSAY_CHECK(add_worktree(spawner_, repo, folder, commit));
  made_.push_back({repo, folder});
  return check_out_submodules(repo, folder, commit);
}

Status Checkouts::check_out_submodules(const fs::path& repo, const fs::path& folder,
                                       const std::string& commit) {
  const auto top = run_git(spawner_, repo, {"rev-parse", "--show-toplevel"});
  if (!top) return {};  // a bare repository has no folder in which they were checked out
  ASSAY_TRY(const auto submodules, submodules_of(spawner_, *top, commit));
  for (const CommitSubmodule& submodule : submodules) {
    const auto known =
        run_git(spawner_, submodule.clone,
                {"rev-parse", "--verify", "--quiet", submodule.commit + "^{commit}"});
    if (!known) {
      return bad_input(
          "checkout: expected the commit {} of the submodule {} in {}, found none (`git fetch` "
          "there fetches it)",
          submodule.commit, quoted_excerpt(submodule.path), submodule.clone.string());
    }
    ASSAY_CHECK(check_out(submodule.clone, folder / submodule.path, submodule.commit));
  }
  return {};
}

Result<Checkout> Checkouts::make(const std::string& repo, const std::string& revision) {
  std::error_code error;
  const auto folder = fs::canonical(repo, error);
  if (error)
    return bad_input("checkout: expected a repository in {}, found: {}", repo, error.message());
  Checkout checkout;
  ASSAY_TRY(checkout.sha, commit_of(spawner_, folder, repo, revision));
  if (revision == kAsItIs) {
    if (!git_says_true(spawner_, folder, "--is-inside-work-tree")) {
      return bad_input(
          "checkout: expected a folder with files in {} for the revision \".\", found a bare "
          "repository",
          repo);
    }
    ASSAY_TRY(const std::string dirty, dirtiness(spawner_, folder));
    checkout.sha += dirty;
    checkout.folder = folder;
    return checkout;
  }
  ASSAY_TRY(const std::string inside, run_git(spawner_, folder, {"rev-parse", "--show-prefix"}));
  ASSAY_TRY(TemporaryFolder home, make_worktree_home());
  const fs::path root = home.path() / folder.filename();
  homes_.push_back(std::move(home));
  remove_left(folder, checkout.sha);
  ASSAY_CHECK(check_out(folder, root, checkout.sha));
  checkout.folder = inside.empty() ? root : (root / inside).parent_path();
  return checkout;
}

const Result<Checkout>& Checkouts::get(const std::string& repo, const std::string& revision) {
  const std::pair key(repo, revision);
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  return known_.emplace(key, make(repo, revision)).first->second;
}

}  // namespace assay
