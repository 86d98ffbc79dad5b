// Makes steps of a model's graph for its device, a specialisation at a time: passes run once.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/compiled/compile_options.h"
#include "engine/device/device.h"
#include "engine/passes/pass.h"

namespace assay::engine {

class GraphCompiler {
 public:
  // `graph` as built. The device must outlive the object. bad_input for a disabled pass that
  // doesn't exist; nothing is compiled yet.
  static Result<std::unique_ptr<GraphCompiler>> create(Graph graph, const CompilerOptions& options,
                                                       Device& device);

  // Does the work that doesn't depend on sizes, while loading, before compile(): the passes, and
  // laying out the weights as they leave them. A failure here comes again, with its reason, in
  // compile(). `weights` must outlive all steps.
  Status load(const Weights& weights);

  // An error is the whole reason why this graph can't be compiled here: no compiler, the compiler's
  // text, a pass whose result failed its verification. The same step to everybody who asks for
  // equal sizes while somebody has it.
  Result<std::shared_ptr<LoadedStep>> compile(const Specialization& dims);

  const std::vector<PassReport>& passes() const { return passes_; }  // empty before the first
  const Device& device() const { return device_; }

 private:
  GraphCompiler(Graph graph, const CompilerOptions& options, Device& device)
      : built_(std::move(graph)), options_(options), device_(device) {}
  Status rewrite();

  Graph built_;
  CompilerOptions options_;
  Device& device_;
  std::shared_ptr<const Graph> rewritten_;
  std::vector<PassReport> passes_;
  std::vector<std::pair<Specialization, std::weak_ptr<LoadedStep>>> steps_;
};

}  // namespace assay::engine
