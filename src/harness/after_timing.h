// What is asked of an arm once its timing on a model is over, in the processes that were timed:
// parity where the study wants it then, and a traced repetition of each cell.
#pragma once

#include "artifact/bundle.h"
#include "harness/model_setup.h"
#include "harness/parity_check.h"
#include "harness/unit_runner.h"

namespace assay {

class AfterTiming {
 public:
  AfterTiming(const Study& study, const Plan& plan, size_t model, BundleWriter& bundle,
              RunContext& context, RunState& state, Workers& workers);

  // False: interrupted. Errors are the bundle's.
  Result<bool> run(size_t arm, const ModelSetup& setup);
  // Once every arm has run.
  Status write_parity();

 private:
  bool wants_parity() const { return study_.parity == ParityTime::kAfter; }
  bool survived(size_t arm, const ParityKey& key) const;
  bool ask_parity(size_t arm, const ModelSetup& setup);
  Result<bool> profile(size_t cell, const ModelSetup& setup);
  ClientResult<Json> trace(size_t cell, const ModelSetup& setup, const std::filesystem::path& path);
  Status keep_log(size_t cell);

  const Study& study_;
  const Plan& plan_;
  size_t model_;
  BundleWriter& bundle_;
  RunContext& context_;
  RunState& state_;
  Workers& workers_;
  ParityCheck parity_;
};

}  // namespace assay
