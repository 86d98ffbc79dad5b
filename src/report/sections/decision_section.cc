// The decisions: the arm for each phase and prompt lengths, or that there is no difference, or that
// the rows don't decide.
#include <algorithm>

#include "base/add_once.h"
#include "base/text/counts.h"
#include "base/text/listed.h"
#include "report/answers.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

// "kv_decode of llama, 64 new tokens, 10 to 80 prompt tokens": the condition that tells it from
// other answers.
std::string place(const Findings& findings, const Answer& answer) {
  const size_t first = answer.parts.front()->stratum;
  const Stratum& stratum = findings.strata[first];
  std::string text(phase_name(stratum.phase));
  const std::string shared = condition_label(findings, first);
  if (!shared.empty()) text += " of " + shared;
  const auto [shortest, longest] = prompt_range(findings, answer);
  const std::string tokens =
      shortest == longest ? std::to_string(shortest) : fmt::format("{} to {}", shortest, longest);
  return fmt::format("{}, {} prompt tokens", text, tokens);
}

// "0.62 [0.60, 0.65] of eager's time": of the arm that leads; empty where it is the baseline.
std::string baseline_text(const Findings& findings, const Answer& answer) {
  RatioRange range;
  for (const Decision* part : answer.parts) {
    const Contrast* contrast = entry_of(findings.contrasts, part->stratum, part->arm);
    if (contrast != nullptr) range.add(*contrast);
  }
  if (!range.values) return "";
  return fmt::format("{} of {}'s time", range.text(), findings.study.baseline);
}

// "use A. It takes 0.62 [0.60, 0.65] of eager's time and 0.95 [...] of B's."
std::string best_text(const Findings& findings, const Answer& answer) {
  std::map<std::string, RatioRange> to_next;
  for (const Decision* part : answer.parts) {
    if (part->runner_up->arm == findings.study.baseline) continue;
    to_next[part->runner_up->arm].add(*part->runner_up);
  }
  std::vector<std::string> ratios;
  const std::string to_baseline = baseline_text(findings, answer);
  if (!to_baseline.empty()) ratios.push_back(to_baseline);
  for (const auto& [arm, range] : to_next) {
    if (range.values) ratios.push_back(fmt::format("{} of {}'s time", range.text(), arm));
  }
  std::string text = fmt::format("use {}.", answer.parts.front()->arm);
  if (!ratios.empty()) text += fmt::format(" It takes {}.", listed(ratios));
  return text;
}

// A sentence on the leader's ratio to the baseline, where it isn't one of the arms in question: "
// Against the baseline, static takes 0.62 [0.60, 0.65] of eager's time."
std::string ahead_text(const Findings& findings, const Answer& answer) {
  const Decision& first = *answer.parts.front();
  const auto arms = arms_in_question(first);
  if (std::ranges::find(arms, findings.study.baseline) != arms.end()) return "";
  const std::string text = baseline_text(findings, answer);
  if (text.empty()) return "";
  return fmt::format(" Against the baseline, {} takes {}.", first.arm, text);
}

// One pair of arms that aren't told apart, over the strata of an answer.
struct OpenPair {
  RatioRange range;
  double detectable = 0;  // the largest of the strata's
};

// "1.4 %", "1.4 % (B), 85.1 % (C)": the difference that these rows would show; empty: not known.
std::string detectable_text(const std::vector<Rival>& tied,
                            const std::map<std::string, OpenPair>& pairs) {
  double largest = 0;
  std::vector<std::string> parts;
  for (const Rival& rival : tied) {
    if (pairs.at(rival.arm).range.too_few) continue;  // its difference would be beyond reason
    const double detectable = pairs.at(rival.arm).detectable;
    largest = std::max(largest, detectable);
    if (detectable > 0) parts.push_back(fmt::format("{:.1f} % ({})", detectable * 100, rival.arm));
  }
  if (parts.size() > 1) return join(parts, ", ");
  return largest > 0 ? fmt::format("{:.1f} %", largest * 100) : "";
}

// A sentence with each pair's ratio, and the differences that would show.
std::string undecided_text(const Findings& findings, const Answer& answer) {
  const Decision& first = *answer.parts.front();
  std::map<std::string, OpenPair> pairs;
  for (const Decision* part : answer.parts) {
    for (const Rival& rival : part->tied) {
      OpenPair& pair = pairs[rival.arm];
      pair.range.add(rival);
      pair.detectable = std::max(pair.detectable, rival.minimum_detectable.value_or(0));
    }
  }
  std::string text;
  if (first.kind == Decision::Kind::kAhead) {
    text = fmt::format("{} {} faster than the baseline. The fastest is ", listed(first.ahead),
                       first.ahead.size() > 1 ? "are" : "is");
  }
  text += fmt::format("undecided between {}.", listed(arms_in_question(first)));
  std::vector<std::string> ratios;
  for (const Rival& rival : first.tied) {
    const RatioRange& range = pairs[rival.arm].range;
    if (!range.values) continue;
    const char* const why = range.too_few || range.leaves_one_open() ? ""
                            : range.ranges                           ? " (too few processes)"
                                           : " (not significant after Holm's correction)";
    ratios.push_back(fmt::format("{} of {}'s time{}", range.text(), rival.arm, why));
  }
  if (!ratios.empty()) text += fmt::format(" {} takes {}.", first.arm, listed(ratios));
  const std::string detectable = detectable_text(first.tied, pairs);
  if (!detectable.empty()) {
    text += fmt::format(" These rows would show a difference of {}.", detectable);
  }
  return text + ahead_text(findings, answer);
}

std::string left_out_text(const Decision& decision) {
  std::vector<std::string> parts;
  for (const LeftOut& left : decision.left_out) {
    parts.push_back(fmt::format("{}: {}", left.arm, left.reason));
  }
  return parts.empty() ? "" : fmt::format(" ({})", join(parts, "; "));
}

std::string reading(const Findings& findings, const Answer& answer) {
  const Decision& first = *answer.parts.front();
  switch (first.kind) {
    case Decision::Kind::kBest:
      return best_text(findings, answer);
    case Decision::Kind::kNoDifference:
      return fmt::format("no difference: {} are equivalent within {:.0f} %.{}",
                         listed(arms_in_question(first)), findings.options.margin * 100,
                         ahead_text(findings, answer));
    case Decision::Kind::kAhead:
    case Decision::Kind::kUndecided:
      return undecided_text(findings, answer);
    case Decision::Kind::kOnlyOne:
      return fmt::format("no comparison, because only {} qualifies{}.", first.arm,
                         left_out_text(first));
    case Decision::Kind::kVoid:
      return fmt::format("no decision, because {}.", first.void_because);
    case Decision::Kind::kNone:
      break;
  }
  return fmt::format("no comparison, because no arm qualifies{}.", left_out_text(first));
}

// The choices of other figures: " By p50 the choice is A, at 0.7 [0.6, 0.8] of C's time. By p99
// ..."
std::string alternatives_text(const Answer& answer) {
  const Decision& first = *answer.parts.front();
  std::string text;
  for (size_t i = 0; i < first.alternatives.size(); ++i) {
    RatioRange range;
    for (const Decision* part : answer.parts) {
      range.add(part->alternatives[i].ratio, part->alternatives[i].interval, std::nullopt);
    }
    text += fmt::format(" By {} the choice is {}, at {} of {}'s.", first.alternatives[i].figure,
                        first.alternatives[i].arm, range.text(), first.arm);
  }
  return text;
}

// The arms that a phase's answers pass over although others were compared, with their reasons.
std::string left_out_line(const Findings& findings, Phase phase) {
  std::map<std::string, std::vector<std::string>> reasons;
  for (const Decision& decision : findings.decisions) {
    if (findings.strata[decision.stratum].phase != phase) continue;
    if (decision.kind == Decision::Kind::kOnlyOne || decision.kind == Decision::Kind::kNone)
      continue;
    for (const LeftOut& left : decision.left_out) {
      auto& of_arm = reasons[left.arm];
      add_once(of_arm, left.reason);
    }
  }
  std::vector<std::string> parts;
  for (const auto& [arm, of_arm] : reasons) {
    parts.push_back(fmt::format("{} ({})", arm, join(of_arm, "; ")));
  }
  if (parts.empty()) return "";
  return fmt::format("Left out of the comparisons of {}: {}.", phase_name(phase),
                     join(parts, ", "));
}

}  // namespace

ReportSection decision_section(const Findings& findings) {
  ReportSection section{"Decision", {}, {}};
  for (const Answer& answer : answers(findings, SameAnswer::kArmsAndAlternatives)) {
    std::string line = fmt::format("- {}: {}{}", place(findings, answer), reading(findings, answer),
                                   alternatives_text(answer));
    for (const TypicalAnswer& typical : typical_answers(answer.parts)) {
      line += fmt::format(" In {} of {}, {}.", typical.strata,
                          counted(answer.parts.size(), "stratum", "strata"), typical_text(typical));
    }
    section.lines.push_back(std::move(line));
  }
  for (const Phase phase : kPhases) {
    const std::string line = left_out_line(findings, phase);
    if (!line.empty()) section.lines.push_back(line);
  }
  section.lines.push_back(fmt::format(
      "(The arm with the lowest mean is compared with every other arm that qualifies, with Holm's "
      "correction over a phase, alpha {}. Intervals are 95 %; over several prompt lengths, ratios "
      "and intervals show their range. p50 and tails are named where they choose another arm.{})",
      findings.options.alpha, has_process_ranges(findings) ? " " + range_meaning() + "." : ""));
  return section;
}

}  // namespace assay
