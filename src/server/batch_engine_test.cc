// Prompts that begin as earlier ones did, in an engine's batch.
#include "server/batch_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/session/tiny_checkpoint.h"

namespace assay::server {
namespace {

using engine::Onward;
using Tokens = std::vector<int32_t>;

class PrefixReuse : public ::testing::Test {
 protected:
  std::unique_ptr<SlotEngine> engine(bool reuses_prefixes) {
    const engine::ModelOptions options{
        .dtype = engine::DType::kF32, .rows = engine::CacheRows::kNamed, .threads = 1};
    auto model = engine::Model::load(*engine::Checkpoint::open(checkpoint_.folder()), options,
                                     *engine::open_device(options));
    EXPECT_TRUE(model);
    auto batch = engine::Batch::create(*model, {.slots = 2, .capacity = 40});
    EXPECT_TRUE(batch) << batch.error().message;
    return make_batch_engine(*std::move(batch), {}, reuses_prefixes);
  }

  // The prompt's tokens that a request for some new ones found in its slot, and the new ones.
  static std::pair<int64_t, Tokens> ask(SlotEngine& engine, const Tokens& prompt,
                                        const engine::Sampling& sampling = {}) {
    constexpr size_t kNew = 8;
    const int64_t slot = engine.join(prompt).value();
    const auto begun =
        engine.begin(slot, {.prompt = prompt, .most_tokens = kNew, .sampling = sampling});
    EXPECT_TRUE(begun) << begun.error().message;
    const engine::SlotPrompt rest{slot, std::span(prompt).subspan(static_cast<size_t>(*begun))};
    EXPECT_TRUE(engine.extend({&rest, 1}));
    Tokens made;
    if (const auto first = engine.chosen(slot)) made.push_back(*first);
    EXPECT_TRUE(engine.run({&slot, 1}, static_cast<int64_t>(kNew - made.size()), false,
                           [&](int64_t, int32_t token) {
                             made.push_back(token);
                             return Onward::kGo;
                           }));
    engine.leave(slot);
    return {*begun, made};
  }

  engine::TinyCheckpoint checkpoint_{engine::families()[1]};
};

TEST_F(PrefixReuse, GivesTheTokensThatItGivesWithout) {
  const Tokens first = {5, 6, 7, 8, 9, 10, 11, 12};
  const auto with = engine(true), without = engine(false);
  const engine::Sampling drawn{
      .repetition_penalty = 1.3, .presence_penalty = 0.5, .temperature = 1, .seed = 3};
  Tokens longer = first;  // what was said, and more
  longer.insert(longer.end(), {20, 21});
  Tokens answered = first;
  for (const int32_t token : ask(*with, first).second) answered.push_back(token);
  answered.push_back(22);
  const struct {
    Tokens prompt;
    engine::Sampling sampling;
    int64_t found;
  } asks[] = {{{5, 6, 7, 30, 31}, {}, 3},  // takes the place of the first
              {{30, 5, 6}, {}, 0},         // the other slot, which is empty
              {first, {}, 3},
              {first, {}, 7},  // its last token is computed
              {longer, drawn, 8},
              {answered, {}, 8},
              {answered, drawn, 16}};
  for (const auto& [prompt, sampling, found] : asks) {
    const auto [cached, tokens] = ask(*with, prompt, sampling);
    EXPECT_EQ(cached, found) << ::testing::PrintToString(prompt);
    const auto [none, expected] = ask(*without, prompt, sampling);
    EXPECT_EQ(none, 0);
    EXPECT_EQ(tokens, expected) << ::testing::PrintToString(prompt);
  }
}

}  // namespace
}  // namespace assay::server
