// Shares lines, and counts what has no room.
#include "report/screen/fitter.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/shown_text.h"
#include "base/text/text.h"
#include "report/fitting.h"

namespace assay {
namespace {

// "  and 3 more kinds of warnings (drift, dependence, bimodal): --full": as many names as fit.
std::string more_line(size_t more, std::string_view what, const ScreenLines& names,
                      std::string_view where, size_t columns) {
  const auto line = [&](size_t named) {
    const ScreenLines first(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(named));
    std::string in_brackets = join(first, ", ");
    if (named > 0 && named < names.size()) in_brackets += ", ...";
    if (named > 0) in_brackets = fmt::format(" ({})", in_brackets);
    return fmt::format("  and {} more{}{}{}: {}", more, what.empty() ? "" : " ", what, in_brackets,
                       where);
  };
  size_t named = names.size();
  while (named > 0 && display_width(line(named)) > columns) --named;
  return line(named);
}

}  // namespace

size_t line_count(const std::vector<ScreenLines>& items) {
  size_t lines = 0;
  for (const ScreenLines& item : items) lines += item.size();
  return lines;
}

std::vector<size_t> shared_lines(const std::vector<ScreenPart>& parts, size_t room,
                                 const std::vector<size_t>& first) {
  std::vector<size_t> lines;
  size_t used = 0;
  for (const ScreenPart& part : parts) {
    lines.push_back(std::min(line_count(part.items), part.share));
    used += lines.back();
  }
  size_t left = room - std::min(room, used);
  for (const size_t i : first) {
    const size_t more = std::min(left, line_count(parts[i].items) - lines[i]);
    lines[i] += more;
    left -= more;
  }
  return lines;
}

void add_part(const ScreenPart& part, size_t lines, std::string_view where, size_t columns,
              ScreenLines& out) {
  if (part.items.empty()) return;
  out.insert(out.end(), part.head.begin(), part.head.end());
  const bool all = line_count(part.items) <= lines;
  size_t shown = 0;
  for (size_t used = 0; shown < part.items.size(); ++shown) {
    used += part.items[shown].size();
    if (!all && used + 1 > lines) break;
    out.insert(out.end(), part.items[shown].begin(), part.items[shown].end());
  }
  if (shown < part.items.size()) {
    const size_t more = part.items.size() - shown;
    const auto rest = part.names.empty() ? part.names.end()
                                         : part.names.begin() + static_cast<std::ptrdiff_t>(shown);
    out.push_back(more_line(more, more == 1 ? part.one : part.many,
                            ScreenLines(rest, part.names.end()), where, columns));
  }
  out.insert(out.end(), part.foot.begin(), part.foot.end());
}

size_t table_width(const Table& table, std::optional<size_t> columns) {
  size_t widest = 0;
  for (const std::string& line : split(table.render(OutputFormat::kTable, columns), '\n')) {
    widest = std::max(widest, display_width(line));
  }
  return widest;
}

ScreenLines screen_lines(const std::string& text, size_t indent, size_t most, size_t columns) {
  return wrapped_lines(shown_line(text), columns, indent, most);
}

}  // namespace assay
