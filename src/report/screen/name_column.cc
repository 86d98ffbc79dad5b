// Breaks and shortens names.
#include "report/screen/name_column.h"

#include <algorithm>
#include <optional>

#include "base/text/shown_text.h"
#include "base/text/text.h"
#include "report/fitting.h"

namespace assay {
namespace {

// A name in lines of at most so many columns, broken behind a separator; nothing where a part
// between two of them is longer than a line.
std::optional<std::vector<std::string>> broken_name(const std::string& name, size_t width,
                                                    size_t most_lines) {
  std::vector<std::string> lines = {""};
  std::string part;
  for (size_t i = 0; i < name.size(); ++i) {
    part += name[i];
    const bool end = i + 1 == name.size() || std::string_view("-_/.: ,").contains(name[i]);
    if (!end) continue;
    if (display_width(part) > width) return std::nullopt;
    if (display_width(lines.back()) + display_width(part) > width) lines.emplace_back();
    lines.back() += part;
    part.clear();
  }
  return lines.size() <= most_lines ? std::optional(lines) : std::nullopt;
}

}  // namespace

void NameColumn::add(const std::string& name) {
  if (std::ranges::find(names_, name) != names_.end()) return;
  names_.push_back(name);
  shown_.push_back({name});
  width_ = std::max(width_, display_width(name));
}

bool NameColumn::whole_at(size_t columns) const {
  return std::ranges::all_of(names_, [&](const std::string& name) {
    return broken_name(name, columns, most_lines_).has_value();
  });
}

void NameColumn::narrow() {
  const std::vector<std::string> shortened = shortened_apart(names_, --width_);
  for (size_t i = 0; i < names_.size(); ++i) {
    shown_[i] = broken_name(names_[i], width_, most_lines_)
                    .value_or(std::vector<std::string>{shortened[i]});
  }
}

std::vector<std::string> NameColumn::of(const std::string& name, const std::string& mark) const {
  auto lines = shown_[static_cast<size_t>(std::ranges::find(names_, name) - names_.begin())];
  lines.back() += mark;
  return lines;
}

}  // namespace assay
