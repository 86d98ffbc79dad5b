// The table of answers: which arm to take, phase by phase.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "base/text/shown_text.h"
#include "base/text/text.h"
#include "report/fitting.h"
#include "report/screen/fitter.h"
#include "report/screen/name_column.h"
#include "report/screen/parts.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

// One row, with whole names.
struct AnswerRow {
  std::string phase;
  std::string condition;
  std::string tokens;
  std::string arm;
  std::string arm_mark;
  std::string ratio;
  std::string rival;
  std::string rival_mark;
  std::string lead;
  int64_t lost = 0;
  std::vector<std::string> verdicts;  // one; of strata that differ each with its number
};

// "6 of 40": how many of its phase's strata an answer is of.
std::string strata_text(const Findings& findings, const Answer& answer) {
  const Phase phase = findings.strata[answer.parts.front()->stratum].phase;
  const auto all = std::ranges::count(findings.strata, phase, &Stratum::phase);
  return fmt::format("{} of {}", answer.parts.size(), all);
}

// The ratio of the arm that leads to the baseline, which is 1 to itself.
std::string baseline_ratio(const Findings& findings, const Answer& answer) {
  if (answer.parts.front()->arm == findings.study.baseline) return "1 (baseline)";
  RatioRange range;
  for (const Decision* part : answer.parts) {
    const Contrast* contrast = entry_of(findings.contrasts, part->stratum, part->arm);
    if (contrast != nullptr) range.add(*contrast);
  }
  return range.values ? range.short_text() : "-";
}

// The arm beside the leader: the first that isn't told apart from it, else the next by its mean.
// Null: there is none.
const Rival* rival_beside(const Decision& part) {
  if (!part.tied.empty()) return &part.tied.front();
  return part.runner_up ? &*part.runner_up : nullptr;
}

// The arm among those that the leader was held against; null: it isn't.
const Rival* rival_named(const Decision& part, const std::string& arm) {
  const auto at = std::ranges::find(part.tied, arm, &Rival::arm);
  if (at != part.tied.end()) return &*at;
  return part.runner_up && part.runner_up->arm == arm ? &*part.runner_up : nullptr;
}

// The share by which a rival takes longer: "0.4 %", "12 %", "25x".
std::string lead_number(double share) {
  constexpr double kTimes = 9;  // from ten times as long on
  if (share >= kTimes) return fmt::format("{}x", format_significant(1 + share, 2));
  const bool decimal = std::abs(share) < 0.0995;
  return fmt::format("{:.{}f} %", 100 * share, decimal ? 1 : 0);
}

// The least and the most of several; one unit where both have the same.
std::string lead_text(const std::optional<stats::Interval>& leads) {
  if (!leads) return "";
  std::string low = lead_number(leads->low);
  const std::string high = lead_number(leads->high);
  if (low == high) return high;
  if (low.ends_with(" %") && high.ends_with(" %")) low.resize(low.size() - 2);
  return fmt::format("{}-{}", low, high);
}

// The arm that most parts have beside their leader, of equals the first in the alphabet; empty:
// none has any.
std::string rival_of_most(const Answer& answer) {
  std::map<std::string, size_t> rivals;
  for (const Decision* part : answer.parts) {
    if (const Rival* rival = rival_beside(*part)) ++rivals[rival->arm];
  }
  const auto most =
      std::ranges::max_element(rivals, {}, [](const auto& entry) { return entry.second; });
  return most == rivals.end() ? "" : most->first;
}

// The leader, the arm that most parts have beside it, and its lead over that one: of the parts that
// hold it against that arm, which are counted where they aren't all.
void name_arms(const Answer& answer, AnswerRow& row) {
  row.arm = answer.parts.front()->arm;
  row.rival = rival_of_most(answer);
  std::optional<stats::Interval> lead;
  size_t beside = 0;
  size_t tied = 0;
  for (const Decision* part : answer.parts) {
    const Rival* rival = rival_named(*part, row.rival);
    if (rival == nullptr) continue;
    ++beside;
    tied = std::max(tied, part->tied.size());
    if (!(rival->ratio > 0)) continue;
    const double share = 1 / rival->ratio - 1;
    if (!lead) lead = stats::Interval{share, share};
    lead = stats::Interval{std::min(lead->low, share), std::max(lead->high, share)};
  }
  row.lead = lead_text(lead);
  if (tied > 1) row.rival_mark = fmt::format(" +{}", tied - 1);
  if (beside < answer.parts.size() && beside > 0) {
    row.rival_mark += fmt::format(" (in {})", beside);
  }
  const bool open = std::ranges::all_of(
      answer.parts, [](const Decision* part) { return part->kind == Decision::Kind::kUndecided; });
  if (open) row.arm_mark = "?";
}

bool any_row_lost(const Findings& findings) {
  return std::ranges::any_of(findings.outcomes, [](const auto& of) { return of.failed > 0; });
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

bool of_phases(SameAnswer same) {
  return same == SameAnswer::kLeaderOfPhase || same == SameAnswer::kArmOfPhase;
}

// "ahead"; of several kinds "33 faster", "27 ahead", the most frequent first.
std::vector<std::string> verdicts_of(const Answer& answer) {
  std::map<Decision::Kind, size_t> counts;
  for (const Decision* part : answer.parts) ++counts[part->kind];
  if (counts.size() == 1) return {std::string(decision_word(counts.begin()->first))};
  std::vector<std::pair<Decision::Kind, size_t>> kinds(counts.begin(), counts.end());
  std::ranges::stable_sort(kinds, std::greater(), [](const auto& kind) { return kind.second; });
  std::vector<std::string> texts;
  for (const auto& [kind, count] : kinds) {
    texts.push_back(fmt::format("{} {}", count, decision_word(kind)));
  }
  return texts;
}

// The verdicts in at most so many lines; "..." stands for the others.
std::vector<std::string> fitted_verdicts(std::vector<std::string> verdicts, size_t most_lines) {
  if (verdicts.size() <= most_lines) return verdicts;
  verdicts.resize(most_lines);
  verdicts.back() += "...";
  return verdicts;
}

AnswerRow row_of_answer(const Findings& findings, const Answer& answer, SameAnswer same) {
  const Decision& first = *answer.parts.front();
  AnswerRow row;
  row.phase = phase_name(findings.strata[first.stratum].phase);
  row.condition =
      of_phases(same) ? strata_text(findings, answer) : condition_label(findings, first.stratum);
  // Strata of a phase that share an arm are of any lengths.
  if (same != SameAnswer::kArmOfPhase) row.tokens = tokens_text(prompt_range(findings, answer));
  name_arms(answer, row);
  row.ratio = baseline_ratio(findings, answer);
  row.lost = rows_lost(findings, answer);
  row.verdicts = verdicts_of(answer);
  return row;
}

// Rows that would read alike say which scenario they are of.
void tell_apart(const Findings& findings, const std::vector<Answer>& answers,
                std::vector<AnswerRow>& rows) {
  std::map<std::string, size_t> seen;
  const auto key = [](const AnswerRow& row) {
    return fmt::format("{}\n{}\n{}", row.phase, row.condition, row.tokens);
  };
  std::vector<std::string> keys;
  for (const AnswerRow& row : rows) ++seen[keys.emplace_back(key(row))];
  for (size_t i = 0; i < rows.size(); ++i) {
    if (seen[keys[i]] < 2 || answers[i].parts.size() > 1) continue;
    std::string& condition = rows[i].condition;
    if (!condition.empty()) condition += " ";
    condition += findings.strata[answers[i].parts.front()->stratum].scenario;
  }
}

// The columns that may be left out.
struct ShownColumns {
  bool tokens = true;
  bool lead = true;
  bool lost = true;
};

// The cells of a row, each the lines that it takes.
std::vector<std::vector<std::string>> cells_of(const AnswerRow& row, const NameColumn& arms,
                                               const NameColumn& conditions,
                                               const ShownColumns& with) {
  std::vector<std::vector<std::string>> cells = {{row.phase}};
  if (conditions.width() > 0) cells.push_back(conditions.of(row.condition));
  if (with.tokens) cells.push_back({row.tokens});
  cells.push_back(arms.of(row.arm, row.arm_mark));
  cells.push_back({row.ratio});
  cells.push_back(arms.of(row.rival, row.rival_mark));
  if (with.lead) cells.push_back({row.lead});
  if (with.lost) cells.push_back({std::to_string(row.lost)});
  cells.push_back(fitted_verdicts(row.verdicts, arms.most_lines()));
  return cells;
}

AnswerTable table_of(const std::vector<AnswerRow>& rows, const NameColumn& arms,
                     const NameColumn& conditions, const std::string& of_conditions,
                     const ShownColumns& with) {
  AnswerTable made{{"", columns_of("<phase"), {}}, {}};
  std::vector<Column>& columns = made.table.columns;
  if (conditions.width() > 0) {
    columns.push_back({of_conditions, Align::kLeft, of_conditions == "strata"});
  }
  if (with.tokens) columns.push_back({"tokens"});
  columns.push_back({"take", Align::kLeft});
  columns.push_back({"ratio", Align::kLeft});
  columns.push_back({"runner-up", Align::kLeft});
  if (with.lead) columns.push_back({"lead"});
  if (with.lost) columns.push_back({"lost"});
  columns.push_back({"verdict", Align::kLeft});
  for (const AnswerRow& row : rows) {
    const auto cells = cells_of(row, arms, conditions, with);
    const size_t lines = std::ranges::max(cells, {}, &std::vector<std::string>::size).size();
    made.lines.push_back(lines);
    for (size_t line = 0; line < lines; ++line) {
      std::vector<TableCell> line_cells;
      for (const auto& of : cells) {
        // Cells beside a name's further lines are blank, not absent.
        line_cells.push_back(line == 0 ? TableCell::if_any(of[0])
                                       : TableCell(line < of.size() ? of[line] : " "));
      }
      made.table.rows.push_back(std::move(line_cells));
    }
  }
  return made;
}

}  // namespace

Table answer_table(const Findings& findings, const std::vector<Answer>& answers, SameAnswer same,
                   size_t width) {
  return wrapped_answers(findings, answers, same, width, 1).table;
}

AnswerTable wrapped_answers(const Findings& findings, const std::vector<Answer>& answers,
                            SameAnswer same, size_t width, size_t most_lines) {
  constexpr size_t kLeastName = 5;
  constexpr size_t kLittleOfName = 12;
  std::vector<AnswerRow> rows;
  for (const Answer& answer : answers) rows.push_back(row_of_answer(findings, answer, same));
  if (!of_phases(same)) tell_apart(findings, answers, rows);
  const std::string of_conditions = of_phases(same) ? "strata" : "condition";
  NameColumn arms(most_lines);
  NameColumn conditions(most_lines);
  for (AnswerRow& row : rows) {
    for (std::string* name : {&row.arm, &row.rival, &row.condition}) {
      *name = shown_line(*name);
    }
    arms.add(row.arm);
    arms.add(row.rival);
    conditions.add(row.condition);
  }
  const bool same_tokens = std::ranges::adjacent_find(rows, std::ranges::not_equal_to(),
                                                      &AnswerRow::tokens) == rows.end();
  ShownColumns with{std::ranges::any_of(rows, [](auto& of) { return !of.tokens.empty(); })};
  const auto made = [&] { return table_of(rows, arms, conditions, of_conditions, with); };
  const auto fits = [&] { return table_width(made().table) <= width; };
  // "4 of 5" strata says nothing when it is cut.
  const auto widest = [&]() -> NameColumn& {
    return of_phases(same) || arms.width() >= conditions.width() ? arms : conditions;
  };
  while (!fits() && widest().width() > kLeastName) {
    NameColumn& wider = widest();
    // A name that can be told from others says more than a column of zeros, the lead, or a column
    // of one number. One that would be shortened in any case doesn't, until little of it is left.
    const bool would_shorten =
        most_lines > 1 && wider.whole_at(wider.width()) && !wider.whole_at(wider.width() - 1);
    const bool little = wider.width() <= kLittleOfName;
    if ((would_shorten || little) && with.lost && !any_row_lost(findings)) {
      with.lost = false;
    } else if ((would_shorten || little) && with.lead) {
      with.lead = false;
    } else if (little && with.tokens && same_tokens) {
      with.tokens = false;
    } else {
      wider.narrow();
    }
  }
  with.lead = with.lead && fits();
  return made();
}

std::string answer_legend(const Findings& findings) {
  std::set<Decision::Kind> kinds;
  for (const Decision& decision : findings.decisions) kinds.insert(decision.kind);
  std::string text = any_row_lost(findings) ? "lost: rows of all arms. " : "";
  text += "lead: how much longer the runner-up takes (\"+2\": two more arms are as near).";
  const auto explain = [&](Decision::Kind kind, const std::string& meaning) {
    if (kinds.contains(kind)) text += fmt::format(" {}: {}.", decision_word(kind), meaning);
  };
  explain(Decision::Kind::kBest, "than every other arm");
  explain(Decision::Kind::kAhead, "faster than the baseline, open against the runner-up");
  explain(Decision::Kind::kNoDifference,
          fmt::format("to the runner-up, within {} %",
                      format_significant(findings.options.margin * 100, 2)));
  explain(Decision::Kind::kUndecided, "\"?\" has the lowest mean, and isn't proven to be faster");
  explain(Decision::Kind::kOnlyOne, "no other arm is comparable");
  return text;
}

}  // namespace assay
