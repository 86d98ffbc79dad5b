// Finds CUDA's own libraries at run time: nothing of them is needed to build.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace assay::engine {

// Open until the process ends: CUDA's libraries free at no other time what they allocate at their
// start.
struct CudaLibrary {
  void* handle = nullptr;  // as dlopen() gives it
  std::string path;        // of the file; the name that found it if the loader doesn't say
};

// lib`stem`.so, e.g. "nvrtc": the file that the environment's `variable` names, alone, if it is
// set; else version 13, 12 or any as the loader finds them, then of /usr/local/cuda, then of the
// folder that `make cuda-libs` fills. An environment_error names all places searched.
Result<CudaLibrary> open_cuda_library(const std::string& stem, const char* variable);

// $XDG_CACHE_HOME/assay/cuda-libs, else ~/.cache/assay/cuda-libs; empty without either variable.
std::filesystem::path cuda_libraries_folder();

}  // namespace assay::engine
