// A Python interpreter's packages and compilers for the torch worker, asked of it once by
// workers/torch/probe.py.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/process/subprocess.h"
#include "base/records/json.h"
#include "base/result.h"

namespace assay {

// Versions are absent where the package can't be imported; `_error` says why.
struct TorchProbe {
  std::string python;
  std::optional<std::string> torch, torch_error;
  std::optional<std::string> transformers, transformers_error;
  std::optional<std::string> triton, triton_error;
  std::optional<std::string> cuda_device, cuda_error;  // the first one that PyTorch would use
  std::optional<std::string> cuda_uuid;                // "GPU-..."
  std::optional<std::string> cxx, cxx_error;  // C++ compiler of Inductor: first line of --version
  std::optional<std::string> cc;              // C compiler of Triton's launchers
  Json facts = Json::object();                // all of it, as the script printed it
};

// bad_input that names the member of the script's output that was expected.
Result<TorchProbe> parse_probe(std::string_view text);

// environment_error if the interpreter can't be started, fails, or takes longer than `timeout_s`.
// One that a signal ended is asked once more.
Result<TorchProbe> probe_python(Spawner& spawner, const std::string& python,
                                const std::filesystem::path& script, double timeout_s);

}  // namespace assay
