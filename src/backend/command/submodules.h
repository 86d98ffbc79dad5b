// Submodules of a commit, as far as they are checked out in the repository's own folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/process/subprocess.h"
#include "base/result.h"

namespace assay {

struct CommitSubmodule {
  std::string path;             // in the repository
  std::string commit;           // that the repository's commit names
  std::filesystem::path clone;  // the submodule's folder in the repository's own, a repository too
};

// `top` is the repository's topmost folder. Submodules that aren't checked out there are left out,
// as they are by `git clone`. bad_input: .gitmodules of that commit can't be read.
Result<std::vector<CommitSubmodule>> submodules_of(Spawner& spawner,
                                                   const std::filesystem::path& top,
                                                   const std::string& commit);

}  // namespace assay
