// Guards are on sizes alone: the weights' type, the kind of cache and the alignment of memory are
// the session's own and never change in it.
#include "engine/compiled/frame.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace assay::engine {
namespace {

enum Size : size_t { kBatch, kQLen, kKvLen, kCapacity };
constexpr std::array<std::string_view, 4> kNames = {"batch", "q_len", "kv_len", "capacity"};

std::array<int64_t, 4> as_array(const FrameSizes& sizes) {
  return {sizes.batch, sizes.q_len, sizes.kv_len, sizes.capacity};
}

bool holds(const std::optional<int64_t>& constant, int64_t size) {
  return constant ? *constant == size : size >= 2;
}

std::string guard_text(const std::optional<int64_t>& constant) {
  return constant ? fmt::format("== {}", *constant) : ">= 2";
}

}  // namespace

Frame::Frame(FrameKind kind, CacheKind cache, const FrameOptions& options, GraphCompiler& compiler)
    : kind_(kind), cache_(cache), options_(options), compiler_(compiler) {
  evidence_.requested = true;
  guarded_[kBatch] = true;
  guarded_[kQLen] = kind == FrameKind::kPrefill;
  guarded_[kKvLen] = kind == FrameKind::kDecode && cache == CacheKind::kDynamic;
  guarded_[kCapacity] = cache == CacheKind::kStatic;
}

FrameSizes Frame::sizes_of(const DimValues& dims, const CacheShape& cache) const {
  return {dims.batch, dims.q_len, dims.kv_len, room(cache.capacity, dims.kv_len)};
}

LoadedStep* Frame::find(const FrameSizes& sizes) {
  const auto values = as_array(sizes);
  for (const Entry& entry : entries_) {
    bool fits = true;
    for (size_t i = 0; i < kSizes; ++i) {
      fits = fits && (!guarded_[i] || holds(entry.constants[i], values[i]));
    }
    if (fits) return entry.graph.get();
  }
  return nullptr;
}

// A size of one is always a constant, as in Dynamo: it makes other kernels.
Frame::Constants Frame::constants_for(const FrameSizes& sizes) {
  const auto values = as_array(sizes);
  Constants constants;
  for (size_t i = 0; i < kSizes; ++i) {
    if (!guarded_[i]) continue;
    if (seen_[i] && *seen_[i] != values[i]) symbolic_[i] = true;
    seen_[i] = values[i];
    const bool symbol =
        options_.dynamic == Dynamic::kTrue || (options_.dynamic == Dynamic::kAuto && symbolic_[i]);
    if (!symbol || values[i] == 1) constants[i] = values[i];
  }
  return constants;
}

// Prefill starts on an empty cache: kv_len is q_len.
Specialization Frame::specialization(const Constants& constants) const {
  Specialization dims;
  dims.batch = constants[kBatch];
  if (kind_ == FrameKind::kPrefill) {
    dims.q_len = constants[kQLen];
    dims.kv_len = constants[kQLen];
  } else {
    dims.q_len = 1;
    dims.kv_len = constants[kKvLen];
  }
  dims.capacity = room(constants[kCapacity], dims.kv_len);
  return dims;
}

std::string Frame::describe(const Constants& constants) const {
  std::string text;
  for (size_t i = 0; i < kSizes; ++i) {
    if (!guarded_[i]) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", kNames[i], guard_text(constants[i]));
  }
  return text;
}

CompileRecord Frame::record_for(const FrameSizes& sizes) const {
  CompileRecord record;
  if (entries_.empty()) return record;
  const auto values = as_array(sizes);
  const Constants& latest = entries_.back().constants;
  for (size_t i = 0; i < kSizes; ++i) {
    if (!guarded_[i] || holds(latest[i], values[i])) continue;
    record.failed_guard = kNames[i];
    record.expected = guard_text(latest[i]);
    record.found = std::to_string(values[i]);
    break;
  }
  return record;
}

void Frame::give_up(std::string reason) {
  eager_for_good_ = true;
  evidence_.fallback = std::move(reason);
}

void Frame::note_run(const LoadedStep* graph) {
  ++evidence_.runs.compiled;
  if (std::exchange(ran_, graph) == graph) return;
  evidence_.became_symbols.clear();
  if (options_.dynamic != Dynamic::kAuto) return;
  const auto entry =
      std::ranges::find(entries_, graph, [](const Entry& e) { return e.graph.get(); });
  for (size_t i = 0; i < kSizes; ++i) {
    if (guarded_[i] && !entry->constants[i]) evidence_.became_symbols.emplace_back(kNames[i]);
  }
}

Status Frame::give_up_unless_lost(const Error& error) {
  if (compiler_.device().fault().kind != DeviceFault::Kind::kNone) return std::unexpected(error);
  give_up(error.message);
  return {};
}

// Memory too: a device may compile for a run's sizes, where they are symbols, when it makes room.
Result<LoadedStep*> Frame::compile(const DimValues& dims, const CacheShape& cache) {
  const FrameSizes sizes = sizes_of(dims, cache);
  CompileRecord record = record_for(sizes);
  if (static_cast<int64_t>(entries_.size()) >= options_.recompile_limit) {
    evidence_.limit_hit = true;
    give_up(fmt::format("recompile limit of {} reached: {}: expected {}, found {}",
                        options_.recompile_limit, record.failed_guard, record.expected,
                        record.found));
    return nullptr;
  }
  const Constants constants = constants_for(sizes);
  const CompileStats before = compiler_.device().stats();
  const int64_t start_ns = monotonic_now_ns();
  auto graph = compiler_.compile(specialization(constants));
  if (!graph) {
    ASSAY_CHECK(give_up_unless_lost(graph.error()));
    return nullptr;
  }
  const Status reserved = (*graph)->reserve({dims.batch, dims.q_len, cache.capacity});
  if (!reserved) {
    ASSAY_CHECK(give_up_unless_lost(reserved.error()));
    return nullptr;
  }
  const CompileStats after = compiler_.device().stats();
  record.guards = describe(constants);
  record.seconds = static_cast<double>(monotonic_now_ns() - start_ns) * 1e-9;
  record.kernels_compiled = after.compiled - before.compiled;
  record.kernels_loaded = after.loaded - before.loaded;
  evidence_.graphs.push_back(std::move(record));
  entries_.push_back({constants, std::move(graph).value()});
  return entries_.back().graph.get();
}

Status Frame::make_ready(const DimValues& dims, const CacheShape& cache) {
  if (eager_for_good_) return {};
  const FrameSizes sizes = sizes_of(dims, cache);
  LoadedStep* graph = find(sizes);
  if (graph == nullptr) {
    ASSAY_TRY(graph, compile(dims, cache));
  }
  if (graph == nullptr) return {};
  const Status reserved = graph->reserve({dims.batch, dims.q_len, cache.capacity});
  return reserved ? reserved : give_up_unless_lost(reserved.error());
}

Result<Executor*> Frame::run_greedy(const RunInputs& inputs, int64_t steps, KvCache& cache,
                                    const TokenSink& sink) {
  if (cache_ != CacheKind::kStatic || eager_for_good_) return nullptr;
  LoadedStep* graph = find(sizes_of(inputs.dims, cache.shape()));
  if (graph == nullptr || !graph->feeds_itself()) return nullptr;
  const Status ran = graph->run_greedy(inputs, steps, steps, cache,
                                       [&](std::span<const int32_t> tokens, bool finite) {
                                         note_run(graph);
                                         return sink(tokens, finite);
                                       });
  if (ran) return graph;
  ASSAY_CHECK(give_up_unless_lost(ran.error()));
  return nullptr;
}

Result<Executor*> Frame::run(const RunInputs& inputs, KvCache& cache, Executor& eager) {
  const FrameSizes sizes = sizes_of(inputs.dims, cache.shape());
  LoadedStep* graph = eager_for_good_ ? nullptr : find(sizes);
  if (graph == nullptr && !eager_for_good_) {
    ASSAY_TRY(graph, compile(inputs.dims, cache.shape()));
  }
  if (graph != nullptr) {
    const Status ran = graph->run(inputs, cache);
    if (ran) {
      note_run(graph);
      return graph;
    }
    ASSAY_CHECK(give_up_unless_lost(ran.error()));
  }
  ++evidence_.runs.fallbacks;
  ASSAY_CHECK(eager.run(inputs, cache));
  return &eager;
}

}  // namespace assay::engine
