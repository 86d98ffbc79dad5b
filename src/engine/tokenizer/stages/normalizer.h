// A tokenizer.json's "normalizer": the changes to the text before it is cut into words.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/records/json.h"
#include "base/result.h"

namespace assay::engine {

class Normalizer {
 public:
  // NFC, Prepend, Replace of a string, and sequences of them; another type is an error that names
  // it. Null is the normaliser that does nothing. `object` names the file in errors.
  static Result<Normalizer> read(const Json& stage, std::string_view object);

  // The text must be valid UTF-8, and so is the result. Fails where the file's replacements make
  // the text many times as long.
  Result<std::string> apply(std::string_view text) const;

 private:
  struct Nfc {};
  struct Prepend {
    std::string text;  // put before every text but the empty one
  };
  struct Replace {
    std::string pattern;  // not empty
    std::string content;
  };
  using Step = std::variant<Nfc, Prepend, Replace>;

  static Result<std::string> run(const Step& step, std::string text, size_t longest);

  std::vector<Step> steps_;
};

// Every occurrence of `pattern`, left to right without overlap. The pattern isn't empty.
std::string replace_all(std::string_view text, std::string_view pattern, std::string_view content);

}  // namespace assay::engine
