// What a reader should take from it: which arm for which phase and prompt lengths, or that there is
// no difference, or that the rows can't tell.
#include <algorithm>

#include "base/text.h"
#include "report/sections.h"

namespace assay {
namespace {

// Neighbouring strata, by prompt length, with one answer.
struct Answer {
  std::vector<const Decision*> parts;  // not empty
};

// Ratios of several strata: the hull of the values and of their intervals.
struct RatioRange {
  std::optional<stats::Interval> values;
  std::optional<stats::Interval> intervals;

  void add(double ratio, const std::optional<stats::Interval>& interval) {
    if (!interval) return;
    widen(values, {ratio, ratio});
    widen(intervals, *interval);
  }
  // "0.62 [0.60, 0.65]", "0.62 to 0.71 [0.60, 0.73]".
  std::string text() const {
    const auto number = [](double value) { return format_significant(value, 3); };
    std::string out = number(values->low);
    if (number(values->high) != out) out += " to " + number(values->high);
    return fmt::format("{} [{}, {}]", out, number(intervals->low), number(intervals->high));
  }

 private:
  static void widen(std::optional<stats::Interval>& to, const stats::Interval& by) {
    if (!to) to = by;
    to = {std::min(to->low, by.low), std::max(to->high, by.high)};
  }
};

// The leader and the arms that it can't be told from.
std::vector<std::string> together(const Decision& decision) {
  std::vector<std::string> arms = {decision.arm};
  for (const Rival& rival : decision.tied) arms.push_back(rival.arm);
  return arms;
}

bool same_alternatives(const Decision& a, const Decision& b) {
  return std::ranges::equal(a.alternatives, b.alternatives, [](const auto& x, const auto& y) {
    return x.figure == y.figure && x.arm == y.arm;
  });
}

bool same_answer(const Findings& findings, const Decision& a, const Decision& b) {
  const Stratum& x = findings.strata[a.stratum];
  const Stratum& y = findings.strata[b.stratum];
  // Equivalent arms are one answer whichever of them has the lowest mean.
  const auto sorted = [](std::vector<std::string> names) {
    std::ranges::sort(names);
    return names;
  };
  return x.phase == y.phase && x.model == y.model && x.new_tokens == y.new_tokens &&
         x.batch == y.batch && a.kind == b.kind && a.void_because == b.void_because &&
         sorted(together(a)) == sorted(together(b)) && same_alternatives(a, b);
}

std::vector<Answer> answers(const Findings& findings) {
  std::vector<Answer> all;
  for (const Decision& decision : findings.decisions) {
    const auto same = std::ranges::find_if(all, [&](const Answer& answer) {
      return answer.parts.back()->stratum + 1 == decision.stratum &&
             same_answer(findings, *answer.parts.back(), decision);
    });
    if (same != all.end()) {
      same->parts.push_back(&decision);
    } else {
      all.push_back({{&decision}});
    }
  }
  return all;
}

// "kv_decode of llama, 64 new tokens, 10 to 80 prompt tokens": what tells it from other answers.
std::string place(const Findings& findings, const Answer& answer) {
  const size_t first = answer.parts.front()->stratum;
  const Stratum& stratum = findings.strata[first];
  std::string text(phase_name(stratum.phase));
  const std::string shared = condition_label(findings, first);
  if (!shared.empty()) text += " of " + shared;
  int64_t shortest = findings.prompts[first].shortest;
  int64_t longest = findings.prompts[first].longest;
  for (const Decision* part : answer.parts) {
    shortest = std::min(shortest, findings.prompts[part->stratum].shortest);
    longest = std::max(longest, findings.prompts[part->stratum].longest);
  }
  const std::string tokens =
      shortest == longest ? std::to_string(shortest) : fmt::format("{} to {}", shortest, longest);
  return fmt::format("{}, {} prompt tokens", text, tokens);
}

const Contrast* against_baseline(const Findings& findings, const Decision& decision) {
  for (const Contrast& contrast : findings.contrasts) {
    if (contrast.stratum == decision.stratum && contrast.arm == decision.arm) return &contrast;
  }
  return nullptr;
}

// "0.62 [0.60, 0.65] of eager's time": of the arms that lead; empty where one is the baseline.
std::string baseline_text(const Findings& findings, const Answer& answer) {
  RatioRange range;
  for (const Decision* part : answer.parts) {
    if (const Contrast* contrast = against_baseline(findings, *part)) {
      range.add(contrast->ratio, contrast->ratio_interval);
    }
  }
  if (!range.values) return "";
  return fmt::format("{} of {}'s time", range.text(), findings.study.baseline);
}

// "use A: 0.62 [0.60, 0.65] of eager's time, 0.95 [...] of B's".
std::string best_text(const Findings& findings, const Answer& answer) {
  std::map<std::string, RatioRange> to_next;
  for (const Decision* part : answer.parts) {
    if (part->runner_up->arm == findings.study.baseline) continue;
    to_next[part->runner_up->arm].add(part->runner_up->ratio, part->runner_up->ratio_interval);
  }
  std::vector<std::string> ratios;
  const std::string to_baseline = baseline_text(findings, answer);
  if (!to_baseline.empty()) ratios.push_back(to_baseline);
  for (const auto& [arm, range] : to_next) {
    if (range.values) ratios.push_back(fmt::format("{} of {}'s", range.text(), arm));
  }
  return fmt::format("use {}: {}", answer.parts.front()->arm, join(ratios, ", "));
}

// What is known of arms that can't be told apart: how far they are ahead of the baseline, where it
// isn't one of them.
std::string ahead_text(const Findings& findings, const Answer& answer) {
  const auto arms = together(*answer.parts.front());
  if (std::ranges::find(arms, findings.study.baseline) != arms.end()) return "";
  const std::string text = baseline_text(findings, answer);
  return text.empty() ? "" : "; ahead: " + text;
}

// One pair of arms that can't be told apart, over the strata of an answer.
struct OpenPair {
  RatioRange range;
  double detectable = 0;  // the largest of the strata's
};

// "1.4 %", "1.4 % (B), 85.1 % (C)": the difference that these rows would show; empty: not known.
std::string detectable_text(const std::vector<Rival>& tied,
                            const std::map<std::string, OpenPair>& pairs, bool each) {
  double largest = 0;
  std::vector<std::string> parts;
  for (const Rival& rival : tied) {
    const double detectable = pairs.at(rival.arm).detectable;
    largest = std::max(largest, detectable);
    if (detectable > 0) parts.push_back(fmt::format("{:.1f} % ({})", detectable * 100, rival.arm));
  }
  if (each && parts.size() > 1) return join(parts, ", ");
  return largest > 0 ? fmt::format("{:.1f} %", largest * 100) : "";
}

// Why it can't be told: of each pair, where one arm leads everywhere, the ratio and what would
// show.
std::string undecided_text(const Findings& findings, const Answer& answer) {
  const Decision& first = *answer.parts.front();
  bool one_leader = true;
  std::map<std::string, OpenPair> pairs;
  for (const Decision* part : answer.parts) {
    one_leader = one_leader && part->arm == first.arm;
    for (const Rival& rival : part->tied) {
      OpenPair& pair = pairs[rival.arm];
      pair.range.add(rival.ratio, rival.ratio_interval);
      pair.detectable = std::max(pair.detectable, rival.minimum_detectable.value_or(0));
    }
  }
  std::string text = "can't be told: " + join(together(first), " or ");
  for (const Rival& rival : first.tied) {
    const RatioRange& range = pairs[rival.arm].range;
    if (!one_leader || !range.values) continue;
    text += fmt::format("; {}/{} {}", first.arm, rival.arm, range.text());
    if (!range.intervals->contains(1)) text += ", not after Holm's correction";
  }
  const std::string detectable = detectable_text(first.tied, pairs, one_leader);
  if (!detectable.empty()) {
    text += fmt::format("; with so many rows a difference shows from {} on", detectable);
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
      return fmt::format("no difference: {} are equivalent within {:.0f} %{}",
                         join(together(first), ", "), findings.options.margin * 100,
                         ahead_text(findings, answer));
    case Decision::Kind::kUndecided:
      return undecided_text(findings, answer);
    case Decision::Kind::kOnlyOne:
      return fmt::format("no comparison: only {} qualifies{}", first.arm, left_out_text(first));
    case Decision::Kind::kVoid:
      return "no decision: " + first.void_because;
    case Decision::Kind::kNone:
      break;
  }
  return "no comparison: no arm qualifies" + left_out_text(first);
}

// "; by p50 instead A (0.7 [0.6, 0.8] of C's), by p99 B (...)".
std::string alternatives_text(const Answer& answer) {
  const Decision& first = *answer.parts.front();
  std::vector<std::string> parts;
  for (size_t i = 0; i < first.alternatives.size(); ++i) {
    RatioRange range;
    for (const Decision* part : answer.parts) {
      range.add(part->alternatives[i].ratio, part->alternatives[i].interval);
    }
    parts.push_back(fmt::format("by {} {} ({} of {}'s)", first.alternatives[i].figure,
                                first.alternatives[i].arm, range.text(), first.arm));
  }
  return parts.empty() ? "" : "; but " + join(parts, ", ");
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
      if (std::ranges::find(of_arm, left.reason) == of_arm.end()) of_arm.push_back(left.reason);
    }
  }
  std::vector<std::string> parts;
  for (const auto& [arm, of_arm] : reasons) {
    parts.push_back(fmt::format("{} ({})", arm, join(of_arm, "; ")));
  }
  if (parts.empty()) return "";
  return fmt::format("Not in question for {}: {}.", phase_name(phase), join(parts, ", "));
}

}  // namespace

ReportSection decision_section(const Findings& findings) {
  ReportSection section{"Decision", {}, {}};
  for (const Answer& answer : answers(findings)) {
    section.lines.push_back(fmt::format("- {}: {}{}.", place(findings, answer),
                                        reading(findings, answer), alternatives_text(answer)));
  }
  for (const Phase phase : kPhases) {
    const std::string line = left_out_line(findings, phase);
    if (!line.empty()) section.lines.push_back(line);
  }
  section.lines.push_back(fmt::format(
      "(By the mean, the lowest against every other arm that qualifies, Holm over a phase, alpha "
      "{}; "
      "95 % intervals, over several prompt lengths their hull; p50 and tails are mentioned where "
      "they choose another arm.)",
      findings.options.alpha));
  return section;
}

}  // namespace assay
