// A GPU through NVIDIA's driver, opened at run time: one context, one stream, and everything that
// is allocated, loaded or recorded in it, owned and given back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/device/cuda/driver_api.h"
#include "engine/device/device_fault.h"

namespace assay::engine::cuda {

struct GpuInfo {
  std::string name;                // "NVIDIA H200"
  std::string uuid;                // "GPU-..."
  std::string compute_capability;  // "9.0"
  std::string target;              // "sm_90a": what to compile for; "sm_90" without tensor maps
  int64_t multiprocessors = 0;
  bool begins_early = false;  // kernels can, as launch() has it
  uint64_t total_bytes = 0;   // of its memory
  uint64_t cache_bytes = 0;   // of its second-level cache
  int driver_version = 0;     // 13000: CUDA 13.0

  std::string driver_name() const {  // "CUDA 13.0"
    return fmt::format("CUDA {}.{}", driver_version / 1000, driver_version % 1000 / 10);
  }
};

struct Blocks {
  unsigned x = 1, y = 1, z = 1;
};

// One thread at a time, each after enter_thread(). All work goes to one stream, in order; memory
// and modules must go before the driver does. An error is an environment_error that names the call
// and the driver's name for what went wrong, "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (out of
// memory): ...".
class Driver {
 public:
  // The GPU of this number, as the driver counts them. $ASSAY_CUDA_DRIVER names another library
  // (tests), else libcuda.so.1. environment_error: no driver, no such GPU.
  static Result<std::unique_ptr<Driver>> open(int ordinal = 0);
  // Who that GPU is, without making a context on it: nothing is allocated there. The same errors.
  static Result<GpuInfo> describe(int ordinal);
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // Makes the context this thread's; the thread that opened it has it already. A failure comes
  // again from the next call.
  void enter_thread();

  const GpuInfo& info() const { return info_; }
  // For libraries that compute beside us, in order.
  Stream stream() const { return stream_; }

  // The fault of the last call that failed; a lost context stays lost.
  const DeviceFault& fault() const { return fault_; }
  void forget_fault() {
    if (fault_.kind != DeviceFault::Kind::kLost) fault_ = {};
  }

  // Parts of what this process has allocated, "weights 2.47 GB, caches 34 MB", for the error of an
  // allocation that finds no room; whatever the function refers to must outlive its use.
  struct MemoryPart {
    std::string name;
    uint64_t bytes = 0;
  };
  void tell_parts_by(std::function<std::vector<MemoryPart>()> parts) { parts_ = std::move(parts); }

  // At least 256-byte aligned; nothing for 0 bytes. The error says what was asked for, what is free
  // and what holds the rest.
  Result<Address> allocate(size_t bytes);
  void free(Address address);
  // Memory of the host that kernels read and write, at the same address; a word that a kernel wrote
  // is seen soon, and all of them once it has ended.
  Result<void*> allocate_on_host(size_t bytes);
  void free_on_host(void* data);
  struct Memory {
    size_t free = 0, total = 0;
  };
  Result<Memory> memory();

  // In the stream's order; the host's bytes may go as soon as these return.
  ::assay::Status upload(Address to, std::span<const std::byte> from);
  ::assay::Status download(std::span<std::byte> to, Address from);
  ::assay::Status copy(Address to, Address from, size_t bytes);
  ::assay::Status copy_rows(Address to, size_t to_pitch, Address from, size_t from_pitch,
                            size_t row_bytes, size_t rows);
  ::assay::Status fill(Address to, unsigned char value, size_t bytes);
  // All work is done, or has failed: then the driver's name for it, now and in every call after.
  ::assay::Status synchronize();
  // True if all work is done; the same errors.
  Result<bool> is_idle();

  // Machine code, or PTX.
  Result<Module> load(const std::string& image);
  void unload(Module module);
  Result<Function> function(Module module, const std::string& name);
  // Lets it be launched with so much shared memory beside its own, and asks that a multiprocessor
  // which runs it keeps this share of its memory for blocks, the rest for a cache: it can't change
  // that while it runs a kernel, so that one which wants another share waits for the kernel ahead
  // to end.
  ::assay::Status share_memory(Function function, size_t bytes, int percent = 100);
  // `argument`: the kernel's one parameter, copied. `early`: it may begin while the kernel ahead
  // runs, and waits by itself for what it reads; without effect before Hopper.
  ::assay::Status launch(Function function, Blocks blocks, unsigned threads, void* argument,
                         bool early, size_t shared_bytes = 0);

  // For kernels that copy `box_lines` lines of 64 elements of 16 bits at a time into shared memory,
  // in the swizzle of 128 bytes: a matrix of so many lines at a multiple of 16 bytes, `pitch`
  // elements apart, which are all there. Only where the target is sm_90a.
  Result<TensorMap> map(Address matrix, int64_t lines, int64_t pitch, int64_t box_lines);

  // Launches between these two calls are recorded, not run.
  ::assay::Status begin_capture();
  Result<GraphExec> end_capture();
  ::assay::Status replay(GraphExec graph);
  void destroy(GraphExec graph);

  // An event comes once all that was given to the stream before its last record() has been done. It
  // keeps no time.
  Result<Event> make_event();
  void destroy(Event event);
  ::assay::Status record(Event event);
  ::assay::Status wait(Event event);

  // Two events around what is launched between the calls; ms by the GPU's clock, after it has
  // ended.
  ::assay::Status start_timer();
  Result<double> stop_timer_ms();
  // The same around what `work` launches; may be inside of the two.
  Result<double> time_ms(const std::function<::assay::Status()>& work);

 private:
  explicit Driver(void* library) : library_(library) {}
  static Result<std::unique_ptr<Driver>> open_library();
  ::assay::Status look_up();
  Result<DeviceId> find(int ordinal);  // and fills in info_
  ::assay::Status start(DeviceId device);
  ::assay::Status check(Status status, std::string_view call);
  void note_fault(Status status);
  std::string memory_in_use() const;

  void* library_;  // stays open until the process ends, as the driver's threads do
  DriverApi api_;
  GpuInfo info_;
  DeviceFault fault_;
  std::map<Address, size_t> allocated_;  // bytes of each block
  std::function<std::vector<MemoryPart>()> parts_;
  DeviceId device_ = -1;
  Context context_ = nullptr;
  std::thread::id thread_ = std::this_thread::get_id();  // that entered last
  Stream stream_ = nullptr;
  Event timer_[2] = {};
};

}  // namespace assay::engine::cuda
