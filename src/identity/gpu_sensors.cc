// NVML by dlopen: the functions are looked up by name, so that the program runs without a driver.
#include "identity/gpu_sensors.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <map>
#include <utility>

#include "base/text/text.h"

namespace assay {
namespace {

using Device = void*;  // nvmlDevice_t
constexpr int kSuccess = 0;
constexpr int kClockSm = 1;         // NVML_CLOCK_SM
constexpr int kTemperatureGpu = 0;  // NVML_TEMPERATURE_GPU

struct NvmlMemory {
  unsigned long long total, free, used;
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
  int (*energy_mj)(Device, unsigned long long*) = nullptr;  // may be absent: older drivers
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
  return "";
}

// Reasons that hold the clock down against the user's will; idling and a chosen clock aren't.
constexpr std::array<std::pair<unsigned long long, const char*>, 5> kThrottleReasons = {{
    {0x4, "sw_power_cap"},
    {0x8, "hw_slowdown"},
    {0x20, "sw_thermal_slowdown"},
    {0x40, "hw_thermal_slowdown"},
    {0x80, "hw_power_brake_slowdown"},
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
    unsigned long long reasons = 0;
    if (api_.throttle_reasons(device->second, &reasons) != kSuccess) return state;
    for (const auto& [bit, name] : kThrottleReasons) {
      if (reasons & bit) state.throttle_reasons.emplace_back(name);
    }
    state.throttled = !state.throttle_reasons.empty();
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

 private:
  using Devices = std::map<std::string, Device>;
  Devices::const_iterator find_device(const std::string& uuid) const {
    return uuid.empty() && devices_.size() == 1 ? devices_.begin() : devices_.find(uuid);
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
  Devices devices_;  // by uuid
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
