// NVML by dlopen: the functions are looked up by name, so that the program runs without a driver.
#include "identity/gpu_sensors.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <utility>

#include "base/text/text.h"

namespace assay {
namespace {

using Device = void*;  // nvmlDevice_t
constexpr int kSuccess = 0;
constexpr int kNotFound = 6;          // NVML_ERROR_NOT_FOUND: nothing was sampled
constexpr int kInsufficientSize = 7;  // NVML_ERROR_INSUFFICIENT_SIZE
constexpr int kClockSm = 1;           // NVML_CLOCK_SM
constexpr int kTemperatureGpu = 0;    // NVML_TEMPERATURE_GPU

struct NvmlMemory {
  unsigned long long total, free, used;
};

struct NvmlProcess {  // nvmlProcessInfo_t of the functions named _v3
  unsigned pid;
  unsigned long long memory_bytes;
  unsigned gpu_instance, compute_instance;
};
constexpr unsigned long long kMemoryUnknown = ~0ULL;  // NVML_VALUE_NOT_AVAILABLE

struct NvmlUse {  // nvmlProcessUtilizationSample_t
  unsigned pid;
  unsigned long long at_us;
  unsigned sm_percent, memory_percent, encoder_percent, decoder_percent;
};

struct NvmlViolation {  // nvmlViolationTime_t
  unsigned long long at_us, lowered_ns;
};

// The part of nvml.h that is used; signatures as NVIDIA publishes them.
struct NvmlApi {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*device_count)(unsigned*) = nullptr;
  int (*device_by_index)(unsigned, Device*) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*uuid)(Device, char*, unsigned) = nullptr;
  int (*memory)(Device, NvmlMemory*) = nullptr;
  int (*clock)(Device, int, unsigned*) = nullptr;
  int (*temperature)(Device, int, unsigned*) = nullptr;
  int (*power_mw)(Device, unsigned*) = nullptr;
  int (*throttle_reasons)(Device, unsigned long long*) = nullptr;
  // May be absent: older drivers.
  int (*energy_mj)(Device, unsigned long long*) = nullptr;
  int (*violation)(Device, int, NvmlViolation*) = nullptr;
  int (*compute_processes)(Device, unsigned*, NvmlProcess*) = nullptr;
  int (*graphics_processes)(Device, unsigned*, NvmlProcess*) = nullptr;
  int (*process_name)(unsigned, char*, unsigned) = nullptr;
  int (*process_uses)(Device, NvmlUse*, unsigned*, unsigned long long) = nullptr;
};

struct Closer {
  void operator()(void* library) const { ::dlclose(library); }
};
using Library = std::unique_ptr<void, Closer>;

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

// The name of the first function that is missing; empty: none is.
std::string load_api(void* library, NvmlApi& api) {
  const std::array<std::pair<const char*, bool>, 13> functions = {{
      {"nvmlInit_v2", find(library, "nvmlInit_v2", api.init)},
      {"nvmlShutdown", find(library, "nvmlShutdown", api.shutdown)},
      {"nvmlErrorString", find(library, "nvmlErrorString", api.error_string)},
      {"nvmlSystemGetDriverVersion",
       find(library, "nvmlSystemGetDriverVersion", api.driver_version)},
      {"nvmlDeviceGetCount_v2", find(library, "nvmlDeviceGetCount_v2", api.device_count)},
      {"nvmlDeviceGetHandleByIndex_v2",
       find(library, "nvmlDeviceGetHandleByIndex_v2", api.device_by_index)},
      {"nvmlDeviceGetName", find(library, "nvmlDeviceGetName", api.name)},
      {"nvmlDeviceGetUUID", find(library, "nvmlDeviceGetUUID", api.uuid)},
      {"nvmlDeviceGetMemoryInfo", find(library, "nvmlDeviceGetMemoryInfo", api.memory)},
      {"nvmlDeviceGetClockInfo", find(library, "nvmlDeviceGetClockInfo", api.clock)},
      {"nvmlDeviceGetTemperature", find(library, "nvmlDeviceGetTemperature", api.temperature)},
      {"nvmlDeviceGetPowerUsage", find(library, "nvmlDeviceGetPowerUsage", api.power_mw)},
      {"nvmlDeviceGetCurrentClocksThrottleReasons",
       find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", api.throttle_reasons)},
  }};
  for (const auto& [name, found] : functions) {
    if (!found) return name;
  }
  find(library, "nvmlDeviceGetTotalEnergyConsumption", api.energy_mj);
  find(library, "nvmlDeviceGetViolationStatus", api.violation);
  find(library, "nvmlDeviceGetComputeRunningProcesses_v3", api.compute_processes);
  find(library, "nvmlDeviceGetGraphicsRunningProcesses_v3", api.graphics_processes);
  find(library, "nvmlSystemGetProcessName", api.process_name);
  find(library, "nvmlDeviceGetProcessUtilization", api.process_uses);
  return "";
}

// Reasons that hold the clock down against the user's will; idling and a chosen clock don't.
struct ThrottleReason {
  const char* name;
  unsigned long long bits;      // of nvmlClocksThrottleReasons: some of them holds it down now
  unsigned long long hardware;  // those of them that the driver counts no time of
  int policy;                   // nvmlPerfPolicyType_t whose time the driver counts; -1: none
};
constexpr std::array<ThrottleReason, 3> kThrottleReasons = {{
    {"power", 0x4 | 0x80, 0x80, 0},
    {"heat", 0x20 | 0x40, 0x40, 1},
    {"hardware slowdown", 0x8, 0x8, -1},
}};

class Nvml final : public GpuSensors {
 public:
  Nvml(Library library, NvmlApi api) : library_(std::move(library)), api_(api) { find_gpus(); }
  ~Nvml() override { api_.shutdown(); }

  std::vector<GpuInfo> list() override { return gpus_; }

  GpuState read(const std::string& uuid) override {
    GpuState state;
    const auto device = find_device(uuid);
    if (device == devices_.end()) return state;
    unsigned value = 0;
    if (api_.clock(device->second, kClockSm, &value) == kSuccess) state.sm_clock_mhz = value;
    if (api_.temperature(device->second, kTemperatureGpu, &value) == kSuccess) {
      state.temperature_c = value;
    }
    if (api_.power_mw(device->second, &value) == kSuccess) state.power_w = value / 1000.0;
    read_throttling(device->second, state);
    return state;
  }

  std::optional<double> energy_j(const std::string& uuid) override {
    const auto device = find_device(uuid);
    unsigned long long millijoules = 0;
    if (device == devices_.end() || api_.energy_mj == nullptr ||
        api_.energy_mj(device->second, &millijoules) != kSuccess) {
      return std::nullopt;
    }
    return static_cast<double>(millijoules) / 1000.0;
  }

  std::optional<std::vector<GpuProcess>> processes(const std::string& uuid) override {
    const auto device = find_device(uuid);
    if (device == devices_.end() || api_.compute_processes == nullptr) return std::nullopt;
    std::map<int64_t, GpuProcess> by_pid;
    if (!add_processes(api_.compute_processes, device->second, by_pid)) return std::nullopt;
    if (api_.graphics_processes != nullptr) {  // one of both kinds is in both lists
      add_processes(api_.graphics_processes, device->second, by_pid);
    }
    std::vector<GpuProcess> all;
    for (auto& [pid, process] : by_pid) all.push_back(std::move(process));
    return all;
  }

  std::optional<std::vector<GpuUse>> uses_since(const std::string& uuid,
                                                int64_t since_us) override {
    const auto device = find_device(uuid);
    if (device == devices_.end() || api_.process_uses == nullptr) return std::nullopt;
    const auto since = static_cast<unsigned long long>(since_us);
    unsigned count = 0;
    int result = api_.process_uses(device->second, nullptr, &count, since);
    std::vector<NvmlUse> samples(count);
    if (result == kInsufficientSize && count > 0) {
      result = api_.process_uses(device->second, samples.data(), &count, since);
    }
    if (result == kNotFound) return std::vector<GpuUse>();
    if (result != kSuccess) return std::nullopt;
    samples.resize(std::min<size_t>(count, samples.size()));
    std::vector<GpuUse> uses;
    for (const NvmlUse& sample : samples) {
      if (sample.at_us <= since) continue;  // some drivers give the last one in any case
      uses.push_back({sample.pid, static_cast<int64_t>(sample.at_us), sample.sm_percent / 100.0});
    }
    return uses;
  }

 private:
  using Devices = std::map<std::string, Device>;
  Devices::const_iterator find_device(const std::string& uuid) const {
    return uuid.empty() && devices_.size() == 1 ? devices_.begin() : devices_.find(uuid);
  }

  // True if the time that the driver counts has grown since the last reading; absent: it doesn't
  // count, or there was none.
  std::optional<bool> lowered_since(Device device, int policy) {
    NvmlViolation time{};
    if (policy < 0 || api_.violation == nullptr ||
        api_.violation(device, policy, &time) != kSuccess) {
      return std::nullopt;
    }
    const auto [at, first] = lowered_ns_.try_emplace({device, policy}, time.lowered_ns);
    const auto before = std::exchange(at->second, time.lowered_ns);
    return first ? std::nullopt : std::optional(time.lowered_ns > before);
  }

  void read_throttling(Device device, GpuState& state) {
    unsigned long long now = 0;
    if (api_.throttle_reasons(device, &now) != kSuccess) return;
    for (const ThrottleReason& reason : kThrottleReasons) {
      const auto since = lowered_since(device, reason.policy);
      const bool present = (now & (since ? reason.hardware : reason.bits)) != 0;
      if (present || since.value_or(false)) state.throttle_reasons.emplace_back(reason.name);
    }
    state.throttled = !state.throttle_reasons.empty();
  }

  std::string name_of(unsigned pid) const {
    std::array<char, 256> text{};
    if (api_.process_name == nullptr ||
        api_.process_name(pid, text.data(), text.size()) != kSuccess) {
      return "";
    }
    const std::string path = text.data();
    return path.substr(path.rfind('/') + 1);
  }

  using ListProcesses = int (*)(Device, unsigned*, NvmlProcess*);
  bool add_processes(ListProcesses ask, Device device, std::map<int64_t, GpuProcess>& by_pid) {
    constexpr size_t kRoom = 64, kMost = 65'536;
    std::vector<NvmlProcess> found(kRoom);
    int result = kInsufficientSize;
    unsigned count = 0;
    while (result == kInsufficientSize && found.size() <= kMost) {
      count = static_cast<unsigned>(found.size());
      result = ask(device, &count, found.data());
      if (result == kInsufficientSize) found.resize(2 * found.size());
    }
    if (result != kSuccess) return false;
    found.resize(std::min<size_t>(count, found.size()));
    for (const NvmlProcess& one : found) {
      GpuProcess& process = by_pid[one.pid];
      process.pid = one.pid;
      if (process.name.empty()) process.name = name_of(one.pid);
      if (one.memory_bytes != kMemoryUnknown) process.memory_bytes = one.memory_bytes;
    }
    return true;
  }

  void find_gpus() {
    std::array<char, 256> text{};
    const auto ask = [&](auto function, auto... handle) -> std::string {
      return function(handle..., text.data(), text.size()) == kSuccess ? text.data() : "";
    };
    const std::string driver = ask(api_.driver_version);
    unsigned count = 0;
    if (api_.device_count(&count) != kSuccess) return;
    for (unsigned i = 0; i < count; ++i) {
      Device device = nullptr;
      if (api_.device_by_index(i, &device) != kSuccess) continue;
      GpuInfo info{ask(api_.name, device), ask(api_.uuid, device), driver, {}};
      NvmlMemory memory{};
      if (api_.memory(device, &memory) == kSuccess) info.memory_bytes = memory.total;
      devices_[info.uuid] = device;
      gpus_.push_back(std::move(info));
    }
  }

  Library library_;
  NvmlApi api_;
  std::vector<GpuInfo> gpus_;
  Devices devices_;                                                  // by uuid
  std::map<std::pair<Device, int>, unsigned long long> lowered_ns_;  // by policy, when last read
};

}  // namespace

Result<std::unique_ptr<GpuSensors>> open_nvml() {
  const char* named = std::getenv("ASSAY_NVML");
  return open_nvml(named && *named ? named : "libnvidia-ml.so.1");
}

Result<std::unique_ptr<GpuSensors>> open_nvml(const std::string& name) {
  Library library(::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!library) {
    return environment_error("{}: expected NVIDIA's management library, found none", name);
  }
  NvmlApi api;
  if (const std::string missing = load_api(library.get(), api); !missing.empty()) {
    return environment_error("{}: expected the function {}, found none", name, missing);
  }
  if (const int error = api.init(); error != kSuccess) {
    return environment_error("{}: expected a driver that answers, found: {}", name,
                             api.error_string(error));
  }
  return std::make_unique<Nvml>(std::move(library), api);
}

Json gpus_to_json(const std::vector<GpuInfo>& gpus) {
  Json list = Json::array();
  for (const GpuInfo& gpu : gpus) {
    Json json = {{"name", gpu.name}, {"uuid", gpu.uuid}, {"driver", gpu.driver}};
    if (gpu.memory_bytes) json["memory_bytes"] = *gpu.memory_bytes;
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace assay
