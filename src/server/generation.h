// A generation, whatever API asks for it: what is wanted, who hears of it, and how it went.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/serving/sampling.h"

namespace assay::server {

struct TokenAsk {
  std::vector<int32_t> prompt;  // at least one id, each within the vocabulary
  int64_t most_tokens = 1;      // at least 1
  int64_t least_tokens = 0;     // an id that ends texts doesn't end this one before
  bool ignore_ends = false;     // no id does
  engine::Sampling sampling = {};
  // So many of the likeliest tokens' probabilities are told beside each token's own; absent: none
  // is.
  std::optional<int64_t> likeliest = {};
};

// Natural logarithms of the probabilities that the model itself gave, before sampling changed them.
struct TokenLogprobs {
  double chosen = 0;
  std::vector<std::pair<int32_t, double>> likeliest = {};  // ids, the likeliest first
};

enum class Finish {
  kLength,     // all tokens asked for, or no room for more
  kStop,       // an id that ends texts
  kCancelled,  // its listener had enough, or its client has gone
  kFailed,     // the engine couldn't
};

// Milliseconds by the server's clock.
struct GenerationTimes {
  double queue_ms = 0;       // from the question until its prompt was begun
  double prompt_ms = 0;      // until its first token
  double generation_ms = 0;  // from there until the last one
  // Tokens of the prompt that weren't computed, since another request had left them.
  int64_t cached_tokens = 0;
};

// Hears of one generation. All calls come in order, from one thread.
class TokenListener {
 public:
  virtual ~TokenListener() = default;
  // True: go on. The id that ends a text isn't among them. `logprobs` has an entry for each id, or
  // none where they weren't asked for.
  virtual bool tokens(std::span<const int32_t> ids, std::span<const TokenLogprobs> logprobs) = 0;
  // The last call. `error` is empty but for kFailed.
  virtual void ended(Finish finish, const GenerationTimes& times, const std::string& error) = 0;
};

struct QueueState {
  int64_t slots = 0;    // generations at a time
  int64_t running = 0;  // generations under way, until their listener hears the end
  int64_t waiting = 0;
  int64_t most_waiting = 0;
};

// Generates for several at a time.
class Generator {
 public:
  virtual ~Generator() = default;
  // Positions that a prompt and its new tokens may take together.
  virtual int64_t capacity() const = 0;
  // The generation's number. Absent: as many wait as may.
  virtual std::optional<int64_t> ask(TokenAsk wanted, std::shared_ptr<TokenListener> listener) = 0;
  // Its listener hears kCancelled, if it hasn't heard its end before.
  virtual void cancel(int64_t number) = 0;
  virtual QueueState state() const = 0;
};

}  // namespace assay::server
