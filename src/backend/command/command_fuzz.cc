// Any bytes as an arm's pattern (the first line), as a text with placeholders (the second) and as
// the command's output: an error or samples, never a crash.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "backend/command/exception_class.h"
#include "backend/command/figures.h"
#include "study/placeholders.h"

static std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const std::string_view text = take_line(rest);
  const std::string_view with_placeholders = take_line(rest);
  if (const auto names = placeholders_of(with_placeholders); names && names->empty()) {
    // Without placeholders only doubled braces change, and they become fewer.
    if (fill_placeholders(with_placeholders, {}).size() > with_placeholders.size()) std::abort();
  }
  Invocation invocation;
  invocation.out = std::string(rest);
  exception_class(rest);
  const auto pattern = TextPattern::compile(text, "fuzz");
  if (!pattern || pattern->names().empty()) return 0;
  // A pattern that takes long is cut off after a time; that isn't the failure looked for here.
  constexpr size_t kMatches = 10'000;
  constexpr double kSeconds = 0.1;
  const auto matches = pattern->find_all(rest, kMatches, kSeconds);
  if (!matches) return 0;
  const auto figures = read_figures(std::span(&*pattern, 1), invocation);
  if (!figures) return 0;
  if (figures->size() < matches->size()) std::abort();
  for (const Figures& each : *figures) {
    for (const Phase phase : kPhases) {
      const auto sample = sample_of(each, {phase, 2, 10, 64});
      if (sample && (sample->latency_ms.value_or(0) < 0 || sample->tokens < 0)) std::abort();
    }
  }
  return 0;
}
