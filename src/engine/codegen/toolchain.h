// The compiler that makes machine code of kernels, on any target, for evidence.
#pragma once

#include <string>
#include <vector>

namespace assay::engine {

// A member that doesn't apply is empty.
struct Toolchain {
  std::string name;  // c++ | nvrtc
  std::string version;
  std::string path;       // of the compiler's file, or of its library
  std::string sha256;     // of that file
  std::string target;     // of its code: the processor with its features, "sm_90a"
  std::string processor;  // its name
  std::vector<std::string> flags;
  std::string driver;  // of a GPU: "CUDA 13.0"
};

}  // namespace assay::engine
