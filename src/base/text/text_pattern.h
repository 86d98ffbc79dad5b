// A regular expression with named groups, searched for in text that anybody may have written:
// PCRE2, bounded in time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay {

// PCRE2's syntax over bytes; ^ and $ match at lines too, which "\r" and "\r\n" end as "\n" does.
class TextPattern {
 public:
  // bad_input that names `object`, the place in the pattern and the fault there, or that the
  // pattern has more than 16 kB.
  static Result<TextPattern> compile(std::string_view pattern, std::string_view object);
  TextPattern(TextPattern&&) noexcept;
  TextPattern& operator=(TextPattern&&) noexcept;
  ~TextPattern();

  const std::string& text() const { return text_; }
  // Names of its groups, each once, in the order of their numbers.
  const std::vector<std::string>& names() const { return names_; }

  // The text of each named group, in the order of names(); absent: it took no part in the match.
  using Match = std::vector<std::optional<std::string>>;
  // The matches from left to right, at most `most`; they don't overlap. A pattern that backtracks
  // for longer than `seconds`, or takes too much memory, is bad_input that says so.
  Result<std::vector<Match>> find_all(std::string_view text, size_t most, double seconds) const;

 private:
  struct Compiled;
  TextPattern(std::string text, std::unique_ptr<Compiled> compiled, std::vector<std::string> names);
  std::string text_;
  std::unique_ptr<Compiled> compiled_;
  std::vector<std::string> names_;
};

}  // namespace assay
