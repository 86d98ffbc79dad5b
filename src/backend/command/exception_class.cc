// Tracebacks line by line.
#include "backend/command/exception_class.h"

#include <algorithm>
#include <cctype>
#include <optional>

namespace assay {
namespace {

constexpr std::string_view kTraceback = "Traceback (most recent call last):";
constexpr std::string_view kTerminate = "terminate called after throwing an instance of '";
constexpr size_t kLongestClass = 120;

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kLongestClass &&
         std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         std::ranges::all_of(text, [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '_' || c == '.' || c >= 0x80;
         });
}

// "RuntimeError" of "torch.x.RuntimeError: words" or of "KeyboardInterrupt"; nothing of other
// lines.
std::optional<std::string> class_of_line(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  const size_t colon = line.find(':');
  const std::string_view dotted = line.substr(0, colon);
  if (!is_name(dotted) ||
      (colon != std::string_view::npos && colon + 1 < line.size() && line[colon + 1] != ' ')) {
    return std::nullopt;
  }
  const size_t dot = dotted.rfind('.');
  const std::string_view name = dot == std::string_view::npos ? dotted : dotted.substr(dot + 1);
  if (name.empty()) return std::nullopt;
  return std::string(name);
}

std::string_view first_line_of(std::string_view text) {
  return text.substr(0, text.find('\n'));
}

// A syntax error has no traceback of its own, only its last line.
std::string class_of_last_line(std::string_view output) {
  while (!output.empty() && (output.back() == '\n' || output.back() == '\r')) {
    output.remove_suffix(1);
  }
  const size_t start = output.rfind('\n');
  const std::string_view last = start == std::string_view::npos ? output : output.substr(start + 1);
  const auto name = class_of_line(last);
  const bool tells = name && last.find(':') != std::string_view::npos &&
                     (name->ends_with("Error") || name->ends_with("Exception"));
  return tells ? *name : "";
}

std::string python_class(std::string_view output) {
  const size_t header = output.rfind(kTraceback);
  if (header == std::string_view::npos) return class_of_last_line(output);
  const size_t line_start = output.rfind('\n', header);
  const size_t begin = line_start == std::string_view::npos ? 0 : line_start + 1;
  const std::string_view prefix = output.substr(begin, header - begin);
  std::string_view rest = output.substr(header);
  while (true) {
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) return "";
    rest.remove_prefix(end + 1);
    const std::string_view line = first_line_of(rest);
    if (!line.starts_with(prefix)) continue;
    if (const auto name = class_of_line(line.substr(prefix.size()))) return *name;
  }
}

}  // namespace

std::string exception_class(std::string_view output) {
  const size_t terminate = output.rfind(kTerminate);
  if (terminate != std::string_view::npos) {
    const std::string_view line = first_line_of(output.substr(terminate + kTerminate.size()));
    const std::string_view type = line.substr(0, line.rfind('\''));
    if (!type.empty() && type.size() <= kLongestClass) return std::string(type);
  }
  return python_class(output);
}

bool means_out_of_memory(std::string_view error_class) {
  return error_class == "MemoryError" || error_class.ends_with("OutOfMemoryError") ||
         error_class.ends_with("bad_alloc");
}

}  // namespace assay
