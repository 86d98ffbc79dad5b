// One block: rows over its threads. The next graph begins when it has ended.
#include "engine/device/cuda/step_feed.h"

#include <algorithm>
#include <utility>

#include "engine/codegen/cuda/print_cuda.h"

namespace assay::engine::cuda {
namespace {

constexpr std::string_view kSource = R"(
struct Args {
  const float* logits;
  const int* tokens;
  int *ids, *lengths;
  long* state;
  int* arrivals;
  long batch, positions, vocab, room;
};

extern "C" __global__ void __launch_bounds__(THREADS) assay_feed(const Args args) {
  let_next_begin();
  wait_for_kernels_ahead();
  int* arrival = args.arrivals + args.state[4] % AHEAD * 2 * args.room;
  for (long b = threadIdx.x; b < args.batch; b += THREADS) {
    const int token = args.tokens[b];
    const float logit = args.logits[((b + 1) * args.positions - 1) * args.vocab + token];
    if (args.ids) args.ids[b] = token;
    if (args.lengths) ++args.lengths[b];
    arrival[b] = token;
    arrival[args.room + b] = !(logit - logit == 0.0f);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    ++args.state[2];
    if (args.state[3] < args.state[2]) args.state[3] = args.state[2];  // of a cache that grows
    ++args.state[4];
  }
}
)";

}  // namespace

Result<std::unique_ptr<StepFeed>> StepFeed::create(Driver& driver, KernelStore& kernels) {
  std::unique_ptr<StepFeed> feed(new StepFeed(driver, kernels));
  for (Event& event : feed->events_) {
    ASSAY_TRY(event, driver.make_event());
  }
  return feed;
}

Result<Function> StepFeed::function(bool streams) {
  Function& function = functions_[streams ? 1 : 0];
  if (function != nullptr) return function;
  const std::string source =
      cuda_prelude() + fmt::format("enum {{ AHEAD = {} }};\n", kAhead) + std::string(kSource);
  ASSAY_TRY(const Module module, kernels_.load(source, streams));
  ASSAY_TRY(const Function found, driver_.function(module, "assay_feed"));
  if (streams) ASSAY_CHECK(driver_.share_memory(found, 0));
  function = found;
  return function;
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

::assay::Status StepFeed::launch(const Places& places, bool early, bool streams) {
  ASSAY_TRY(const Function loaded, function(streams));
  struct {
    Address logits, tokens, ids, lengths, state;
    const int32_t* arrivals;
    int64_t batch, positions, vocab, room;
  } arguments{places.logits, places.tokens, places.ids,       places.lengths, places.state,
              arrivals_,     places.batch,  places.positions, places.vocab,   room_};
  return driver_.launch(loaded, {}, kCudaThreads, &arguments, early);
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
