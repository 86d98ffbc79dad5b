// A step's first run launches and then records, later ones replay. A run that meets other sizes or
// addresses launches, and the second of the same ones records, unless too many others came between.
// A decode step over a cache that grows has others each time, and is never recorded; a prompt over
// one gets the same ones again from the pool.
#include "engine/device/cuda/cuda_step.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <iterator>
#include <utility>

#include "engine/codegen/cuda/cuda_sampling.h"
#include "engine/codegen/cuda/fp8_product.h"
#include "engine/device/cuda/tensor_maps.h"
#include "engine/graph/input_values.h"

namespace assay::engine::cuda {
namespace {

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

}  // namespace

Result<std::unique_ptr<CudaStep>> CudaStep::load(StepPlan plan, KernelStore& kernels,
                                                 GpuWeights& weights, LazyCublasLt& library,
                                                 Driver& driver, LaunchCounts& counts,
                                                 BufferPool* outputs) {
  narrow_values(plan, outputs != nullptr);
  pair_codes(plan);
  std::unique_ptr<CudaStep> step(
      new CudaStep(std::move(plan), kernels, library, driver, counts, outputs));
  ASSAY_CHECK(step->bind_weights(weights, kernels));
  if (const auto tokens = step->chosen_tokens(); tokens && outputs == nullptr) {
    ASSAY_TRY(step->feed_,
              StepFeed::create(driver, kernels, step->plan_.kernels.back().kernel, *tokens));
  }
  if (outputs != nullptr) ASSAY_CHECK(step->forms_.choose({}));  // else by sizes, in reserve()
  return step;
}

CudaStep::CudaStep(StepPlan plan, KernelStore& kernels, LazyCublasLt& library, Driver& driver,
                   LaunchCounts& counts, BufferPool* outputs)
    : plan_(std::move(plan)),
      driver_(driver),
      // An eager step has one text of each operator for all runs.
      forms_(plan_, kernels, driver, outputs != nullptr),
      many_rows_(driver, library),
      counts_(counts) {
  if (outputs != nullptr) made_.emplace(plan_, *outputs);
  for (const PlannedKernel& planned : plan_.kernels) {
    arguments_.emplace_back(planned.bindings.size() + 2);  // and dims, workspace
  }
}

// The last kernel's buffer that gets the graph's second output, the tokens, a row each.
std::optional<size_t> CudaStep::chosen_tokens() const {
  const PlannedKernel& last = plan_.kernels.back();
  const auto* rows = std::get_if<RowsKernel>(&last.kernel.body);
  if (plan_.graph->outputs.size() != 2 || rows == nullptr || !(rows->rows == Dim::batch())) {
    return std::nullopt;
  }
  for (size_t b = 0; b < last.bindings.size(); ++b) {
    const auto* value = std::get_if<ArenaBinding>(&last.bindings[b]);
    if (value != nullptr && value->value == plan_.bases[plan_.graph->outputs[1]]) return b;
  }
  return std::nullopt;
}

CudaStep::~CudaStep() {
  drop_graphs();
}

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

::assay::Status CudaStep::bind_weights(GpuWeights& weights, KernelStore& kernels) {
  rounded_.resize(plan_.kernels.size());
  for (size_t i = 0; i < plan_.kernels.size(); ++i) {
    const std::vector<Binding>& bindings = plan_.kernels[i].bindings;
    for (size_t b = 0; b < bindings.size(); ++b) {
      const auto* binding = std::get_if<WeightBinding>(&bindings[b]);
      if (binding == nullptr) continue;
      const auto& source = std::get<WeightSource>(plan_.graph->values[binding->value].source);
      ASSAY_TRY(arguments_[i][b], weights.address(source, *binding));
      const auto* product = std::get_if<ProductKernel>(&plan_.kernels[i].kernel.body);
      if (product == nullptr || product->weight != b ||
          !multiplies_fp8(plan_.kernels[i].kernel, *product)) {
        continue;
      }
      ASSAY_TRY(rounded_[i], weights.fp8(source, *binding, kernels));
    }
  }
  return {};
}

Address CudaStep::address(ValueId id) const {
  const ValueId base = plan_.bases[id];
  if (const auto offset = places_.offsets[base]) return arena_.address() + *offset;
  return made_->address(base);
}

// Products that may be in fp8 are where that pays in runs of these sizes; in eager steps, whose
// text is the same for all runs, they always are.
::assay::Status CudaStep::choose_types(const DimValues& dims) {
  if (made_ || many_rows_.always_fp8()) return {};
  for (size_t i = 0; i < plan_.kernels.size(); ++i) {
    plan_.kernels[i].kernel.run_sizes = {dims.batch, dims.q_len, {}, {}};
    if (may_be_fp8(i)) std::get<ProductKernel>(plan_.kernels[i].kernel.body).fp8 = true;
  }
  pair_codes(plan_);  // as if all were: which have their x rounded by the kernel before
  for (size_t i = 0; i < plan_.kernels.size(); ++i) {
    if (!may_be_fp8(i)) continue;
    const Kernel& kernel = plan_.kernels[i].kernel;
    auto& product = std::get<ProductKernel>(plan_.kernels[i].kernel.body);
    const auto* before =
        i == 0 ? nullptr : std::get_if<ProductKernel>(&plan_.kernels[i - 1].kernel.body);
    const bool in_16_bits = !product.has_prologue &&
                            kernel.buffers[product.x].dtype == kernel.buffers[product.weight].dtype;
    const bool rounds = in_16_bits && (before == nullptr || !before->codes_output);
    ASSAY_TRY(product.fp8, many_rows_.pays_in_fp8(kernel, dims, rounds));
  }
  pair_codes(plan_);
  return {};
}

::assay::Status CudaStep::reserve(const DimValues& dims) {
  if (roomed_ == dims) return {};
  roomed_.reset();
  ASSAY_CHECK(choose_types(dims));
  ASSAY_CHECK(forms_.choose(dims));
  ASSAY_CHECK(place_values(dims));
  ASSAY_CHECK(reserve_workspace(dims));
  const Result<bool> moved = many_rows_.reserve(plan_, dims);
  if (!moved || *moved) drop_graphs();  // which have the places of before
  if (!moved) return std::unexpected(moved.error());
  for (size_t i = 0; i < plan_.kernels.size(); ++i) {
    const std::vector<Binding>& bindings = plan_.kernels[i].bindings;
    for (size_t b = 0; b < bindings.size(); ++b) {
      const auto* value = std::get_if<ArenaBinding>(&bindings[b]);
      if (value != nullptr && !made_) arguments_[i][b] = address(value->value);
    }
    arguments_[i][bindings.size()] = state_address();
    arguments_[i][bindings.size() + 1] = workspace_sizes_.place_in(workspace_.address());
  }
  roomed_ = dims;
  return {};
}

::assay::Status CudaStep::place_values(const DimValues& dims) {
  const DimValues most{std::max(dims.batch, placed_.batch), std::max(dims.q_len, placed_.q_len),
                       std::max(dims.kv_len, placed_.kv_len)};
  if (arena_.address() != 0 && most == placed_) return {};
  drop_graphs();
  placed_ = {};
  places_ = made_ ? plan_inputs(plan_, most) : plan_arena(plan_, most);
  if (feed_) ASSAY_CHECK(feed_->reserve(most.batch));
  arena_ = GpuBlock();  // before the new one: the two need not fit side by side
  const size_t arena_bytes = places_.bytes + StepFeed::kStateValues * sizeof(int64_t);
  ASSAY_TRY(arena_, GpuBlock::allocate(driver_, arena_bytes));
  ASSAY_CHECK(driver_.fill(arena_.address(), 0, arena_bytes));
  ASSAY_TRY(state_, HostBlock::allocate(driver_, arena_bytes - state_begin()));
  placed_ = most;
  return {};
}

// For the forms that were chosen: another batch's may need more, and so may a prompt's few rows.
::assay::Status CudaStep::reserve_workspace(const DimValues& dims) {
  CudaWorkspace wanted = workspace_sizes_;
  wanted.floats = std::max(wanted.floats, kCudaCounters);
  for (const PlannedKernel& planned : plan_.kernels) {
    if (many_rows_.shape(planned.kernel, dims)) continue;  // the library has its own
    const CudaWorkspace own = cuda_workspace(planned.kernel, dims, dims.kv_len);
    wanted = {std::max(wanted.words, own.words), std::max(wanted.floats, own.floats)};
  }
  if (wanted.bytes() == workspace_sizes_.bytes()) return {};
  drop_graphs();
  workspace_sizes_ = {};
  workspace_ = GpuBlock();
  ASSAY_TRY(workspace_, GpuBlock::allocate(driver_, wanted.bytes()));
  ASSAY_CHECK(driver_.fill(workspace_.address(), 0, wanted.bytes()));
  workspace_sizes_ = wanted;
  return {};
}

::assay::Status CudaStep::upload_tables(const RopeTables& rope) {
  if (rope.cos.size() == table_floats_) return {};
  drop_graphs();
  table_floats_ = 0;
  ASSAY_TRY(cos_, GpuBlock::allocate(driver_, rope.cos.size() * sizeof(float)));
  ASSAY_TRY(sin_, GpuBlock::allocate(driver_, rope.sin.size() * sizeof(float)));
  ASSAY_CHECK(driver_.upload(cos_.address(), bytes_of(rope.cos)));
  ASSAY_CHECK(driver_.upload(sin_.address(), bytes_of(rope.sin)));
  table_floats_ = rope.cos.size();
  return {};
}

// Where the inputs, and behind them the sizes, begin in the arena.
size_t CudaStep::state_begin() const {
  return places_.inputs.empty() ? places_.bytes : places_.inputs.front().offset;
}

// Finds the run's recording; where there is none, makes room for the run and binds it.
::assay::Status CudaStep::make_room(const RunInputs& inputs, KvCache& cache) {
  ASSAY_CHECK(upload_tables(*inputs.rope));
  if (cache.grows()) {
    for (int64_t layer = 0; layer < plan_.layers; ++layer) {
      ASSAY_CHECK(cache.extend(layer, CachePart::kKeys, inputs.dims.kv_len));
      ASSAY_CHECK(cache.extend(layer, CachePart::kValues, inputs.dims.kv_len));
    }
  }
  wanted_.batch = inputs.dims.batch;
  wanted_.q_len = inputs.dims.q_len;
  wanted_.capacity = cache.grows() ? inputs.dims.kv_len : cache.shape().capacity;
  wanted_.grows = cache.grows();
  wanted_.caches.assign(cache.places().begin(), cache.places().end());
  const auto* sampling = static_cast<const CudaSlotSampling*>(inputs.sampling);
  wanted_.sampling.reset();
  if (sampling != nullptr) wanted_.sampling = sampling->arguments();
  latest_ = find(wanted_);
  if (latest_ != nullptr && !latest_->graphs.empty()) return {};
  DimValues most = inputs.dims;
  most.kv_len = std::max(most.kv_len, cache.shape().capacity);
  ASSAY_CHECK(reserve(most));
  latest_ = find(wanted_);  // which may have gone
  return bind(wanted_);
}

// Caches are where they are now; all else has its place.
::assay::Status CudaStep::bind(const Bound& bound) {
  if (bound_ && bound == *bound_) return {};  // as they are
  if (latest_ == nullptr && recordings_.size() >= most_recordings()) drop_oldest();
  for (size_t i = 0; i < plan_.kernels.size(); ++i) {
    const std::vector<Binding>& bindings = plan_.kernels[i].bindings;
    for (size_t b = 0; b < bindings.size(); ++b) {
      if (const auto* kept = std::get_if<CacheBinding>(&bindings[b])) {
        const size_t view =
            static_cast<size_t>(kept->layer) * 2 + (kept->part == CachePart::kValues);
        arguments_[i][b] = address_of(bound.caches[view]);
      } else if (const auto* constant = std::get_if<ConstantBinding>(&bindings[b])) {
        arguments_[i][b] =
            constant->kind == ConstantKind::kRopeCos ? cos_.address() : sin_.address();
      }
    }
  }
  bound_ = bound;
  return {};
}

// A prompt's launches begin with a kernel that fetches the state: a copy by the driver is a call
// more, and kernels begin later behind it. Steps of decoding, which feed each other, are launched
// several times for one state.
bool CudaStep::fetches_state(const Bound& bound) const {
  return feed_ != nullptr && bound.q_len > 1;
}

StepFeed::Fetch CudaStep::state_fetch() const {
  const std::span<const std::byte> state = state_.bytes();
  return {.from = address_of(state.data()),
          .to = arena_.address() + state_begin(),
          .words = static_cast<int64_t>(state.size() / sizeof(int64_t))};
}

// In one piece: inputs lie behind one another in the arena, and the sizes behind them.
::assay::Status CudaStep::hand_over_state(const RunInputs& inputs) {
  const Bound& bound = latest_ ? latest_->bound : *bound_;
  const std::array<int64_t, StepFeed::kStateValues> sizes = {
      inputs.dims.batch, inputs.dims.q_len, inputs.dims.kv_len, bound.capacity, 0, 0};
  const size_t begin = state_begin();
  const std::span<std::byte> state = state_.bytes();
  std::ranges::fill(state, std::byte{0});
  for (const ArenaPlan::Input& input : places_.inputs) {
    std::ranges::copy(std::as_bytes(input_values(inputs, input.kind)),
                      state.subspan(input.offset - begin).begin());
  }
  std::ranges::copy(std::as_bytes(std::span(sizes)), state.last(sizeof sizes).begin());
  if (fetches_state(bound)) return {};
  return driver_.upload(arena_.address() + begin, state);
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
    // Kernels read sizes and lengths ahead of their wait.
    const bool behind_state = i > 0 && launches[i - 1].fetches;
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
  StepFeed::Fetch fetch = state_fetch();
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
    Recording met{.bound = *bound_, .products = {}, .launches = {}, .graphs = {}};
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
  if (apart) ASSAY_CHECK(record_some(0, kFirst));
  const auto recorded = record_some(apart ? kFirst : 0, count);
  if (!recorded) drop_graphs();  // no part of them by itself
  if (recorded) ++counts_.captures;
  return recorded;
}

::assay::Status CudaStep::record_some(size_t begin, size_t end) {
  ASSAY_CHECK(driver_.begin_capture());
  const ::assay::Status launched = launch_some(begin, end, true);
  auto captured = driver_.end_capture();  // ends it after a failed launch too
  if (!launched && captured) driver_.destroy(*captured);
  ASSAY_CHECK(launched);
  ASSAY_TRY(const GraphExec graph, std::move(captured));
  latest_->graphs.push_back(graph);
  return {};
}

::assay::Status CudaStep::run(const RunInputs& inputs, KvCache& cache) {
  assert(rows_fit(inputs));
  outputs_.clear();
  ASSAY_CHECK(make_room(inputs, cache));
  if (feed_) ASSAY_CHECK(feed_->expect(0));
  ASSAY_CHECK(hand_over_state(inputs));
  ASSAY_CHECK(execute());
  last_dims_ = inputs.dims;
  ASSAY_CHECK(feed_ ? take_tokens() : download_tokens());
  cache.commit(inputs.dims.kv_len);
  return {};
}

// The run's chosen tokens, from where its last kernel has left them: copies of them, and of a logit
// of each, took longer than that kernel.
::assay::Status CudaStep::take_tokens() {
  ASSAY_TRY(const StepFeed::Arrival arrived, feed_->wait(0, last_dims_.batch));
  const auto bytes = std::as_bytes(arrived.tokens);
  outputs_[1].assign(bytes.begin(), bytes.end());
  finite_ = arrived.finite;
  return {};
}

::assay::Status CudaStep::download_tokens() {
  for (size_t i = 0; i < plan_.graph->outputs.size(); ++i) {
    const TensorType& type = plan_.graph->values[plan_.graph->outputs[i]].type;
    if (type.dtype == DType::kI32) ASSAY_CHECK(download(i));
  }
  return driver_.synchronize();
}

::assay::Status CudaStep::run_greedy(const RunInputs& inputs, int64_t steps, int64_t ahead,
                                     KvCache& cache, const TokenSink& sink) {
  assert(feeds_itself() && inputs.dims.q_len == 1);
  assert(inputs.dims.kv_len + steps - 1 <= cache.shape().capacity);
  outputs_.clear();
  ASSAY_CHECK(make_room(inputs, cache));
  ASSAY_CHECK(feed_->expect(0));
  ASSAY_CHECK(hand_over_state(inputs));
  ::assay::Status launch;  // of the latest step
  int64_t launched = 0, arrived = 0;
  Onward onward = Onward::kGo;
  for (; onward != Onward::kStop; ++arrived) {
    while (launch && onward == Onward::kGo && launched < steps &&
           launched - arrived < std::min(ahead, StepFeed::kAhead)) {
      if (launched > 0) launch = feed_->expect(launched);
      if (launch) launch = execute();
      if (!launch) break;
      ++launched;
    }
    if (arrived == launched) break;  // the last one, or the very next one failed
    const auto arrival = feed_->wait(arrived, inputs.dims.batch);
    if (!arrival && launch) launch = std::unexpected(arrival.error());
    if (!arrival) break;
    cache.commit(inputs.dims.kv_len + arrived);
    onward = std::max(onward, sink(arrival->tokens, arrival->finite));
    const auto tokens = std::as_bytes(arrival->tokens);
    outputs_[1].assign(tokens.begin(), tokens.end());
  }
  if (!launch || onward == Onward::kStop) outputs_.clear();
  last_dims_ = inputs.dims;
  last_dims_.kv_len += std::max<int64_t>(arrived - 1, 0);
  return launch;
}

}  // namespace assay::engine::cuda
