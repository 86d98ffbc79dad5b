// Each step cuts or rewrites the words of the step before it.
#include "engine/tokenizer/stages/pre_tokenizer.h"

#include <utility>

#include "engine/tokenizer/byte_alphabet.h"
#include "engine/tokenizer/stages/normalizer.h"
#include "engine/tokenizer/stages/stage_json.h"

namespace assay::engine {

Result<PreTokenizer::Step> PreTokenizer::read_split(const Json& stage, std::string_view name) {
  ASSAY_TRY(const std::string behavior, json_string(stage, "behavior", name));
  if (behavior != "Isolated") {
    return bad_input("{}: expected Split with behavior Isolated, found {}", name, behavior);
  }
  ASSAY_TRY(const bool invert, json_bool_or(stage, "invert", false, name));
  if (invert) return bad_input("{}: expected Split with invert false, found true", name);
  ASSAY_TRY(const std::string pattern, json_string(stage_member(stage, "pattern"), "Regex", name));
  return SplitPattern::compile(pattern, name);
}

Result<PreTokenizer::Step> PreTokenizer::read_digits(const Json& stage, std::string_view name) {
  ASSAY_TRY(const bool individual, json_bool_or(stage, "individual_digits", false, name));
  return SplitPattern::compile(individual ? R"(\p{N})" : R"(\p{N}+)", name);
}

Result<PreTokenizer::Step> PreTokenizer::read_byte_level(const Json& stage, std::string_view name) {
  ByteLevel step;
  ASSAY_TRY(step.add_prefix_space, json_bool_or(stage, "add_prefix_space", true, name));
  ASSAY_TRY(const bool use_regex, json_bool_or(stage, "use_regex", true, name));
  if (use_regex) {
    ASSAY_TRY(step.pattern, SplitPattern::compile(kGpt2Pattern, name));
  }
  return step;
}

Result<PreTokenizer::Step> PreTokenizer::read_metaspace(const Json& stage, std::string_view name) {
  Metaspace step;
  ASSAY_TRY(step.replacement, stage_character(stage, "replacement", name));
  ASSAY_TRY(step.split, json_bool_or(stage, "split", true, name));
  ASSAY_TRY(const std::string scheme, json_string_or(stage, "prepend_scheme", "always", name));
  if (scheme == "first") {
    step.prepend = Prepend::kFirst;
  } else if (scheme == "never") {
    step.prepend = Prepend::kNever;
  } else if (scheme != "always") {
    return bad_input("{}: expected prepend_scheme first, always or never, found {}", name,
                     json_quoted(scheme));
  }
  // The key that files had before prepend_scheme.
  ASSAY_TRY(const bool add_prefix, json_bool_or(stage, "add_prefix_space", true, name));
  if (!add_prefix && step.prepend != Prepend::kNever) {
    return bad_input("{}: expected prepend_scheme never with add_prefix_space false, found {}",
                     name, scheme);
  }
  return step;
}

Result<PreTokenizer> PreTokenizer::read(const Json& stage, std::string_view object) {
  const std::string name = fmt::format("{}: pre_tokenizer", object);
  PreTokenizer pre_tokenizer;
  const auto read_step = [&](const Json& part, const std::string& type) -> Result<Step> {
    if (type == "Split") return read_split(part, name);
    if (type == "Digits") return read_digits(part, name);
    if (type == "ByteLevel") return read_byte_level(part, name);
    if (type == "Metaspace") return read_metaspace(part, name);
    return bad_input("{}: expected Split, Digits, ByteLevel, Metaspace or none, found {}", name,
                     type);
  };
  bool is_bytes = false;
  const auto add = [&](const Json& part, const std::string& type) -> Status {
    ASSAY_TRY(Step step, read_step(part, type));
    if (type == "ByteLevel") {
      // Each makes the text up to twice as long: a sequence of many would take all memory.
      if (is_bytes) return bad_input("{}: expected one ByteLevel, found another", name);
      is_bytes = true;
    }
    pre_tokenizer.steps_.push_back(std::move(step));
    return {};
  };
  ASSAY_CHECK(walk_stage(stage, "pretokenizers", name, add));
  return pre_tokenizer;
}

Status PreTokenizer::run(const SplitPattern& step, std::string_view word, bool, Words& cut) {
  return step.split(word, cut.words);
}

Status PreTokenizer::run(const ByteLevel& step, std::string_view word, bool, Words& cut) {
  std::string spaced;
  if (step.add_prefix_space && !word.starts_with(' ')) {
    spaced.append(" ").append(word);
    word = spaced;
  }
  std::vector<std::string_view> pieces;
  if (step.pattern) {
    ASSAY_CHECK(step.pattern->split(word, pieces));
  } else {
    pieces.push_back(word);
  }
  for (const std::string_view piece : pieces) {
    cut.words.push_back(cut.altered.emplace_back(symbols_of_bytes(piece)));
  }
  return {};
}

Status PreTokenizer::run(const Metaspace& step, std::string_view word, bool at_start, Words& cut) {
  const std::string& mark = step.replacement;
  std::string& marked = cut.altered.emplace_back(replace_all(word, " ", mark));
  const bool prepends =
      step.prepend == Prepend::kAlways || (step.prepend == Prepend::kFirst && at_start);
  if (prepends && !marked.starts_with(mark)) marked.insert(0, mark);
  const std::string_view text = marked;
  size_t begin = 0;
  if (step.split) {
    // A mark belongs to the word behind it.
    for (size_t next = text.find(mark, 1); next != std::string_view::npos;
         next = text.find(mark, next + 1)) {
      cut.words.push_back(text.substr(begin, next - begin));
      begin = next;
    }
  }
  cut.words.push_back(text.substr(begin));
  return {};
}

Result<Words> PreTokenizer::cut(std::string_view text, bool at_start) const {
  Words words;
  words.words.push_back(text);
  for (const Step& step : steps_) {
    Words cut;
    // The words of this step are parts of those before it, or owned by it.
    cut.altered = std::move(words.altered);
    for (size_t i = 0; i < words.words.size(); ++i) {
      const auto run_it = [&](const auto& kind) {
        return run(kind, words.words[i], at_start && i == 0, cut);
      };
      ASSAY_CHECK(std::visit(run_it, step));
    }
    words = std::move(cut);
  }
  return words;
}

}  // namespace assay::engine
