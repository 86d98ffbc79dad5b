// Decisions to choices.
#include "routing/choice.h"

#include <algorithm>
#include <cmath>

#include "analysis/contrast/contrast.h"
#include "analysis/named/named.h"
#include "analysis/rows/eager_rows.h"
#include "base/text/listed.h"
#include "base/text/text.h"

namespace assay {
namespace {

// The place of the stratum's safe arm in Samples::arms.
std::optional<size_t> safe_arm(const Samples& samples, size_t stratum,
                               const AnalysisOptions& options) {
  for (size_t g = samples.first_group[stratum]; g < samples.first_group[stratum + 1]; ++g) {
    const Group& group = samples.groups[g];  // in the order of the arms, the baseline first
    if (group.execution() == Execution::kEager && reason_barred(group, options).empty()) {
      return group.arm;
    }
  }
  return std::nullopt;
}

// The reason why the stratum has no safe arm, eager arm by eager arm.
std::string why_none_is_safe(const Samples& samples, size_t stratum,
                             const AnalysisOptions& options) {
  std::vector<std::string> reasons;
  for (size_t g = samples.first_group[stratum]; g < samples.first_group[stratum + 1]; ++g) {
    const Group& group = samples.groups[g];
    if (group.execution() != Execution::kEager) continue;
    reasons.push_back(
        fmt::format("{}: {}", samples.arms[group.arm], reason_barred(group, options)));
  }
  if (reasons.empty()) return "no arm is safe: no eager arm was measured";
  return "no arm is safe: " + join(reasons, "; ");
}

// "dynamic, eager and static": the arms that the decision leaves undecided, in alphabetical order,
// so that lengths with the same arms give one reason.
std::string in_question_text(const Decision& decision) {
  std::vector<std::string> names = {decision.arm};
  for (const Rival& rival : decision.tied) names.push_back(rival.arm);
  std::ranges::sort(names);
  return listed(names);
}

bool left_out(const Decision& decision, const std::string& arm) {
  return std::ranges::find(decision.left_out, arm, &LeftOut::arm) != decision.left_out.end();
}

void abstain(StratumChoice& choice, std::string because) {
  choice.arm = choice.safe;
  choice.abstains = true;
  choice.because = std::move(because);
}

void apply_decision(const Decision& decision, const std::string& baseline, StratumChoice& choice) {
  const std::string& safe = choice.safe;
  const bool tied_with_safe =
      std::ranges::find(decision.tied, safe, &Rival::arm) != decision.tied.end();
  switch (decision.kind) {
    case Decision::Kind::kBest:
      choice.arm = decision.arm;
      break;
    case Decision::Kind::kNoDifference:
      choice.arm = tied_with_safe ? safe : decision.arm;
      break;
    case Decision::Kind::kAhead:
      if (safe == baseline) {
        choice.arm = decision.arm;
      } else {
        abstain(choice, fmt::format("{} is faster than {}, and not proven faster than {}",
                                    decision.arm, baseline, safe));
      }
      break;
    case Decision::Kind::kUndecided:
      abstain(choice, "undecided between " + in_question_text(decision));
      break;
    case Decision::Kind::kOnlyOne:
      choice.arm = decision.arm;
      if (decision.arm != safe) abstain(choice, "no other arm can be compared with it");
      break;
    case Decision::Kind::kNone:
      abstain(choice, "no two arms can be compared");
      break;
    case Decision::Kind::kVoid:
      abstain(choice, decision.void_because);
      break;
  }
  if (choice.arm != safe && left_out(decision, safe)) {
    abstain(choice, fmt::format("{} isn't compared with the safe arm", decision.arm));
  }
}

// The ratio to the baseline where that is the safe arm, else the decision's own to its rival.
void add_ratio(const Findings& findings, const Decision& decision, const std::string& baseline,
               StratumChoice& choice) {
  if (choice.arm.empty() || choice.arm == choice.safe) return;
  if (choice.safe == baseline) {
    for (const Contrast& contrast : findings.contrasts) {
      if (contrast.stratum != choice.stratum || contrast.arm != choice.arm) continue;
      choice.ratio = contrast.ratio;
      choice.interval = contrast.ratio_interval;
      choice.process_range = contrast.ratio_process_range;
    }
    return;
  }
  std::vector<Rival> rivals = decision.tied;
  if (decision.runner_up) rivals.push_back(*decision.runner_up);
  const auto rival = std::ranges::find(rivals, choice.safe, &Rival::arm);
  if (rival == rivals.end()) return;
  choice.ratio = rival->ratio;
  choice.interval = rival->ratio_interval;
  choice.process_range = rival->ratio_process_range;
}

// Adds the arms proven faster or slower by the contrasts with the baseline, if that is the safe
// arm.
void add_proven(const ChoiceInputs& in, const Findings& findings, StratumChoice& choice) {
  const Samples& samples = in.samples;
  const bool is_void =
      choice.decision == Decision::Kind::kVoid || !in.void_because[choice.stratum].empty();
  if (choice.safe != samples.arms.front() || is_void) return;
  for (const Contrast& contrast : findings.contrasts) {
    const bool faster = contrast.verdict == Verdict::kFaster;
    const bool decided = faster || contrast.verdict == Verdict::kSlower;
    if (contrast.stratum != choice.stratum || !decided) continue;
    if (!reason_barred(*samples.find(choice.stratum, contrast.arm), in.options).empty()) continue;
    (faster ? choice.proven : choice.slower)
        .push_back(
            {contrast.arm, contrast.ratio, contrast.ratio_interval, contrast.ratio_process_range});
  }
}

}  // namespace

std::string reason_barred(const Group& group, const AnalysisOptions& options) {
  std::vector<std::string> reasons = reasons_against(group, options);
  const Execution execution = group.execution();
  if (execution != Execution::kEager && execution != Execution::kCompiled) {
    reasons.push_back(unearned_text(execution, eager_rows(group)));
  }
  return join(reasons, ", ");
}

bool barred_by_losses_alone(const Group& group, const AnalysisOptions& options) {
  if (group.failed() == 0 || group.parity_failed) return false;
  const Execution execution = group.execution();
  return std::ssize(group.warm) >= options.minimum_rows &&
         (execution == Execution::kEager || execution == Execution::kCompiled);
}

std::vector<StratumChoice> choose_arms(const ChoiceInputs& in, ThreadPool* pool) {
  const Samples& samples = in.samples;
  const Units units(samples, in.order_recorded);
  const Resampled resampled = resample_groups(samples, units, in.options, pool);
  Findings findings;
  findings.options = in.options;
  findings.strata = samples.strata;
  const ContrastInputs inputs{samples, units, resampled, findings.options};
  contrast_with_baseline(inputs, findings, pool);
  stats::QuantileBootstrap quantiles(ratio_bootstrap(in.options));
  findings.decisions = decide(inputs, findings.contrasts, in.void_because, quantiles, pool);
  return choices_of(in, findings);
}

std::vector<StratumChoice> choices_of(const ChoiceInputs& in, const Findings& findings) {
  const Samples& samples = in.samples;
  const std::string& baseline = samples.arms.front();
  std::vector<StratumChoice> choices;
  for (const Decision& decision : findings.decisions) {
    // A policy routes single requests.
    if (samples.strata[decision.stratum].phase == Phase::kLoad) continue;
    StratumChoice& choice = choices.emplace_back();
    choice.stratum = decision.stratum;
    choice.decision = decision.kind;
    const auto safe = safe_arm(samples, decision.stratum, in.options);
    if (!safe) {
      abstain(choice, why_none_is_safe(samples, decision.stratum, in.options));
      continue;
    }
    choice.safe = samples.arms[*safe];
    apply_decision(decision, baseline, choice);
    add_ratio(findings, decision, baseline, choice);
    add_proven(in, findings, choice);
  }
  return choices;
}

const ProvenArm* proof_of(const StratumChoice& choice, const std::string& arm) {
  const auto at = std::ranges::find(choice.proven, arm, &ProvenArm::arm);
  return at == choice.proven.end() ? nullptr : &*at;
}

const ProvenArm* proven_on_all(std::span<const StratumChoice* const> choices) {
  const bool all_gain = std::ranges::all_of(choices, [](const StratumChoice* choice) {
    return !choice->abstains && choice->arm != choice->safe;
  });
  if (!all_gain || choices.empty()) return nullptr;
  const ProvenArm* best = nullptr;
  double least = 0;
  for (const ProvenArm& candidate : choices.front()->proven) {
    double log_ratios = 0;
    const bool everywhere = std::ranges::all_of(choices, [&](const StratumChoice* choice) {
      const ProvenArm* proof = proof_of(*choice, candidate.arm);
      if (proof != nullptr) log_ratios += std::log(proof->ratio);
      return proof != nullptr;
    });
    if (!everywhere || (best != nullptr && log_ratios >= least)) continue;
    best = &candidate;
    least = log_ratios;
  }
  return best;
}

}  // namespace assay
