// The one place that names every backend.
#include "cli/backends.h"

#include <filesystem>

#include "backend/command/command_backend.h"
#include "backend/http/http_backend.h"
#include "backend/native/native_backend.h"
#include "backend/torch/torch_backend.h"
#include "base/process/subprocess.h"
#include "engine/model/architectures.h"
#include "engine/model/checkpoint.h"
#include "engine/model/config.h"

namespace assay::cli {
namespace {

Result<TorchArchitecture> architecture(const std::string& name, const std::string& dtype_name) {
  ASSAY_TRY(const engine::NamedArchitecture named, engine::find_architecture(name));
  const engine::DType dtype =
      dtype_name.empty() ? named.dtype : engine::parse_dtype(dtype_name).value_or(named.dtype);
  TorchArchitecture architecture{engine::make_config_json(named, dtype), 0};
  ASSAY_TRY(const auto config, engine::parse_model_config(architecture.config, name));
  for (const engine::TensorSpec& tensor : engine::tensor_specs(config)) {
    architecture.weight_bytes +=
        static_cast<uint64_t>(tensor.shape.elements()) * engine::dtype_size_bytes(dtype);
  }
  return architecture;
}

}  // namespace

BackendSet make_backends() {
  BackendSet backends;
  std::error_code error;
  auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) program = "assay";
  // Workers are the very program that runs here, also where another one has come to its path since.
  const char* const image = "/proc/self/exe";
  backends["command"] = make_command_backend(program, system_spawner(), image);
  backends["http"] = make_http_backend(program, image);
  backends["native"] = make_native_backend(program, image);
  backends["torch"] =
      make_torch_backend(program, architecture, system_spawner(), process_environment_reader());
  return backends;
}

}  // namespace assay::cli
