// The regular expressions that cut text into words before BPE, run by PCRE2.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::engine {

// The patterns in the tokenizer.json of each family; GPT-2's is built into the ByteLevel
// pre-tokeniser.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

class SplitPattern {
 public:
  // A pattern in Oniguruma's syntax, which defines these files. A construct that PCRE2 would read
  // otherwise (\h, \w, class intersections, ...) is an error that names it; `object` names the
  // file.
  static Result<SplitPattern> compile(std::string_view pattern, std::string_view object);
  SplitPattern(SplitPattern&&) noexcept;
  SplitPattern& operator=(SplitPattern&&) noexcept;
  ~SplitPattern();

  // Appends to `pieces` every match and everything between matches, in order, without empty ones
  // (behavior Isolated). Anchors and look-around see `text` alone, which must be valid UTF-8. The
  // steps of backtracking are bounded by the text's length; a pattern that needs more fails: so
  // many that known patterns stay far below, so few that a thousand characters take milliseconds.
  Status split(std::string_view text, std::vector<std::string_view>& pieces) const;

 private:
  struct Code;
  explicit SplitPattern(std::unique_ptr<Code> code);
  std::unique_ptr<Code> code_;
};

}  // namespace assay::engine
