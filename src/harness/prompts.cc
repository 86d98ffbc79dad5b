// Lengths first, then ids: padding is decided before any worker has loaded.
#include "harness/prompts.h"

#include <algorithm>
#include <cassert>

#include "base/files/hash.h"
#include "base/random.h"

namespace assay {
namespace {

int64_t longest(const std::vector<PromptLength>& prompts) {
  int64_t most = 0;
  for (const PromptLength& prompt : prompts) most = std::max(most, prompt.padded);
  return most;
}

int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// A stream of random numbers of its own for each row of each prompt.
uint64_t stream_of(const std::string& name) {
  return std::stoull(sha256_hex(name).substr(0, 16), nullptr, 16);
}

}  // namespace

std::vector<std::vector<PromptLength>> prompt_lengths(const Study& study,
                                                      const std::vector<int64_t>& text_tokens) {
  std::vector<std::vector<PromptLength>> lengths;
  size_t text = 0;
  int64_t global = 0;
  for (const StudyScenario& scenario : study.scenarios) {
    auto& prompts = lengths.emplace_back();
    if (scenario.text.empty()) {
      for (const int64_t tokens : scenario.prompt_tokens) prompts.push_back({tokens, tokens});
    } else if (text < text_tokens.size()) {
      prompts.push_back({text_tokens[text], text_tokens[text]});
      ++text;
    } else {
      prompts.push_back({});
    }
    global = std::max(global, longest(prompts));
  }
  if (study.padding_scope == PaddingScope::kNone) return lengths;
  for (auto& prompts : lengths) {
    const bool shared = study.padding_scope == PaddingScope::kGlobal;
    const int64_t padded = round_up(shared ? global : longest(prompts), study.padding_multiple_of);
    for (PromptLength& prompt : prompts) prompt.padded = padded;
  }
  return lengths;
}

std::vector<std::string> scenario_texts(const Study& study) {
  std::vector<std::string> texts;
  for (const StudyScenario& scenario : study.scenarios) {
    if (!scenario.text.empty()) texts.push_back(scenario.text);
  }
  return texts;
}

PrepareRequest prepare_request(const WireShape& shape, const std::vector<PromptLength>& prompts) {
  PrepareRequest request{shape, {}, false};
  for (const PromptLength& prompt : prompts) {
    request.padded_lens.push_back(prompt.padded);
    if (prompt.padded > prompt.tokens) request.padding = true;
  }
  std::ranges::sort(request.padded_lens);
  request.padded_lens.erase(std::ranges::unique(request.padded_lens).begin(),
                            request.padded_lens.end());
  return request;
}

int64_t cache_capacity(const std::vector<PromptLength>& prompts, int64_t new_tokens) {
  return longest(prompts) + new_tokens;
}

bool can_draw(const Vocabulary& vocabulary) {
  for (int64_t id = 0; id < vocabulary.size; ++id) {
    if (std::ranges::find(vocabulary.special_ids, id) == vocabulary.special_ids.end()) return true;
  }
  return false;
}

ModelPrompts::ModelPrompts(const Study& study, size_t model, Vocabulary vocabulary,
                           std::vector<std::vector<int32_t>> text_ids)
    : study_(&study), model_(model), vocabulary_(std::move(vocabulary)) {
  assert(can_draw(vocabulary_));
  std::vector<int64_t> text_tokens;
  for (const auto& ids : text_ids) text_tokens.push_back(static_cast<int64_t>(ids.size()));
  lengths_ = prompt_lengths(study, text_tokens);
  size_t text = 0;
  for (const StudyScenario& scenario : study.scenarios) {
    const bool given = !scenario.text.empty() && text < text_ids.size();
    text_ids_.push_back(given ? std::move(text_ids[text++]) : std::vector<int32_t>());
  }
}

std::vector<int32_t> ModelPrompts::draw_row(size_t scenario, size_t index, int64_t row) const {
  const std::string name = fmt::format("{}/{}/{}/{}", study_->models[model_].name,
                                       study_->scenarios[scenario].name, index, row);
  Random random(study_->seed, stream_of(name));
  std::vector<int32_t> ids;
  const auto count = static_cast<size_t>(lengths_[scenario][index].tokens);
  while (ids.size() < count) {
    const auto id = static_cast<int64_t>(random.below(static_cast<uint64_t>(vocabulary_.size)));
    const auto& special = vocabulary_.special_ids;
    if (std::ranges::find(special, id) == special.end()) ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

WirePrompt ModelPrompts::prompt(size_t scenario, size_t index, int64_t batch) const {
  const PromptLength length = lengths_[scenario][index];
  const auto pad = static_cast<size_t>(length.padded - length.tokens);
  WirePrompt prompt;
  for (int64_t row = 0; row < batch; ++row) {
    const std::vector<int32_t> ids =
        text_ids_[scenario].empty() ? draw_row(scenario, index, row) : text_ids_[scenario];
    // Any valid id may stand in the padding: the attention mask hides it.
    auto& padded = prompt.ids.emplace_back(pad, 0);
    padded.insert(padded.end(), ids.begin(), ids.end());
    prompt.pad.push_back(static_cast<int32_t>(pad));
  }
  return prompt;
}

}  // namespace assay
