// The prompts of a study on one model: the same ids for every arm, padded as the study says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/message.h"
#include "study/study.h"

namespace assay {

struct PromptLength {
  int64_t tokens = 0;  // semantic: padding not counted
  int64_t padded = 0;  // length that the model sees
};

// [scenario][prompt]. `text_tokens`: the lengths of the text scenarios' prompts, in their order.
// Padded lengths are multiples of padding_multiple_of, and shared by the prompts of a scenario
// (scope scenario) or of the whole study (global); scope none leaves each prompt as it is.
std::vector<std::vector<PromptLength>> prompt_lengths(const Study& study,
                                                      const std::vector<int64_t>& text_tokens);

// The texts of the scenarios that bring one, in the order of the study.
std::vector<std::string> scenario_texts(const Study& study);

// Cache positions that a scenario needs: its longest padded prompt and the new tokens.
int64_t cache_capacity(const std::vector<PromptLength>& prompts, int64_t new_tokens);

// The request to prepare for a cell of these prompts.
PrepareRequest prepare_request(const WireShape& shape, const std::vector<PromptLength>& prompts);

struct Vocabulary {
  int64_t size = 0;
  std::vector<int64_t> special_ids;  // never drawn

  friend bool operator==(const Vocabulary&, const Vocabulary&) = default;
};

class ModelPrompts {
 public:
  // `text_ids`: the tokenised texts of scenario_texts(). Fewer than one drawable id: asserts.
  ModelPrompts(const Study& study, size_t model, Vocabulary vocabulary,
               std::vector<std::vector<int32_t>> text_ids);

  const std::vector<PromptLength>& lengths(size_t scenario) const { return lengths_[scenario]; }
  // Ids are drawn uniformly from the vocabulary; they depend on the study's seed and on the names
  // of model and scenario, the prompt's index and the row of the batch, so that adding a scenario
  // leaves the others' prompts alone. A text is the same in every row.
  WirePrompt prompt(size_t scenario, size_t index, int64_t batch) const;
  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  std::vector<int32_t> draw_row(size_t scenario, size_t index, int64_t row) const;

  const Study* study_;
  size_t model_;
  Vocabulary vocabulary_;
  std::vector<std::vector<int32_t>> text_ids_;  // [scenario]; empty where ids are drawn
  std::vector<std::vector<PromptLength>> lengths_;
};

// True if the vocabulary has at least one id that isn't special.
bool can_draw(const Vocabulary& vocabulary);

}  // namespace assay
