// Joins decisions that are the same, with their ratios' ranges.
#include "report/answers.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/records/enum_words.h"
#include "base/text/listed.h"
#include "base/text/text.h"

namespace assay {
namespace {

void widen(std::optional<stats::Interval>& to, const stats::Interval& by) {
  if (!to) to = by;
  to = {std::min(to->low, by.low), std::max(to->high, by.high)};
}

bool same_alternatives(const Decision& a, const Decision& b) {
  return std::ranges::equal(a.alternatives, b.alternatives, [](const auto& x, const auto& y) {
    return x.figure == y.figure && x.arm == y.arm;
  });
}

auto condition_of(const Stratum& stratum) {
  return std::tie(stratum.phase, stratum.model, stratum.new_tokens, stratum.batch);
}

// Every figure of an answer is one of the arm that it names, so its leader is the same throughout.
bool same_arms(const Decision& a, const Decision& b) {
  const auto sorted = [](std::vector<std::string> names) {
    std::ranges::sort(names);
    return names;
  };
  return a.kind == b.kind && a.void_because == b.void_because && a.arm == b.arm &&
         sorted(arms_in_question(a)) == sorted(arms_in_question(b)) &&
         sorted(a.ahead) == sorted(b.ahead);
}

// True if the same arm comes next after the leader in both. Where arms are tied, all of them are.
bool same_next(const Decision& a, const Decision& b) {
  const auto next = [](const Decision& of) {
    return of.tied.empty() && of.runner_up ? of.runner_up->arm : std::string();
  };
  return next(a) == next(b);
}

bool same_answer(const Findings& findings, const Decision& a, const Decision& b, SameAnswer same) {
  const Stratum& x = findings.strata[a.stratum];
  const Stratum& y = findings.strata[b.stratum];
  if (same == SameAnswer::kArmOfPhase) return x.phase == y.phase && a.arm == b.arm;
  if (same == SameAnswer::kLeaderOfPhase) {
    return x.phase == y.phase && a.kind == b.kind && a.arm == b.arm &&
           a.void_because == b.void_because;
  }
  return condition_of(x) == condition_of(y) && same_arms(a, b) &&
         (same == SameAnswer::kArms ? same_next(a, b) : same_alternatives(a, b));
}

// Two decimals, and further ones as long as a ratio that isn't 1 would read as 1.
std::string ratio_number(double ratio) {
  constexpr int kMostDecimals = 4;
  if (ratio < 0.1) return format_significant(ratio, 2);
  if (ratio >= 10) return format_significant(ratio, 3);
  int decimals = 2;
  while (decimals < kMostDecimals && ratio != 1 &&
         std::abs(ratio - 1) < 0.5 * std::pow(10, -decimals)) {
    ++decimals;
  }
  return fmt::format("{:.{}f}", ratio, decimals);
}

}  // namespace

std::string_view decision_word(Decision::Kind kind) {
  return word_of(kind,
                 {"faster", "equivalent", "ahead", "undecided", "no rival", "no arm", "void"});
}

bool shows_nothing(const stats::Interval& of_ratio) {
  constexpr double kWidest = 10;
  return of_ratio.contains(1) && of_ratio.high > kWidest * of_ratio.low;
}

std::string range_meaning() {
  return fmt::format(
      "\"range\" is from the least to the largest figure of the worker processes, where fewer than "
      "{} ran, too few for an interval",
      kLeastProcessesOfInterval);
}

bool has_process_ranges(const Findings& findings) {
  return std::ranges::any_of(findings.latencies,
                             [](const Latency& of) { return of.mean_process_range.has_value(); }) ||
         std::ranges::any_of(findings.contrasts,
                             [](const Contrast& of) { return of.ratio_process_range.has_value(); });
}

void RatioRange::add(double ratio, const std::optional<stats::Interval>& interval,
                     const std::optional<stats::Interval>& process_range) {
  if (!interval && !process_range) return;
  widen(values, {ratio, ratio});
  if (interval) {
    too_few = too_few || shows_nothing(*interval);
    widen(intervals, *interval);
  }
  if (process_range) widen(ranges, *process_range);
}

void RatioRange::add(const Contrast& contrast) {
  add(contrast.ratio, contrast.ratio_interval, contrast.ratio_process_range);
}

void RatioRange::add(const Rival& rival) {
  add(rival.ratio, rival.ratio_interval, rival.ratio_process_range);
}

bool RatioRange::leaves_one_open() const {
  return (intervals && intervals->contains(1)) || (ranges && ranges->contains(1));
}

std::string RatioRange::text() const {
  if (!values) return "an unknown part";
  const auto number = [](double value) { return format_significant(value, 3); };
  std::string out = number(values->low);
  if (number(values->high) != out) out += " to " + number(values->high);
  if (too_few) return fmt::format("{} {}", out, kTooFew);
  return out + spread_text(intervals, ranges, number);
}

std::string RatioRange::short_text() const {
  if (!values) return "-";
  std::string text = ratio_number(values->low);
  if (const std::string high = ratio_number(values->high); high != text) text += "-" + high;
  if (too_few) return fmt::format("{} {}", text, kTooFew);
  return text + spread_text(intervals, ranges, ratio_number);
}

std::vector<std::string> arms_in_question(const Decision& decision) {
  std::vector<std::string> arms = {decision.arm};
  for (const Rival& rival : decision.tied) arms.push_back(rival.arm);
  return arms;
}

std::vector<Answer> answers(const Findings& findings, SameAnswer same) {
  std::vector<const Decision*> in_order;
  for (const Decision& decision : findings.decisions) in_order.push_back(&decision);
  std::ranges::stable_sort(in_order, {}, [&](const Decision* decision) {
    return std::tuple_cat(condition_of(findings.strata[decision->stratum]),
                          std::tie(findings.prompts[decision->stratum].shortest));
  });
  std::vector<Answer> all;
  for (const Decision* decision : in_order) {
    const auto matches = [&](const Answer& answer) {
      return same_answer(findings, *answer.parts.back(), *decision, same);
    };
    // Neighbours alone: the last answer, or none.
    const bool of_phase = same == SameAnswer::kLeaderOfPhase || same == SameAnswer::kArmOfPhase;
    const auto first = of_phase || all.empty() ? all.begin() : all.end() - 1;
    const auto found = std::find_if(first, all.end(), matches);
    if (found != all.end()) {
      found->parts.push_back(decision);
    } else {
      all.push_back({{decision}});
    }
  }
  return all;
}

std::vector<TypicalAnswer> typical_answers(const std::vector<const Decision*>& decisions) {
  std::vector<TypicalAnswer> all;
  for (const Decision* decision : decisions) {
    if (!decision->typical) continue;
    const TypicalChoice& choice = *decision->typical;
    auto answer = std::ranges::find_if(all, [&](const TypicalAnswer& one) {
      return one.arm == choice.arm && one.rival == choice.rival;
    });
    if (answer == all.end()) {
      answer = all.insert(all.end(), TypicalAnswer{.arm = choice.arm, .rival = choice.rival});
    }
    ++answer->strata;
    answer->range.add(choice.ratio.ratio, choice.ratio.interval, std::nullopt);
    if (choice.slow > 0) answer->slow[choice.slow_arm] += choice.slow;
  }
  return all;
}

std::string typical_text(const TypicalAnswer& answer) {
  std::string text = fmt::format("by the typical call the choice is {}, at {} of the time of {}",
                                 answer.arm, answer.range.text(), answer.rival);
  std::vector<std::string> slow;
  int64_t rows = 0;
  for (const auto& [arm, count] : answer.slow) {
    slow.push_back(fmt::format("{} of {}", counted(count, "row"), arm));
    rows += count;
  }
  if (rows > 0) {
    text += fmt::format("; the mean cannot decide because {} {} over {:.0f} times {}", listed(slow),
                        rows == 1 ? "takes" : "take", kSlowFactor,
                        slow.size() == 1 ? "its median" : "their arm's median");
  }
  return text;
}

PromptRange prompt_range(const Findings& findings, const Answer& answer) {
  PromptRange range = findings.prompts[answer.parts.front()->stratum];
  for (const Decision* part : answer.parts) {
    const PromptRange& of = findings.prompts[part->stratum];
    range.shortest = std::min(range.shortest, of.shortest);
    range.longest = std::max(range.longest, of.longest);
  }
  return range;
}

}  // namespace assay
