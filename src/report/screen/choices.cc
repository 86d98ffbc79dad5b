// The table of choices: which arm to take, phase by phase.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/shown_text.h"
#include "base/text.h"
#include "report/fitting.h"
#include "report/screen/parts.h"
#include "report/sections.h"

namespace assay {
namespace {

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

std::string ratio_text(const RatioRange& range) {
  std::string text = ratio_number(range.values->low);
  if (const std::string high = ratio_number(range.values->high); high != text) text += "-" + high;
  if (range.too_few) return fmt::format("{} {}", text, kTooFew);
  return fmt::format("{} [{}, {}]", text, ratio_number(range.intervals->low),
                     ratio_number(range.intervals->high));
}

// The most frequent of them, of equals the first in the alphabet; empty: there are none.
std::string most_frequent(const std::map<std::string, size_t>& counts) {
  const auto most =
      std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
  return most == counts.end() ? "" : most->first;
}

std::string verdict_text(Decision::Kind kind) {
  switch (kind) {
    case Decision::Kind::kBest:
      return "faster";
    case Decision::Kind::kNoDifference:
      return "equivalent";
    case Decision::Kind::kAhead:
      return "ahead";
    case Decision::Kind::kUndecided:
      return "undecided";
    case Decision::Kind::kOnlyOne:
      return "no rival";
    case Decision::Kind::kVoid:
      return "void";
    case Decision::Kind::kNone:
      break;
  }
  return "no arm";
}

// One row, with whole names.
struct Choice {
  std::string phase;
  std::string condition;
  std::string tokens;
  std::string arm;
  std::string arm_mark;
  std::string ratio;
  std::string rival;
  std::string rival_mark;
  int64_t lost = 0;
  std::string verdict;
};

// "6 of 40": how many of its phase's strata an answer is of.
std::string strata_text(const Findings& findings, const Answer& answer) {
  const Phase phase = findings.strata[answer.parts.front()->stratum].phase;
  const auto all = std::ranges::count(findings.strata, phase, &Stratum::phase);
  return fmt::format("{} of {}", answer.parts.size(), all);
}

// The ratio of the leaders to the baseline, which is 1 to itself.
std::string baseline_ratio(const Findings& findings, const Answer& answer) {
  RatioRange range;
  bool other = false;
  for (const Decision* part : answer.parts) {
    if (part->arm == findings.study.baseline) {
      range.add(1, stats::Interval{1, 1});
    } else if (const Contrast* contrast = leader_contrast(findings, *part)) {
      range.add(contrast->ratio, contrast->ratio_interval);
      other = true;
    }
  }
  if (!range.values) return "-";
  return other ? ratio_text(range) : "1 (baseline)";
}

// The leader that most parts have, and the arm beside it: the first that isn't told apart from it,
// else the next by its mean.
void name_arms(const Answer& answer, Choice& choice) {
  std::map<std::string, size_t> leaders;
  std::map<std::string, size_t> rivals;
  size_t tied = 0;
  for (const Decision* part : answer.parts) {
    if (!part->arm.empty()) ++leaders[part->arm];
    tied = std::max(tied, part->tied.size());
  }
  choice.arm = most_frequent(leaders);
  for (const Decision* part : answer.parts) {
    if (part->arm != choice.arm) continue;
    if (!part->tied.empty()) {
      ++rivals[part->tied.front().arm];
    } else if (part->runner_up) {
      ++rivals[part->runner_up->arm];
    }
  }
  choice.rival = most_frequent(rivals);
  if (tied > 1) choice.rival_mark = fmt::format(" +{}", tied - 1);
  if (answer.parts.front()->kind == Decision::Kind::kUndecided) choice.arm_mark = "?";
}

int64_t rows_lost(const Findings& findings, const Answer& answer) {
  std::set<size_t> strata;
  for (const Decision* part : answer.parts) strata.insert(part->stratum);
  int64_t lost = 0;
  for (const OutcomeCounts& outcome : findings.outcomes) {
    if (outcome.stratum && strata.contains(*outcome.stratum)) lost += outcome.failed;
  }
  return lost;
}

Choice choice_of(const Findings& findings, const Answer& answer, SameAnswer same) {
  const Decision& first = *answer.parts.front();
  Choice choice;
  choice.phase = phase_name(findings.strata[first.stratum].phase);
  choice.condition = same == SameAnswer::kLeaderOfPhase ? strata_text(findings, answer)
                                                        : condition_label(findings, first.stratum);
  choice.tokens = tokens_text(prompt_range(findings, answer));
  name_arms(answer, choice);
  choice.ratio = baseline_ratio(findings, answer);
  choice.lost = rows_lost(findings, answer);
  choice.verdict = verdict_text(first.kind);
  return choice;
}

// Rows that would read alike say which scenario they are of.
void tell_apart(const Findings& findings, const std::vector<Answer>& answers,
                std::vector<Choice>& choices) {
  std::map<std::string, size_t> seen;
  const auto key = [](const Choice& choice) {
    return fmt::format("{}\n{}\n{}", choice.phase, choice.condition, choice.tokens);
  };
  std::vector<std::string> keys;
  for (const Choice& choice : choices) ++seen[keys.emplace_back(key(choice))];
  for (size_t i = 0; i < choices.size(); ++i) {
    if (seen[keys[i]] < 2 || answers[i].parts.size() > 1) continue;
    std::string& condition = choices[i].condition;
    if (!condition.empty()) condition += " ";
    condition += findings.strata[answers[i].parts.front()->stratum].scenario;
  }
}

// A column of names and what stands behind each of them, as narrow as it is told to be.
struct NameColumn {
  std::vector<std::string> names;  // different ones, whole
  std::vector<std::string> shown;
  size_t width = 0;  // of the names

  void add(const std::string& name) {
    if (std::ranges::find(names, name) != names.end()) return;
    names.push_back(name);
    shown.push_back(name);
    width = std::max(width, display_width(name));
  }
  void narrow() { shown = shortened_apart(names, --width); }
  const std::string& of(const std::string& name) const {
    return shown[static_cast<size_t>(std::ranges::find(names, name) - names.begin())];
  }
};

TableCell cell(const std::string& text) {
  return text.empty() ? TableCell::absent() : TableCell::of(text);
}

Table table_of(const std::vector<Choice>& choices, const NameColumn& arms,
               const NameColumn& conditions, const std::string& of_conditions) {
  const bool with_condition = conditions.width > 0;
  Table table{"", {{"phase", Align::kLeft}}, {}};
  if (with_condition) table.columns.push_back({of_conditions, Align::kLeft});
  for (const Column& column : {Column{"tokens"},
                               {"take", Align::kLeft},
                               {"ratio", Align::kLeft},
                               {"runner-up", Align::kLeft},
                               {"lost"},
                               {"verdict", Align::kLeft}}) {
    table.columns.push_back(column);
  }
  for (const Choice& choice : choices) {
    std::vector<TableCell> row = {cell(choice.phase)};
    if (with_condition) row.push_back(cell(conditions.of(choice.condition)));
    row.push_back(cell(choice.tokens));
    row.push_back(cell(arms.of(choice.arm) + choice.arm_mark));
    row.push_back(cell(choice.ratio));
    row.push_back(cell(arms.of(choice.rival) + choice.rival_mark));
    row.push_back(TableCell::of(choice.lost));
    row.push_back(cell(choice.verdict));
    table.rows.push_back(std::move(row));
  }
  return table;
}

size_t width_of(const Table& table) {
  size_t width = 0;
  for (const std::string& line : split(table.render(OutputFormat::kTable), '\n')) {
    width = std::max(width, display_width(line));
  }
  return width;
}

}  // namespace

Table choice_table(const Findings& findings, const std::vector<Answer>& answers, SameAnswer same,
                   size_t width) {
  constexpr size_t kLeastName = 6;
  std::vector<Choice> choices;
  for (const Answer& answer : answers) choices.push_back(choice_of(findings, answer, same));
  const bool of_phases = same == SameAnswer::kLeaderOfPhase;
  if (!of_phases) tell_apart(findings, answers, choices);
  const std::string of_conditions = of_phases ? "strata" : "condition";
  NameColumn arms;
  NameColumn conditions;
  for (Choice& choice : choices) {
    for (std::string* name : {&choice.arm, &choice.rival, &choice.condition}) {
      *name = shown_line(*name);
    }
    arms.add(choice.arm);
    arms.add(choice.rival);
    conditions.add(choice.condition);
  }
  Table table = table_of(choices, arms, conditions, of_conditions);
  while (width_of(table) > width && std::max(arms.width, conditions.width) > kLeastName) {
    (arms.width >= conditions.width ? arms : conditions).narrow();
    table = table_of(choices, arms, conditions, of_conditions);
  }
  return table;
}

std::string choice_legend(const Findings& findings) {
  constexpr size_t kLongestName = 40;
  return fmt::format(
      "ratio: mean time of that arm over {}'s (the baseline), {:.0f} % interval; of several prompt "
      "lengths, the range. lost: rows of all arms. ahead: faster than the baseline, but undecided "
      "against the runner-up (\"+2\": and two more). \"?\": lowest mean, and undecided.",
      shortened(findings.study.baseline, kLongestName), findings.options.confidence * 100);
}

}  // namespace assay
