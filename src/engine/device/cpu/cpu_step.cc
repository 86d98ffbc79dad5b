// Loads a plan: functions, packed weights, and where each kernel's buffers are.
#include "engine/device/cpu/cpu_step.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "base/files/hash.h"
#include "engine/codegen/cpu/print_cpu.h"
#include "engine/graph/flatten.h"
#include "engine/graph/input_values.h"

namespace assay::engine {
namespace {

// Tables in blocks, by tensor, that the graph reads at the ids of its tokens.
Result<std::map<std::string, DecodedTable*>> tables_of_ids(const Graph& graph,
                                                           PackedWeights& weights) {
  std::map<std::string, DecodedTable*> tables;
  const Graph flat = flatten(graph);
  for (const Node& node : flat.nodes) {
    if (node.op != OpKind::kEmbedding) continue;
    const auto* ids = std::get_if<InputSource>(&flat.values[node.inputs[0]].source);
    const auto* table = std::get_if<WeightSource>(&flat.values[node.inputs[1]].source);
    if (ids == nullptr || ids->kind != InputKind::kIds || table == nullptr) continue;
    if (!traits(table->format).in_blocks()) continue;
    ASSAY_TRY(tables[table->tensors.front()], weights.table(*table));
  }
  return tables;
}

// Where a step's kernels find their weights.
struct WeightPlaces {
  PackedWeights& packed;
  std::map<std::string, DecodedTable*> tables;

  Result<const std::byte*> address(const Value& value, const WeightBinding& binding) const {
    const auto& source = std::get<WeightSource>(value.source);
    if (binding.product) {
      return packed.product(source, binding.product->layout, binding.product->packing);
    }
    const auto table = tables.find(source.tensors.front());
    if (table == tables.end()) return packed.plain(source);
    return reinterpret_cast<const std::byte*>(table->second->data());
  }
};

// The stage of a kernel, its weights bound; everything else is null.
Result<Stage> make_stage(const StepPlan& plan, const PlannedKernel& planned,
                         const KernelFunctions& functions, const WeightPlaces& weights) {
  Stage stage{.functions = functions, .buffers = {}, .rows = planned.rows, .product = {}};
  stage.buffers.resize(planned.kernel.buffers.size(), nullptr);
  for (size_t i = 0; i < planned.bindings.size(); ++i) {
    const auto* binding = std::get_if<WeightBinding>(&planned.bindings[i]);
    if (binding == nullptr) continue;
    const Value& value = plan.graph->values[binding->value];
    ASSAY_TRY(const std::byte* const data, weights.address(value, *binding));
    stage.buffers[i] = const_cast<std::byte*>(data);  // kernels don't write to weights
    if (!binding->product) continue;
    const auto& product = std::get<ProductKernel>(planned.kernel.body);
    stage.product = ProductStage{.inputs = product.inputs,
                                 .packing = product.packing,
                                 .panels = data,
                                 .format = std::get<WeightSource>(value.source).format,
                                 .input_order = std::get<WeightSource>(value.source).input_order,
                                 .x = product.x};
  }
  return stage;
}

}  // namespace

Result<std::unique_ptr<CpuStep>> CpuStep::load(std::shared_ptr<const StepPlan> plan,
                                               KernelLibrary& library, PackedWeights& weights,
                                               ThreadPool& pool) {
  std::vector<std::string> sources;
  for (const PlannedKernel& planned : plan->kernels) sources.push_back(print_cpu(planned.kernel));
  ASSAY_TRY(const std::vector<KernelFunctions> functions, library.load_sources(sources));
  WeightPlaces places{.packed = weights, .tables = {}};
  ASSAY_TRY(places.tables, tables_of_ids(*plan->graph, weights));
  std::vector<DecodedTable*> tables;
  for (const auto& [name, table] : places.tables) tables.push_back(table);
  std::vector<Stage> stages;
  for (size_t i = 0; i < functions.size(); ++i) {
    ASSAY_TRY(Stage stage, make_stage(*plan, plan->kernels[i], functions[i], places));
    stages.push_back(std::move(stage));
  }
  std::string hashes;
  for (const std::string& source : sources) hashes += sha256_hex(source) + "\n";
  return std::unique_ptr<CpuStep>(
      new CpuStep(std::move(plan), sha256_hex(hashes), std::move(stages), std::move(tables), pool));
}

CpuStep::CpuStep(std::shared_ptr<const StepPlan> plan, std::string code_sha256,
                 std::vector<Stage> stages, std::vector<DecodedTable*> tables, ThreadPool& pool)
    : plan_(std::move(plan)),
      code_sha256_(std::move(code_sha256)),
      schedule_(std::move(stages), pool),
      tables_(std::move(tables)) {
  views_.resize(static_cast<size_t>(plan_->layers) * 2);
  find_slots();
}

// The stages' vectors keep their addresses from here on.
void CpuStep::find_slots() {
  for (size_t i = 0; i < plan_->kernels.size(); ++i) {
    const std::vector<Binding>& bindings = plan_->kernels[i].bindings;
    for (size_t b = 0; b < bindings.size(); ++b) {
      void** slot = &schedule_.stages()[i].buffers[b];
      if (const auto* cache = std::get_if<CacheBinding>(&bindings[b])) {
        cache_slots_.push_back({slot, *cache});
      } else if (const auto* constant = std::get_if<ConstantBinding>(&bindings[b])) {
        constant_slots_.push_back({slot, constant->kind});
      }
    }
  }
}

Status CpuStep::reserve(const DimValues& dims) {
  if (reserved_ && reserved_->batch == dims.batch && reserved_->q_len == dims.q_len &&
      reserved_->kv_len >= dims.kv_len) {
    return {};
  }
  reserved_.reset();
  const DimValues most{std::max(dims.batch, placed_.batch), std::max(dims.q_len, placed_.q_len),
                       std::max(dims.kv_len, placed_.kv_len)};
  if (most.batch > placed_.batch || most.q_len > placed_.q_len || most.kv_len > placed_.kv_len) {
    placed_ = {};
    ASSAY_CHECK(place_values(most));
    placed_ = most;
  }
  StageMemory memory;
  const auto threads = static_cast<int64_t>(schedule_.threads());
  for (const PlannedKernel& planned : plan_->kernels) {
    memory.scratch_floats =
        std::max(memory.scratch_floats, kernel_scratch_floats(planned.kernel, dims));
    memory.shared_floats.push_back(kernel_shared_floats(planned.kernel, dims, threads));
  }
  ASSAY_CHECK(schedule_.reserve(memory, dims));
  reserved_ = dims;
  return {};
}

std::byte* CpuStep::address(ValueId id) const {
  return arena_.data() + *places_.offsets[plan_->bases[id]];
}

Status CpuStep::place_values(const DimValues& dims) {
  places_ = plan_arena(*plan_, dims);
  ASSAY_TRY(arena_, HugeMemory::allocate(places_.bytes));
  std::memset(arena_.data(), 0, places_.bytes);  // touched here, not in the first step
  for (size_t i = 0; i < plan_->kernels.size(); ++i) {
    const std::vector<Binding>& bindings = plan_->kernels[i].bindings;
    for (size_t b = 0; b < bindings.size(); ++b) {
      const auto* value = std::get_if<ArenaBinding>(&bindings[b]);
      if (value != nullptr) schedule_.stages()[i].buffers[b] = address(value->value);
    }
  }
  return {};
}

// Inputs are copied to where the kernels read them; caches are where they are now.
Status CpuStep::bind_inputs(const RunInputs& inputs, KvCache& cache) {
  for (const ArenaPlan::Input& input : places_.inputs) {
    const std::span<const int32_t> from = input_values(inputs, input.kind);
    std::memcpy(arena_.data() + input.offset, from.data(), from.size_bytes());
    if (input.kind != InputKind::kIds) continue;
    for (DecodedTable* const table : tables_) table->want(from);
  }
  for (const ConstantSlot& constant : constant_slots_) {
    const auto& table =
        constant.kind == ConstantKind::kRopeCos ? inputs.rope->cos : inputs.rope->sin;
    *constant.slot = const_cast<float*>(table.data());  // kernels don't write to it
  }
  for (size_t i = 0; i < views_.size(); ++i) {
    const CachePart part = i % 2 == 0 ? CachePart::kKeys : CachePart::kValues;
    ASSAY_TRY(views_[i], cache.extend(static_cast<int64_t>(i / 2), part, inputs.dims.kv_len));
  }
  for (const CacheSlot& slot : cache_slots_) {
    const auto view = static_cast<size_t>(slot.cache.layer) * 2;
    *slot.slot = views_[view + (slot.cache.part == CachePart::kValues)].f32();
  }
  return {};
}

Status CpuStep::run(const RunInputs& inputs, KvCache& cache) {
  assert(rows_fit(inputs));
  DimValues most = inputs.dims;
  most.kv_len = std::max(most.kv_len, cache.shape().capacity);
  ASSAY_CHECK(reserve(most));
  ASSAY_CHECK(bind_inputs(inputs, cache));
  schedule_.run(inputs.dims, views_.empty() ? 0 : views_[0].capacity);
  cache.commit(inputs.dims.kv_len);
  last_dims_ = inputs.dims;
  return {};
}

std::span<const float> CpuStep::output_f32(size_t index) const {
  return {reinterpret_cast<const float*>(address(plan_->graph->outputs[index])),
          static_cast<size_t>(output_elements(*plan_, index, last_dims_))};
}

std::span<const int32_t> CpuStep::output_i32(size_t index) const {
  return {reinterpret_cast<const int32_t*>(address(plan_->graph->outputs[index])),
          static_cast<size_t>(output_elements(*plan_, index, last_dims_))};
}

}  // namespace assay::engine
