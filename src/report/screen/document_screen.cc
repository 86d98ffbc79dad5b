#include "report/screen/document_screen.h"

#include <algorithm>

#include "base/text/listed.h"
#include "base/text/text.h"

namespace assay {
namespace {

constexpr size_t kMostLinesASentence = 3;
constexpr size_t kVerdictLines = 10;
constexpr std::string_view kRestIsIn = "-o md";

// Adds a row an item, and the head to `head`.
void add_table(const Table& table, size_t columns, ScreenLines& head,
               std::vector<ScreenLines>& items) {
  if (table.rows.empty()) return;
  const ScreenLines lines = split(table.render(OutputFormat::kTable, columns), '\n');
  head.insert(head.end(), {lines[0], lines[1]});
  for (size_t i = 0; i < table.rows.size(); ++i) items.push_back({lines[i + 2]});
}

ScreenPart part_of(const ReportSection& section, size_t columns) {
  ScreenPart part{.head = {"", section.title + ":"}, .share = section.screen_lines};
  for (const std::string& line : section.lines) {
    part.items.push_back(screen_lines(line, kScreenIndent, kMostLinesASentence, columns));
  }
  for (const Table& table : section.tables) {
    part.one = "row";
    part.many = "rows";
    ScreenLines head;
    std::vector<ScreenLines> rows;
    add_table(table, columns, head, rows);
    if (rows.empty()) continue;
    // The head stands with the first row, so that neither is shown without the other.
    head.push_back(rows.front().front());
    rows.front() = std::move(head);
    part.items.insert(part.items.end(), rows.begin(), rows.end());
  }
  return part;
}

ScreenPart verdict_part(const Document& document, size_t columns) {
  ScreenPart part{.head = {""}, .share = kVerdictLines, .one = "row", .many = "rows"};
  Table verdicts = document.verdicts;
  for (const std::string& name : document.spare) {
    if (table_width(verdicts, columns) > columns) drop_column(name, verdicts);
  }
  add_table(verdicts, columns, part.head, part.items);
  if (!document.legend.empty())
    part.foot = screen_lines(document.legend, kScreenIndent, kMostLegendLines, columns);
  return part;
}

// A line that names the parts that have no room.
std::string unshown_line(const std::vector<std::string>& titles) {
  return fmt::format("({}: {})", listed(titles), kRestIsIn);
}

}  // namespace

std::string render_screen(const Document& document, size_t columns) {
  ScreenLines lines;
  for (const std::string& sentence : document.outcome) {
    const ScreenLines wrapped = screen_lines(sentence, kScreenIndent, kMostLinesASentence, columns);
    lines.insert(lines.end(), wrapped.begin(), wrapped.end());
  }
  size_t room = kScreenLines - lines.size() - 1;  // one line names what isn't shown
  std::vector<ScreenPart> parts;
  std::vector<std::string> unshown;
  const auto add = [&](ScreenPart part, const std::string& title) {
    if (part.items.empty()) return;
    const size_t fixed = part.head.size() + part.foot.size();
    const size_t least = std::min(line_count(part.items), part.items.front().size() + 1);
    if (fixed + least > room) {
      unshown.push_back(title);
      return;
    }
    part.share = std::clamp(part.share, least, room - fixed);
    room -= fixed + std::min(part.share, line_count(part.items));
    parts.push_back(std::move(part));
  };
  add(verdict_part(document, columns), "verdicts");
  for (const ReportSection& section : document.sections) {
    if (section.screen_lines > 0) add(part_of(section, columns), section.title);
  }
  std::vector<size_t> order;
  size_t shares = room;
  for (const ScreenPart& part : parts) {
    order.push_back(order.size());
    shares += std::min(part.share, line_count(part.items));
  }
  const std::vector<size_t> granted = shared_lines(parts, shares, order);
  for (size_t i = 0; i < parts.size(); ++i)
    add_part(parts[i], granted[i], kRestIsIn, columns, lines);
  if (!unshown.empty()) lines.push_back(unshown_line(unshown));
  return join(lines, "\n") + "\n";
}

std::string render_document(const DocumentForms& of, OutputFormat format, size_t columns) {
  switch (format) {
    case OutputFormat::kJson:
      return to_json_text(of.json());
    case OutputFormat::kCsv:
      return of.lines().render(OutputFormat::kCsv);
    case OutputFormat::kMarkdown:
      return render_markdown(of.document());
    case OutputFormat::kTable:
      break;
  }
  return render_screen(of.document(), columns);
}

}  // namespace assay
