// PCRE2 with a clock: it is compiled to call back at each item of the pattern, so that no search
// goes on for long without the deadline being looked at.
#define PCRE2_CODE_UNIT_WIDTH 8
#include "base/text/text_pattern.h"

#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/clock.h"
#include "base/text/text.h"

namespace assay {
namespace {

constexpr size_t kLongestPattern = size_t{16} << 10;
constexpr uint32_t kHeapLimitKiB = 64 << 10;
constexpr uint32_t kCallsPerLook = 256;  // callbacks between two looks at the clock
constexpr int kTooLate = -10'000;        // no error of PCRE2's own

template <auto Function>
struct PatternDeleter {
  template <typename T>
  void operator()(T* object) const {
    Function(object);
  }
};
using CompileRules =
    std::unique_ptr<pcre2_compile_context, PatternDeleter<pcre2_compile_context_free>>;
using MatchRules = std::unique_ptr<pcre2_match_context, PatternDeleter<pcre2_match_context_free>>;
using Matched = std::unique_ptr<pcre2_match_data, PatternDeleter<pcre2_match_data_free>>;

std::string pattern_problem(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

struct Deadline {
  int64_t at_ns = 0;
  uint32_t calls = 0;
};

int look_at_clock(pcre2_callout_block*, void* data) {
  auto& deadline = *static_cast<Deadline*>(data);
  if (++deadline.calls % kCallsPerLook != 0) return 0;
  return monotonic_now_ns() > deadline.at_ns ? kTooLate : 0;
}

}  // namespace

struct TextPattern::Compiled {
  explicit Compiled(pcre2_code* compiled) : code(compiled, pcre2_code_free) {}
  std::unique_ptr<pcre2_code, void (*)(pcre2_code*)> code;
  std::vector<std::vector<uint32_t>> groups;  // numbers that each name has
};

TextPattern::TextPattern(std::string text, std::unique_ptr<Compiled> compiled,
                         std::vector<std::string> names)
    : text_(std::move(text)), compiled_(std::move(compiled)), names_(std::move(names)) {}
TextPattern::TextPattern(TextPattern&&) noexcept = default;
TextPattern& TextPattern::operator=(TextPattern&&) noexcept = default;
TextPattern::~TextPattern() = default;

Result<TextPattern> TextPattern::compile(std::string_view pattern, std::string_view object) {
  if (pattern.size() > kLongestPattern) {
    return bad_input("{}: expected a pattern of at most {} bytes, found {}", object,
                     kLongestPattern, pattern.size());
  }
  const CompileRules rules(pcre2_compile_context_create(nullptr));
  pcre2_set_newline(rules.get(), PCRE2_NEWLINE_ANYCRLF);
  int code = 0;
  PCRE2_SIZE at = 0;
  constexpr uint32_t kOptions = PCRE2_MULTILINE | PCRE2_AUTO_CALLOUT | PCRE2_NEVER_UTF |
                                PCRE2_NEVER_UCP | PCRE2_NEVER_BACKSLASH_C;
  pcre2_code* const made = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()),
                                         pattern.size(), kOptions, &code, &at, rules.get());
  if (made == nullptr) {
    return bad_input("{}: expected a regular expression, found {}: {} at byte {}", object,
                     quoted_excerpt(pattern), pattern_problem(code), at);
  }
  auto compiled = std::make_unique<Compiled>(made);
  uint32_t count = 0;
  uint32_t entry_bytes = 0;
  PCRE2_SPTR table = nullptr;
  pcre2_pattern_info(made, PCRE2_INFO_NAMECOUNT, &count);
  pcre2_pattern_info(made, PCRE2_INFO_NAMEENTRYSIZE, &entry_bytes);
  pcre2_pattern_info(made, PCRE2_INFO_NAMETABLE, &table);
  std::vector<std::pair<uint32_t, std::string>> named;
  for (uint32_t i = 0; i < count; ++i, table += entry_bytes) {
    const uint32_t number = uint32_t{table[0]} << 8 | table[1];
    named.emplace_back(number, reinterpret_cast<const char*>(table + 2));
  }
  std::ranges::sort(named);
  std::vector<std::string> names;
  for (auto& [number, name] : named) {
    const auto known = std::ranges::find(names, name);  // (?J) lets groups share one
    const auto place = static_cast<size_t>(known - names.begin());
    if (known == names.end()) {
      names.push_back(std::move(name));
      compiled->groups.emplace_back();
    }
    compiled->groups[place].push_back(number);
  }
  return TextPattern(std::string(pattern), std::move(compiled), std::move(names));
}

Result<std::vector<TextPattern::Match>> TextPattern::find_all(std::string_view text, size_t most,
                                                              double seconds) const {
  const Matched found(pcre2_match_data_create_from_pattern(compiled_->code.get(), nullptr));
  const MatchRules rules(pcre2_match_context_create(nullptr));
  pcre2_set_heap_limit(rules.get(), kHeapLimitKiB);
  Deadline deadline{monotonic_now_ns() + static_cast<int64_t>(seconds * 1e9)};
  pcre2_set_callout(rules.get(), look_at_clock, &deadline);
  std::vector<Match> matches;
  size_t from = 0;
  while (matches.size() < most && from <= text.size()) {
    const int code = pcre2_match(compiled_->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                                 text.size(), from, 0, found.get(), rules.get());
    if (code == PCRE2_ERROR_NOMATCH) break;
    if (code < 0) {
      const std::string why =
          code == kTooLate ? fmt::format("one that takes longer") : pattern_problem(code);
      return bad_input("pattern {}: expected a search of {} of at most {} s, found {}",
                       quoted_excerpt(text_), format_bytes(static_cast<double>(text.size())),
                       seconds, why);
    }
    const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(found.get());
    Match& match = matches.emplace_back();
    for (const std::vector<uint32_t>& numbers : compiled_->groups) {
      auto& taken = match.emplace_back();
      for (const uint32_t number : numbers) {
        const PCRE2_SIZE begin = ends[2 * number];
        if (begin == PCRE2_UNSET || taken) continue;
        taken = std::string(text.substr(begin, ends[2 * number + 1] - begin));
      }
    }
    // \K may put the end before the start, and an empty match may stand still.
    const size_t end = std::max(ends[0], ends[1]);
    from = end > from ? end : from + 1;
    if (monotonic_now_ns() > deadline.at_ns) {
      return bad_input(
          "pattern {}: expected a search of {} of at most {} s, found one that takes "
          "longer",
          quoted_excerpt(text_), format_bytes(static_cast<double>(text.size())), seconds);
    }
  }
  return matches;
}

}  // namespace assay
