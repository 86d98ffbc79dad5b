// A phase's step as Dynamo sees a frame: specialised graphs with guards on sizes, recompilation
// when none fits, a limit to that, and eager execution behind it all.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/cache/kv_cache.h"
#include "engine/compiled/compile_evidence.h"
#include "engine/compiled/compile_options.h"
#include "engine/compiled/graph_compiler.h"

namespace assay::engine {

enum class FrameKind { kPrefill, kDecode };

// The sizes that a run can be specialised on. Which of them are shapes is the frame's and the
// cache's: a dynamic cache's kv_len is one in decode, a static cache's is data and its capacity is
// one.
struct FrameSizes {
  int64_t batch = 0;
  int64_t q_len = 0;
  int64_t kv_len = 0;
  int64_t capacity = 0;
};

class Frame {
 public:
  // The compiler must outlive the frame.
  Frame(FrameKind kind, CacheKind cache, const FrameOptions& options, GraphCompiler& compiler);

  // Compiles for runs of these sizes over such a cache unless a graph fits, and reserves memory for
  // them up to the cache's capacity. A failure makes such runs eager, and evidence() says why; but
  // a device that is lost or out of memory is an error, because eager runs have none other.
  Status make_ready(const DimValues& dims, const CacheShape& cache);

  // Runs with the graph that fits, compiled now if there is none, or with `eager`, which counts as
  // a fallback: from then on for good if the graph failed. Gives the executor that has the outputs.
  // A device that is lost or out of memory, by its fault(), is an error; a processor has no such
  // fault, and goes on eager.
  Result<Executor*> run(const RunInputs& inputs, KvCache& cache, Executor& eager);

  // LoadedStep::run_greedy() with the graph that fits, if it feeds itself and the cache is static.
  // Null if it doesn't, or if the graph failed: steps whose tokens `sink` hasn't got are still to
  // be run.
  Result<Executor*> run_greedy(const RunInputs& inputs, int64_t steps, KvCache& cache,
                               const TokenSink& sink);

  const FrameEvidence& evidence() const { return evidence_; }
  // Code of the graph that ran last.
  LoadedStep::Code code() const { return ran_ != nullptr ? ran_->code() : LoadedStep::Code{}; }

 private:
  static constexpr size_t kSizes = 4;
  using Constants = std::array<std::optional<int64_t>, kSizes>;  // absent: a symbol, 2 or more
  struct Entry {
    Constants constants;
    std::shared_ptr<LoadedStep> graph;
  };

  // Positions that the cache's tensors have room for at this length: as many if it grows.
  template <typename Positions>
  Positions room(Positions capacity, Positions kv_len) const {
    return cache_ == CacheKind::kStatic ? capacity : kv_len;
  }
  FrameSizes sizes_of(const DimValues& dims, const CacheShape& cache) const;
  LoadedStep* find(const FrameSizes& sizes);
  // Null: eager from now on.
  Result<LoadedStep*> compile(const DimValues& dims, const CacheShape& cache);
  // An error that eager runs would meet as well, else gives up with its words.
  Status give_up_unless_lost(const Error& error);
  Constants constants_for(const FrameSizes& sizes);
  Specialization specialization(const Constants& constants) const;
  CompileRecord record_for(const FrameSizes& sizes) const;
  std::string describe(const Constants& constants) const;
  void give_up(std::string reason);
  void note_run(const LoadedStep* graph);

  FrameKind kind_;
  CacheKind cache_;
  FrameOptions options_;
  GraphCompiler& compiler_;
  std::array<bool, kSizes> guarded_{};
  std::array<bool, kSizes> symbolic_{};  // kAuto: sizes that have changed
  std::array<std::optional<int64_t>, kSizes> seen_;
  std::vector<Entry> entries_;
  const LoadedStep* ran_ = nullptr;  // last; null: none
  bool eager_for_good_ = false;
  FrameEvidence evidence_;
};

}  // namespace assay::engine
