// Revisions of git repositories, each in a worktree of its own while a run needs it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/files/temporary_folder.h"
#include "base/process/subprocess.h"
#include "base/result.h"

namespace assay {

// The revision that stands for the repository's folder as it is, uncommitted changes included.
inline constexpr const char* kAsItIs = ".";

struct Checkout {
  std::filesystem::path folder;
  // The commit's hash. For kAsItIs with changed or new files "-dirty" stands behind it, and between
  // them the hash of the changes of tracked files: "374fbe1c...-5b2f0c9d1e7a-dirty".
  std::string sha;
};

// Worktrees lie below the system's folder for temporary files, never inside the repository, and are
// removed by the destructor, with git's notes on them; those of a run that was killed are removed
// when the next one needs the same repository. git starts no program that the repository names
// except filters (git.h) and fetches nothing: a submodule that is checked out in the repository's
// folder is checked out in the revision too, from the clone that is there, and any other is an
// empty folder.
class Checkouts {
 public:
  explicit Checkouts(Spawner& spawner) : spawner_(spawner) {}
  Checkouts(const Checkouts&) = delete;
  Checkouts& operator=(const Checkouts&) = delete;
  ~Checkouts();

  // The checkout of a branch, tag or commit of the repository in this folder; made when first asked
  // for, and the same from then on. A folder inside a repository gives that folder of the revision.
  // bad_input that names repository and revision: either isn't there, several commits have names
  // that begin so, or the clone of a submodule lacks the commit that the revision names.
  const Result<Checkout>& get(const std::string& repo, const std::string& revision);

 private:
  struct Made {
    std::filesystem::path repo;
    std::filesystem::path folder;
  };
  Result<Checkout> make(const std::string& repo, const std::string& revision);
  // Removes worktrees of killed runs, of this repository and its submodules, innermost first.
  void remove_left(const std::filesystem::path& repo, const std::string& commit);
  Status check_out(const std::filesystem::path& repo, const std::filesystem::path& folder,
                   const std::string& commit);
  Status check_out_submodules(const std::filesystem::path& repo,
                              const std::filesystem::path& folder, const std::string& commit);

  Spawner& spawner_;
  std::map<std::pair<std::string, std::string>, Result<Checkout>> known_;
  std::vector<TemporaryFolder> homes_;
  std::vector<Made> made_;  // submodules behind the repositories that they are part of
};

}  // namespace assay
