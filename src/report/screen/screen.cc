// Shares the lines of a screen among its parts.
#include "report/screen/screen.h"

#include <algorithm>
#include <filesystem>

#include "base/text/shown_text.h"
#include "base/text/text.h"
#include "report/fitting.h"
#include "report/screen/parts.h"

namespace assay {
namespace {

constexpr size_t kIndent = 2;
// Most lines of a paragraph that says one thing; longer ones are whole in the full tables.
constexpr size_t kMostLinesAThing = 3;
constexpr size_t kMostLegendLines = 4;
constexpr size_t kMostNameLines = 3;
// Lines that each part may take before the others have theirs.
constexpr size_t kWarningLines = 6;
constexpr size_t kAnswerLines = 9;
constexpr size_t kChangeLines = 5;

using Lines = std::vector<std::string>;

// One entry a thing to say, each wrapped.
using Items = std::vector<Lines>;

Items wrapped_items(const Lines& texts, size_t most_lines) {
  Items items;
  for (const std::string& text : texts) {
    items.push_back(wrapped_lines(shown_line("- " + text), kScreenColumns, kIndent, most_lines));
  }
  return items;
}

size_t line_count(const Items& items) {
  size_t lines = 0;
  for (const Lines& item : items) lines += item.size();
  return lines;
}

// "  and 3 more kinds of warnings (drift, dependence, bimodal): --full": as many names as fit.
std::string more_line(size_t more, std::string_view what, const Lines& names) {
  const auto line = [&](size_t named) {
    const Lines first(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(named));
    std::string in_brackets = join(first, ", ");
    if (named > 0 && named < names.size()) in_brackets += ", ...";
    if (named > 0) in_brackets = fmt::format(" ({})", in_brackets);
    return fmt::format("  and {} more {}{}: --full", more, what, in_brackets);
  };
  size_t named = names.size();
  while (named > 0 && display_width(line(named)) > kScreenColumns) --named;
  return line(named);
}

// The first of them that have room, and how many more there are. `names`: of all of them, or none.
void add_items(const Items& items, size_t room, std::string_view one, std::string_view many,
               const Lines& names, Lines& out) {
  if (items.empty()) return;
  const bool all = line_count(items) <= room;
  size_t shown = 0;
  for (size_t used = 0; shown < items.size(); ++shown) {
    used += items[shown].size();
    if (!all && used + 1 > room) break;
    out.insert(out.end(), items[shown].begin(), items[shown].end());
  }
  if (shown == items.size()) return;
  const size_t more = items.size() - shown;
  const auto first =
      names.empty() ? names.end() : names.begin() + static_cast<std::ptrdiff_t>(shown);
  out.push_back(more_line(more, more == 1 ? one : many, Lines(first, names.end())));
}

// A table's heading and rule, and its choices, each in its lines.
struct AnswerLines {
  Lines head;
  Items rows;
};

AnswerLines answer_lines(const Findings& findings, const std::vector<Answer>& answers,
                         SameAnswer same, size_t most_lines) {
  const AnswerTable made = wrapped_answers(findings, answers, same, kScreenColumns, most_lines);
  const Lines lines = split(made.table.render(OutputFormat::kTable), '\n');
  AnswerLines choices{{lines[0], lines[1]}, {}};
  size_t at = 2;
  for (const size_t count : made.lines) {
    const auto first = lines.begin() + static_cast<std::ptrdiff_t>(at);
    choices.rows.emplace_back(first, first + static_cast<std::ptrdiff_t>(count));
    at += count;
  }
  return choices;
}

struct Room {
  size_t warnings = 0;
  size_t choices = 0;
  size_t changes = 0;
};

// Each part gets the lines that it asks for up to its share, then the rest goes to the parts in the
// order of their weight.
Room share(size_t lines, const Room& wanted) {
  Room room{std::min(wanted.warnings, kWarningLines), std::min(wanted.choices, kAnswerLines),
            std::min(wanted.changes, kChangeLines)};
  size_t left = lines - std::min(lines, room.warnings + room.choices + room.changes);
  const auto grow = [&](size_t& to, size_t most) {
    const size_t more = std::min(left, most - to);
    to += more;
    left -= more;
  };
  grow(room.choices, wanted.choices);
  grow(room.warnings, wanted.warnings);
  grow(room.changes, wanted.changes);
  return room;
}

// A path on lines of its own where it is long.
void add_wrapped(const std::string& text, Lines& out) {
  for (std::string& line : wrapped_lines(shown_line(text), kScreenColumns, kIndent)) {
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
  for (std::string& line : wrapped_lines(shown_line(requirements), kScreenColumns, kIndent, 2)) {
    frame.measured.push_back(std::move(line));
  }
  return frame;
}

// The three parts, as long as they would like to be.
struct Content {
  AnswerLines choices;
  Items warnings;
  Items changes;
  Room wanted() const {
    return {line_count(warnings), line_count(choices.rows), line_count(changes)};
  }
  size_t lines() const { return wanted().warnings + wanted().choices + wanted().changes; }
};

// Lines that share() gives to the choices.
size_t answer_room(size_t room, const Items& warnings, const Items& changes) {
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
    const size_t changes_lines = std::min(longer.wanted().changes, kChangeLines);
    if (longer.wanted().warnings + longer.wanted().choices + changes_lines <= room) return longer;
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
  const Room room = share(lines_left, content.wanted());
  Lines lines = frame.measured;
  if (!warnings.empty()) {
    lines.insert(lines.end(), {"", "What voids or weakens this:"});
    add_items(content.warnings, room.warnings, "kind of warning", "kinds of warnings",
              warning_kinds(findings), lines);
  }
  if (!content.choices.rows.empty()) {
    lines.emplace_back();
    lines.insert(lines.end(), content.choices.head.begin(), content.choices.head.end());
    add_items(content.choices.rows, room.choices, "row", "rows", {}, lines);
    lines.insert(lines.end(), frame.legend.begin(), frame.legend.end());
  }
  if (!changes.empty()) {
    lines.insert(lines.end(), {"", "What changes the choice:"});
    add_items(content.changes, room.changes, "remark", "remarks", {}, lines);
  }
  lines.emplace_back();
  lines.insert(lines.end(), frame.closing.begin(), frame.closing.end());
  return join(lines, "\n") + "\n";
}

}  // namespace assay
