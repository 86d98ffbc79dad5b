// Cutting text by a tokenizer's regular expression: Oniguruma's syntax checked and put into
// PCRE2's.
#define PCRE2_CODE_UNIT_WIDTH 8
#include "engine/tokenizer/stages/split_pattern.h"

#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <string>

#include "base/records/json.h"
#include "engine/tokenizer/unicode.h"

namespace assay::engine {
namespace {

constexpr size_t kLongestPattern = 64 << 10;
// Steps of one search (PCRE2's match limit). The known patterns take a few for each character of a
// run of spaces, and stop elsewhere, so that a long run may exceed this.
constexpr uint32_t kUsualSteps = 10'000;
// Most steps that searches beyond it may take in all, for a text of so many bytes; past that the
// pattern has gone wrong: it backtracks without end.
constexpr uint64_t kSpareSteps = 1'000'000;
constexpr uint64_t kSpareStepsAByte = 100;
constexpr uint32_t kHeapLimitKiB = 64 << 10;

// White_Space, without the brackets of a class: PCRE2's \s holds U+180E besides.
constexpr std::string_view kWhiteSpace = R"(\x{09}-\x{0D}\x{85}\p{Z})";

template <auto Function>
struct Deleter {
  template <typename T>
  void operator()(T* object) const {
    Function(object);
  }
};
using CodePtr = std::unique_ptr<pcre2_code, Deleter<pcre2_code_free>>;
using CompileContext = std::unique_ptr<pcre2_compile_context, Deleter<pcre2_compile_context_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Deleter<pcre2_match_context_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Deleter<pcre2_match_data_free>>;

std::string pcre2_message(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

// Rewrites constructs that the two syntaxes spell differently, and refuses those that they
// understand differently.
class Translator {
 public:
  Translator(std::string_view pattern, std::string_view object)
      : pattern_(pattern), object_(object) {}

  Result<std::string> translate() {
    for (at_ = 0; at_ < pattern_.size();) {
      const char c = pattern_[at_];
      if (c == '\\') {
        ASSAY_CHECK(escape());
      } else if (in_class_) {
        ASSAY_CHECK(class_char(c));
      } else {
        ASSAY_CHECK(plain_char(c));
      }
    }
    return std::move(out_);
  }

 private:
  std::unexpected<Error> unsupported(std::string_view what) const {
    return bad_input("{}: expected a regular expression of supported syntax, found {} in {}",
                     object_, what, to_json_line(Json(pattern_.substr(0, 200))));
  }

  Status escape() {
    if (at_ + 1 >= pattern_.size()) return unsupported("a backslash at the end");
    const char name = pattern_[at_ + 1];
    constexpr std::string_view kSame = "dDrntf";  // and every escaped punctuation character
    const bool is_punctuation = name > ' ' && name < 0x7F && !std::isalnum(name);
    size_t size = 2;
    if (name == 's') {
      out_ += in_class_ ? std::string(kWhiteSpace) : fmt::format("[{}]", kWhiteSpace);
    } else if (name == 'S' && !in_class_) {
      out_ += fmt::format("[^{}]", kWhiteSpace);
    } else if (name == 'p' || name == 'P') {
      // General categories alone: the two libraries differ on scripts.
      size = pattern_.find('}', at_) - at_ + 1;
      if (!is_category(pattern_.substr(at_ + 2))) return unsupported(pattern_.substr(at_, 12));
      out_.append(pattern_, at_, size);
    } else if (is_punctuation || kSame.find(name) != std::string_view::npos) {
      out_.append(pattern_, at_, 2);
    } else {
      return unsupported(fmt::format("\\{}", name));
    }
    at_ += size;
    return {};
  }

  // "{L}" or "{Lu}" at the start.
  static bool is_category(std::string_view text) {
    const size_t end = text.find('}');
    if (!text.starts_with('{') || end == std::string_view::npos || end < 2 || end > 3) return false;
    return std::all_of(text.begin() + 1, text.begin() + static_cast<std::ptrdiff_t>(end),
                       [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; });
  }

  Status class_char(char c) {
    if (c == '[') return unsupported("a class inside a class");
    if (pattern_.substr(at_).starts_with("&&")) return unsupported("a class intersection");
    if (c == ']') in_class_ = false;
    out_ += c;
    ++at_;
    return {};
  }

  Status plain_char(char c) {
    const std::string_view rest = pattern_.substr(at_);
    if (rest.starts_with("(*")) return unsupported("(*");
    if (rest.starts_with("(?")) {
      constexpr std::array<std::string_view, 8> kGroups = {
          "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?-i:"};
      for (const std::string_view group : kGroups) {
        if (!rest.starts_with(group)) continue;
        out_ += group;
        at_ += group.size();
        return {};
      }
      return unsupported(rest.substr(0, 4));
    }
    if (c == '[') {
      in_class_ = true;
      // A bracket that opens a class may be a member of it: "[]", "[^]".
      const size_t skip = rest.starts_with("[^") ? 2 : 1;
      if (rest.substr(skip).starts_with("]")) return unsupported("an empty class");
      out_ += rest.substr(0, skip);
      at_ += skip;
      return {};
    }
    for (const std::string_view differs : {"{,", "}+", "}?"}) {
      if (rest.starts_with(differs)) return unsupported(differs);
    }
    out_ += c;
    ++at_;
    return {};
  }

  std::string_view pattern_;
  std::string_view object_;
  std::string out_;
  size_t at_ = 0;
  bool in_class_ = false;
};

// The steps that the searches of one text may take beyond the usual.
class StepBudget {
 public:
  explicit StepBudget(size_t text_bytes)
      : spare_(std::min<uint64_t>(kSpareSteps + kSpareStepsAByte * text_bytes, UINT32_MAX)) {}

  // A limit twice as high as the last, paid for; 0: nothing is left.
  uint32_t raise(uint32_t limit) {
    const uint64_t next = uint64_t{2} * limit;
    if (next > spare_) return 0;
    spare_ -= next;
    return static_cast<uint32_t>(next);
  }

 private:
  uint64_t spare_;
};

size_t char_size(std::string_view text, size_t at) {
  return read_utf8(text, at).size;
}

}  // namespace

struct SplitPattern::Code {
  CodePtr code;
  MatchContext limits;
};

SplitPattern::SplitPattern(std::unique_ptr<Code> code) : code_(std::move(code)) {}
SplitPattern::SplitPattern(SplitPattern&&) noexcept = default;
SplitPattern& SplitPattern::operator=(SplitPattern&&) noexcept = default;
SplitPattern::~SplitPattern() = default;

Result<SplitPattern> SplitPattern::compile(std::string_view pattern, std::string_view object) {
  if (pattern.size() > kLongestPattern) {
    return bad_input("{}: expected a regular expression of at most {} bytes, found {}", object,
                     kLongestPattern, pattern.size());
  }
  ASSAY_TRY(const std::string translated, Translator(pattern, object).translate());
  const CompileContext context(pcre2_compile_context_create(nullptr));
  if (!context) return environment_error("{}: no memory for a regular expression", object);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  // Oniguruma's ^ and $ are those of lines.
  constexpr uint32_t kOptions =
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_AUTO_CAPTURE;
  int error = 0;
  size_t error_at = 0;
  auto code = std::make_unique<Code>();
  code->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                 kOptions, &error, &error_at, context.get()));
  if (!code->code) {
    return bad_input("{}: expected a regular expression, found {}: {}", object,
                     to_json_line(Json(pattern.substr(0, 200))), pcre2_message(error));
  }
  // If there is no compiler for this processor, matching falls back to the interpreter.
  pcre2_jit_compile(code->code.get(), PCRE2_JIT_COMPLETE);
  code->limits.reset(pcre2_match_context_create(nullptr));
  if (!code->limits) return environment_error("{}: no memory for a regular expression", object);
  pcre2_set_heap_limit(code->limits.get(), kHeapLimitKiB);
  return SplitPattern(std::move(code));
}

Status SplitPattern::split(std::string_view text, std::vector<std::string_view>& pieces) const {
  const MatchData match(pcre2_match_data_create(1, nullptr));
  if (!match) return environment_error("regular expression of the tokenizer: no memory");
  // A copy: its limit is this call's own.
  const MatchContext limits(pcre2_match_context_copy(code_->limits.get()));
  if (!limits) return environment_error("regular expression of the tokenizer: no memory");
  StepBudget budget(text.size());
  const size_t* bounds = pcre2_get_ovector_pointer(match.get());
  const auto add = [&](size_t begin, size_t end) {
    if (begin < end) pieces.push_back(text.substr(begin, end - begin));
  };
  size_t done = 0;  // up to here the text is cut
  size_t from = 0;  // the next match starts here or later
  while (from < text.size()) {
    const auto run = [&](uint32_t options) {
      return pcre2_match(code_->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                         from, PCRE2_NO_UTF_CHECK | options, match.get(), limits.get());
    };
    uint32_t steps = kUsualSteps;
    int found = PCRE2_ERROR_MATCHLIMIT;
    for (; found == PCRE2_ERROR_MATCHLIMIT && steps > 0; steps = budget.raise(steps)) {
      pcre2_set_match_limit(limits.get(), steps);
      found = run(0);
      if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = run(PCRE2_NO_JIT);
      if (found != PCRE2_ERROR_MATCHLIMIT) break;
    }
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0) {
      return bad_input(
          "regular expression of the tokenizer: expected a match within its limits, "
          "found at byte {} of {}: {}",
          from, text.size(), pcre2_message(found));
    }
    const size_t begin = bounds[0];
    const size_t end = bounds[1];
    add(done, begin);
    add(begin, end);
    done = end;
    // An empty match cuts, too; the search goes on behind the next character.
    from = end > begin ? end : end + (end < text.size() ? char_size(text, end) : 1);
  }
  add(done, text.size());
  return {};
}

}  // namespace assay::engine
