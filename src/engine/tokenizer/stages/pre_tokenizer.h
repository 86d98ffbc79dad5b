// A tokenizer.json's "pre_tokenizer": cuts text into words, and puts them into the vocabulary's
// alphabet.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/records/json.h"
#include "base/result.h"
#include "engine/tokenizer/stages/split_pattern.h"

namespace assay::engine {

// Words of one text, none of them empty; they may point into that text.
struct Words {
  std::vector<std::string_view> words;
  std::deque<std::string> altered;  // owns the words that aren't parts of the text
};

class PreTokenizer {
 public:
  // Split (behavior Isolated), Digits, ByteLevel, Metaspace, and sequences of them; another type is
  // an error that names it. Null leaves each text one word. `object` names the file in errors.
  static Result<PreTokenizer> read(const Json& stage, std::string_view object);

  // The text must be valid UTF-8, not empty, and outlive the words. `at_start`: it begins where the
  // user's text does, not after an added token. Fails when the file's own regular expression
  // backtracks past a limit.
  Result<Words> cut(std::string_view text, bool at_start) const;

 private:
  struct ByteLevel {
    bool add_prefix_space = true;
    std::optional<SplitPattern> pattern;
  };
  enum class Prepend { kFirst, kAlways, kNever };
  struct Metaspace {
    std::string replacement;  // one character, which stands for a space
    Prepend prepend = Prepend::kAlways;
    bool split = true;
  };
  using Step = std::variant<SplitPattern, ByteLevel, Metaspace>;

  static Result<Step> read_split(const Json& stage, std::string_view name);
  static Result<Step> read_digits(const Json& stage, std::string_view name);
  static Result<Step> read_byte_level(const Json& stage, std::string_view name);
  static Result<Step> read_metaspace(const Json& stage, std::string_view name);
  static Status run(const SplitPattern& step, std::string_view word, bool at_start, Words& cut);
  static Status run(const ByteLevel& step, std::string_view word, bool at_start, Words& cut);
  static Status run(const Metaspace& step, std::string_view word, bool at_start, Words& cut);

  std::vector<Step> steps_;
};

}  // namespace assay::engine
