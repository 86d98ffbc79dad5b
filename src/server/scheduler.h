// Continuous batching: requests join a batch as slots come free, and leave it when they end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "base/result.h"
#include "engine/serving/batch.h"
#include "server/generation.h"

namespace assay::server {

// The slots of an engine's batch, as engine::Batch has them; one thread uses them.
class SlotEngine {
 public:
  virtual ~SlotEngine() = default;
  virtual int64_t slots() const = 0;
  virtual int64_t capacity() const = 0;  // positions of a slot
  // An empty slot for this prompt; absent: none is free.
  virtual std::optional<int64_t> join(std::span<const int32_t> prompt) = 0;
  virtual void leave(int64_t slot) = 0;  // it is free again
  // The slot's request gets no more. Comes before anybody hears of that, maybe within a run(), and
  // before leave(): what is counted of a request stands when its client has the end of its answer.
  virtual void ended(int64_t) {}
  // Makes an empty slot the request's. The first so many tokens of its prompt are in it already;
  // not all are.
  virtual Result<int64_t> begin(int64_t slot, const TokenAsk& wanted) = 0;
  // Puts in the next parts of prompts. After an error some of them may be in: fed() tells.
  virtual Status extend(std::span<const engine::SlotPrompt> parts) = 0;
  // Tokens of the slot's prompt that extend() needn't be given again.
  virtual int64_t fed(int64_t slot) const = 0;
  // The token behind a prompt that is all in; absent: it comes with the slot's first step.
  virtual std::optional<int32_t> chosen(int64_t slot) const = 0;
  virtual Status run(std::span<const int64_t> slots, int64_t steps, bool wants_logits,
                     const engine::Batch::Sink& sink) = 0;
  // [vocab], of which the slot's latest token was chosen, behind an extend() of this slot alone and
  // in a run() that wants them; empty: they can't be had.
  virtual std::span<const float> logits(int64_t slot) const = 0;
  virtual bool ends_text(int32_t id) const = 0;
  // True: a token of the slot was chosen by a logit that isn't finite. May be asked within a run.
  virtual bool is_broken(int64_t) const { return false; }
  // Says how the calls from now on are computed: the same tokens in fp32. An engine of one way
  // takes no notice.
  virtual void use_compiled(bool) {}
  // False: the slot is where nothing is compiled, whatever use_compiled() says.
  virtual bool compiles(int64_t) const { return true; }
  // True: what the slot had has gone with the process that had it, by a call of this slot or of
  // another one. Until restore() has put all of it in again, no extend() or run() may name it.
  virtual bool is_lost(int64_t) const { return false; }
  // Puts in again up to so many tokens of what a lost slot had, whatever it would choose.
  virtual Status restore(int64_t, int64_t) { return {}; }
  // Is called while no slot is anybody's. True: wants to be called again soon.
  virtual bool rest() { return false; }
};

struct SchedulerOptions {
  int64_t most_waiting = 256;
  // Tokens of prompts between two steps of the others: a long prompt holds nobody up for longer.
  int64_t chunk_tokens = 256;
};

// A thread of its own asks the engine. Prompts are begun in the order of their questions, by
// chunks, in turn where several are under way; after each chunk every other request gets its next
// token. Without a prompt the engine steps on until a request ends, comes or goes; listeners hear
// of a step while the next one may be under way. Lost slots are restored by small chunks between
// the steps of the others. A request whose call lost it is called by itself from then on until a
// call succeeds; at the third such call in a row it fails.
class Scheduler final : public Generator {
 public:
  // `deliver` runs calls to listeners where the listeners live, in order.
  using Deliver = std::function<void(std::function<void()>)>;
  Scheduler(std::unique_ptr<SlotEngine> engine, const SchedulerOptions& options, Deliver deliver);
  ~Scheduler() override;  // those under way hear kCancelled

  int64_t capacity() const override;
  std::optional<int64_t> ask(TokenAsk wanted, std::shared_ptr<TokenListener> listener) override;
  void cancel(int64_t number) override;
  QueueState state() const override;
  // Waits until nothing is asked and the engine has come to rest: a listener hears the end of the
  // last generation while the call that made it may be under way.
  void settle() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::server
