// .gitmodules says where submodules are, and the tree at which commit.
#include "backend/command/submodules.h"

#include "backend/command/git.h"
#include "base/text/text.h"

namespace assay {
namespace {

// Paths of `git config -z --list`: "submodule.NAME.path", a line end and the path in each entry.
std::vector<std::string> paths_in(const std::string& configuration) {
  std::vector<std::string> paths;
  for (const std::string& entry : split(configuration, '\0')) {
    const size_t key_end = entry.find('\n');
    if (key_end == std::string::npos) continue;
    const std::string key = entry.substr(0, key_end);
    if (key.starts_with("submodule.") && key.ends_with(".path")) {
      paths.push_back(entry.substr(key_end + 1));
    }
  }
  return paths;
}

// The SHA in "160000 commit SHA<tab>PATH" of `git ls-tree -z`; empty: it is no submodule there.
std::string commit_of_entry(const std::string& entry, const std::string& path) {
  constexpr std::string_view kKind = "160000 commit ";
  const std::string_view text(entry.c_str());
  const size_t tab = text.find('\t');
  if (!text.starts_with(kKind) || tab == std::string_view::npos || text.substr(tab + 1) != path) {
    return "";
  }
  return std::string(text.substr(kKind.size(), tab - kKind.size()));
}

}  // namespace

Result<std::vector<CommitSubmodule>> submodules_of(Spawner& spawner,
                                                   const std::filesystem::path& top,
                                                   const std::string& commit) {
  std::vector<CommitSubmodule> found;
  const std::string blob = commit + ":.gitmodules";
  if (!run_git(spawner, top, {"rev-parse", "--verify", "--quiet", blob})) return found;
  ASSAY_TRY(const std::string configuration,
            run_git(spawner, top, {"config", "--blob", blob, "-z", "--list"}));
  for (const std::string& path : paths_in(configuration)) {
    std::error_code error;
    if (!std::filesystem::exists(top / path / ".git", error)) continue;
    ASSAY_TRY(const std::string entry,
              run_git(spawner, top, {"ls-tree", "-z", commit, "--", path}));
    std::string pinned = commit_of_entry(entry, path);
    if (!pinned.empty()) found.push_back({path, std::move(pinned), top / path});
  }
  return found;
}

}  // namespace assay
