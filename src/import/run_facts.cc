// Fields by name, and the values that each may hold.
#include "import/run_facts.h"

#include <algorithm>
#include <charconv>
#include <span>

#include "base/text/text.h"

namespace assay {
namespace {

// The largest batch or number of tokens that is believed.
constexpr int64_t kMostImportCount = 1'000'000'000;

bool is_count(ImportField field) {
  return field == ImportField::kBatch || field == ImportField::kPromptTokens ||
         field == ImportField::kPaddedTokens || field == ImportField::kNewTokens;
}

std::span<const std::string> words_of(ImportField field) {
  static const std::vector<std::string> kCaches = {"dynamic", "static"};
  static const std::vector<std::string> kDynamic = {"true", "false", "auto"};
  static const std::vector<std::string> kPaddings = {"none", "scenario", "global"};
  switch (field) {
    case ImportField::kCache:
      return kCaches;
    case ImportField::kDynamic:
      return kDynamic;
    case ImportField::kPadding:
      return kPaddings;
    case ImportField::kPhase:
      return phase_names();
    default:
      return {};
  }
}

// The length of the character that begins `text`, 0 where it is no UTF-8.
size_t utf8_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t length = lead < 0x80    ? 1
                        : lead >= 0xF0 ? 4
                        : lead >= 0xE0 ? 3
                        : lead >= 0xC2 ? 2
                                       : 0;
  if (length == 0 || lead > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  }
  return length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

constexpr std::array<std::string_view, kImportFields> kFieldNames = {
    "arm",      "backend",        "model",           "dtype",         "quantization",
    "cache",    "compile_mode",   "dynamic",         "padding",       "phase",
    "scenario", "batch",          "prompt_tokens",   "padded_tokens", "new_tokens",
    "device",   "code_generator", "framework_build", "code_sha"};

}  // namespace

std::string_view import_field_name(ImportField field) {
  return kFieldNames[static_cast<size_t>(field)];
}

const std::vector<std::string>& import_field_names() {
  static const std::vector<std::string> names(kFieldNames.begin(), kFieldNames.end());
  return names;
}

std::optional<ImportField> parse_import_field(std::string_view name) {
  const auto at = std::ranges::find(kFieldNames, name);
  if (at == kFieldNames.end()) return std::nullopt;
  return static_cast<ImportField>(at - kFieldNames.begin());
}

Result<std::string> imported_name(std::string_view text, std::string_view object,
                                  std::string_view what) {
  constexpr size_t kLongestName = 200;
  const bool control =
      std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7F; });
  if (text.size() > kLongestName || control || !is_utf8(text)) {
    return bad_input(
        "{}: expected {} of one line of at most {} bytes of UTF-8 without control characters, "
        "found {}",
        object, what, kLongestName, quoted_excerpt(text));
  }
  return std::string(text);
}

std::string plain_dtype(std::string_view word) {
  std::string lower(word.substr(word.starts_with("torch.") ? 6 : 0));
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  for (const auto& [plain, spellings] : {std::pair<const char*, std::array<std::string_view, 4>>{
                                             "fp32", {"float32", "f32", "fp32", "float"}},
                                         {"fp16", {"float16", "f16", "fp16", "half"}},
                                         {"bf16", {"bfloat16", "bf16", "", ""}}}) {
    if (!lower.empty() && std::ranges::find(spellings, lower) != spellings.end()) return plain;
  }
  return std::string(word);
}

Status RunFacts::state(ImportField field, std::string_view value, std::string_view object) {
  if (value.empty()) return {};
  const std::string what = fmt::format("\"{}\"", import_field_name(field));
  if (is_count(field)) {
    int64_t count = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), count);
    const int64_t least = field == ImportField::kBatch ? 1 : 0;
    if (error != std::errc() || end != value.data() + value.size() || count < least ||
        count > kMostImportCount) {
      return bad_input("{}: expected an integer from {} to {} at {}, found {}", object, least,
                       kMostImportCount, what, quoted_excerpt(value));
    }
    stated_[field] = fmt::format("{}", count);
    return {};
  }
  const auto words = words_of(field);
  if (!words.empty() && std::ranges::find(words, value) == words.end()) {
    return bad_input("{}: expected one of {} at {}, found {}", object, join(words, ", "), what,
                     quoted_excerpt(value));
  }
  ASSAY_TRY(std::string name, imported_name(value, object, what));
  stated_[field] = field == ImportField::kDtype ? plain_dtype(name) : std::move(name);
  return {};
}

void RunFacts::state_count(ImportField field, int64_t count) {
  stated_[field] = fmt::format("{}", count);
}

const std::string& RunFacts::text(ImportField field) const {
  static const std::string kNone;
  const auto at = stated_.find(field);
  return at == stated_.end() ? kNone : at->second;
}

std::optional<int64_t> RunFacts::count(ImportField field) const {
  const std::string& text = this->text(field);
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return count;
}

std::optional<Phase> RunFacts::phase() const {
  return parse_phase(text(ImportField::kPhase));
}

}  // namespace assay
