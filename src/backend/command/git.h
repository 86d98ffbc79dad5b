// git in a repository that a study names: it reads, and starts no program that the repository's
// configuration names.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/process/subprocess.h"
#include "base/result.h"

namespace assay {

// The command line of git in this folder. Hooks and the file system monitor of the repository don't
// run, git writes nothing that the arguments don't ask for (no refreshed index), and variables that
// point it at another repository, as git itself sets them for its hooks, don't count. git fetches
// nothing, not even objects that a partial clone lacks, so that nothing runs that is configured for
// fetching: upload-pack, ssh, proxies, remote helpers, credential helpers. Filters that the
// configuration names, such as Git LFS, run as in any checkout.
std::vector<std::string> git_command(const std::filesystem::path& folder,
                                     std::vector<std::string> arguments);

// git's stdout, without its last line ends. bad_input: it failed; the error has the first line of
// its stderr, and says if the repository is a partial clone.
Result<std::string> run_git(Spawner& spawner, const std::filesystem::path& folder,
                            std::vector<std::string> arguments);

}  // namespace assay
