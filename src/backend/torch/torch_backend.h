// PyTorch as the harness sees it: workers/torch/worker.py under an interpreter of the arm's choice.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "backend/backend.h"
#include "backend/torch/torch_places.h"
#include "base/process/subprocess.h"

namespace assay {

// An architecture that the worker builds with random weights.
struct TorchArchitecture {
  Json config;  // config.json as Hugging Face has it
  uint64_t weight_bytes = 0;
};
// Finds one by name and dtype (empty: as published); an unknown name is bad_input that lists the
// known ones.
using ArchitectureSource =
    std::function<Result<TorchArchitecture>(const std::string& name, const std::string& dtype)>;

// `program` is the assay executable: the workers are looked for beside it.
std::unique_ptr<Backend> make_torch_backend(std::filesystem::path program,
                                            ArchitectureSource architectures, Spawner& spawner,
                                            EnvironmentReader environment);

}  // namespace assay
