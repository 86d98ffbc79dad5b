// The parity of one model's arms: which prompts are asked, the answers, and parity.json of each
// cell.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "artifact/bundle.h"
#include "harness/context.h"
#include "harness/parity.h"
#include "harness/prompts.h"
#include "study/plan.h"

namespace assay {

// Every prompt of a scenario, at one batch: what a worker is asked at once.
struct ParityKey {
  size_t scenario = 0;
  int64_t batch = 1;
  friend auto operator<=>(const ParityKey&, const ParityKey&) = default;
};

class ParityCheck {
 public:
  ParityCheck(const Study& study, const Plan& plan, size_t model);

  const std::set<ParityKey>& keys() const { return keys_; }
  ParityAnswer ask(WorkerClient& client, const ModelPrompts& prompts, const ParityKey& key) const;
  void set(size_t arm, const ParityKey& key, ParityAnswer answer);
  // Nothing is written of an arm that was not asked.
  Status write(BundleWriter& bundle, RunObserver& observer) const;

  static const WorkerFailure& not_asked();

 private:
  const ParityAnswer* answer(size_t arm, const ParityKey& key) const;  // null: not asked

  const Study& study_;
  const Plan& plan_;
  size_t model_;
  std::set<ParityKey> keys_;
  int64_t tokens_ = 1;  // compared: as many as the plan's longest generation, with a limit
  std::map<size_t, std::map<ParityKey, ParityAnswer>> answers_;  // by arm
};

// The arms of a study, the baseline first.
std::vector<size_t> arms_baseline_first(const Study& study);

}  // namespace assay
