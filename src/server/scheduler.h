// Continuous batching: requests join a batch as slots come free, and leave it when they end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "base/result.h"
#include "server/generation.h"

namespace assay::server {

struct FedToken {
  int64_t slot = 0;
  int32_t id = 0;
};

// The slots of an engine's batch; one thread uses them.
class SlotEngine {
 public:
  virtual ~SlotEngine() = default;
  virtual int64_t slots() const = 0;
  virtual int64_t capacity() const = 0;       // positions of a slot
  virtual std::optional<int64_t> join() = 0;  // an empty slot; absent: none is free
  virtual void leave(int64_t slot) = 0;       // it is free again
  virtual Status sample(int64_t slot, const engine::Sampling& sampling) = 0;  // of an empty slot
  virtual Status extend(int64_t slot, std::span<const int32_t> ids) = 0;  // of a prompt, in parts
  virtual Status step(std::span<const FedToken> fed) = 0;                 // a token a slot
  virtual int32_t next(int64_t slot) const = 0;  // chosen by the latest extend() or step() of it
  // [vocab], of which next() was chosen; empty: they can't be had.
  virtual std::span<const float> logits(int64_t slot) const = 0;
  virtual bool ends_text(int32_t id) const = 0;
};

struct SchedulerOptions {
  int64_t most_waiting = 256;
  // Tokens of a prompt between two steps of the others: a long prompt holds nobody up for longer.
  int64_t chunk_tokens = 256;
};

// A thread of its own asks the engine. Prompts are begun in the order of their questions, by
// chunks, in turn where several are under way; after each chunk every other request gets its next
// token.
class Scheduler final : public Generator {
 public:
  // `deliver` runs a call to a listener where the listeners live, in order.
  using Deliver = std::function<void(std::function<void()>)>;
  Scheduler(std::unique_ptr<SlotEngine> engine, const SchedulerOptions& options, Deliver deliver);
  ~Scheduler() override;  // those under way hear kCancelled

  int64_t capacity() const override;
  std::optional<int64_t> ask(TokenAsk wanted, std::shared_ptr<TokenListener> listener) override;
  void cancel(int64_t number) override;
  QueueState state() const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::server
