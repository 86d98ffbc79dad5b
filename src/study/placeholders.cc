// Finding and filling placeholders.
#include "study/placeholders.h"

#include <algorithm>
#include <array>
#include <functional>

#include "base/text/text.h"

namespace assay {
namespace {

bool is_name_letter(char c) {
  return (c >= 'a' && c <= 'z') || c == '_';
}

// The word of "{word}" at the start of the text; empty: it begins with no placeholder.
std::string_view word_in_braces(std::string_view text) {
  if (!text.starts_with('{')) return {};
  size_t end = 1;
  while (end < text.size() && is_name_letter(text[end])) ++end;
  return end < text.size() && text[end] == '}' ? text.substr(1, end - 1) : std::string_view();
}

// The text with each placeholder replaced by its `value`, and "{{word}}" by "{word}".
std::string replace_each(std::string_view text,
                         const std::function<std::string(std::string_view)>& value) {
  std::string filled;
  while (!text.empty()) {
    const std::string_view escaped = word_in_braces(text.substr(1));
    if (text.starts_with("{{") && !escaped.empty() &&
        text.substr(escaped.size() + 3).starts_with('}')) {
      filled += text.substr(1, escaped.size() + 2);
      text.remove_prefix(escaped.size() + 4);
    } else if (const std::string_view word = word_in_braces(text); !word.empty()) {
      filled += value(word);
      text.remove_prefix(word.size() + 2);
    } else {
      filled += text.front();
      text.remove_prefix(1);
    }
  }
  return filled;
}

}  // namespace

std::span<const std::string> placeholder_names() {
  static const std::array<std::string, 14> names = {
      "model", "dtype",         "mode",       "cache", "dynamic", "threads", "phase",
      "batch", "prompt_tokens", "new_tokens", "seed",  "samples", "side",    "checkout"};
  return names;
}

Result<std::vector<std::string>> placeholders_of(std::string_view text) {
  std::vector<std::string> found;
  replace_each(text, [&](std::string_view word) {
    found.emplace_back(word);
    return std::string();
  });
  const auto names = placeholder_names();
  for (const std::string& word : found) {
    if (std::ranges::find(names, word) != names.end()) continue;
    const std::vector<std::string> known(names.begin(), names.end());
    return bad_input(
        "expected one of the placeholders {} ({{{{word}}}} stands for the text itself), "
        "found {{{}}}{}",
        join(known, ", "), excerpt(word), nearest_hint(word, known));
  }
  return found;
}

std::string fill_placeholders(std::string_view text,
                              const std::map<std::string, std::string>& values) {
  return replace_each(text, [&](std::string_view word) {
    const auto value = values.find(std::string(word));
    return value == values.end() ? fmt::format("{{{}}}", word) : value->second;
  });
}

}  // namespace assay
