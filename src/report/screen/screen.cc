// Shares the lines of a screen among its parts.
#include "report/screen/screen.h"

#include <algorithm>
#include <filesystem>

#include "base/text/shown_text.h"
#include "base/text/text.h"
#include "report/fitting.h"
#include "report/load_report.h"
#include "report/phase_answers.h"
#include "report/screen/fitter.h"
#include "report/screen/parts.h"

namespace assay {
namespace {

// Most lines of a paragraph that says one thing; longer ones are whole in the full tables.
constexpr size_t kMostLinesAThing = 3;
constexpr size_t kMostNameLines = 3;
constexpr size_t kMostSentenceLines = 4;
// Lines that each part may take before the others have theirs: with all heads and the longest
// closing lines they fill the screen.
constexpr size_t kSentenceLines = 5;
constexpr size_t kArmLines = 4;
constexpr size_t kWarningLines = 3;
constexpr size_t kAnswerLines = 2;
constexpr size_t kChangeLines = 2;
// Rows of choices from which on those of whole phases stand for those of prompt lengths.
constexpr size_t kManyAnswers = 4;

using Lines = ScreenLines;

constexpr std::string_view kFullReport = "--full";

// A path on lines of its own where it is long.
void add_wrapped(const std::string& text, size_t columns, Lines& out) {
  for (std::string& line : wrapped_lines(shown_line(text), columns, kScreenIndent)) {
    out.push_back(std::move(line));
  }
}

constexpr size_t kMostClosingLines = 6;  // where the path is longer than a line

// Whole paths, on lines of their own, so that they can be copied.
Lines closing_lines(ScreenOf of, const std::string& path, size_t columns) {
  const bool bundle = of == ScreenOf::kBundle;
  const std::filesystem::path folder(path);
  const Lines whole =
      bundle ? Lines{fmt::format("findings: {}", (folder / "analysis" / "findings.json").string()),
                     fmt::format("in full:  assay analyze --full {}", path),
                     fmt::format("report:   {}", (folder / "report.html").string())}
             : Lines{fmt::format("findings: {}", path),
                     fmt::format("in full:  assay analyze --full --from-findings {}", path),
                     fmt::format("report:   assay report --from-findings {} -o report.html", path)};
  Lines lines;
  for (const std::string& line : whole) add_wrapped(line, columns, lines);
  if (lines.size() <= kMostClosingLines) return lines;
  if (bundle) {
    return {"in full: assay analyze --full BUNDLE",
            "findings: analysis/findings.json, report: report.html, both in the bundle"};
  }
  return {"in full: assay analyze --full --from-findings FILE",
          "report:  assay report --from-findings FILE -o report.html"};
}

Lines measured_lines(const Findings& findings, size_t columns) {
  Lines lines = {measured_line(findings, columns)};
  const std::string requirements = requirement_line(findings);
  if (requirements.empty()) return lines;
  const Lines wrapped = screen_lines(requirements, kScreenIndent, 2, columns);
  lines.insert(lines.end(), wrapped.begin(), wrapped.end());
  return lines;
}

// A sentence a phase.
ScreenPart sentence_part(const std::vector<PhaseAnswer>& answers, size_t most_lines,
                         size_t columns) {
  ScreenPart part{.share = kSentenceLines, .one = "phase", .many = "phases"};
  for (const PhaseAnswer& answer : answers) {
    part.items.push_back(screen_lines(answer.sentence, kScreenIndent, most_lines, columns));
  }
  return part;
}

// Shortens the arms' names, to `narrowest` columns at most, so that they differ still.
void shorten_arms(const std::vector<std::string>& names, size_t narrowest, size_t columns,
                  Table& table) {
  constexpr size_t kArm = 1;
  std::vector<std::string> different = names;
  std::ranges::sort(different);
  different.erase(std::ranges::unique(different).begin(), different.end());
  size_t width = 0;
  for (const std::string& name : different) width = std::max(width, display_width(name));
  for (; width > narrowest && table_width(table) > columns; --width) {
    const std::vector<std::string> shown = shortened_apart(different, width - 1);
    for (size_t i = 0; i < names.size(); ++i) {
      const auto at = std::ranges::lower_bound(different, names[i]) - different.begin();
      table.rows[i][kArm] = TableCell(shown[static_cast<size_t>(at)]);
    }
  }
}

// Keeps to the screen's columns: names are shortened a little, then figures that the sentences and
// the full report have too give way, then names are shortened further.
void fit_arms(size_t columns, Table& table) {
  std::vector<std::string> names;
  for (const auto& row : table.rows) names.push_back(cell_text(row[1]));
  shorten_arms(names, 24, columns, table);
  for (const char* column : {"p99 ms", "tokens/s"}) {
    if (table_width(table) > columns) drop_column(column, table);
  }
  // Ranges of few processes leave a narrow screen no more than names' numbers.
  for (const size_t narrowest : {12, 5}) shorten_arms(names, narrowest, columns, table);
}

// Each arm's figures beside the baseline's.
ScreenPart arm_part(const Findings& findings, const std::vector<PhaseAnswer>& answers,
                    size_t columns) {
  ScreenPart part{.share = kArmLines, .one = "row", .many = "rows"};
  Table table = arm_table(answers);
  if (table.rows.empty()) return part;
  fit_arms(columns, table);
  const Lines lines = split(table.render(OutputFormat::kTable, columns), '\n');
  part.head = {"", lines[0], lines[1]};
  for (size_t i = 0; i < table.rows.size(); ++i) part.items.push_back({lines[i + 2]});
  part.foot =
      screen_lines(arm_legend(answers, findings.study.baseline), 0, kMostLegendLines, columns);
  return part;
}

// A study under load has a row a point and arm.
ScreenPart load_part(const Findings& findings, size_t columns) {
  constexpr size_t kLoadLines = 12;
  ScreenPart part{.share = kLoadLines, .one = "row", .many = "rows"};
  Table table = load_table(findings);
  for (const char* column : {"ITL ms", "tokens/s"}) {
    if (table_width(table) > columns) drop_column(column, table);
  }
  const Lines lines = split(table.render(OutputFormat::kTable, columns), '\n');
  part.head = {"", lines[0], lines[1]};
  for (size_t i = 0; i < table.rows.size(); ++i) part.items.push_back({lines[i + 2]});
  part.foot = screen_lines(load_legend(findings), 0, kMostLegendLines, columns);
  return part;
}

ScreenPart choice_part(const Findings& findings, const std::vector<Answer>& answers,
                       SameAnswer same, size_t most_lines, size_t columns) {
  const AnswerTable made = wrapped_answers(findings, answers, same, columns, most_lines);
  const Lines lines = split(made.table.render(OutputFormat::kTable), '\n');
  ScreenPart part{.head = {"", lines[0], lines[1]},
                  .share = kAnswerLines,
                  .one = "row",
                  .many = "rows",
                  .foot = screen_lines(answer_legend(findings), 0, kMostLegendLines, columns)};
  size_t at = 2;
  for (const size_t count : made.lines) {
    const auto first = lines.begin() + static_cast<std::ptrdiff_t>(at);
    part.items.emplace_back(first, first + static_cast<std::ptrdiff_t>(count));
    at += count;
  }
  return part;
}

ScreenPart list_part(const char* title, const Lines& texts, size_t most_lines, size_t share,
                     size_t columns) {
  ScreenPart part{.head = {"", title}, .share = share};
  for (const std::string& text : texts) {
    part.items.push_back(screen_lines("- " + text, kScreenIndent, most_lines, columns));
  }
  return part;
}

ScreenPart warning_part(const Findings& findings, size_t most_lines, size_t columns) {
  ScreenPart part = list_part("What voids or weakens this:", warning_lines(findings), most_lines,
                              kWarningLines, columns);
  part.one = "kind of warning";
  part.many = "kinds of warnings";
  part.names = warning_kinds(findings);
  return part;
}

ScreenPart change_part(const Findings& findings, size_t most_lines, size_t columns) {
  ScreenPart part = list_part("What changes the choice:", change_lines(findings), most_lines,
                              kChangeLines, columns);
  part.one = "remark";
  part.many = "remarks";
  return part;
}

// The parts by their places, and the order in which they get what lines are left.
enum Place : size_t { kSentences, kArms, kWarnings, kChoices, kChanges };
const std::vector<size_t> kFirst = {kSentences, kChoices, kArms, kWarnings, kChanges};

// Lines that all of them take, their heads and feet included.
size_t line_count_of(const std::vector<ScreenPart>& parts) {
  size_t lines = 0;
  for (const ScreenPart& part : parts) {
    if (!part.items.empty()) {
      lines += part.head.size() + line_count(part.items) + part.foot.size();
    }
  }
  return lines;
}

// Sentences are as long as they have to be. Rows of whole phases where those of prompt lengths
// don't fit; then whole names, where their lines fit; then as many lines a thing as fit: nothing is
// left out for the sake of another thing's length.
std::vector<ScreenPart> parts_for(const Findings& findings, size_t room, size_t columns) {
  const std::vector<PhaseAnswer> phases = phase_answers(findings);
  SameAnswer same = SameAnswer::kArms;
  std::vector<Answer> rows = answers(findings, same);
  const bool loads_alone = std::ranges::all_of(
      findings.strata, [](const Stratum& of) { return of.phase == Phase::kLoad; });
  if (loads_alone && !findings.load.points.empty()) {
    return {sentence_part(phases, 2 * kMostSentenceLines, columns),
            load_part(findings, columns),
            warning_part(findings, kMostLinesAThing, columns),
            {},
            {}};
  }
  std::vector<ScreenPart> parts = {
      sentence_part(phases, kMostSentenceLines, columns), arm_part(findings, phases, columns),
      warning_part(findings, 1, columns), choice_part(findings, rows, same, 1, columns),
      change_part(findings, 1, columns)};
  if (rows.size() > kManyAnswers && line_count_of(parts) > room) {
    same = SameAnswer::kArmOfPhase;
    rows = answers(findings, same);
  }
  for (size_t most = kMostNameLines; most > 0; --most) {
    parts[kChoices] = choice_part(findings, rows, same, most, columns);
    if (line_count_of(parts) <= room) break;
  }
  for (size_t most = kMostLinesAThing; most > 1; --most) {
    for (const bool both : {true, false}) {  // warnings come before remarks
      std::vector<ScreenPart> longer = parts;
      longer[kWarnings] = warning_part(findings, most, columns);
      if (both) longer[kChanges] = change_part(findings, most, columns);
      if (line_count_of(longer) <= room) return longer;
    }
  }
  return parts;
}

}  // namespace

std::string render_screen(const Findings& findings, const std::string& path, ScreenOf of,
                          size_t columns) {
  Lines lines = measured_lines(findings, columns);
  const Lines closing = closing_lines(of, path, columns);
  const size_t room = kScreenLines - lines.size() - closing.size() - 1;
  const std::vector<ScreenPart> parts = parts_for(findings, room, columns);
  size_t fixed = 0;
  for (const ScreenPart& part : parts) {
    if (!part.items.empty()) fixed += part.head.size() + part.foot.size();
  }
  const std::vector<size_t> granted = shared_lines(parts, room - fixed, kFirst);
  for (size_t i = 0; i < parts.size(); ++i)
    add_part(parts[i], granted[i], kFullReport, columns, lines);
  lines.emplace_back();
  lines.insert(lines.end(), closing.begin(), closing.end());
  return join(lines, "\n") + "\n";
}

}  // namespace assay
