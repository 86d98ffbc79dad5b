// Where a step's values, inputs and sizes lie, and its runs; step_launches.cc launches them.
#include "engine/device/cuda/cuda_step.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <utility>

#include "engine/codegen/cuda/fp8_product.h"
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

// Finds the run's recording; where there is none, or no chain yet for a run that takes one, makes
// room for the run and binds it: what is recorded then is of its sizes and addresses.
::assay::Status CudaStep::make_room(const RunInputs& inputs, KvCache& cache, bool chains) {
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
  const bool recorded = latest_ != nullptr && !latest_->graphs.empty();
  if (recorded && (!chains || latest_->chain)) return {};
  DimValues most = inputs.dims;
  most.kv_len = std::max(most.kv_len, cache.shape().capacity);
  ASSAY_CHECK(reserve(most));
  latest_ = find(wanted_);  // which may have gone
  bind(wanted_);
  return {};
}

// Caches are where they are now; all else has its place.
void CudaStep::bind(const Bound& bound) {
  if (bound_ && bound == *bound_) return;  // as they are
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
  const int64_t most_ahead = std::min(ahead, StepFeed::kAhead);
  ASSAY_CHECK(make_room(inputs, cache, chains(most_ahead, steps)));
  ASSAY_CHECK(feed_->expect(0));
  ASSAY_CHECK(hand_over_state(inputs));
  ::assay::Status launch;  // of the latest steps
  int64_t launched = 0, arrived = 0;
  Onward onward = Onward::kGo;
  for (; onward != Onward::kStop; ++arrived) {
    while (launch && onward == Onward::kGo && launched < steps) {
      const int64_t chained = chains(most_ahead, steps - launched) && has_chain() ? kChained : 1;
      if (launched - arrived + chained > most_ahead) break;
      for (int64_t i = 0; launch && i < chained; ++i) {
        if (launched + i > 0) launch = feed_->expect(launched + i);
      }
      if (launch) launch = chained > 1 ? replay_chain() : execute();
      if (launch) launched += chained;
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
