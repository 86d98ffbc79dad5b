// A generator for fuzzers that computes nothing: it counts on from a prompt's last id.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "server/generation.h"
#include "server/logprobs.h"

namespace assay::server {

class ToyGenerator final : public Generator {
 public:
  static constexpr int64_t kCapacity = 64, kMostWaiting = 8;
  explicit ToyGenerator(int64_t vocab) : logits_(static_cast<size_t>(vocab), 0.F) {}

  int64_t capacity() const override { return kCapacity; }
  std::optional<int64_t> ask(TokenAsk wanted, std::shared_ptr<TokenListener> listener) override {
    if (std::ssize(asked_) >= kMostWaiting) return std::nullopt;
    asked_.push_back({numbers_, std::move(wanted), std::move(listener)});
    return numbers_++;
  }
  void cancel(int64_t number) override {
    for (Asked& one : asked_) one.is_cancelled = one.is_cancelled || one.number == number;
  }
  QueueState state() const override { return {1, 0, std::ssize(asked_), kMostWaiting}; }

  // Answers all that was asked, a token of each in turn.
  void work() {
    for (auto all = std::exchange(asked_, {}); !all.empty();) {
      std::erase_if(all, [&](Asked& one) { return !step(one); });
    }
  }

 private:
  struct Asked {
    int64_t number = 0;
    TokenAsk wanted;
    std::shared_ptr<TokenListener> listener;
    int64_t made = 0;
    bool is_cancelled = false;
  };

  bool step(Asked& one) {
    const int64_t vocab = std::ssize(logits_);
    const auto id = static_cast<int32_t>((one.wanted.prompt.back() + ++one.made) % vocab);
    std::vector<TokenLogprobs> logprobs;
    if (one.wanted.likeliest)
      logprobs.push_back(token_logprobs(logits_, id, *one.wanted.likeliest));
    const bool goes_on = !one.is_cancelled && one.listener->tokens(std::span(&id, 1), logprobs);
    if (goes_on && one.made < one.wanted.most_tokens) return true;
    one.listener->ended(goes_on ? Finish::kLength : Finish::kCancelled, {1, 2, 3}, "");
    return false;
  }

  std::vector<float> logits_;
  std::vector<Asked> asked_ = {};
  int64_t numbers_ = 0;
};

}  // namespace assay::server
