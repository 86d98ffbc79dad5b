// Git worktrees that a run makes for itself, and those that a killed run left behind.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/files/temporary_folder.h"
#include "base/process/subprocess.h"
#include "base/result.h"

namespace assay {

// A folder in which worktrees lie.
Result<TemporaryFolder> make_worktree_home();

// Adds one at a commit that the repository in this folder has, detached. bad_input: git can't.
Status add_worktree(Spawner& spawner, const std::filesystem::path& repo,
                    const std::filesystem::path& folder, const std::string& commit);
// Removes one with git's note on it. True if git could; else its folder and the note stay.
bool remove_worktree(Spawner& spawner, const std::filesystem::path& repo,
                     const std::filesystem::path& folder);

// Removes those worktrees of the repository whose home's process was killed, and the home with the
// worktree that lies in it, rather than in another worktree as a submodule's does. Whatever lies
// elsewhere, belongs to another user, is in use or isn't to be seen stays as it is.
void remove_left_worktrees(Spawner& spawner, const std::filesystem::path& repo);

}  // namespace assay
