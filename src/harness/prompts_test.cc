// Prompts: the lengths that padding gives, and ids that depend on nothing but seed and names.
#include "harness/prompts.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace assay {
namespace {

Study small_study() {
  Study study;
  study.models = {{"m", "m", ""}};
  study.scenarios = {{"a", {3, 10}, ""}, {"text", {}, "hello"}, {"b", {17}, ""}};
  study.seed = 7;
  return study;
}

const Vocabulary kVocabulary{50, {0, 49}};
const std::vector<std::vector<int32_t>> kTexts{{4, 5, 6, 7, 8}};

std::vector<int64_t> padded(const Study& study) {
  std::vector<int64_t> all;
  for (const auto& prompts : prompt_lengths(study, {5})) {
    for (const PromptLength& prompt : prompts) all.push_back(prompt.padded);
  }
  return all;
}

TEST(PromptLengths, FollowThePaddingScope) {
  Study study = small_study();
  EXPECT_EQ(padded(study), (std::vector<int64_t>{3, 10, 5, 17}));
  study.padding_scope = PaddingScope::kScenario;
  EXPECT_EQ(padded(study), (std::vector<int64_t>{16, 16, 8, 24}));
  study.padding_scope = PaddingScope::kGlobal;
  EXPECT_EQ(padded(study), (std::vector<int64_t>{24, 24, 24, 24}));
  EXPECT_EQ(prompt_lengths(study, {5})[0][0].tokens, 3);
  EXPECT_EQ(cache_capacity(prompt_lengths(study, {5})[0], 64), 88);
}

TEST(ModelPrompts, LeaveOutSpecialIds) {
  const Study study = small_study();
  const ModelPrompts prompts(study, 0, {3, {0, 2}}, kTexts);
  const WirePrompt prompt = prompts.prompt(2, 0, 1);
  EXPECT_EQ(prompt.ids[0], std::vector<int32_t>(17, 1));
}

TEST(ModelPrompts, PadOnTheLeft) {
  Study study = small_study();
  study.padding_scope = PaddingScope::kScenario;
  const ModelPrompts prompts(study, 0, kVocabulary, kTexts);
  const WirePrompt prompt = prompts.prompt(1, 0, 2);
  EXPECT_EQ(prompt.ids[0], (std::vector<int32_t>{0, 0, 0, 4, 5, 6, 7, 8}));
  EXPECT_EQ(prompt.ids[1], prompt.ids[0]);
  EXPECT_EQ(prompt.pad, (std::vector<int32_t>{3, 3}));
}

TEST(ModelPrompts, DifferByRowPromptAndSeedAlone) {
  const Study study = small_study();
  const ModelPrompts prompts(study, 0, kVocabulary, kTexts);
  const WirePrompt batch = prompts.prompt(2, 0, 2);
  EXPECT_NE(batch.ids[0], batch.ids[1]);
  EXPECT_EQ(prompts.prompt(2, 0, 1).ids[0], batch.ids[0]);
  Study reordered = study;
  std::ranges::reverse(reordered.scenarios);
  EXPECT_EQ(ModelPrompts(reordered, 0, kVocabulary, kTexts).prompt(0, 0, 2), batch);
  Study reseeded = study;
  reseeded.seed = 8;
  EXPECT_NE(ModelPrompts(reseeded, 0, kVocabulary, kTexts).prompt(2, 0, 2), batch);
}

}  // namespace
}  // namespace assay
