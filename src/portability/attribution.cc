// Changes and the axes behind them.
#include "portability/attribution.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/contrast/verdict.h"
#include "base/add_once.h"
#include "base/records/enum_words.h"
#include "base/text/counts.h"
#include "base/text/listed.h"
#include "base/text/text.h"
#include "stats/hypotheses/tests.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

// Finds a verdict by its condition and its other regime.
class VerdictPlaces {
 public:
  explicit VerdictPlaces(std::span<const ConditionVerdict> verdicts) {
    for (const ConditionVerdict& of : verdicts) places_[{of.condition, of.b}] = &of;
  }
  const ConditionVerdict* find(size_t condition, size_t b) const {
    const auto at = places_.find({condition, b});
    return at == places_.end() ? nullptr : at->second;
  }

 private:
  std::map<std::pair<size_t, size_t>, const ConditionVerdict*> places_;
};

// Eager conditions by their strata.
using EagerConditions = std::map<Stratum, std::vector<size_t>>;
EagerConditions eager_conditions(std::span<const PortedCondition> conditions) {
  EagerConditions eager;
  for (size_t c = 0; c < conditions.size(); ++c) {
    if (conditions[c].config.mode == "eager") eager[conditions[c].stratum].push_back(c);
  }
  return eager;
}

// The eager condition beside the verdict's, of the same stratum and quantisation: best one that
// both regimes measured, then one of the same cache and, where arms go by name, the baseline.
std::optional<size_t> control_of(const ConditionVerdict& verdict, const EagerConditions& eager,
                                 std::span<const PortedCondition> conditions,
                                 const ArmConfig& baseline) {
  const auto& [stratum, config, cells] = conditions[verdict.condition];
  const auto candidates = eager.find(stratum);
  if (config.mode == "eager" || candidates == eager.end()) return std::nullopt;
  std::optional<size_t> control;
  int best = -1;
  for (const size_t candidate : candidates->second) {
    const PortedCondition& other = conditions[candidate];
    if (other.config.quantization != config.quantization) continue;
    const bool in_both = other.cells[verdict.a] != nullptr && other.cells[verdict.b] != nullptr;
    const int score =
        4 * in_both + 2 * (other.config.cache == config.cache) + (other.config == baseline);
    if (score <= best) continue;
    best = score;
    control = candidate;
  }
  return control;
}

ControlState control_state(const ConditionVerdict* control, const PortabilityOptions& options) {
  if (control == nullptr) return ControlState::kNone;
  if (control->verdict == PortabilityVerdict::kSimilar) return ControlState::kHeld;
  const bool differs = control->p_holm && *control->p_holm < options.alpha;
  return differs || is_flip(control->verdict) ? ControlState::kMoved : ControlState::kUnknown;
}

// Another pair that differs on one of the kinds alone and shows the same flip.
const RegimePair* clean_pair(std::span<const RegimePair> pairs, const PortedCondition& condition,
                             std::span<const ArmDirection> directions,
                             const ConditionVerdict& verdict, const std::vector<std::string>& arms,
                             const std::vector<std::string>& kinds,
                             const PortabilityOptions& options) {
  for (const RegimePair& pair : pairs) {
    if (!unstated_about(pair, arms).empty()) continue;
    const auto flip = flip_between(condition, directions, pair.a, pair.b, options);
    if (flip != verdict.verdict) continue;
    const auto own = perturbations_of(axes_about(pair, arms, condition.stratum.model));
    if (own.size() == 1 && std::ranges::find(kinds, own[0]) != kinds.end()) return &pair;
  }
  return nullptr;
}

std::string control_text(const Attribution& of) {
  switch (of.control) {
    case ControlState::kNone:
      return "";
    case ControlState::kHeld:
      return fmt::format(" {}, the control, kept its speed.", of.control_arm);
    case ControlState::kMoved:
      return fmt::format(
          " {}, the control, moved too: the change is no evidence about the compiler.",
          of.control_arm);
    case ControlState::kUnknown:
      break;
  }
  return fmt::format(" It isn't shown whether {}, the control, kept its speed.", of.control_arm);
}

// The sentence's end, behind the axis that alone differs.
std::string responsibility_text(const Attribution& of) {
  if (of.is_responsible) {
    return fmt::format(
        ", and is responsible: {} and {} differ by more than runs of one identity do.",
        counted(of.runs_a, "run"), counted(of.runs_b, "run"));
  }
  return fmt::format(
      ". {} and {} don't show that the change is its doing, and not what differs between runs of "
      "one program; {} of each in one command may.",
      counted(of.runs_a, "run"), counted(of.runs_b, "run"),
      std::max(of.runs_a, of.runs_b) < 3 ? "three" : "more");
}

std::string basis_text(const Attribution& of, std::span<const Regime> regimes) {
  switch (of.basis) {
    case AttributionBasis::kNoAxis:
      return "The identities agree, so the change comes from the processes or from the time "
             "between the runs.";
    case AttributionBasis::kOneAxis:
      return fmt::format("{} alone differs{}", of.suspect, responsibility_text(of));
    case AttributionBasis::kOneKind:
      return fmt::format("{} changed together ({}){}", listed(of.axes), of.suspect,
                         responsibility_text(of));
    case AttributionBasis::kCleanPair:
      return fmt::format("{} differ; {} and {} differ on {} alone and show the same change{}",
                         listed(of.axes), regimes[of.clean_a].name, regimes[of.clean_b].name,
                         of.suspect, responsibility_text(of));
    case AttributionBasis::kUnstated:
      return fmt::format(
          "{}, but the bundles don't both state {}: what is responsible stays open.",
          of.axes.empty() ? "The identities agree in what they state" : listed(of.axes) + " differ",
          join(of.unstated, ", "));
    case AttributionBasis::kConfounded:
      break;
  }
  return fmt::format("Confounded: {} differ, and no two bundles separate their effects.",
                     listed(of.axes));
}

// The regimes whose identity is that of `side`, as far as these arms go, and that have the
// condition.
std::vector<size_t> runs_like(size_t side, size_t regimes, std::span<const RegimePair> pairs,
                              const PortedCondition& condition,
                              const std::vector<std::string>& arms) {
  std::vector<size_t> runs;
  for (size_t other = 0; other < regimes; ++other) {
    if (condition.cells[other] == nullptr) continue;
    if (other != side) {
      const RegimePair& pair = pair_of(pairs, side, other);
      const auto axes = axes_about(pair, arms, condition.stratum.model);
      if (!axes.empty() || !unstated_about(pair, arms).empty()) continue;
    }
    runs.push_back(other);
  }
  return runs;
}

// The figure of one run that the verdict says has changed: the share of lost rows, the logarithm of
// the ratio to the baseline, or of the mean.
std::optional<double> changed_figure(const RegimeCell& cell, const ArmDirection& direction,
                                     PortabilityVerdict verdict) {
  if (verdict == PortabilityVerdict::kOutcomeFlip) {
    const CrashRate& of = cell.crashes;
    if (of.attempted == 0) return std::nullopt;
    return static_cast<double>(of.lost) / static_cast<double>(of.attempted);
  }
  if (verdict == PortabilityVerdict::kDirectionFlip) {
    return direction.ratio ? std::optional(direction.ratio->log_ratio) : std::nullopt;
  }
  return cell.mean ? std::optional(std::log(cell.mean->mean_ms)) : std::nullopt;
}

// Student's test of the runs, or, where runs of one side are all alike, the chance that they part
// so. Absent: a side has one run.
std::optional<double> p_between_runs(std::span<const double> a, std::span<const double> b) {
  const auto of_a = stats::moments(a);
  const auto of_b = stats::moments(b);
  if (!of_a || !of_b) return std::nullopt;
  if (of_a->variance > 0 || of_b->variance > 0) {
    const auto test = stats::student_t(*of_a, *of_b);
    return test ? std::optional(test->p) : std::nullopt;
  }
  if (of_a->mean == of_b->mean) return 1;
  const auto n = static_cast<double>(a.size());
  const auto m = static_cast<double>(b.size());
  return 2 *
         std::exp(stats::log_gamma(n + 1) + stats::log_gamma(m + 1) - stats::log_gamma(n + m + 1));
}

// p of the change between the runs of both sides, whose numbers it sets. The sides of several axes
// are those of the clean pair: runs of the verdict's own differ in more than the suspect.
std::optional<double> test_of_runs(size_t regimes, std::span<const RegimePair> pairs,
                                   const PortedCondition& condition,
                                   std::span<const ArmDirection> directions,
                                   const ConditionVerdict& verdict,
                                   const std::vector<std::string>& arms, Attribution& of) {
  const auto figures = [&](size_t side, int64_t& runs) {
    std::vector<double> values;
    for (const size_t run : runs_like(side, regimes, pairs, condition, arms)) {
      const auto figure = changed_figure(*condition.cells[run], directions[run], verdict.verdict);
      if (figure && std::isfinite(*figure)) values.push_back(*figure);
    }
    runs = std::max<int64_t>(1, std::ssize(values));
    return values;
  };
  const bool clean = of.basis == AttributionBasis::kCleanPair;
  const std::vector<double> a = figures(clean ? of.clean_a : verdict.a, of.runs_a);
  const std::vector<double> b = figures(clean ? of.clean_b : verdict.b, of.runs_b);
  return p_between_runs(a, b);
}

}  // namespace

std::string perturbation_of(const std::string& axis) {
  static const std::map<std::string, std::string> kinds = {
      {"code_generator", "stack"}, {"framework_build", "stack"},
      {"libraries", "stack"},      {"environment_variables", "stack"},
      {"backend", "stack"},        {"codegen", "stack"},
      {"code_sha", "code"},        {"device", "device"},
      {"gpu", "device"},           {"cpu", "device"},
      {"host", "device"},          {"threads", "device"},
      {"cache", "cache"}};
  const auto at = kinds.find(axis);
  return at == kinds.end() ? axis : at->second;
}

std::vector<RegimePair> regime_pairs(std::span<const Regime> regimes) {
  std::vector<RegimePair> pairs;
  for (size_t a = 0; a < regimes.size(); ++a) {
    for (size_t b = a + 1; b < regimes.size(); ++b) {
      std::vector<UnstatedAxis> unstated = unstated_axes(regimes[a].who);
      std::ranges::move(unstated_axes(regimes[b].who), std::back_inserter(unstated));
      pairs.push_back(
          {a, b, identity_differences(regimes[a].who, regimes[b].who), std::move(unstated)});
    }
  }
  return pairs;
}

const RegimePair& pair_of(std::span<const RegimePair> pairs, size_t a, size_t b) {
  if (a > b) std::swap(a, b);
  return *std::ranges::find_if(pairs, [&](const RegimePair& p) { return p.a == a && p.b == b; });
}

std::vector<std::string> axes_about(const RegimePair& pair, const std::vector<std::string>& arms,
                                    const std::string& model) {
  std::vector<std::string> axes;
  for (const AxisDifference& d : pair.differences) {
    if (concerns(d, arms, model)) add_once(axes, d.axis);
  }
  return axes;
}

std::vector<std::string> unstated_about(const RegimePair& pair,
                                        const std::vector<std::string>& arms) {
  std::vector<std::string> axes;
  for (const UnstatedAxis& each : pair.unstated) {
    if (std::ranges::find(arms, each.arm) != arms.end()) add_once(axes, each.axis);
  }
  return axes;
}

std::vector<std::string> axes_of(const RegimePair& pair) {
  std::vector<std::string> axes;
  for (const AxisDifference& d : pair.differences) add_once(axes, d.axis);
  return axes;
}

std::vector<std::string> perturbations_of(const std::vector<std::string>& axes) {
  std::vector<std::string> kinds;
  for (const std::string& axis : axes) add_once(kinds, perturbation_of(axis));
  return kinds;
}

std::string_view attribution_basis_name(AttributionBasis basis) {
  return word_of(basis,
                 {"no_axis", "one_axis", "one_kind", "clean_pair", "confounded", "unstated"});
}

std::string_view control_state_name(ControlState state) {
  return word_of(state, {"none", "held", "moved", "unknown"});
}

bool is_change(PortabilityVerdict verdict) {
  return is_flip(verdict) || verdict == PortabilityVerdict::kShift;
}

std::vector<Attribution> attribute(std::span<const Regime> regimes,
                                   std::span<const RegimePair> pairs,
                                   std::span<const PortedCondition> conditions,
                                   std::span<const std::vector<ArmDirection>> directions,
                                   std::span<const ConditionVerdict> verdicts,
                                   const ArmConfig& baseline, const PortabilityOptions& options) {
  const VerdictPlaces places(verdicts);
  const EagerConditions eager = eager_conditions(conditions);
  std::vector<Attribution> all;
  all.reserve(verdicts.size());
  std::vector<std::optional<double>> tests(verdicts.size());  // p of a change between runs
  for (const ConditionVerdict& verdict : verdicts) {
    Attribution& of = all.emplace_back();
    const PortedCondition& condition = conditions[verdict.condition];
    if (const auto control = control_of(verdict, eager, conditions, baseline)) {
      of.control = control_state(places.find(*control, verdict.b), options);
      if (of.control != ControlState::kNone) of.control_arm = conditions[*control].arm();
    }
    // A flip of the direction is one of two arms.
    std::vector<std::string> arms = {config_text(condition.config)};
    if (verdict.verdict == PortabilityVerdict::kDirectionFlip) {
      arms.push_back(config_text(baseline));
    }
    of.axes = axes_about(pair_of(pairs, verdict.a, verdict.b), arms, condition.stratum.model);
    of.unstated = unstated_about(pair_of(pairs, verdict.a, verdict.b), arms);
    const std::vector<std::string> kinds = perturbations_of(of.axes);
    of.basis = !of.unstated.empty()  ? AttributionBasis::kUnstated
               : of.axes.empty()     ? AttributionBasis::kNoAxis
               : of.axes.size() == 1 ? AttributionBasis::kOneAxis
               : kinds.size() == 1   ? AttributionBasis::kOneKind
                                     : AttributionBasis::kConfounded;
    if (of.basis == AttributionBasis::kOneAxis) of.suspect = of.axes[0];
    if (of.basis == AttributionBasis::kOneKind) of.suspect = kinds[0];
    if (!is_change(verdict.verdict)) continue;
    if (of.basis == AttributionBasis::kConfounded && is_flip(verdict.verdict)) {
      const RegimePair* clean = clean_pair(pairs, condition, directions[verdict.condition], verdict,
                                           arms, kinds, options);
      if (clean != nullptr) {
        of.basis = AttributionBasis::kCleanPair;
        of.clean_a = clean->a;
        of.clean_b = clean->b;
        of.suspect = perturbations_of(axes_about(*clean, arms, condition.stratum.model)).front();
      }
    }
    const RegimeCell* in_a = condition.cells[verdict.a];
    of.about_compiler = in_a != nullptr && in_a->execution != Execution::kEager &&
                        of.control == ControlState::kHeld && perturbation_of(of.suspect) == "stack";
    if (!of.suspect.empty())
      tests[all.size() - 1] = test_of_runs(regimes.size(), pairs, condition,
                                           directions[verdict.condition], verdict, arms, of);
  }
  const std::vector<std::optional<double>> p = holm_of(tests);
  for (size_t i = 0; i < all.size(); ++i) {
    if (!is_change(verdicts[i].verdict)) continue;
    all[i].is_responsible = p[i] && *p[i] < options.alpha;
    all[i].text = basis_text(all[i], regimes) + control_text(all[i]);
  }
  return all;
}

}  // namespace assay
