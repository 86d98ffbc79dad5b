// Requests are asked and heard in the worker's thread, as a client's are in its loop's; the engine
// runs in the scheduler's.
#include "backend/native/native_load.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "backend/native/native_facts.h"
#include "base/clock.h"
#include "base/random.h"
#include "engine/serving/batch.h"
#include "load/request_source.h"
#include "server/batch_engine.h"
#include "server/scheduler.h"

namespace assay {
namespace {

// Calls that wait for their thread.
class CallQueue {
 public:
  void post(std::function<void()> call) {
    {
      const std::lock_guard lock(mutex_);
      calls_.push_back(std::move(call));
    }
    came_.notify_one();
  }
  // Makes those that are there, or wait for some until then. 0: as long as it takes.
  void run(int64_t until_ns) {
    std::deque<std::function<void()>> calls;
    {
      std::unique_lock lock(mutex_);
      const auto some = [&] { return !calls_.empty(); };
      if (until_ns == 0) {
        came_.wait(lock, some);
      } else {
        const std::chrono::steady_clock::time_point until{std::chrono::nanoseconds(until_ns)};
        came_.wait_until(lock, until, some);
      }
      calls.swap(calls_);
    }
    for (const auto& call : calls) call();
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<std::function<void()>> calls_;
};

// One run: an open loop by the clock, a closed one by the ends of its requests.
class InProcessRun {
 public:
  InProcessRun(server::Scheduler& scheduler, CallQueue& calls, const engine::ModelConfig& config,
               const OfferedLoad& load, const Worker::TakeRequest& take)
      : scheduler_(scheduler),
        calls_(calls),
        vocab_(config.vocab_size),
        load_(load),
        take_(take),
        source_(load),
        random_(load.seed, kPromptStream),
        begin_ns_(monotonic_now_ns()) {
    for (const int64_t id : native_special_ids(config)) special_.insert(id);
  }

  void run() {
    if (load_.point.concurrency) {
      for (int64_t i = 0; i < *load_.point.concurrency; ++i) begin_next(0);
    } else {
      while (const auto planned = source_.next(0)) {
        const int64_t due_ns = begin_ns_ + planned->scheduled_ns;
        while (monotonic_now_ns() < due_ns) calls_.run(due_ns);
        ask(*planned, drawn_ids(planned->prompt_tokens));
      }
    }
    while (under_way_ > 0) calls_.run(0);
    // The last request is told of while its run still has the device, which is the caller's next.
    scheduler_.settle();
  }

 private:
  static constexpr uint64_t kPromptStream = 2;  // RequestSource has others
  static constexpr int64_t kMostFailedInARow = 1000;

  struct Hearing final : server::TokenListener {
    Hearing(InProcessRun& of_run, const PlannedRequest& of_request, std::vector<int32_t> with)
        : in_run(of_run), planned(of_request), said(std::move(with)) {
      sent = {.number = planned.number,
              .scheduled_ns = planned.scheduled_ns,
              .prompt_tokens = std::ssize(said),
              .new_tokens = planned.new_tokens};
    }
    bool tokens(std::span<const int32_t> ids, std::span<const server::TokenLogprobs>) override {
      const int64_t now_ns = in_run.since_begin();
      if (!sent.first_token_ns) sent.first_token_ns = now_ns;
      sent.last_token_ns = now_ns;
      sent.token_us.push_back((now_ns - sent.scheduled_ns) / 1000);
      said.insert(said.end(), ids.begin(), ids.end());
      return true;
    }
    void ended(server::Finish finish, const server::GenerationTimes&,
               const std::string& error) override {
      sent.end_ns = in_run.since_begin();
      in_run.note_end(*this, finish, error);
    }
    InProcessRun& in_run;
    PlannedRequest planned;
    std::vector<int32_t> said;  // the prompt, and what followed
    SentRequest sent;
  };

  int64_t since_begin() const { return monotonic_now_ns() - begin_ns_; }

  std::vector<int32_t> drawn_ids(int64_t count) {
    std::vector<int32_t> ids;
    while (std::ssize(ids) < count) {
      const auto id = static_cast<int64_t>(random_.below(static_cast<uint64_t>(vocab_)));
      if (!special_.contains(id)) ids.push_back(static_cast<int32_t>(id));
    }
    return ids;
  }

  void begin_next(int64_t due_ns) {
    auto planned = source_.next(due_ns);
    if (!planned) return;
    planned->scheduled_ns = due_ns;
    ask(*planned, drawn_ids(planned->prompt_tokens));
  }

  void ask(const PlannedRequest& planned, std::vector<int32_t> prompt) {
    auto hearing = std::make_shared<Hearing>(*this, planned, std::move(prompt));
    hearing->sent.sent_ns = std::max(since_begin(), planned.scheduled_ns);
    ++under_way_;
    const int64_t room = scheduler_.capacity() - std::ssize(hearing->said);
    if (room < planned.new_tokens) {
      hearing->sent.end_ns = hearing->sent.sent_ns;
      return note_end(*hearing, server::Finish::kFailed, "no room");
    }
    // A queue without an end: what waits is what the run shows.
    (void)scheduler_.ask(
        {.prompt = hearing->said, .most_tokens = planned.new_tokens, .ignore_ends = true}, hearing);
  }

  void note_end(Hearing& of, server::Finish finish, const std::string& error) {
    --under_way_;
    SentRequest& request = of.sent;
    request.tokens = std::ssize(request.token_us);
    request.cached_tokens = 0;
    if (finish != server::Finish::kLength) {
      request.status = "error";
      request.error_class = error == "no room" ? "no_room" : "engine_error";
    }
    failed_in_a_row_ = request.ok() ? 0 : failed_in_a_row_ + 1;
    if (!go_on_with_session(of) && load_.point.concurrency &&
        failed_in_a_row_ < kMostFailedInARow) {
      begin_next(request.end_ns);
    }
    take_(std::move(request));
  }

  // True if the session's next turn was asked: all that was said, and so many ids more.
  bool go_on_with_session(Hearing& of) {
    if (load_.turns == 1 || !of.sent.ok()) return false;
    const auto next = source_.following(of.planned, of.sent.end_ns);
    if (!next) return false;
    std::vector<int32_t> prompt = of.said;
    const std::vector<int32_t> more = drawn_ids(next->prompt_tokens);
    prompt.insert(prompt.end(), more.begin(), more.end());
    ask(*next, std::move(prompt));
    return true;
  }

  server::Scheduler& scheduler_;
  CallQueue& calls_;
  int64_t vocab_;
  std::set<int64_t> special_;
  const OfferedLoad& load_;
  const Worker::TakeRequest& take_;
  RequestSource source_;
  Random random_;
  int64_t begin_ns_;
  int64_t under_way_ = 0, failed_in_a_row_ = 0;
};

class BatchLoad final : public NativeLoad {
 public:
  BatchLoad(std::shared_ptr<engine::Model> model, engine::Batch batch, int64_t chunk)
      : model_(std::move(model)),
        context_(batch.capacity()),
        scheduler_(server::make_batch_engine(std::move(batch), {}),
                   {.most_waiting = kMostWaiting, .chunk_tokens = chunk},
                   [this](std::function<void()> call) { calls_.post(std::move(call)); }) {}

  void offer(const OfferedLoad& load, const Worker::TakeRequest& take) override {
    InProcessRun(scheduler_, calls_, model_->config(), load, take).run();
  }
  int64_t context() const override { return context_; }

 private:
  static constexpr int64_t kMostWaiting = 1'000'000'000;

  std::shared_ptr<engine::Model> model_;
  int64_t context_;
  CallQueue calls_;
  server::Scheduler scheduler_;
};

}  // namespace

Result<std::unique_ptr<NativeLoad>> NativeLoad::create(std::shared_ptr<engine::Model> model,
                                                       const NativeSlots& slots, bool compiled) {
  const int64_t chunk = slots.chunk > 0 ? slots.chunk : engine::default_chunk(model->device());
  const int64_t context =
      slots.context > 0 ? slots.context : engine::default_capacity(model->config());
  ASSAY_TRY(engine::Batch batch,
            engine::Batch::create(
                model,
                {.slots = slots.slots, .capacity = context, .chunk = chunk, .compiled = compiled}));
  return std::make_unique<BatchLoad>(std::move(model), std::move(batch), chunk);
}

}  // namespace assay
