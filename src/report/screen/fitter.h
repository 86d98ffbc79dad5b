// The lines of a screen, shared among parts of which each would like more.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/tables/table.h"

namespace assay {

inline constexpr size_t kScreenLines = 40;
inline constexpr size_t kScreenColumns = 100;  // where the terminal has as many
inline constexpr size_t kScreenIndent = 2;     // of a sentence's further lines
inline constexpr size_t kMostLegendLines = 2;

using ScreenLines = std::vector<std::string>;

// Items that say one thing each, in one line or several.
struct ScreenPart {
  ScreenLines head = {};                // above its items
  std::vector<ScreenLines> items = {};  // none: the part isn't shown
  size_t share = 0;      // lines of items that it may take before the others have theirs
  std::string one = "";  // an item, and several: "kind of warning"
  std::string many = "";
  ScreenLines names = {};  // of all items, to name those that have no room; or none
  ScreenLines foot = {};   // below its items
};

size_t line_count(const std::vector<ScreenLines>& items);

// Lines of items that each part gets of `room`, heads and feet not counted: each its share, then
// the parts in the order of `first` (their places) what is left.
std::vector<size_t> shared_lines(const std::vector<ScreenPart>& parts, size_t room,
                                 const std::vector<size_t>& first);

// The first of the part's items that fit, and a line that counts the others and says where they are
// ("--full"), at most `columns` wide.
void add_part(const ScreenPart& part, size_t lines, std::string_view where, size_t columns,
              ScreenLines& out);

// Columns of the table's widest line, where it is rendered for so many.
size_t table_width(const Table& table, std::optional<size_t> columns = std::nullopt);

// A sentence in lines of a screen of so many columns.
ScreenLines screen_lines(const std::string& text, size_t indent, size_t most, size_t columns);

}  // namespace assay
