// Git worktrees that a run makes for itself, and those that a killed run left behind.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/subprocess.h"
#include "base/temporary_folder.h"

namespace assay {

// A folder in which worktrees lie.
Result<TemporaryFolder> make_worktree_home();

// Of the repository in this folder, at a commit that it has, detached. bad_input: git can't.
Status add_worktree(Spawner& spawner, const std::filesystem::path& repo,
                    const std::filesystem::path& folder, const std::string& commit);
// With what git noted about it. Where git can't, its folder stays, and so does the note.
bool remove_worktree(Spawner& spawner, const std::filesystem::path& repo,
                     const std::filesystem::path& folder);

// Removes those worktrees of the repository whose home's process was killed, and the home with the
// worktree that lies in it, rather than in another worktree as a submodule's does. Whatever lies
// elsewhere, belongs to another user, is in use or isn't to be seen stays as it is.
void remove_left_worktrees(Spawner& spawner, const std::filesystem::path& repo);

}  // namespace assay
