// Any benchmark command as a backend: its worker is this program, which starts the command.
#pragma once

#include <filesystem>
#include <memory>

#include "backend/backend.h"

namespace assay {

// `program` serves `worker command`; `image`, if it isn't empty, is executed under that name
// (ChildSpec::image). Worktrees of arms with a checkout are there from an arm's
// first readiness() until the backend goes.
std::unique_ptr<Backend> make_command_backend(std::filesystem::path program, Spawner& spawner,
                                              std::filesystem::path image = {});

}  // namespace assay
