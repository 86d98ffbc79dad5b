#include "engine/serving/sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/random.h"

namespace assay::engine {
namespace {

using ::testing::HasSubstr;

// Logits of these probabilities.
std::vector<float> logits_of(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p) + 3));
  return logits;
}

int32_t choose(const Sampling& sampling, const std::vector<float>& logits) {
  return Sampler(sampling, std::ssize(logits)).choose(logits);
}

std::set<int32_t> chosen_by(Sampling sampling, const std::vector<float>& logits) {
  std::set<int32_t> found;
  for (sampling.seed = 0; sampling.seed < 2000; ++sampling.seed)
    found.insert(choose(sampling, logits));
  return found;
}

const std::vector<float> kLogits = logits_of({0.06, 0.5, 0.3, 0.14});

TEST(Sampling, TheDefaultIsTheLargest) {
  EXPECT_TRUE(Sampling().is_argmax());
  EXPECT_EQ(choose({}, kLogits), 1);
  EXPECT_EQ(choose({}, {2, 5, 5, 1}), 1) << "the first of equals";
}

// 20,000 seeds: each token's count is within five standard deviations of its expectation.
TEST(Sampling, DrawsByProbability) {
  constexpr int kDraws = 20'000;
  const std::vector<double> probabilities = {0.06, 0.5, 0.3, 0.14};
  for (const double temperature : {1.0, 0.5, 3.0}) {
    std::vector<double> expected;
    double total = 0;
    for (const double p : probabilities) expected.push_back(std::pow(p, 1 / temperature));
    for (const double weight : expected) total += weight;
    std::vector<int> counts(probabilities.size());
    for (uint64_t seed = 0; seed < kDraws; ++seed) {
      ++counts[static_cast<size_t>(choose({.temperature = temperature, .seed = seed}, kLogits))];
    }
    for (size_t id = 0; id < counts.size(); ++id) {
      const double p = expected[id] / total;
      EXPECT_NEAR(counts[id], kDraws * p, 5 * std::sqrt(kDraws * p * (1 - p)))
          << "id " << id << " at temperature " << temperature;
    }
  }
}

// Another batch adds in another order, which moves fp32's logits by some 1e-5. Here one token's
// moves beside tokens of a chance of 3e-5 each, as most are in a flat distribution: all that stands
// behind it in cumulated chances moves by a sixth of such a token. A draw may change where the
// second candidate is as near as the error: 0.01 of 2,000 draws on average.
TEST(Sampling, AnErrorOfSumsSeldomChangesADraw) {
  constexpr int kDraws = 2'000, kTokens = 20'000;
  std::vector<float> logits(kTokens, 0.0f);
  logits[700] = static_cast<float>(std::log(0.4 / 0.6 * kTokens));
  std::vector<float> moved = logits;
  moved[700] += 2e-5f;
  int changed = 0, likeliest = 0;
  for (uint64_t seed = 0; seed < kDraws; ++seed) {
    const Sampling sampling{.temperature = 1, .seed = seed};
    const int32_t id = choose(sampling, logits);
    changed += choose(sampling, moved) == id ? 0 : 1;
    likeliest += id == 700 ? 1 : 0;
  }
  EXPECT_LE(changed, 1);
  EXPECT_NEAR(likeliest, 0.4 * kDraws, 5 * std::sqrt(0.24 * kDraws));
}

// So do the positions of one request.
TEST(Sampling, DrawsAnewForEachToken) {
  constexpr int kDraws = 20'000;
  Sampler sampler({.temperature = 1, .seed = 11}, 4);
  std::map<std::pair<int32_t, int32_t>, int> pairs;  // of neighbours
  int32_t before = -1;
  for (int i = 0; i < kDraws; ++i) {
    const int32_t id = sampler.choose(kLogits);
    EXPECT_EQ(sampler.choose(kLogits), id) << "asked again";
    sampler.saw_chosen(id);
    if (before >= 0) ++pairs[{before, id}];
    before = id;
  }
  const double p = 0.5 * 0.3;
  EXPECT_NEAR((pairs[{1, 2}]), kDraws * p, 5 * std::sqrt(kDraws * p * (1 - p)));
}

TEST(Sampling, BoundsLeaveTheLikeliest) {
  using Ids = std::set<int32_t>;
  EXPECT_EQ(chosen_by({.temperature = 1}, kLogits), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(chosen_by({.temperature = 1, .top_k = 1}, kLogits), Ids{1});
  EXPECT_EQ(chosen_by({.temperature = 1, .top_k = 3}, kLogits), (Ids{1, 2, 3}));
  EXPECT_EQ(chosen_by({.temperature = 1, .top_p = 0.49}, kLogits), Ids{1});
  EXPECT_EQ(chosen_by({.temperature = 1, .top_p = 0.79}, kLogits), (Ids{1, 2}));
  EXPECT_EQ(chosen_by({.temperature = 1, .top_p = 0.81}, kLogits), (Ids{1, 2, 3}));
  EXPECT_EQ(chosen_by({.temperature = 1, .min_p = 0.59}, kLogits), (Ids{1, 2}));
  EXPECT_EQ(chosen_by({.temperature = 1, .min_p = 0.61}, kLogits), Ids{1});
  EXPECT_EQ(chosen_by({.temperature = 1, .min_p = 1}, kLogits), Ids{1});
  // The three likeliest have 0.94 in all, of which 0.5 are 53 %; the temperature comes first.
  EXPECT_EQ(chosen_by({.temperature = 1, .top_k = 3, .top_p = 0.53}, kLogits), Ids{1});
  EXPECT_EQ(chosen_by({.temperature = 1, .top_k = 3, .top_p = 0.54}, kLogits), (Ids{1, 2}));
  EXPECT_EQ(chosen_by({.temperature = 0.1, .top_p = 0.9}, kLogits), Ids{1});
  // Smaller ids stay of equals.
  EXPECT_EQ(chosen_by({.temperature = 1, .top_k = 2}, {1, 1, 1, 1}), (Ids{0, 1}));
  EXPECT_EQ(chosen_by({.temperature = 1, .top_p = 0.5}, {1, 1, 1, 1}), (Ids{0, 1}));
}

TEST(Sampling, PenaltiesAndBiasesChangeLogits) {
  const std::vector<float> logits = {4, 3, -1, -2};
  const auto choose_after = [&](const Sampling& sampling, const std::vector<int32_t>& prompt,
                                const std::vector<int32_t>& chosen) {
    Sampler sampler(sampling, 4);
    sampler.saw_prompt(prompt);
    for (const int32_t id : chosen) sampler.saw_chosen(id);
    return sampler.choose(logits);
  };
  EXPECT_EQ(choose_after({.repetition_penalty = 1.3}, {0}, {}), 0);  // 4 / 1.3 > 3
  EXPECT_EQ(choose_after({.repetition_penalty = 1.4}, {0}, {}), 1);
  EXPECT_EQ(choose_after({.repetition_penalty = 1.4}, {}, {0}), 1) << "chosen ones too";
  EXPECT_EQ(choose_after({.repetition_penalty = 1.4}, {}, {}), 0);
  // A negative logit is multiplied: -1 * 3 < -2.
  const Sampling no_others = {.logit_bias = {{0, -100}, {1, -100}}, .repetition_penalty = 3};
  EXPECT_EQ(choose_after(no_others, {}, {}), 2);
  EXPECT_EQ(choose_after(no_others, {2}, {}), 3);
  EXPECT_EQ(choose_after({.presence_penalty = 1.1}, {0}, {}), 0) << "not of the prompt";
  EXPECT_EQ(choose_after({.presence_penalty = 1.1}, {}, {0}), 1);
  EXPECT_EQ(choose_after({.presence_penalty = 0.6}, {}, {0, 0, 0}), 0) << "once";
  EXPECT_EQ(choose_after({.frequency_penalty = 0.6}, {}, {0}), 0);
  EXPECT_EQ(choose_after({.frequency_penalty = 0.6}, {}, {0, 0}), 1) << "each time";
  EXPECT_EQ(choose_after({.logit_bias = {{3, 100}}}, {}, {}), 3);
  EXPECT_EQ(choose_after({.logit_bias = {{0, -100}}}, {}, {}), 1);
}

TEST(Sampling, WhatIsNotFiniteIsChosenAsByArgmax) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Sampling drawn = {.temperature = 1};
  EXPECT_EQ(choose(drawn, {1, std::nanf(""), 2, infinity}), 1);
  EXPECT_EQ(choose(drawn, {1, infinity, 2, infinity}), 1);
  EXPECT_EQ(chosen_by(drawn, {1, -infinity, 1, -infinity}), (std::set<int32_t>{0, 2}));
}

// A large vocabulary in any order: what the bounds leave is what sorting leaves.
TEST(Sampling, BoundsOfManyAreThoseOfSorting) {
  Random random(3);
  for (int round = 0; round < 20; ++round) {
    std::vector<float> logits(5000);
    for (float& logit : logits) logit = static_cast<float>(random.uniform() * 9);
    std::vector<size_t> order(logits.size());
    for (size_t id = 0; id < order.size(); ++id) order[id] = id;
    std::ranges::sort(order, std::greater(), [&](size_t id) { return logits[id]; });
    double total = 0, mass = 0;
    for (const float logit : logits) total += std::exp(double{logit});
    const double top_p = 0.05 + 0.9 * random.uniform();
    std::set<int32_t> allowed;
    for (size_t i = 0; i < order.size() && mass < top_p * total; ++i) {
      mass += std::exp(double{logits[order[i]]});
      allowed.insert(static_cast<int32_t>(order[i]));
    }
    for (uint64_t seed = 0; seed < 50; ++seed) {
      const int32_t id = choose({.temperature = 1, .top_p = top_p, .seed = seed}, logits);
      ASSERT_TRUE(allowed.contains(id)) << id;
    }
  }
}

TEST(Sampling, OptionsOutOfTheirRangeAreNamed) {
  const auto message = [](const Sampling& sampling) {
    const Status status = check_sampling(sampling, 10);
    return status ? "" : status.error().message;
  };
  EXPECT_EQ(message({}), "");
  EXPECT_THAT(message({.temperature = -0.1}), HasSubstr("temperature: expected 0 to 100"));
  EXPECT_THAT(message({.temperature = std::nan("")}), HasSubstr("temperature"));
  EXPECT_THAT(message({.temperature = 1e-310}), HasSubstr("temperature: expected 0 or at least"));
  EXPECT_THAT(message({.top_p = 0}), HasSubstr("top_p: expected more than 0 and at most 1"));
  EXPECT_THAT(message({.min_p = 1.5}), HasSubstr("min_p"));
  EXPECT_THAT(message({.top_k = -1}), HasSubstr("top_k: expected 0 or more, found -1"));
  EXPECT_THAT(message({.repetition_penalty = 0}), HasSubstr("repetition_penalty"));
  EXPECT_THAT(message({.presence_penalty = 1e9}), HasSubstr("presence_penalty"));
  EXPECT_THAT(message({.frequency_penalty = -1e9}), HasSubstr("frequency_penalty"));
  EXPECT_THAT(message({.logit_bias = {{10, 1}}}), HasSubstr("expected ids from 0 to 9, found 10"));
  EXPECT_THAT(message({.logit_bias = {{1, 1e9}}}), HasSubstr("logit_bias"));
}

}  // namespace
}  // namespace assay::engine
