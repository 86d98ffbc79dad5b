// Names in the order in which they are tried.
#include "engine/codegen/cuda/cuda_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <vector>

#include "base/text/text.h"

namespace assay::engine {
namespace {

std::string variable_of(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::vector<std::string> names_of(const std::string& stem, const char* variable) {
  if (const std::string asked = variable_of(variable); !asked.empty()) return {asked};
  const std::string name = "lib" + stem + ".so";
  std::vector<std::string> names = {name + ".13", name + ".12", name,
                                    "/usr/local/cuda/lib64/" + name};
  if (const auto folder = cuda_libraries_folder(); !folder.empty()) {
    names.push_back(folder / (name + ".13"));
  }
  return names;
}

}  // namespace

std::filesystem::path cuda_libraries_folder() {
  if (const std::string cache = variable_of("XDG_CACHE_HOME"); cache.starts_with('/')) {
    return std::filesystem::path(cache) / "assay" / "cuda-libs";
  }
  const std::string home = variable_of("HOME");
  if (home.empty()) return {};
  return std::filesystem::path(home) / ".cache" / "assay" / "cuda-libs";
}

Result<CudaLibrary> open_cuda_library(const std::string& stem, const char* variable) {
  const std::vector<std::string> names = names_of(stem, variable);
  for (const std::string& name : names) {
    void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) continue;
    const ::link_map* map = nullptr;
    const bool known = ::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0] != '\0';
    return CudaLibrary{handle, known ? map->l_name : name};
  }
  return environment_error("{}: expected one of {}, found none", stem, join(names, ", "));
}

}  // namespace assay::engine
