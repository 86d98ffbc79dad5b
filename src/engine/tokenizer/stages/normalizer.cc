// The steps are run in the file's order, each over the whole text.
#include "engine/tokenizer/stages/normalizer.h"

#include <utility>

#include "engine/tokenizer/stages/stage_json.h"
#include "engine/tokenizer/unicode.h"

namespace assay::engine {
namespace {

// NFC makes a character at most three times as long, SentencePiece's replacements a space. A file
// that needs more room than this is hostile: a few doublings in sequence would take all memory.
constexpr size_t kMostGrowth = 16;
constexpr size_t kMostAdded = 64 << 10;

size_t count_of(std::string_view text, std::string_view pattern) {
  size_t count = 0;
  for (size_t at = text.find(pattern); at != std::string_view::npos;
       at = text.find(pattern, at + pattern.size())) {
    ++count;
  }
  return count;
}

}  // namespace

std::string replace_all(std::string_view text, std::string_view pattern, std::string_view content) {
  std::string result;
  result.reserve(text.size());
  size_t done = 0;
  for (size_t at = text.find(pattern); at != std::string_view::npos;
       at = text.find(pattern, done)) {
    result.append(text.substr(done, at - done)).append(content);
    done = at + pattern.size();
  }
  return result.append(text.substr(done));
}

Result<Normalizer> Normalizer::read(const Json& stage, std::string_view object) {
  const std::string name = fmt::format("{}: normalizer", object);
  Normalizer normalizer;
  const auto add = [&](const Json& part, const std::string& type) -> Status {
    if (type == "NFC") {
      normalizer.steps_.emplace_back(Nfc{});
    } else if (type == "Prepend") {
      ASSAY_TRY(std::string text, json_string(part, "prepend", name));
      normalizer.steps_.emplace_back(Prepend{std::move(text)});
    } else if (type == "Replace") {
      ASSAY_TRY(std::string pattern, stage_string_pattern(part, name));
      ASSAY_TRY(std::string content, json_string(part, "content", name));
      normalizer.steps_.emplace_back(Replace{std::move(pattern), std::move(content)});
    } else {
      return bad_input("{}: expected NFC, Prepend, Replace or none, found {}", name, type);
    }
    return {};
  };
  ASSAY_CHECK(walk_stage(stage, "normalizers", name, add));
  return normalizer;
}

Result<std::string> Normalizer::run(const Step& step, std::string text, size_t longest) {
  if (std::holds_alternative<Nfc>(step)) return normalize_nfc(text);
  size_t size = text.size();
  if (const auto* prepend = std::get_if<Prepend>(&step)) {
    if (text.empty()) return text;
    size += prepend->text.size();
    if (size <= longest) return prepend->text + text;
  } else {
    const auto& replace = std::get<Replace>(step);
    const size_t count = count_of(text, replace.pattern);
    if (count == 0) return text;
    size = size - count * replace.pattern.size() + count * replace.content.size();
    if (size <= longest) return replace_all(text, replace.pattern, replace.content);
  }
  return bad_input(
      "normalizer of the tokenizer: expected it to make at most {} bytes of this text, found {}",
      longest, size);
}

Result<std::string> Normalizer::apply(std::string_view text) const {
  const size_t longest = kMostGrowth * text.size() + kMostAdded;
  std::string result(text);
  for (const Step& step : steps_) {
    ASSAY_TRY(result, run(step, std::move(result), longest));
  }
  return result;
}

}  // namespace assay::engine
