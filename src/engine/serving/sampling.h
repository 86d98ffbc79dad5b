// The choice of a request's tokens: a function of the logits, of what the request has seen, of its
// seed and of nothing else.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"

namespace assay::engine {

// The defaults choose the largest logit. The members apply in this order: the biases and penalties
// to logits, the temperature, then each bound to what the ones before it have left.
struct Sampling {
  std::vector<std::pair<int32_t, double>> logit_bias = {};  // added to a token's logit, each once
  // Logits of tokens in the prompt or chosen so far: divided by it if positive, else multiplied
  // (Keskar et al. 2019). More than 0; 1 changes nothing.
  double repetition_penalty = 1;
  // Subtracted from the logit of a token that was chosen so far: once, and as often as it was.
  double presence_penalty = 0, frequency_penalty = 0;
  double temperature = 0;  // logits are divided by it; 0: the largest one is chosen
  double min_p = 0;        // tokens of at least this share of the likeliest one's probability
  int64_t top_k = 0;       // the likeliest so many tokens; 0: all
  // The fewest likeliest tokens whose probabilities, of those left, add up to this or more
  // (Holtzman et al. 2020). More than 0, at most 1.
  double top_p = 1;
  uint64_t seed = 0;

  bool has_penalties() const;
  // True if the largest logit is chosen as it comes.
  bool is_argmax() const;
};

// Tokens are drawn by weights of 2^40 for the likeliest one; those of less than this aren't.
uint64_t least_weight(double min_p);

// bad_input that names the member, its range and what was found.
Status check_sampling(const Sampling& sampling, int64_t vocab);

class Sampler {
 public:
  // The sampling must be right for the vocabulary: assert.
  Sampler(Sampling sampling, int64_t vocab);

  // Tokens that the request's model has been fed: of the prompt, or chosen.
  void saw_prompt(std::span<const int32_t> ids);
  void saw_chosen(int32_t id);

  // The token behind those. Equal for equal logits, whatever was asked before: its random numbers
  // are made of the seed, of how many tokens were chosen so far, and of the candidates' ids. If a
  // bound falls between equally likely tokens, it leaves those of smaller ids. Where the largest
  // logit is NaN or an infinity, it is chosen, as by argmax.
  int32_t choose(std::span<const float> logits) const;  // [vocab]

 private:
  std::vector<double> changed(std::span<const float> logits) const;
  int32_t draw(const std::vector<double>& logits, size_t largest) const;

  Sampling sampling_;
  std::vector<bool> seen_;       // by id
  std::vector<int32_t> chosen_;  // by id: how often
  uint64_t chosen_count_ = 0;
};

}  // namespace assay::engine
