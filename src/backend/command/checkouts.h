// Revisions of git repositories, each in a worktree of its own while a run needs it.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/subprocess.h"
#include "base/temporary_folder.h"

namespace assay {

// The revision that stands for the repository's folder as it is, uncommitted changes included.
inline constexpr const char* kAsItIs = ".";

struct Checkout {
  std::filesystem::path folder;
  // Of the commit. For kAsItIs with changed or new files "-dirty" stands behind it, and between
  // them the hash of the changes of tracked files: "374fbe1c...-5b2f0c9d1e7a-dirty".
  std::string sha;
};

// Worktrees lie below the system's folder for temporary files, never inside the repository, and are
// removed by the destructor, with what git noted about them. git starts no program that the
// repository names (git.h), and submodules are not checked out.
class Checkouts {
 public:
  explicit Checkouts(Spawner& spawner) : spawner_(spawner) {}
  Checkouts(const Checkouts&) = delete;
  Checkouts& operator=(const Checkouts&) = delete;
  ~Checkouts();

  // Of a branch, tag or commit of the repository in this folder, which may be a folder inside one
  // and then is that folder of the revision; made when first asked for, and the same from then on.
  // bad_input that names repository and revision: either isn't there.
  const Result<Checkout>& get(const std::string& repo, const std::string& revision);

 private:
  struct Made {
    TemporaryFolder parent;
    std::filesystem::path repo;
    std::filesystem::path folder;  // of the worktree
  };
  Result<Checkout> make(const std::string& repo, const std::string& revision);

  Spawner& spawner_;
  std::map<std::pair<std::string, std::string>, Result<Checkout>> known_;
  std::vector<Made> made_;
};

}  // namespace assay
