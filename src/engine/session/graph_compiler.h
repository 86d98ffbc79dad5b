// Makes machine code of a session's graph, a specialisation at a time: passes run once, the
// compiler is looked for once, weights are packed once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "engine/codegen/kernel_library.h"
#include "engine/passes/pass.h"
#include "engine/session/compile_options.h"
#include "engine/session/compiled_graph.h"
#include "engine/session/packed_weights.h"

namespace assay::engine {

class GraphCompiler {
 public:
  // `graph` as built. The rest must outlive the object. bad_input for a disabled pass that doesn't
  // exist; nothing is compiled yet.
  static Result<std::unique_ptr<GraphCompiler>> create(Graph graph, const CompileOptions& options,
                                                       const Weights& weights, ThreadPool& pool);

  // What doesn't depend on sizes, done while loading: the passes, and the weights as they leave
  // them. What fails here fails again, with its reason, in compile().
  Status load();

  // An error is the whole reason why this graph can't be compiled here: no compiler, the compiler's
  // text, a pass whose result failed its verification.
  Result<std::unique_ptr<CompiledGraph>> compile(const Specialization& dims);

  const std::vector<PassReport>& passes() const { return passes_; }  // empty before the first
  const CpuCompiler* toolchain() const { return library_ ? &library_->compiler() : nullptr; }
  CompileStats stats() const { return library_ ? library_->stats() : CompileStats(); }
  uint64_t packed_bytes() const { return weights_.bytes(); }
  // What went wrong without stopping anything: a cache folder that can't be used.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  GraphCompiler(Graph graph, const CompileOptions& options, const Weights& weights,
                ThreadPool& pool)
      : built_(std::move(graph)), options_(options), weights_(weights, pool), pool_(pool) {}
  Status find_compiler();
  Status rewrite();

  Graph built_;
  CompileOptions options_;
  PackedWeights weights_;
  ThreadPool& pool_;
  std::unique_ptr<KernelLibrary> library_;
  std::shared_ptr<const Graph> rewritten_;
  std::vector<PassReport> passes_;
  std::vector<std::string> notes_;
};

}  // namespace assay::engine
