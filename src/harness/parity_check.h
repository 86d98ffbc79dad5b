// The parity of one model's arms: the prompts asked and still to be asked, the answers, and
// parity.json of each cell, written as soon as its answer and its reference's are there. One
// answer, of the longest cell that runs, serves all of a scenario and batch: each cell is held to
// as many of its tokens as it generates.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "artifact/bundle.h"
#include "harness/context.h"
#include "harness/parity.h"
#include "harness/prompts.h"
#include "study/plan.h"

namespace assay {

// Every prompt of a scenario, at one batch: the subject of one request to a worker.
struct ParityKey {
  size_t scenario = 0;
  int64_t batch = 1;
  friend auto operator<=>(const ParityKey&, const ParityKey&) = default;
};

// New tokens of the longest cell that an arm runs, up to which it can be asked; absent: not at all.
using ParityReach = std::function<std::optional<int64_t>(size_t arm)>;

class ParityCheck {
 public:
  // `recorded`: the plan's cells that have a parity.json, by an earlier sitting too. A record is
  // never replaced; cells that get one are added. References outlive this.
  ParityCheck(const Study& study, const Plan& plan, size_t model, BundleWriter& bundle,
              RunObserver& observer, std::set<size_t>& recorded);

  const std::set<ParityKey>& keys() const { return keys_; }
  // New tokens of its longest cell; the key is one of keys().
  int64_t longest(const ParityKey& key) const { return longest_.at(key); }
  // True if the arm is still to be asked: it wasn't yet, and a cell of it within its own reach and
  // that of its reference (parity_reference()) has no record. A reference is asked too if only
  // another arm needs its answer: answers aren't kept in the bundle.
  bool wanted(size_t arm, const ParityKey& key, const ParityReach& reach) const;
  // Asks for the tokens of a cell of so many new tokens. The answer has its cost except the
  // compiler's part: that is the growth of the process's compiler_seconds() meanwhile.
  ParityAnswer ask(WorkerClient& client, const ModelPrompts& prompts, const ParityKey& key,
                   int64_t new_tokens) const;
  // Seconds that the process has spent in the compiler so far; absent: its worker doesn't say.
  ClientResult<std::optional<double>> compiler_seconds(WorkerClient& client) const;
  // Keeps the answer of a cell of so many new tokens and records the verdicts that follow from it:
  // for the arm's cells up to there, and, if it is a reference's, for those that waited for it. A
  // null verdict for want of the reference's answer is left to set_uncompared: it may be asked
  // again. The observer is told once of an arm that fails.
  Status set(size_t arm, const ParityKey& key, int64_t new_tokens, ParityAnswer answer);
  // Records a null verdict in those cells of the arm beyond `reach` that have no record.
  Status set_unasked(size_t arm, const ParityKey& key, std::optional<int64_t> reach,
                     const WorkerFailure& why);

  // Records the null verdicts for want of a reference's answer: the model's arms are all asked.
  Status set_uncompared();

  static const WorkerFailure& not_asked();

 private:
  struct Asked {
    int64_t new_tokens;  // up to which cell
    ParityAnswer answer;
  };
  const Asked* asked(size_t arm, const ParityKey& key) const;  // null: it wasn't
  std::vector<size_t> unrecorded(size_t arm, const ParityKey& key) const;
  Status record(size_t cell, const Json& result);
  // parity.json of a cell that the arm's answer covers.
  Json compared(size_t cell, const Asked& found) const;
  bool is_reference(size_t arm) const { return reference_[arm] == arm; }
  const std::string& reference_name(size_t arm) const { return study_.arms[reference_[arm]].name; }
  Status compare(size_t arm, const ParityKey& key);

  const Study& study_;
  const Plan& plan_;
  size_t model_;
  BundleWriter& bundle_;
  RunObserver& observer_;
  std::set<size_t>& recorded_;
  std::vector<size_t> reference_;  // by arm: whose tokens are expected of it
  std::set<ParityKey> keys_;
  std::map<ParityKey, int64_t> longest_;
  std::map<size_t, std::map<ParityKey, Asked>> asked_;  // by arm
  std::set<size_t> told_;                               // arms whose failure was told
};

// The arms of a study, the baseline first.
std::vector<size_t> arms_baseline_first(const Study& study);

}  // namespace assay
