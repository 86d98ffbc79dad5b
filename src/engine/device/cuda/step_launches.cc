// A step's first run launches and then records, later ones replay. A run that meets other sizes or
// addresses launches, and the second of the same ones records, unless too many others came between.
// A decode step over a cache that grows has others each time, and is never recorded; a prompt over
// one gets the same ones again from the pool.
#include <algorithm>
#include <cassert>
#include <utility>

#include "engine/codegen/cuda/cuda_sampling.h"
#include "engine/device/cuda/cuda_step.h"
#include "engine/device/cuda/tensor_maps.h"

namespace assay::engine::cuda {

// Callers free next what the graphs use, and the latest run's last kernel may not have ended when
// its tokens are taken.
void CudaStep::drop_graphs() {
  if (!recordings_.empty()) (void)driver_.synchronize();
  while (!recordings_.empty()) drop_oldest();
  latest_ = nullptr;
  bound_.reset();
}

void CudaStep::drop_oldest() {
  for (const GraphExec graph : recordings_.back().graphs) driver_.destroy(graph);
  if (recordings_.back().chain.value_or(nullptr) != nullptr) {
    driver_.destroy(*recordings_.back().chain);
  }
  recordings_.pop_back();
}

// A server's rows come and go, and sessions of one model run by turns: each number of rows, each
// length of a prompt's chunk and each session's caches are met again and again.
size_t CudaStep::most_recordings() const {
  return made_ ? 1 : 96;
}

// Null: no run like this one has been met, or not lately.
CudaStep::Recording* CudaStep::find(const Bound& bound) {
  const auto found = std::ranges::find(recordings_, bound, &Recording::bound);
  if (found == recordings_.end()) return nullptr;
  recordings_.splice(recordings_.begin(), recordings_, found);
  return &recordings_.front();
}

// A prompt's launches begin with a kernel that fetches the state: a copy by the driver is a call
// more, and kernels begin later behind it. Steps of decoding, which feed each other, are launched
// several times for one state.
bool CudaStep::fetches_state(const Bound& bound) const {
  return feed_ != nullptr && bound.q_len > 1;
}

::assay::Status CudaStep::add_launch(Recording& to, size_t kernel, const CudaLaunch& launch,
                                     Address workspace) {
  ASSAY_TRY(const Function function, forms_.function(kernel, launch));
  const Blocks blocks{static_cast<unsigned>(launch.blocks_x),
                      static_cast<unsigned>(launch.blocks_y),
                      static_cast<unsigned>(launch.blocks_z)};
  to.launches.push_back({function,
                         blocks,
                         static_cast<unsigned>(launch.threads),
                         static_cast<size_t>(launch.shared_bytes),
                         kernel,
                         workspace,
                         {},
                         forms_.text_sha256(kernel)});
  return {};
}

// True if the kernel's epilogue writes the next product's x: the library multiplies both.
bool CudaStep::writes_codes(const Recording& of, size_t kernel) const {
  const auto* product = std::get_if<ProductKernel>(&plan_.kernels[kernel].kernel.body);
  return product != nullptr && product->codes_output && of.products[kernel] &&
         of.products[kernel + 1];
}

::assay::Status CudaStep::find_launches(Recording& of) {
  const DimValues dims{of.bound.batch, of.bound.q_len, of.bound.capacity};
  for (const PlannedKernel& planned : plan_.kernels) {
    of.products.push_back(many_rows_.shape(planned.kernel, dims));
  }
  size_t decoded = 0;
  if (fetches_state(of.bound)) {
    ASSAY_TRY(const Function fetching, feed_->fetching());
    of.launches.push_back({fetching,
                           {StepFeed::kFetchingBlocks, 1, 1},
                           StepFeed::kFetchingThreads,
                           0,
                           0,
                           0,
                           {},
                           StepFeed::fetching_sha256()});
    of.launches.back().fetches = true;
  }
  for (size_t i = 0; i < plan_.kernels.size(); ++i) {
    const Kernel& kernel = plan_.kernels[i].kernel;
    const CudaLaunches launches = cuda_launches(kernel, dims, of.bound.capacity);
    if (!of.products[i]) {
      for (const CudaLaunch& launch : launches.run) {
        ASSAY_CHECK(add_launch(of, i, launch, 0));
        of.launches.back().matrices = launches.matrices;
      }
      continue;
    }
    const bool written = i > 0 && writes_codes(of, i - 1);
    if (launches.prologue && !written) {
      ASSAY_CHECK(add_launch(of, i, *launches.prologue, many_rows_.inputs()));
    }
    const Address place = launches.decode ? many_rows_.decoded(decoded++) : 0;
    if (launches.decode) ASSAY_CHECK(add_launch(of, i, *launches.decode, place));
    of.launches.push_back({nullptr, {}, 0, 0, i, place, of.products[i], {}});
    if (writes_codes(of, i)) {
      ASSAY_CHECK(add_launch(of, i, *launches.to_codes, many_rows_.products()));
      of.launches.back().codes = launches.codes_buffer;
    } else if (launches.epilogue) {
      ASSAY_CHECK(add_launch(of, i, *launches.epilogue, many_rows_.products()));
    }
  }
  if (feed_ == nullptr) return {};
  if (of.bound.sampling) {
    ASSAY_TRY(const Function draws, feed_->sampling(forms_.shared_percent()));
    const Blocks blocks{static_cast<unsigned>(of.bound.batch), 1, 1};
    of.launches.push_back({draws,
                           blocks,
                           kCudaSamplingThreads,
                           0,
                           of.launches.back().kernel,
                           0,
                           {},
                           StepFeed::sampling_sha256()});
    of.launches.back().draws = true;
    return {};
  }
  Launch& last = of.launches.back();
  ASSAY_TRY(last.function, feed_->function(forms_.shared_percent()));
  last.text_sha256 = feed_->text_sha256();
  last.feeds = true;
  return {};
}

::assay::Status CudaStep::launch_all(bool early) {
  if (made_) made_->start();
  return launch_some(0, latest_->launches.size(), early);
}

::assay::Status CudaStep::launch_some(size_t begin, size_t end, bool early) {
  const std::vector<Launch>& launches = latest_->launches;
  for (size_t i = begin; i < end; ++i) {
    const size_t kernel = launches[i].kernel;
    const bool first = i == 0 || launches[i - 1].kernel != kernel;
    const bool last = i + 1 == launches.size() || launches[i + 1].kernel != kernel;
    if (made_ && first) ASSAY_CHECK(make_outputs(kernel));
    // Kernels read sizes and lengths ahead of their wait, which the step before counts on, or a
    // prompt's first kernel fetches.
    const bool behind_state = i == 0 || launches[i - 1].fetches;
    ASSAY_CHECK(launch_one(launches[i], early && !behind_state));
    if (made_ && last) made_->release(kernel);
  }
  return {};
}

::assay::Status CudaStep::launch_one(const Launch& launch, bool early) {
  std::vector<Address>& arguments = arguments_[launch.kernel];
  if (launch.product) {
    return many_rows_.multiply(plan_.kernels[launch.kernel].kernel, *launch.product, arguments,
                               launch.workspace, rounded_[launch.kernel]);
  }
  if (launch.draws) return launch_sampling(launch, early);
  if (launch.fetches) return launch_fetching(launch);
  if (launch.workspace != 0) arguments.back() = launch.workspace;
  const Address output = launch.codes ? arguments[*launch.codes] : 0;
  if (launch.codes) arguments[*launch.codes] = many_rows_.inputs();
  const size_t own = arguments.size();
  if (launch.feeds) {
    const StepFeed::Arguments more = feed_->arguments(feed_places());
    arguments.insert(arguments.end(), more.begin(), more.end());
  }
  assert(launch.matrices.empty() || !launch.feeds);  // both go behind the workspace's address
  auto launched = add_tensor_maps(driver_, launch.matrices, arguments);
  if (launched) {
    launched = driver_.launch(launch.function, launch.blocks, launch.threads, arguments.data(),
                              early, launch.shared_bytes);
  }
  arguments.resize(own);
  arguments.back() = workspace_sizes_.place_in(workspace_.address());
  if (launch.codes) arguments[*launch.codes] = output;
  return launched;
}

// As print_cuda_sampling() has them.
::assay::Status CudaStep::launch_sampling(const Launch& launch, bool early) {
  const StepFeed::Places places = feed_places();
  const Address tokens = address(plan_.graph->outputs[1]);
  std::vector<Address> arguments = {tokens, state_address(), input_address(InputKind::kSlots),
                                    places.ids, input_address(InputKind::kLengths)};
  const CudaSlotSampling::Arguments& tables = *latest_->bound.sampling;
  const StepFeed::Arguments feed = feed_->arguments(places);
  arguments.insert(arguments.end(), tables.begin(), tables.end());
  arguments.insert(arguments.end(), feed.begin(), feed.end());
  return driver_.launch(launch.function, launch.blocks, launch.threads, arguments.data(), early);
}

::assay::Status CudaStep::launch_fetching(const Launch& launch) {
  const std::span<const std::byte> state = state_.bytes();
  StepFeed::Fetch fetch{.from = address_of(state.data()),
                        .to = arena_.address() + state_begin(),
                        .words = static_cast<int64_t>(state.size() / sizeof(int64_t))};
  return driver_.launch(launch.function, launch.blocks, launch.threads, &fetch, false);
}

Address CudaStep::input_address(InputKind kind) const {
  const auto found = std::ranges::find(places_.inputs, kind, &ArenaPlan::Input::kind);
  return found == places_.inputs.end() ? 0 : arena_.address() + found->offset;
}

::assay::Status CudaStep::make_outputs(size_t kernel) {
  const Bound& bound = latest_->bound;
  ASSAY_CHECK(made_->make(kernel, {bound.batch, bound.q_len, bound.capacity}));
  const std::vector<Binding>& bindings = plan_.kernels[kernel].bindings;
  for (size_t b = 0; b < bindings.size(); ++b) {
    const auto* value = std::get_if<ArenaBinding>(&bindings[b]);
    if (value != nullptr) arguments_[kernel][b] = address(value->value);
  }
  return {};
}

// A prompt's ids and lengths stay as they are.
StepFeed::Places CudaStep::feed_places() const {
  const auto& graph = *plan_.graph;
  const Bound& bound = latest_->bound;
  const DimValues dims{bound.batch, bound.q_len, bound.capacity};
  StepFeed::Places places{.logits = address(graph.outputs[0]),
                          .ids = 0,
                          .lengths = 0,
                          .positions = 0,
                          .vocab = graph.values[graph.outputs[0]].type.shape.back().factor()};
  places.positions = output_elements(plan_, 0, dims) / (bound.batch * places.vocab);
  if (bound.q_len != 1) return places;
  places.ids = input_address(InputKind::kIds);
  places.lengths = input_address(InputKind::kLengths);
  return places;
}

::assay::Status CudaStep::execute() {
  if (latest_ != nullptr && !latest_->graphs.empty()) return replay();
  const bool recorded = !made_ && !(bound_->grows && bound_->capacity > bound_->q_len);
  if (latest_ != nullptr && recorded) {
    ASSAY_CHECK(record());
    return replay();
  }
  if (latest_ == nullptr) {
    Recording met{.bound = *bound_, .products = {}, .launches = {}, .graphs = {}, .chain = {}};
    ASSAY_CHECK(find_launches(met));
    recordings_.push_front(std::move(met));
    latest_ = &recordings_.front();
  }
  counts_.kernels += static_cast<int64_t>(latest_->launches.size());
  ASSAY_CHECK(launch_all(false));
  const bool first = !std::exchange(has_launched_, true);
  return first && recorded ? record() : ::assay::Status();
}

::assay::Status CudaStep::replay() {
  ++counts_.replays;
  for (const GraphExec graph : latest_->graphs) ASSAY_CHECK(driver_.replay(graph));
  return {};
}

// The GPU begins a graph when the host has handed over all of it. A long prompt's first kernels are
// a graph of their own: they run while the others are handed over.
::assay::Status CudaStep::record() {
  constexpr size_t kFirst = 12, kLong = 4 * kFirst;
  const size_t count = latest_->launches.size();
  const bool apart = latest_->bound.q_len > 1 && count >= kLong;
  const auto add = [&](size_t begin, size_t end) -> ::assay::Status {
    ASSAY_TRY(const GraphExec graph, record_some(begin, end));
    latest_->graphs.push_back(graph);
    return {};
  };
  if (apart) ASSAY_CHECK(add(0, kFirst));
  const auto recorded = add(apart ? kFirst : 0, count);
  if (!recorded) drop_graphs();  // no part of them by itself
  if (recorded) ++counts_.captures;
  return recorded;
}

Result<GraphExec> CudaStep::record_some(size_t begin, size_t end, int64_t times) {
  ASSAY_CHECK(driver_.begin_capture());
  ::assay::Status launched;
  for (int64_t i = 0; launched && i < times; ++i) launched = launch_some(begin, end, true);
  auto captured = driver_.end_capture();  // ends it after a failed launch too
  if (!launched && captured) driver_.destroy(*captured);
  ASSAY_CHECK(launched);
  return captured;
}

// Several graphs take longer than one of as many steps (docs/engine-figures.md, "Eight steps a
// graph"). One runs while the next one is handed over.
bool CudaStep::chains(int64_t most_ahead, int64_t left) {
  static_assert(2 * kChained <= StepFeed::kAhead);
  return most_ahead >= 2 * kChained && left >= kChained;
}

// make_room() has been told of the run. False: steps are replayed one by one, and so they are
// where so many can't be recorded.
bool CudaStep::has_chain() {
  if (latest_ == nullptr || latest_->graphs.empty()) return false;
  if (!latest_->chain) {
    const auto recorded = record_some(0, latest_->launches.size(), kChained);
    if (!recorded) driver_.forget_fault();  // steps go on without
    latest_->chain = recorded.value_or(nullptr);
    counts_.captures += recorded ? 1 : 0;
  }
  return *latest_->chain != nullptr;
}

::assay::Status CudaStep::replay_chain() {
  counts_.replays += kChained;
  return driver_.replay(*latest_->chain);
}

}  // namespace assay::engine::cuda
