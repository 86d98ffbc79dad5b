// The system's C++ compiler as found at run time: who it is, and one translation unit to a shared
// object.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace assay::engine {

struct CpuCompiler {
  std::filesystem::path command;  // as called: a driver may act by the name in it
  std::filesystem::path path;     // the same file, links resolved
  std::string version;            // first line of --version
  std::string sha256;             // of the file at `path`
  std::string processor;          // its name, for people
  std::string target;  // the processor that -march=native stands for: identity and features
  std::vector<std::string> flags;
  double timeout_s = 60;  // of one compilation; the compiler is killed then

  // $ASSAY_CXX, else c++ on PATH. An environment_error that names the places searched and the
  // finding. Compiles nothing: some milliseconds.
  static Result<CpuCompiler> find();
  // This one, found by another process (command, path, version, sha256, timeout_s), with the
  // members that this program adds itself: the processor and the flags. Starts and hashes nothing.
  Result<CpuCompiler> completed() const;

  std::string identity() const;  // as KernelKey::compiler
};

// Compiles `source` in `folder`, whose files kernel.cc and kernel.so it writes; returns the
// latter's path. The compiler's temporary files are in the folder too. If this process is ended
// while the compiler runs, by any signal, the compiler's processes end too, and the folder is
// removed. environment_error with the compiler's whole stderr (several lines) if it fails, hangs,
// or leaves no file.
Result<std::filesystem::path> compile_shared(const CpuCompiler& compiler, const std::string& source,
                                             const std::filesystem::path& folder);

// The processor as /proc/cpuinfo's first block has it. `identity` holds vendor, family, model,
// stepping and every feature flag.
struct Processor {
  std::string name;
  std::string identity;
};
Result<Processor> parse_cpuinfo(std::string_view text);

}  // namespace assay::engine
