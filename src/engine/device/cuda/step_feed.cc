// More text for a printed kernel.
#include "engine/device/cuda/step_feed.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/files/hash.h"
#include "base/process/spin.h"
#include "engine/codegen/cuda/cuda_sampling.h"
#include "engine/codegen/cuda/print_cuda.h"
#include "engine/device/cuda/gpu_memory.h"

namespace assay::engine::cuda {
namespace {

// Kinds of arrivals, in the upper half of their words; 0: none yet.
constexpr int64_t kFinite = 1, kNotFinite = 2;
constexpr std::string_view kMembers =
    "const float* logits; int *ids, *lengths; long* arrivals; long positions, vocab, room; ";
constexpr std::string_view kAheadOfRow = R"(
  long* const state = (long*)args.dims;
  const long fed_kv_len = state[2] + 1, fed_capacity = state[3], fed_steps = state[4];
  const int fed_length = args.lengths ? args.lengths[blockIdx.x] + 1 : 0;
)";
// The block that ends the last row counts on; the next step begins when it has ended.
constexpr std::string_view kBehind = R"(
  if (threadIdx.x == 0) {{
    const long b = blockIdx.x;
    const int token = {token};
    const float logit = {logit};
    const long kind = logit - logit == 0.0f ? {finite} : {not_finite};
    if (args.ids) args.ids[b] = token;
    if (args.lengths) args.lengths[b] = fed_length;
    *(volatile long*)(args.arrivals + fed_steps % {ahead} * args.room + b) = kind << 32 | (unsigned)token;
  }}
  if (gridDim.x > 1 && !is_last((int*)(state + 5), gridDim.x)) return;
  if (threadIdx.x == 0) {{
    state[2] = fed_kv_len;
    if (fed_capacity < fed_kv_len) state[3] = fed_kv_len;  // of a cache that grows
    state[4] = fed_steps + 1;
  }}
)";

// With what names row b's token, and its logit, in thread 0.
std::string behind(std::string_view token, std::string_view logit) {
  return fmt::format(fmt::runtime(kBehind), fmt::arg("token", token), fmt::arg("logit", logit),
                     fmt::arg("ahead", StepFeed::kAhead), fmt::arg("finite", kFinite),
                     fmt::arg("not_finite", kNotFinite));
}

// Both from memory, where a kernel has put the token into this buffer.
std::string behind(size_t tokens) {
  return behind(fmt::format("((const int*)args.buffers[{}])[b]", tokens),
                "args.logits[((b + 1) * args.positions - 1) * args.vocab + token]");
}

// The kernel's argmax still has both in registers: to read them again took two waits for memory.
std::string behind(const Kernel& choosing, size_t tokens) {
  const auto& rows = std::get<RowsKernel>(choosing.body);
  const auto* reduce = rows.body.empty() ? nullptr : std::get_if<ir::Reduce>(&rows.body[0].node);
  if (reduce == nullptr || reduce->op != ir::ReduceOp::kArgmax) return behind(tokens);
  const std::string chosen = CPrinter::var_name(reduce->result);
  return behind("(int)" + chosen, cuda_largest(chosen));
}

// Loads are volatile, so that no cache answers them.
constexpr std::string_view kFetching = R"(
struct Args {{ const long* from; long* to; long words; }};
extern "C" __global__ void __launch_bounds__({threads}) assay_run(const __grid_constant__ Args args) {{
  for (long i = (long)blockIdx.x * {threads} + threadIdx.x; i < args.words; i += {blocks} * {threads}) {{
    args.to[i] = ((const volatile long*)args.from)[i];
  }}
}}
)";

const std::string& fetching_text() {
  static const std::string text =
      fmt::format(fmt::runtime(kFetching), fmt::arg("threads", StepFeed::kFetchingThreads),
                  fmt::arg("blocks", StepFeed::kFetchingBlocks));
  return text;
}

const std::string& sampling_text() {
  static const std::string text = print_cuda_sampling({kMembers, kAheadOfRow, behind(0)});
  return text;
}

}  // namespace

Result<std::unique_ptr<StepFeed>> StepFeed::create(Driver& driver, KernelStore& kernels,
                                                   const Kernel& choosing, size_t tokens) {
  std::unique_ptr<StepFeed> feed(new StepFeed(driver, kernels));
  feed->text_ = print_cuda_rows(choosing, {kMembers, kAheadOfRow, behind(choosing, tokens)});
  feed->text_sha256_ = sha256_hex(feed->text_);
  return feed;
}

Result<Function> StepFeed::load(const std::string& text, int shared_percent) {
  ASSAY_TRY(const Module module, kernels_.load(text, shared_percent));
  ASSAY_TRY(const Function found, driver_.function(module, "assay_run"));
  if (shared_percent > 0) ASSAY_CHECK(driver_.share_memory(found, 0, shared_percent));
  return found;
}

Result<Function> StepFeed::function(int shared_percent) {
  Function& function = functions_[shared_percent];
  if (function == nullptr) {
    ASSAY_TRY(function, load(text_, shared_percent));
  }
  return function;
}

Result<Function> StepFeed::sampling(int shared_percent) {
  Function& function = sampling_[shared_percent];
  if (function == nullptr) {
    ASSAY_TRY(function, load(sampling_text(), shared_percent));
  }
  return function;
}

const std::string& StepFeed::sampling_sha256() {
  static const std::string sha256 = sha256_hex(sampling_text());
  return sha256;
}

Result<Function> StepFeed::fetching() {
  if (fetching_ == nullptr) {
    ASSAY_TRY(fetching_, load(fetching_text(), 0));
  }
  return fetching_;
}

const std::string& StepFeed::fetching_sha256() {
  static const std::string sha256 = sha256_hex(fetching_text());
  return sha256;
}

StepFeed::~StepFeed() {
  driver_.free_on_host(arrivals_);
}

::assay::Status StepFeed::reserve(int64_t batch) {
  if (batch <= room_) return {};
  ASSAY_CHECK(driver_.synchronize());  // of kernels that write to the old ones
  driver_.free_on_host(std::exchange(arrivals_, nullptr));
  room_ = 0;
  ASSAY_TRY(void* const data,
            driver_.allocate_on_host(static_cast<size_t>(kAhead * batch) * sizeof(int64_t)));
  arrivals_ = static_cast<int64_t*>(data);
  room_ = batch;
  return {};
}

StepFeed::Arguments StepFeed::arguments(const Places& places) const {
  return {places.logits,
          places.ids,
          places.lengths,
          address_of(reinterpret_cast<const std::byte*>(arrivals_)),
          static_cast<Address>(places.positions),
          static_cast<Address>(places.vocab),
          static_cast<Address>(room_)};
}

::assay::Status StepFeed::expect(int64_t step) {
  if (step == 0 && std::exchange(under_way_, 0) > 0) ASSAY_CHECK(driver_.synchronize());
  ++under_way_;
  std::ranges::fill_n(arrivals_ + step % kAhead * room_, room_, 0);
  return {};
}

// The GPU's write of a word is seen whole. An event behind the kernel, which was waited for here,
// comes some microseconds later, and one more call of the driver makes it.
Result<StepFeed::Arrival> StepFeed::wait(int64_t step, int64_t batch) {
  constexpr int64_t kLook_ns = 50'000;
  tokens_.resize(static_cast<size_t>(batch));
  Arrival arrival{tokens_};
  bool idle = false;  // nothing comes any more: a driver whose kernels do nothing
  for (int64_t row = 0; row < batch; ++row) {
    std::atomic_ref<int64_t> word(arrivals_[step % kAhead * room_ + row]);
    const auto arrived = [&] { return word.load(std::memory_order_acquire) != 0; };
    while (!idle && !spin(arrived, kLook_ns)) {
      ASSAY_TRY(idle, driver_.is_idle());
    }
    const int64_t came = word.load(std::memory_order_acquire);
    tokens_[static_cast<size_t>(row)] = static_cast<int32_t>(came);
    arrival.finite &= came >> 32 != kNotFinite;
  }
  --under_way_;
  return arrival;
}

}  // namespace assay::engine::cuda
