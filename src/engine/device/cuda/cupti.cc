// Buffers of records come through callbacks that know no object: the library and what it has
// delivered stand here, once for the process, as CUPTI itself does.
#include "engine/device/cuda/cupti.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <span>
#include <type_traits>

#include "base/text/text.h"
#include "engine/device/cuda/cupti_api.h"

namespace assay::engine::cuda {
namespace {

constexpr std::array kKinds = {kKernelKind, kCopyKind, kFillKind, kCallKind};
constexpr size_t kBufferBytes = size_t{4} << 20;

struct CuptiLibrary : CuptiApi {
  std::mutex mutex;  // of what follows: buffers come from a thread of CUPTI's
  std::vector<Activity> delivered;
};

CuptiLibrary& library() {
  static CuptiLibrary loaded;
  return loaded;
}

template <typename Record>
Record read(const int* record) {
  Record copy;
  std::memcpy(&copy, record, sizeof copy);
  return copy;
}

Activity activity(Activity::Kind kind, std::string name, uint64_t start, uint64_t end) {
  return {kind, std::move(name), static_cast<int64_t>(start), static_cast<int64_t>(end)};
}

void take(const int* record, CuptiLibrary& into) {
  switch (*record) {
    case kKernelKind: {
      const auto kernel = read<KernelRecord>(record);
      const std::string name = kernel.name != nullptr ? kernel.name : "?";
      const int64_t shared_bytes =
          int64_t{kernel.static_shared_bytes} + kernel.dynamic_shared_bytes;
      const unsigned registers = kernel.registers;
      into.delivered.push_back(
          activity(Activity::Kind::kKernel,
                   fmt::format("{} ({} registers, {} B shared)", name, registers, shared_bytes),
                   kernel.start, kernel.end));
      break;
    }
    case kCopyKind:
    case kFillKind: {
      const auto transfer = read<TransferRecord>(record);
      const bool copy = *record == kCopyKind;
      into.delivered.push_back(activity(copy ? Activity::Kind::kCopy : Activity::Kind::kFill,
                                        copy ? "copy" : "fill", transfer.start, transfer.end));
      break;
    }
    case kCallKind: {
      const auto call = read<CallRecord>(record);
      const char* name = nullptr;
      const bool known = into.function_name(kDriverDomain, call.function, &name) == 0 && name;
      into.delivered.push_back(
          activity(Activity::Kind::kCall, known ? name : "?", call.start, call.end));
      break;
    }
    default:
      break;
  }
}

void buffer_requested(uint8_t** buffer, size_t* size, size_t* records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(64, kBufferBytes));
  *size = *buffer != nullptr ? kBufferBytes : 0;
  *records = 0;  // as many as fit
}

void buffer_completed(struct CUctx_st*, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes) {
  CuptiLibrary& loaded = library();
  const std::lock_guard lock(loaded.mutex);
  int* record = nullptr;
  while (loaded.next_record(buffer, valid_bytes, &record) == 0) take(record, loaded);
  std::free(buffer);
}

bool look_up_all(void* handle, CuptiApi& into) {
  const auto look_up = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    return function != nullptr;
  };
#define ASSAY_CUPTI_LOOK_UP(member, symbol, arguments) &&look_up(#symbol, into.member)
  return true ASSAY_CUPTI(ASSAY_CUPTI_LOOK_UP);
#undef ASSAY_CUPTI_LOOK_UP
}

}  // namespace

Status Cupti::check(int result, const char* function) const {
  if (result == 0) return {};
  const char* text = nullptr;
  library().error_text(result, &text);
  return environment_error("{}: {}: {}", path_, function, text != nullptr ? text : "no reason");
}

Result<Cupti> Cupti::open() {
  std::vector<std::string> names = {"libcupti.so.13", "libcupti.so.12", "libcupti.so",
                                    "/usr/local/cuda/lib64/libcupti.so",
                                    "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"};
  if (const char* asked = std::getenv("ASSAY_CUPTI"); asked && *asked) names = {asked};
  for (const std::string& name : names) {
    void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) continue;
    Cupti cupti;
    cupti.path_ = name;
    CuptiLibrary& loaded = library();
    if (!look_up_all(handle, loaded)) {
      return environment_error("{}: expected CUPTI's functions, found some missing", name);
    }
    ASSAY_CHECK(cupti.check(loaded.version(&cupti.version_), "cuptiGetVersion"));
    return cupti;
  }
  return environment_error("cupti: expected one of {}, found none", join(names, ", "));
}

Status Cupti::start() {
  CuptiLibrary& loaded = library();
  {
    const std::lock_guard lock(loaded.mutex);
    loaded.delivered.clear();
  }
  ASSAY_CHECK(check(loaded.register_callbacks(buffer_requested, buffer_completed),
                    "cuptiActivityRegisterCallbacks"));
  for (size_t i = 0; i < kKinds.size(); ++i) {
    const Status enabled = check(loaded.enable(kKinds[i]), "cuptiActivityEnable");
    if (enabled) continue;
    for (const int kind : std::span(kKinds).first(i)) loaded.disable(kind);
    return enabled;
  }
  return {};
}

Result<int64_t> Cupti::now_ns() const {
  uint64_t now = 0;
  ASSAY_CHECK(check(library().timestamp(&now), "cuptiGetTimestamp"));
  return static_cast<int64_t>(now);
}

Result<std::vector<Activity>> Cupti::stop() {
  CuptiLibrary& loaded = library();
  for (const int kind : kKinds) loaded.disable(kind);
  ASSAY_CHECK(check(loaded.flush(kFlushForced), "cuptiActivityFlushAll"));
  const std::lock_guard lock(loaded.mutex);
  return std::exchange(loaded.delivered, {});
}

}  // namespace assay::engine::cuda
