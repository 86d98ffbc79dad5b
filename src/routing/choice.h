// Choice of an arm on each stratum by its findings, the arm that is safe there, and the arms that
// may not be chosen, however fast they are.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/findings/findings.h"
#include "analysis/rows/samples.h"
#include "base/process/thread_pool.h"

namespace assay {

// The reason why no strategy may choose the arm on its stratum; empty: one may. It lost a row
// there, its output differed from the baseline's, too few warm rows, or it asked for a compiler and
// there is no proof that every timed row ran compiled.
std::string reason_barred(const Group& group, const AnalysisOptions& options);

// True if lost rows are all that bars the arm there, so that a strategy that looks at no rows would
// take it.
bool barred_by_losses_alone(const Group& group, const AnalysisOptions& options);

// An arm that is proven faster (or slower) than the safe one on a stratum, whether or not it is
// chosen there.
struct ProvenArm {
  std::string arm;
  double ratio = 1;  // to the safe arm, of means
  std::optional<stats::Interval> interval;
  std::optional<stats::Interval> process_range = {};  // of processes too few for an interval
};

struct StratumChoice {
  size_t stratum = 0;
  Decision::Kind decision = Decision::Kind::kNone;
  std::string arm;   // empty: no arm is safe, so that none may be chosen
  std::string safe;  // the eager arm to fall back to; empty: none is safe
  bool abstains = false;
  std::string because;                      // of an abstention, or why no arm is safe
  std::optional<double> ratio;              // of `arm` to `safe`, of means; where both are known
  std::optional<stats::Interval> interval;  // of it
  std::optional<stats::Interval> process_range = {};  // likewise, of too few processes
  // Arms, in the study's order, whose contrast with the safe arm says that they are faster, which
  // is the proof that `ahead` takes, and that nothing bars. Empty where the safe arm isn't the
  // baseline, and where the comparison is void.
  std::vector<ProvenArm> proven;
  // Likewise those whose contrast says that they are slower.
  std::vector<ProvenArm> slower;
};

// Inputs of the choices: samples of one bundle, or a part of its rows.
struct ChoiceInputs {
  const Samples& samples;
  bool order_recorded = false;  // of the study; blocks.h
  // For each stratum the reason why a comparison of its arms decides nothing; empty: it does
  // decide.
  const std::vector<std::string>& void_because;
  const AnalysisOptions& options;
};

// One a stratum, by the decisions that `assay analyze` makes of the same rows. The safe arm is the
// baseline if it is eager and not barred, else the first such arm of the study. The choice is
// - the arm that is faster than every other comparable one, or at least faster than the safe arm
//   where that is the baseline;
// - of equivalent arms the safe one if it is among them, else the one with the lowest mean;
// - the safe arm with a reason, where the decision says none of these.
// No arm is chosen if none is safe: a policy without a fallback has nothing to give way to.
std::vector<StratumChoice> choose_arms(const ChoiceInputs& in, ThreadPool* pool);
// The same by findings of these rows under these options, whose contrasts and decisions are there.
std::vector<StratumChoice> choices_of(const ChoiceInputs& in, const Findings& findings);

// The arm that serves requests between or over all of these strata though they choose different
// arms: of the arms that are proven on each, the one with the smallest geometric mean of its
// ratios. Null: there is none, or some stratum abstains or takes the safe arm itself.
const ProvenArm* proven_on_all(std::span<const StratumChoice* const> choices);
// The stratum's proof of the arm; null: there is none.
const ProvenArm* proof_of(const StratumChoice& choice, const std::string& arm);

}  // namespace assay
