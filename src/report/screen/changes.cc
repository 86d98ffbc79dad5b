// Circumstances that would change the choice of an arm.
#include <algorithm>
#include <map>
#include <tuple>

#include "base/text/counts.h"
#include "report/screen/parts.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

const Stratum& stratum_of(const Findings& findings, const Decision& decision) {
  return findings.strata[decision.stratum];
}

// "25M to 100M".
std::string size_range(const stats::Interval& range) {
  const std::string low = format_count(range.low);
  const std::string high = format_count(range.high);
  return low == high ? low : fmt::format("{} to {}", low, high);
}

void widen(std::optional<stats::Interval>& range, double value) {
  if (!range) range = {value, value};
  *range = {std::min(range->low, value), std::max(range->high, value)};
}

std::string strata_count(size_t count) {
  return counted(count, "stratum", "strata");
}

// One line a reason why strata have no decision.
void add_void(const Findings& findings, std::vector<std::string>& lines) {
  std::map<std::string, size_t> reasons;
  for (const Decision& decision : findings.decisions) {
    if (decision.kind == Decision::Kind::kVoid) ++reasons[decision.void_because];
  }
  for (const auto& [reason, count] : reasons) {
    lines.push_back(fmt::format("{} of {} {} no decision, because {}.", count,
                                strata_count(findings.decisions.size()),
                                count == 1 ? "has" : "have", reason));
  }
}

// One line a phase, figure and pair of arms.
void add_alternatives(const Findings& findings, std::vector<std::string>& lines) {
  struct Other {
    RatioRange range;
    size_t strata = 0;
  };
  std::map<std::tuple<Phase, std::string, std::string, std::string>, Other> others;
  for (const Decision& decision : findings.decisions) {
    for (const Alternative& alternative : decision.alternatives) {
      Other& other = others[{stratum_of(findings, decision).phase, alternative.figure,
                             alternative.arm, decision.arm}];
      other.range.add(alternative.ratio, alternative.interval, std::nullopt);
      ++other.strata;
    }
  }
  for (const auto& [key, other] : others) {
    const auto& [phase, figure, arm, leader] = key;
    lines.push_back(fmt::format("{}, {}: by {} the choice is {}, at {} of {}'s.", phase_name(phase),
                                strata_count(other.strata), figure, arm, other.range.text(),
                                leader));
  }
}

// One line a phase and arm.
void add_typical(const Findings& findings, std::vector<std::string>& lines) {
  for (const Phase phase : kPhases) {
    std::vector<const Decision*> decisions;
    for (const Decision& decision : findings.decisions) {
      if (stratum_of(findings, decision).phase == phase) decisions.push_back(&decision);
    }
    for (const TypicalAnswer& answer : typical_answers(decisions)) {
      lines.push_back(fmt::format("{}, {}: {}.", phase_name(phase), strata_count(answer.strata),
                                  typical_text(answer)));
    }
  }
}

// One line an arm.
void add_left_out(const Findings& findings, std::vector<std::string>& lines) {
  std::map<std::string, std::vector<std::string>> reasons;  // by arm, one a stratum
  for (const Decision& decision : findings.decisions) {
    for (const LeftOut& left : decision.left_out) reasons[left.arm].push_back(left.reason);
  }
  for (const auto& [arm, of_arm] : reasons) {
    const auto same = std::ranges::count(of_arm, of_arm.front());
    const size_t others = of_arm.size() - static_cast<size_t>(same);
    lines.push_back(
        fmt::format("{} is left out on {} of {}: {}{}.", arm, of_arm.size(),
                    strata_count(findings.decisions.size()), of_arm.front(),
                    others > 0 ? fmt::format(", and other reasons on {}", others) : ""));
  }
}

// "5.3 %", "5.3 % on the surest stratum and 97 % on the least sure".
std::string detectable_text(const stats::Interval& share) {
  const std::string best = format_significant(share.low * 100, 2);
  const std::string worst = format_significant(share.high * 100, 2);
  return best == worst
             ? best + " %"
             : fmt::format("{} % on the surest stratum and {} % on the least sure", best, worst);
}

// One line a phase: the differences that its undecided strata could have shown.
void add_undecided(const Findings& findings, std::vector<std::string>& lines) {
  for (const Phase phase : kPhases) {
    size_t undecided = 0;
    size_t all = 0;
    size_t too_few = 0;
    std::optional<stats::Interval> detectable;
    for (const Decision& decision : findings.decisions) {
      if (stratum_of(findings, decision).phase != phase) continue;
      ++all;
      if (decision.kind != Decision::Kind::kUndecided) continue;
      ++undecided;
      if (std::ranges::any_of(decision.tied, [](const Rival& rival) {
            return rival.ratio_process_range ||
                   (rival.ratio_interval && shows_nothing(*rival.ratio_interval));
          })) {
        ++too_few;
        continue;
      }
      double largest = 0;
      for (const Rival& rival : decision.tied) {
        largest = std::max(largest, rival.minimum_detectable.value_or(0));
      }
      if (largest > 0) widen(detectable, largest);
    }
    if (too_few > 0) {
      lines.push_back(fmt::format(
          "{}: on {} of {} strata too few processes or rows ran to decide; the study's key "
          "processes sets how many do.",
          phase_name(phase), too_few, all));
    }
    if (!detectable) continue;
    undecided -= too_few;
    lines.push_back(fmt::format("{}: {} of {} {} undecided. {} rows would show a difference of {}.",
                                phase_name(phase), undecided, strata_count(all),
                                undecided == 1 ? "is" : "are", undecided == 1 ? "Its" : "Their",
                                detectable_text(*detectable)));
  }
}

// One line for each arm whose slower decoding uses up the gain of its prefill.
void add_break_even(const Findings& findings, std::vector<std::string>& lines) {
  std::map<std::string, std::optional<stats::Interval>> lengths;
  for (const PhaseSplit& split : findings.splits) {
    if (split.breaks_even) widen(lengths[split.arm], *split.breaks_even);
  }
  for (const auto& [arm, range] : lengths) {
    const bool one = whole_tokens(range->low) == whole_tokens(range->high);
    lines.push_back(fmt::format(
        "By the means, {} gains in prefill and loses in decoding: it is slower in total from {} "
        "on{}.",
        arm, new_tokens_text(range->low, range->low),
        one ? ""
            : fmt::format(" where it turns first, and from {} on where it turns last",
                          new_tokens_text(range->high, range->high))));
  }
}

// One line an arm whose ratio to the baseline crosses 1 between the models.
void add_crossovers(const Findings& findings, std::vector<std::string>& lines) {
  std::map<std::string, std::optional<stats::Interval>> sizes;
  for (const SizeAnalysis& analysis : findings.sizes) {
    for (const SizeCrossover& crossover : analysis.crossovers) {
      if (crossover.crossover) widen(sizes[crossover.arm], *crossover.crossover);
    }
  }
  for (const auto& [arm, range] : sizes) {
    lines.push_back(fmt::format("{} and {} change places at a model size of {} {}.", arm,
                                findings.study.baseline, size_range(*range), findings.size_unit));
  }
}

}  // namespace

std::vector<std::string> change_lines(const Findings& findings) {
  std::vector<std::string> lines;
  add_void(findings, lines);
  add_typical(findings, lines);
  add_alternatives(findings, lines);
  add_left_out(findings, lines);
  add_undecided(findings, lines);
  add_break_even(findings, lines);
  add_crossovers(findings, lines);
  return lines;
}

}  // namespace assay
