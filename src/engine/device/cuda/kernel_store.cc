// Kernels by their source: layers that differ by their weights alone share one.
#include "engine/device/cuda/kernel_store.h"

#include "base/clock.h"

namespace assay::engine::cuda {

KernelStore::~KernelStore() {
  for (const auto& [key, module] : modules_) driver_.unload(module);
}

Result<std::string> KernelStore::machine_code(const KernelKey& key) {
  if (cache_) {
    auto kept = cache_->read(key);
    stats_.note_refusal(cache_->take_refusal());
    if (kept) {
      ++stats_.loaded;
      return *std::move(kept);
    }
  }
  const int64_t start_ns = monotonic_now_ns();
  ASSAY_TRY(Cubin cubin, nvrtc_.compile(key.source, key.target));
  stats_.compile_seconds += static_cast<double>(monotonic_now_ns() - start_ns) * 1e-9;
  ++stats_.compiled;
  if (cache_) {
    const auto added = cache_->add(key, cubin.bytes);
    if (!added) {
      ++stats_.unsaved;
      stats_.unsaved_reason = added.error().message;
    }
  }
  return std::move(cubin.bytes);
}

Result<Module> KernelStore::load(const std::string& source, int shared_percent) {
  const auto known = modules_.find({source, shared_percent});
  if (known != modules_.end()) {
    ++stats_.reused;
    return known->second;
  }
  const KernelKey key{.source = source,
                      .target = driver_.info().target,
                      .compiler = nvrtc_.identity(),
                      .flags = Nvrtc::flags()};
  ASSAY_TRY(const std::string code, machine_code(key));
  const int64_t start_ns = monotonic_now_ns();
  auto loaded = driver_.load(code);
  if (!loaded) {
    if (cache_) cache_->remove(key);
    return std::unexpected(loaded.error());
  }
  stats_.load_seconds += static_cast<double>(monotonic_now_ns() - start_ns) * 1e-9;
  modules_.emplace(std::pair(source, shared_percent), *loaded);
  return *loaded;
}

}  // namespace assay::engine::cuda
