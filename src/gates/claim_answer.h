// Decides if a bundle's findings bear a claim out.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/claims/claim.h"
#include "analysis/findings/findings.h"
#include "gates/gate.h"

namespace assay {

// Findings by stratum; they have to outlive it.
class StratumFindings {
 public:
  explicit StratumFindings(const Findings& findings);

  struct ClaimedPair {
    Verdict verdict = Verdict::kInconclusive;
    double ratio = 1;  // arm / other
    std::optional<stats::Interval> interval;
    std::optional<stats::Interval> process_range = {};  // of processes too few for an interval
    bool one_process = false;                           // of an arm: no test decides
  };

  const Findings& findings() const { return findings_; }
  // Figures of the two arms' contrast, whichever is its baseline; absent: they aren't contrasted.
  std::optional<ClaimedPair> pair(size_t stratum, const std::string& arm,
                                  const std::string& other) const;
  const Decision* decision(size_t stratum) const;  // null: there is none
  const OutcomeCounts* outcome(size_t stratum, const std::string& arm) const;  // null: no rows
  bool parity_failed(size_t stratum, const std::string& arm) const;
  std::string not_comparable(size_t stratum, const std::string& arm) const;  // empty: it is

 private:
  struct Place {
    std::vector<const Contrast*> contrasts;
    std::vector<const OutcomeCounts*> outcomes;
    std::vector<const NotComparable*> not_comparable;
    std::vector<const Latency*> latencies;
    const Decision* decision = nullptr;
  };
  const Findings& findings_;
  std::vector<Place> places_;
};

struct ClaimAnswer {
  // kPass: it holds on every stratum that it covers, or in their geometric mean while the others'
  // intervals rule out the contrary beyond the margin. kFail: on one of them the findings say
  // otherwise, or its arm lost rows or gave other output. Else kNotDecided.
  GateVerdict verdict = GateVerdict::kNotDecided;
  std::string because;                  // a sentence
  std::vector<std::string> decided_by;  // strata and their ratios, kMostDeciding at most
  int64_t decided_by_more = 0;
  std::vector<size_t> strata;  // that the claim covers, with rows of one of its arms
};

// `only`: strata outside it aren't looked at; null: every stratum that the claim covers is.
ClaimAnswer answer_claim(const SpeedClaim& claim, const StratumFindings& findings,
                         const std::set<Stratum>* only = nullptr);

// The claims that the report's decisions make, each about one stratum: an arm is the fastest; is
// faster than the baseline, if the fastest is open; or is equivalent to another. A decision that
// names no arm claims nothing.
std::vector<SpeedClaim> claims_of_decisions(const Findings& findings);

}  // namespace assay
