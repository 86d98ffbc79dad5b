// What is asked of an arm beyond its timing, in the processes that were timed where they still
// live: parity where the study wants it after timing, as soon as the cell that it speaks for is
// timed, and a traced repetition of each cell once all of the model are. What the bundle has of an
// earlier sitting isn't asked again.
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

  // Once the model is timed: whether an arm is still to be asked anything.
  bool owes() const;
  // Once a unit is committed. Where it was the last of a longest cell, parity is asked there and
  // then: of the very code that was timed, and at no second compilation. False: interrupted.
  Result<bool> unit_over(const Unit& unit, const ModelSetup& setup);
  // Once the arm is timed: what is still open. May be called again: what was answered stays so.
  // False: interrupted. Errors are the bundle's.
  Result<bool> run(size_t arm, const ModelSetup& setup);
  // Writes a null verdict for what arms, timed by now, can't be asked: they lost every row of it.
  // Needs no worker.
  Status record_lost();

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
