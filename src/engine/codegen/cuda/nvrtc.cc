// NVRTC's functions, looked up by name, and the assembler's log.
#include "engine/codegen/cuda/nvrtc.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>

#include "base/files/hash.h"
#include "base/text/text.h"
#include "engine/codegen/cuda/cuda_library.h"
#include "engine/codegen/cuda/nvrtc_api.h"

namespace assay::engine {
namespace {

constexpr NvrtcStatus kSuccess = 0;
constexpr std::array<const char*, 4> kOptions = {"--std=c++17", "--ptxas-options=-v", "--fmad=true",
                                                 "--disable-warnings"};

// The number between the last `before` ahead of `after`, and `after`; 0 where the line hasn't got
// them.
int64_t number_between(std::string_view line, std::string_view before, std::string_view after) {
  const size_t end = line.find(after);
  if (end == std::string_view::npos || end == 0) return 0;
  size_t begin = line.rfind(before, end - 1);
  if (begin == std::string_view::npos) return 0;
  begin += before.size();
  return std::strtoll(std::string(line.substr(begin, end - begin)).c_str(), nullptr, 10);
}

}  // namespace

// The library stays open until the process ends: it allocates at its start what it doesn't free at
// its end.
struct Nvrtc::Library : NvrtcApi {
  bool look_up_all(void* handle) {
    const auto look_up = [&](const char* name, auto& function) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
      return function != nullptr;
    };
#define ASSAY_NVRTC_LOOK_UP(member, symbol, arguments) &&look_up(#symbol, member)
    return look_up("nvrtcGetErrorString", error_text) ASSAY_NVRTC(ASSAY_NVRTC_LOOK_UP);
#undef ASSAY_NVRTC_LOOK_UP
  }

  // The text that a pair of a size function and a read function gives.
  static std::string read(NvrtcProgram program, NvrtcStatus (*size_of)(NvrtcProgram, size_t*),
                          NvrtcStatus (*read_into)(NvrtcProgram, char*)) {
    size_t size = 0;
    if (size_of(program, &size) != kSuccess) return {};
    std::string text(size, '\0');
    if (size > 0 && read_into(program, text.data()) != kSuccess) return {};
    return text;
  }
  std::string log_of(NvrtcProgram program) const {
    std::string text = read(program, log_size, log);
    while (!text.empty() && (text.back() == '\0' || text.back() == '\n')) text.pop_back();
    return text;
  }

  std::optional<std::string> sha256;  // absent: nobody asked yet
};

// From Hopper on, the instructions that a kind has alone are asked for by an "a".
std::string nvrtc_target(int compute_capability) {
  return fmt::format("sm_{}{}", compute_capability, compute_capability >= 90 ? "a" : "");
}

Nvrtc::Nvrtc(std::unique_ptr<Library> library) : library_(std::move(library)) {}
Nvrtc::Nvrtc(Nvrtc&&) noexcept = default;
Nvrtc& Nvrtc::operator=(Nvrtc&&) noexcept = default;
Nvrtc::~Nvrtc() = default;

Result<Nvrtc> Nvrtc::open() {
  ASSAY_TRY(const CudaLibrary found, open_cuda_library("nvrtc", "ASSAY_NVRTC"));
  Nvrtc nvrtc(std::make_unique<Library>());
  int major = 0, minor = 0;
  if (!nvrtc.library_->look_up_all(found.handle) ||
      nvrtc.library_->version(&major, &minor) != kSuccess) {
    return environment_error("{}: expected NVRTC's functions, found some missing", found.path);
  }
  nvrtc.path_ = found.path;
  nvrtc.version_ = fmt::format("{}.{}", major, minor);
  return nvrtc;
}

const std::string& Nvrtc::sha256() const {
  if (!library_->sha256) library_->sha256 = sha256_file_hex(path_).value_or("");
  return *library_->sha256;
}

std::vector<int> Nvrtc::targets() const {
  int count = 0;
  if (library_->target_count(&count) != kSuccess || count < 1) return {};
  std::vector<int> targets(static_cast<size_t>(count));
  if (library_->targets(targets.data()) != kSuccess) return {};
  return targets;
}

std::string Nvrtc::flags() {
  std::string text;
  for (const char* option : kOptions) text += fmt::format("{} ", option);
  return text;
}

Result<Cubin> Nvrtc::compile(const std::string& source, const std::string& target) const {
  const Library& library = *library_;
  NvrtcProgram program = nullptr;
  if (const int result = library.create(&program, source.c_str(), "kernel.cu", 0, nullptr, nullptr);
      result != kSuccess) {
    return environment_error("{}: expected a program for {}, found: {}", path_, target,
                             library.error_text(result));
  }
  const std::string architecture = "--gpu-architecture=" + target;
  std::vector<const char*> options(kOptions.begin(), kOptions.end());
  options.push_back(architecture.c_str());
  const int result = library.compile(program, static_cast<int>(options.size()), options.data());
  const std::string log = library.log_of(program);
  Cubin cubin{library.read(program, library.cubin_size, library.cubin), parse_ptxas_log(log)};
  library.destroy(&program);
  if (result != kSuccess || cubin.bytes.empty()) {
    return environment_error("{}: expected a kernel compiled for {}, found {}: {}", path_, target,
                             library.error_text(result), log);
  }
  return cubin;
}

// ptxas info    : Compiling entry function 'run' for 'sm_80'
// ptxas info    : Function properties for run
//     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
// (or "ptxas         .     0 bytes stack frame, ...")
// ptxas info    : Used 12 registers, used 1 barriers, 128 bytes smem, 376 bytes cmem[0]
std::vector<EntryResources> parse_ptxas_log(std::string_view log) {
  constexpr std::string_view kEntry = "Compiling entry function '";
  constexpr std::string_view kSerialized = "instructions are serialized", kIn = "in the function '";
  std::vector<EntryResources> entries;
  std::set<std::string> serialized;
  for (const std::string& line : split(log, '\n')) {
    if (const size_t at = line.find(kIn);
        at != std::string::npos && line.find(kSerialized) != std::string::npos) {
      const size_t begin = at + kIn.size();
      serialized.insert(line.substr(begin, line.find('\'', begin) - begin));
    }
    if (const size_t at = line.find(kEntry); at != std::string::npos) {
      const size_t begin = at + kEntry.size();
      entries.push_back({.entry = line.substr(begin, line.find('\'', begin) - begin)});
    }
    if (entries.empty()) continue;
    EntryResources& entry = entries.back();
    if (line.find("bytes spill stores") != std::string::npos) {
      entry.stack_bytes = number_between(line, " ", " bytes stack frame");
      entry.spill_store_bytes = number_between(line, ", ", " bytes spill stores");
      entry.spill_load_bytes = number_between(line, ", ", " bytes spill loads");
    }
    if (line.find("Used ") != std::string::npos) {
      entry.registers = number_between(line, "Used ", " registers");
      entry.shared_bytes = number_between(line, ", ", " bytes smem");
    }
  }
  for (EntryResources& entry : entries) entry.serialized = serialized.contains(entry.entry);
  return entries;
}

}  // namespace assay::engine
