// Shares the lines of a screen among its parts.
#include "report/screen/screen.h"

#include <algorithm>
#include <filesystem>

#include "base/text/shown_text.h"
#include "base/text/text.h"
#include "report/fitting.h"
#include "report/screen/fitter.h"
#include "report/screen/parts.h"

namespace assay {
namespace {

// Most lines of a paragraph that says one thing; longer ones are whole in the full tables.
constexpr size_t kMostLinesAThing = 3;
constexpr size_t kMostNameLines = 3;
// Lines that each part may take before the others have theirs.
constexpr size_t kWarningLines = 6;
constexpr size_t kAnswerLines = 9;
constexpr size_t kChangeLines = 5;

using Lines = ScreenLines;

constexpr std::string_view kFullReport = "--full";

std::vector<Lines> wrapped_items(const Lines& texts, size_t most_lines) {
  std::vector<Lines> items;
  for (const std::string& text : texts) {
    items.push_back(screen_lines("- " + text, kScreenIndent, most_lines));
  }
  return items;
}

// A table's heading and rule, and its choices, each in its lines.
struct AnswerLines {
  Lines head;
  std::vector<Lines> rows;
};

AnswerLines answer_lines(const Findings& findings, const std::vector<Answer>& answers,
                         SameAnswer same, size_t most_lines) {
  const AnswerTable made = wrapped_answers(findings, answers, same, kScreenColumns, most_lines);
  const Lines lines = split(made.table.render(OutputFormat::kTable), '\n');
  AnswerLines choices{{"", lines[0], lines[1]}, {}};
  size_t at = 2;
  for (const size_t count : made.lines) {
    const auto first = lines.begin() + static_cast<std::ptrdiff_t>(at);
    choices.rows.emplace_back(first, first + static_cast<std::ptrdiff_t>(count));
    at += count;
  }
  return choices;
}

// A path on lines of its own where it is long.
void add_wrapped(const std::string& text, Lines& out) {
  for (std::string& line : wrapped_lines(shown_line(text), kScreenColumns, kScreenIndent)) {
    out.push_back(std::move(line));
  }
}

constexpr size_t kMostClosingLines = 6;  // where the path is longer than a line

// Whole paths, on lines of their own, so that they can be copied.
Lines closing_lines_of_bundle(const std::string& bundle) {
  const std::filesystem::path folder(bundle);
  Lines lines;
  add_wrapped(fmt::format("findings: {}", (folder / "analysis" / "findings.json").string()), lines);
  add_wrapped(fmt::format("in full:  assay analyze --full {}", bundle), lines);
  add_wrapped(fmt::format("report:   {}", (folder / "report.html").string()), lines);
  if (lines.size() <= kMostClosingLines) return lines;
  return {"in full: assay analyze --full BUNDLE",
          "findings: analysis/findings.json, report: report.html, both in the bundle"};
}

Lines closing_lines_of_file(const std::string& file) {
  Lines lines;
  add_wrapped(fmt::format("findings: {}", file), lines);
  add_wrapped(fmt::format("in full:  assay analyze --full --from-findings {}", file), lines);
  add_wrapped(fmt::format("report:   assay report --from-findings {} -o report.html", file), lines);
  if (lines.size() <= kMostClosingLines) return lines;
  return {"in full: assay analyze --full --from-findings FILE",
          "report:  assay report --from-findings FILE -o report.html"};
}

// Everything but the three parts that share the room that is left.
struct Frame {
  Lines measured;
  Lines legend;
  Lines closing;
  size_t lines(bool warnings, bool changes) const {
    // An empty line and a heading for each part; the table has an empty line, heading and rule.
    return measured.size() + legend.size() + closing.size() + 1 + 3 + (warnings ? 2 : 0) +
           (changes ? 2 : 0);
  }
};

Frame frame_of(const Findings& findings, Lines closing) {
  Frame frame{
      {measured_line(findings, kScreenColumns)},
      wrapped_lines(shown_line(answer_legend(findings)), kScreenColumns, 0, kMostLegendLines),
      std::move(closing)};
  const std::string requirements = requirement_line(findings);
  if (requirements.empty()) return frame;
  for (std::string& line :
       wrapped_lines(shown_line(requirements), kScreenColumns, kScreenIndent, 2)) {
    frame.measured.push_back(std::move(line));
  }
  return frame;
}

// The three parts, as long as they would like to be.
struct Content {
  AnswerLines choices;
  std::vector<Lines> warnings;
  std::vector<Lines> changes;
  size_t lines() const {
    return line_count(warnings) + line_count(choices.rows) + line_count(changes);
  }
};

// Lines that are left to the choices.
size_t answer_room(size_t room, const std::vector<Lines>& warnings,
                   const std::vector<Lines>& changes) {
  const size_t others =
      std::min(line_count(warnings), kWarningLines) + std::min(line_count(changes), kChangeLines);
  return std::max(kAnswerLines, room - std::min(room, others));
}

// Rows of whole phases where those of prompt lengths don't fit; then whole names, where their lines
// fit; then as many lines a thing as fit: nothing is left out for the sake of another thing's
// length.
Content content_for(const Findings& findings, const Lines& warnings, const Lines& changes,
                    size_t room) {
  SameAnswer same = SameAnswer::kArms;
  std::vector<Answer> rows = answers(findings, same);
  Content content{{}, wrapped_items(warnings, 1), wrapped_items(changes, 1)};
  if (rows.size() > kAnswerLines && rows.size() + content.lines() > room) {
    same = SameAnswer::kArmOfPhase;
    rows = answers(findings, same);
  }
  for (size_t most = kMostNameLines; most > 0; --most) {
    content.choices = answer_lines(findings, rows, same, most);
    const size_t lines = line_count(content.choices.rows);
    if (lines <= answer_room(room, content.warnings, content.changes)) break;
  }
  for (size_t most = kMostLinesAThing; most > 1; --most) {
    Content longer{content.choices, wrapped_items(warnings, most), wrapped_items(changes, most)};
    if (longer.lines() <= room) return longer;
  }
  // Warnings come before remarks.
  for (size_t most = kMostLinesAThing; most > 1; --most) {
    Content longer{content.choices, wrapped_items(warnings, most), content.changes};
    const size_t changes_lines = std::min(line_count(longer.changes), kChangeLines);
    if (line_count(longer.warnings) + line_count(longer.choices.rows) + changes_lines <= room) {
      return longer;
    }
  }
  return content;
}

}  // namespace

std::string render_screen(const Findings& findings, const std::string& path, ScreenOf of) {
  const Lines warnings = warning_lines(findings);
  const Lines changes = change_lines(findings);
  const Frame frame = frame_of(findings, of == ScreenOf::kBundle ? closing_lines_of_bundle(path)
                                                                 : closing_lines_of_file(path));
  const size_t lines_left = kScreenLines - frame.lines(!warnings.empty(), !changes.empty());
  const Content content = content_for(findings, warnings, changes, lines_left);
  const std::vector<ScreenPart> parts = {{.head = {"", "What voids or weakens this:"},
                                          .items = content.warnings,
                                          .share = kWarningLines,
                                          .one = "kind of warning",
                                          .many = "kinds of warnings",
                                          .names = warning_kinds(findings)},
                                         {.head = content.choices.head,
                                          .items = content.choices.rows,
                                          .share = kAnswerLines,
                                          .one = "row",
                                          .many = "rows",
                                          .foot = frame.legend},
                                         {.head = {"", "What changes the choice:"},
                                          .items = content.changes,
                                          .share = kChangeLines,
                                          .one = "remark",
                                          .many = "remarks"}};
  const std::vector<size_t> room = shared_lines(parts, lines_left, {1, 0, 2});
  Lines lines = frame.measured;
  for (size_t i = 0; i < parts.size(); ++i) add_part(parts[i], room[i], kFullReport, lines);
  lines.emplace_back();
  lines.insert(lines.end(), frame.closing.begin(), frame.closing.end());
  return join(lines, "\n") + "\n";
}

}  // namespace assay
