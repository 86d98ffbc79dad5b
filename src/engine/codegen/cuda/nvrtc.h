// NVIDIA's run-time compiler: CUDA C++ to machine code for a GPU that need not be there. The
// library is opened at run time; nothing of it is needed to build.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::engine {

// An entry point's share of a multiprocessor, as the assembler reports it.
struct EntryResources {
  std::string entry;
  int64_t registers = 0;          // of a thread
  int64_t spill_store_bytes = 0;  // of a thread: registers that did not suffice
  int64_t spill_load_bytes = 0;
  int64_t stack_bytes = 0;   // of a thread
  int64_t shared_bytes = 0;  // of a block, those known at compile time
  bool serialized = false;   // each product by a warpgroup waits for the one before
};

struct Cubin {
  std::string bytes;
  std::vector<EntryResources> entries;
};

// The target for a GPU of this compute capability, 90 for 9.0: "sm_90a".
std::string nvrtc_target(int compute_capability);

class Nvrtc {
 public:
  // $ASSAY_NVRTC alone, if it is set; else as open_cuda_library() finds it. An environment_error
  // that names the places searched.
  static Result<Nvrtc> open();

  Nvrtc(Nvrtc&&) noexcept;
  Nvrtc& operator=(Nvrtc&&) noexcept;
  ~Nvrtc();

  // `target`: as nvrtc_target() has it. environment_error with the compiler's whole log, several
  // lines, if the source doesn't compile.
  Result<Cubin> compile(const std::string& source, const std::string& target) const;

  // The GPUs that it compiles for, by compute capability: 90 for 9.0. Empty if it doesn't say.
  std::vector<int> targets() const;
  const std::string& path() const { return path_; }        // of the library
  const std::string& version() const { return version_; }  // "13.0"
  // Hash of the library's file, read at the first call (some 100 MB); empty if it can't be read.
  const std::string& sha256() const;
  // KernelKey::compiler and KernelKey::flags.
  std::string identity() const { return "nvrtc " + version_ + "\n" + path_; }
  static std::string flags();

 private:
  struct Library;
  explicit Nvrtc(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
  std::string path_;
  std::string version_;
};

// The lines of `ptxas -v` about entry points, in their order; others are passed over.
std::vector<EntryResources> parse_ptxas_log(std::string_view log);

}  // namespace assay::engine
