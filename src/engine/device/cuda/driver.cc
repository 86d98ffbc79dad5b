// Every call of the driver, checked and named.
#include "engine/device/cuda/driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>

#include "base/text/text.h"
#include "engine/codegen/cuda/nvrtc.h"

namespace assay::engine::cuda {
namespace {

std::string uuid_text(const Uuid& uuid) {
  std::string text = "GPU";
  for (size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

// After these no call on the context succeeds any more, as cuda.h says of each.
bool loses_context(Status status) {
  switch (status) {
    case 201:  // INVALID_CONTEXT
    case 214:  // ECC_UNCORRECTABLE
    case 220:  // NVLINK_UNCORRECTABLE
    case 226:  // CONTAINED
    case 700:  // ILLEGAL_ADDRESS
    case 702:  // LAUNCH_TIMEOUT
    case 709:  // CONTEXT_IS_DESTROYED
    case 710:  // ASSERT
    case 714:  // HARDWARE_STACK_ERROR
    case 715:  // ILLEGAL_INSTRUCTION
    case 716:  // MISALIGNED_ADDRESS
    case 717:  // INVALID_ADDRESS_SPACE
    case 718:  // INVALID_PC
    case 719:  // LAUNCH_FAILED
    case 999:  // UNKNOWN
      return true;
    default:
      return false;
  }
}

std::string size_text(uint64_t bytes) {
  return format_bytes(static_cast<double>(bytes));
}

}  // namespace

void Driver::note_fault(Status status) {
  if (fault_.kind == DeviceFault::Kind::kLost) return;
  const char* name = nullptr;
  api_.error_name(status, &name);
  fault_.name = name != nullptr ? std::string(name) : fmt::format("error {}", status);
  fault_.kind = status == kOutOfMemory  ? DeviceFault::Kind::kOutOfMemory
                : loses_context(status) ? DeviceFault::Kind::kLost
                                        : DeviceFault::Kind::kNone;
}

::assay::Status Driver::check(Status status, std::string_view call) {
  if (status == 0) return {};
  note_fault(status);
  const char* name = nullptr;
  const char* text = nullptr;
  api_.error_name(status, &name);
  api_.error_text(status, &text);
  return environment_error("{}: {} ({}){}", call,
                           name != nullptr ? std::string(name) : fmt::format("error {}", status),
                           text != nullptr ? text : "unknown to this driver",
                           status == kOutOfMemory ? ": found " + memory_in_use() : "");
}

// "3 GB of 150 GB free; this process holds 40 GB: weights 2 GB, steps 38 GB; others hold 107 GB"
std::string Driver::memory_in_use() const {
  Memory now;
  if (api_.memory_info(&now.free, &now.total) != 0) return "an unknown part free";
  uint64_t own = 0;
  for (const auto& [address, bytes] : allocated_) own += bytes;
  std::string text = fmt::format("{} of {} free; this process holds {}", size_text(now.free),
                                 size_text(now.total), size_text(own));
  uint64_t left = own;
  std::vector<std::string> parts;
  for (const MemoryPart& part : parts_ ? parts_() : std::vector<MemoryPart>()) {
    parts.push_back(part.name + " " + size_text(part.bytes));
    left -= std::min(left, part.bytes);
  }
  if (!parts.empty()) {
    parts.push_back("values of steps " + size_text(left));
    text += ": " + join(parts, ", ");
  }
  const uint64_t taken = now.total - std::min(now.free, now.total);
  return text + fmt::format("; the driver and other processes hold {}",
                            size_text(taken - std::min(own, taken)));
}

::assay::Status Driver::look_up() {
  const auto find = [&](const char* name, auto*& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library_, name));
    return function != nullptr;
  };
#define ASSAY_CUDA_FIND(member, symbol, arguments) \
  if (!find(#symbol, api_.member))                 \
    return environment_error("cuda driver: expected the function {}, found none", #symbol);
  ASSAY_CUDA_DRIVER(ASSAY_CUDA_FIND)
#undef ASSAY_CUDA_FIND
  find("cuTensorMapEncodeTiled", api_.encode_map);
  if (!find("cuEventElapsedTime_v2", api_.event_elapsed) &&
      !find("cuEventElapsedTime", api_.event_elapsed)) {
    return environment_error("cuda driver: expected the function cuEventElapsedTime, found none");
  }
  return {};
}

Result<std::unique_ptr<Driver>> Driver::open_library() {
  const char* asked = std::getenv("ASSAY_CUDA_DRIVER");
  const std::string name = asked != nullptr && *asked != '\0' ? asked : "libcuda.so.1";
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return environment_error("cuda driver: expected {}, found none: {}", name, dlerror());
  }
  std::unique_ptr<Driver> driver(new Driver(library));
  ASSAY_CHECK(driver->look_up());
  return driver;
}

Result<std::unique_ptr<Driver>> Driver::open(int ordinal) {
  ASSAY_TRY(auto driver, open_library());
  ASSAY_TRY(const DeviceId device, driver->find(ordinal));
  ASSAY_CHECK(driver->start(device));
  return driver;
}

Result<GpuInfo> Driver::describe(int ordinal) {
  ASSAY_TRY(const auto driver, open_library());
  ASSAY_CHECK(driver->find(ordinal));
  return driver->info();
}

Result<DeviceId> Driver::find(int ordinal) {
  ASSAY_CHECK(check(api_.init(0), "cuInit"));
  int count = 0;
  ASSAY_CHECK(check(api_.device_count(&count), "cuDeviceGetCount"));
  if (ordinal < 0 || ordinal >= count) {
    return environment_error(
        "device: expected one of this machine's GPUs (it has {}), found cuda:{}", count, ordinal);
  }
  DeviceId device = -1;
  ASSAY_CHECK(check(api_.device_get(&device, ordinal), "cuDeviceGet"));
  ASSAY_CHECK(check(api_.driver_version(&info_.driver_version), "cuDriverGetVersion"));
  char name[256] = {};
  ASSAY_CHECK(check(api_.device_name(name, sizeof name - 1, device), "cuDeviceGetName"));
  info_.name = name;
  Uuid uuid{};
  ASSAY_CHECK(check(api_.device_uuid(&uuid, device), "cuDeviceGetUuid_v2"));
  info_.uuid = uuid_text(uuid);
  int major = 0, minor = 0, multiprocessors = 0, cache_bytes = 0;
  for (const auto& [attribute, value] : {std::pair{kComputeMajor, &major},
                                         {kComputeMinor, &minor},
                                         {kMultiprocessors, &multiprocessors},
                                         {kL2CacheBytes, &cache_bytes}}) {
    ASSAY_CHECK(check(api_.device_attribute(value, attribute, device), "cuDeviceGetAttribute"));
  }
  info_.compute_capability = fmt::format("{}.{}", major, minor);
  info_.target = nvrtc_target(10 * major + minor);
  if (info_.target == "sm_90a" && api_.encode_map == nullptr) info_.target = "sm_90";
  info_.multiprocessors = multiprocessors;
  info_.begins_early = major >= 9;
  info_.cache_bytes = static_cast<uint64_t>(cache_bytes);
  size_t memory_bytes = 0;
  ASSAY_CHECK(check(api_.device_memory(&memory_bytes, device), "cuDeviceTotalMem_v2"));
  info_.total_bytes = memory_bytes;
  return device;
}

::assay::Status Driver::start(DeviceId device) {
  ASSAY_CHECK(check(api_.context_retain(&context_, device), "cuDevicePrimaryCtxRetain"));
  device_ = device;  // to be released from here on
  ASSAY_CHECK(check(api_.context_set(context_), "cuCtxSetCurrent"));
  ASSAY_CHECK(check(api_.stream_create(&stream_, kNonBlocking), "cuStreamCreate"));
  for (Event& event : timer_) ASSAY_CHECK(check(api_.event_create(&event, 0), "cuEventCreate"));
  return {};
}

void Driver::enter_thread() {
  if (thread_ == std::this_thread::get_id()) return;
  thread_ = std::this_thread::get_id();
  api_.context_set(context_);
}

Driver::~Driver() {
  if (device_ < 0) return;
  for (const Event event : timer_) {
    if (event != nullptr) api_.event_destroy(event);
  }
  if (stream_ != nullptr) api_.stream_destroy(stream_);
  api_.context_release(device_);
}

Result<Address> Driver::allocate(size_t bytes) {
  Address address = 0;
  if (bytes == 0) return address;
  const Status status = api_.memory_allocate(&address, bytes);
  if (status == kOutOfMemory) {
    note_fault(status);
    return environment_error(
        "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY: expected {} bytes on {}, found {}", bytes,
        info_.name, memory_in_use());
  }
  ASSAY_CHECK(check(status, "cuMemAlloc_v2"));
  allocated_[address] = bytes;
  return address;
}

void Driver::free(Address address) {
  if (address == 0) return;
  allocated_.erase(address);
  api_.memory_free(address);
}

Result<void*> Driver::allocate_on_host(size_t bytes) {
  void* data = nullptr;
  ASSAY_CHECK(check(api_.host_allocate(&data, bytes, 0), "cuMemHostAlloc"));
  return data;
}

void Driver::free_on_host(void* data) {
  if (data != nullptr) api_.host_free(data);
}

Result<Driver::Memory> Driver::memory() {
  Memory memory;
  ASSAY_CHECK(check(api_.memory_info(&memory.free, &memory.total), "cuMemGetInfo_v2"));
  return memory;
}

// Pageable memory is read before the call returns, a HostBlock's later.
::assay::Status Driver::upload(Address to, std::span<const std::byte> from) {
  if (from.empty()) return {};
  return check(api_.upload(to, from.data(), from.size(), stream_), "cuMemcpyHtoDAsync_v2");
}

::assay::Status Driver::download(std::span<std::byte> to, Address from) {
  if (to.empty()) return {};
  ASSAY_CHECK(check(api_.download(to.data(), from, to.size(), stream_), "cuMemcpyDtoHAsync_v2"));
  return synchronize();
}

::assay::Status Driver::copy(Address to, Address from, size_t bytes) {
  if (bytes == 0) return {};
  return check(api_.copy(to, from, bytes, stream_), "cuMemcpyDtoDAsync_v2");
}

::assay::Status Driver::copy_rows(Address to, size_t to_pitch, Address from, size_t from_pitch,
                                  size_t row_bytes, size_t rows) {
  if (row_bytes == 0 || rows == 0) return {};
  RowsCopy copy;
  copy.from = from;
  copy.from_pitch = from_pitch;
  copy.to = to;
  copy.to_pitch = to_pitch;
  copy.width_bytes = row_bytes;
  copy.height = rows;
  return check(api_.copy_rows(&copy, stream_), "cuMemcpy2DAsync_v2");
}

::assay::Status Driver::fill(Address to, unsigned char value, size_t bytes) {
  if (bytes == 0) return {};
  return check(api_.fill(to, value, bytes, stream_), "cuMemsetD8Async");
}

::assay::Status Driver::synchronize() {
  return check(api_.stream_synchronize(stream_), "cuStreamSynchronize");
}

Result<bool> Driver::is_idle() {
  const Status status = api_.stream_query(stream_);
  if (status == kNotReady) return false;
  ASSAY_CHECK(check(status, "cuStreamQuery"));
  return true;
}

Result<Module> Driver::load(const std::string& image) {
  Module module = nullptr;
  ASSAY_CHECK(check(api_.module_load(&module, image.data()), "cuModuleLoadData"));
  return module;
}

void Driver::unload(Module module) {
  api_.module_unload(module);
}

Result<Function> Driver::function(Module module, const std::string& name) {
  Function function = nullptr;
  const auto found = check(api_.module_function(&function, module, name.c_str()), name);
  if (!found) return with_context("cuModuleGetFunction", found.error());
  return function;
}

::assay::Status Driver::share_memory(Function function, size_t bytes, int percent) {
  ASSAY_CHECK(check(api_.function_set(function, kMostSharedBytes, static_cast<int>(bytes)),
                    "cuFuncSetAttribute"));
  return check(api_.function_set(function, kSharedCarveout, percent), "cuFuncSetAttribute");
}

::assay::Status Driver::launch(Function function, Blocks blocks, unsigned threads, void* argument,
                               bool early, size_t shared_bytes) {
  void* arguments[] = {argument};
  LaunchAttribute attribute;
  attribute.id = kBeginEarly;
  attribute.value.flag = 1;
  LaunchConfig config;
  config.blocks_x = blocks.x;
  config.blocks_y = blocks.y;
  config.blocks_z = blocks.z;
  config.threads_x = threads;
  config.shared_bytes = static_cast<unsigned>(shared_bytes);
  config.stream = stream_;
  config.attributes = &attribute;
  config.attribute_count = early && info_.begins_early ? 1 : 0;
  return check(api_.launch(&config, function, arguments, nullptr), "cuLaunchKernelEx");
}

Result<TensorMap> Driver::map(Address matrix, int64_t lines, int64_t pitch, int64_t box_lines) {
  const auto elements = static_cast<unsigned long long>(pitch);
  const unsigned long long sizes[] = {elements, static_cast<unsigned long long>(lines)};
  const unsigned long long pitches[] = {elements * 2};  // bytes
  const unsigned box[] = {64, static_cast<unsigned>(box_lines)}, steps[] = {1, 1};
  TensorMap map;
  ASSAY_CHECK(
      check(api_.encode_map(&map, kElementsOf16Bits, 2, reinterpret_cast<void*>(matrix), sizes,
                            pitches, box, steps, 0, kSwizzleOf128Bytes, kPromotesTo256Bytes, 0),
            "cuTensorMapEncodeTiled"));
  return map;
}

::assay::Status Driver::begin_capture() {
  return check(api_.capture_begin(stream_, kCaptureThreadLocal), "cuStreamBeginCapture_v2");
}

Result<GraphExec> Driver::end_capture() {
  Graph graph = nullptr;
  ASSAY_CHECK(check(api_.capture_end(stream_, &graph), "cuStreamEndCapture"));
  GraphExec exec = nullptr;
  const auto instantiated =
      check(api_.graph_instantiate(&exec, graph, 0), "cuGraphInstantiateWithFlags");
  api_.graph_destroy(graph);
  if (!instantiated) return std::unexpected(instantiated.error());
  return exec;
}

::assay::Status Driver::replay(GraphExec graph) {
  return check(api_.graph_launch(graph, stream_), "cuGraphLaunch");
}

void Driver::destroy(GraphExec graph) {
  api_.graph_exec_destroy(graph);
}

Result<Event> Driver::make_event() {
  Event event = nullptr;
  ASSAY_CHECK(check(api_.event_create(&event, kNoTime), "cuEventCreate"));
  return event;
}

void Driver::destroy(Event event) {
  if (event != nullptr) api_.event_destroy(event);
}

::assay::Status Driver::record(Event event) {
  return check(api_.event_record(event, stream_), "cuEventRecord");
}

::assay::Status Driver::wait(Event event) {
  return check(api_.event_synchronize(event), "cuEventSynchronize");
}

::assay::Status Driver::start_timer() {
  return check(api_.event_record(timer_[0], stream_), "cuEventRecord");
}

Result<double> Driver::time_ms(const std::function<::assay::Status()>& work) {
  Event from = nullptr, to = nullptr;
  ASSAY_CHECK(check(api_.event_create(&from, 0), "cuEventCreate"));
  const auto measure = [&]() -> Result<double> {
    ASSAY_CHECK(check(api_.event_create(&to, 0), "cuEventCreate"));
    ASSAY_CHECK(record(from));
    ASSAY_CHECK(work());
    ASSAY_CHECK(record(to));
    ASSAY_CHECK(wait(to));
    float ms = 0;
    ASSAY_CHECK(check(api_.event_elapsed(&ms, from, to), "cuEventElapsedTime"));
    return static_cast<double>(ms);
  };
  Result<double> ms = measure();
  destroy(from);
  if (to != nullptr) destroy(to);
  return ms;
}

Result<double> Driver::stop_timer_ms() {
  ASSAY_CHECK(check(api_.event_record(timer_[1], stream_), "cuEventRecord"));
  ASSAY_CHECK(check(api_.event_synchronize(timer_[1]), "cuEventSynchronize"));
  float ms = 0;
  ASSAY_CHECK(check(api_.event_elapsed(&ms, timer_[0], timer_[1]), "cuEventElapsedTime"));
  return static_cast<double>(ms);
}

}  // namespace assay::engine::cuda
