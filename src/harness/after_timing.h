// Requests to an arm beyond its timing, in the processes that were timed if they still live:
// parity, if the study wants it after timing, as soon as the cell whose answer serves the others is
// timed, and a traced repetition of each cell once all of the model are. A request that an earlier
// sitting has answered in the bundle isn't made again.
#pragma once

#include <optional>

#include "artifact/bundle.h"
#include "harness/model_setup.h"
#include "harness/parity_check.h"
#include "harness/unit_runner.h"

namespace assay {

class AfterTiming {
 public:
  AfterTiming(const Study& study, const Plan& plan, size_t model, BundleWriter& bundle,
              RunContext& context, RunState& state, Workers& workers);

  // Once the model is timed: true if a request to an arm is still open.
  bool owes() const;
  // Once a unit is committed. If it was the last of a longest cell, parity is requested at once: of
  // the very code that was timed, without a second compilation. False: interrupted.
  Result<bool> unit_over(const Unit& unit, const ModelSetup& setup);
  // Once the arm is timed: makes the requests still open. May be called again: an answer stays as
  // it was. False: interrupted. Errors are the bundle's.
  Result<bool> run(size_t arm, const ModelSetup& setup);
  // Writes a null verdict for requests that can't be made of arms, timed by now, that lost every
  // row of them. Needs no worker.
  Status record_lost();
  // Writes a null verdict for answers that the baseline gave nothing to compare with. The model's
  // arms are all asked by now.
  Status record_uncompared();

 private:
  bool wants_parity() const { return study_.parity == ParityTime::kAfter; }
  bool wanted(size_t arm, const ParityKey& key) const;
  bool owes_profile(size_t cell) const;
  bool lost(size_t cell) const;
  std::optional<int64_t> reach(size_t arm, const ParityKey& key) const;
  Result<bool> ask_parity(size_t arm, const ParityKey& key, const ModelSetup& setup);
  Result<bool> profile(size_t cell, const ModelSetup& setup);
  ClientResult<EvidenceProfile> trace(size_t cell, const ModelSetup& setup,
                                      const std::filesystem::path& path);
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
