// More text for a printed kernel.
#include "engine/device/cuda/step_feed.h"

#include <algorithm>
#include <utility>

#include "base/files/hash.h"
#include "engine/codegen/cuda/cuda_sampling.h"
#include "engine/codegen/cuda/print_cuda.h"
#include "engine/device/cuda/gpu_memory.h"

namespace assay::engine::cuda {
namespace {

constexpr std::string_view kMembers =
    "const float* logits; int *ids, *lengths, *arrivals; long positions, vocab, room; ";
constexpr std::string_view kAheadOfRow = R"(
  long* const state = (long*)args.dims;
  const long fed_kv_len = state[2] + 1, fed_capacity = state[3], fed_steps = state[4];
  const int fed_length = args.lengths ? args.lengths[blockIdx.x] + 1 : 0;
)";
// The block that ends the last row counts on; the next graph begins when it has ended.
constexpr std::string_view kBehind = R"(
  if (threadIdx.x == 0) {{
    const long b = blockIdx.x;
    const int token = {token};
    const float logit = {logit};
    int* arrival = args.arrivals + fed_steps % {ahead} * 2 * args.room;
    if (args.ids) args.ids[b] = token;
    if (args.lengths) args.lengths[b] = fed_length;
    arrival[b] = token;
    arrival[args.room + b] = !(logit - logit == 0.0f);
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
                     fmt::arg("ahead", StepFeed::kAhead));
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
  for (Event& event : feed->events_) {
    ASSAY_TRY(event, driver.make_event());
  }
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

StepFeed::~StepFeed() {
  for (const Event event : events_) driver_.destroy(event);
  driver_.free_on_host(arrivals_);
}

::assay::Status StepFeed::reserve(int64_t batch) {
  if (batch <= room_) return {};
  ASSAY_CHECK(driver_.synchronize());  // of kernels that write to the old ones
  driver_.free_on_host(std::exchange(arrivals_, nullptr));
  room_ = 0;
  ASSAY_TRY(void* const data,
            driver_.allocate_on_host(static_cast<size_t>(kAhead * 2 * batch) * sizeof(int32_t)));
  arrivals_ = static_cast<int32_t*>(data);
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

::assay::Status StepFeed::mark(int64_t step) {
  return driver_.record(events_[static_cast<size_t>(step % kAhead)]);
}

Result<StepFeed::Arrival> StepFeed::wait(int64_t step, int64_t batch) {
  const int64_t slot = step % kAhead;
  ASSAY_CHECK(driver_.wait(events_[static_cast<size_t>(slot)]));
  const int32_t* tokens = arrivals_ + slot * 2 * room_;
  const auto rows = static_cast<size_t>(batch);
  const std::span<const int32_t> not_finite(tokens + room_, rows);
  return Arrival{{tokens, rows}, std::ranges::find(not_finite, 1) == not_finite.end()};
}

}  // namespace assay::engine::cuda
