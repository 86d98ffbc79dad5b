// One loop: admit, a chunk of a prompt, a step of all who decode.
#include "server/scheduler.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "server/logprobs.h"

namespace assay::server {
namespace {

double ms_between(int64_t from_ns, int64_t to_ns) {
  return from_ns == 0 || to_ns < from_ns ? 0 : static_cast<double>(to_ns - from_ns) / 1e6;
}

}  // namespace

struct Scheduler::Impl {
  struct Waiting {
    int64_t number = 0;
    TokenAsk wanted;
    std::shared_ptr<TokenListener> listener;
    int64_t asked_ns = 0;
  };

  struct Running {
    Waiting of;
    int64_t slot = 0;
    size_t fed = 0;      // tokens of the prompt
    int64_t made = 0;    // new tokens
    int32_t latest = 0;  // the token to feed next
    int64_t begun_ns = 0, first_ns = 0, last_ns = 0;
    bool decodes() const { return fed == of.wanted.prompt.size(); }
  };

  Impl(std::unique_ptr<SlotEngine> of_engine, const SchedulerOptions& with, Deliver by)
      : engine(std::move(of_engine)),
        options(with),
        deliver(std::move(by)),
        capacity(engine->capacity()),
        slots(engine->slots()),
        thread([this] { work(); }) {}

  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      stops = true;
    }
    changed.notify_all();
    thread.join();
  }

  void work() {
    while (take_changes()) {
      run_chunk();
      run_step();
    }
    for (Running& one : running) tell_end(one, Finish::kCancelled, "");
    for (Waiting& one : queue) tell_cancelled(one);
  }

  // Waits for something to do. False: it is over.
  bool take_changes() {
    std::vector<Waiting> dropped;
    std::set<int64_t> gone;
    {
      std::unique_lock lock(mutex);
      running_count = std::ssize(running);
      changed.wait(lock, [&] { return stops || !running.empty() || !queue.empty(); });
      if (stops) return false;
      gone.swap(cancelled);
      for (auto at = queue.begin(); at != queue.end();) {
        if (gone.erase(at->number) == 0) {
          ++at;
          continue;
        }
        dropped.push_back(std::move(*at));
        at = queue.erase(at);
      }
    }
    for (Waiting& one : dropped) tell_cancelled(one);
    std::erase_if(running, [&](Running& one) {
      const bool is_gone = gone.contains(one.of.number) || !one.of.listener;
      if (is_gone) end(one, Finish::kCancelled, "");
      return is_gone;
    });
    admit();
    return true;
  }

  void admit() {
    while (has_waiting()) {
      const auto slot = engine->join();
      if (!slot) break;
      Running one{.of = take_first(), .slot = *slot, .begun_ns = monotonic_now_ns()};
      if (const Status done = engine->sample(*slot, one.of.wanted.sampling); !done) {
        end(one, Finish::kFailed, done.error().message);
        continue;
      }
      running.push_back(std::move(one));
    }
    const std::lock_guard lock(mutex);
    running_count = std::ssize(running);
  }

  bool has_waiting() const {
    const std::lock_guard lock(mutex);
    return !queue.empty();
  }

  Waiting take_first() {
    const std::lock_guard lock(mutex);
    Waiting first = std::move(queue.front());
    queue.pop_front();
    ++running_count;
    return first;
  }

  // A chunk of the prompt that has waited longest for one.
  void run_chunk() {
    const auto at =
        std::ranges::find_if(running, [](const Running& one) { return !one.decodes(); });
    if (at == running.end()) return;
    const std::vector<int32_t>& prompt = at->of.wanted.prompt;
    const size_t count =
        std::min(prompt.size() - at->fed, static_cast<size_t>(options.chunk_tokens));
    const Status done = engine->extend(at->slot, std::span(prompt).subspan(at->fed, count));
    if (!done) {
      end(*at, Finish::kFailed, done.error().message);
      running.erase(at);
      return;
    }
    at->fed += count;
    if (!at->decodes()) {
      running.splice(running.end(), running, at);  // others' prompts come first
    } else if (!take_token(*at)) {
      running.erase(at);
    }
  }

  void run_step() {
    std::vector<FedToken> fed;
    std::vector<std::list<Running>::iterator> stepped;
    for (auto at = running.begin(); at != running.end(); ++at) {
      if (!at->decodes()) continue;
      fed.push_back({at->slot, at->latest});
      stepped.push_back(at);
    }
    if (fed.empty()) return;
    const Status done = engine->step(fed);
    for (const auto at : stepped) {
      if (!done) {
        end(*at, Finish::kFailed, done.error().message);
        running.erase(at);
      } else if (!take_token(*at)) {
        running.erase(at);
      }
    }
  }

  // Takes the token that the engine chose. False: the request has ended.
  bool take_token(Running& one) {
    const TokenAsk& wanted = one.of.wanted;
    const int32_t id = engine->next(one.slot);
    one.last_ns = monotonic_now_ns();
    if (one.made++ == 0) one.first_ns = one.last_ns;
    if (engine->ends_text(id) && !wanted.ignore_ends && one.made > wanted.least_tokens) {
      end(one, Finish::kStop, "");
      return false;
    }
    one.latest = id;
    std::vector<TokenLogprobs> logprobs;
    if (wanted.likeliest) {
      const auto logits = engine->logits(one.slot);
      if (logits.empty()) {
        end(one, Finish::kFailed, "logits: expected them from the engine, found none");
        return false;
      }
      logprobs.push_back(token_logprobs(logits, id, *wanted.likeliest));
    }
    deliver([this, number = one.of.number, listener = one.of.listener, id,
             logprobs = std::move(logprobs)] {
      if (!listener->tokens(std::span(&id, 1), logprobs)) stop(number);
    });
    const bool is_full = std::ssize(wanted.prompt) + one.made >= capacity;
    if (one.made < wanted.most_tokens && !is_full) return true;
    end(one, Finish::kLength, "");
    return false;
  }

  void end(Running& one, Finish finish, const std::string& error) {
    engine->leave(one.slot);
    tell_end(one, finish, error);
  }

  // A listener ends where it is told of things: this thread keeps none.
  void tell_end(Running& one, Finish finish, const std::string& error) {
    const GenerationTimes times{ms_between(one.of.asked_ns, one.begun_ns),
                                ms_between(one.begun_ns, one.first_ns),
                                ms_between(one.first_ns, one.last_ns)};
    deliver([listener = std::move(one.of.listener), finish, times, error] {
      listener->ended(finish, times, error);
    });
  }

  void tell_cancelled(Waiting& one) {
    const GenerationTimes times{ms_between(one.asked_ns, monotonic_now_ns())};
    deliver([listener = std::move(one.listener), times] {
      listener->ended(Finish::kCancelled, times, "");
    });
  }

  void stop(int64_t number) {
    const std::lock_guard lock(mutex);
    cancelled.insert(number);
  }

  std::unique_ptr<SlotEngine> engine;  // the thread's
  const SchedulerOptions options;
  const Deliver deliver;
  const int64_t capacity;
  const int64_t slots;
  std::list<Running> running = {};  // the thread's; those whose prompt is next come first

  mutable std::mutex mutex = {};
  std::condition_variable changed = {};
  std::deque<Waiting> queue = {};
  std::set<int64_t> cancelled = {};
  int64_t numbers = 0;
  int64_t running_count = 0;
  bool stops = false;
  std::thread thread;  // the last: it uses all others
};

Scheduler::Scheduler(std::unique_ptr<SlotEngine> engine, const SchedulerOptions& options,
                     Deliver deliver)
    : impl_(std::make_unique<Impl>(std::move(engine), options, std::move(deliver))) {}
Scheduler::~Scheduler() = default;

int64_t Scheduler::capacity() const {
  return impl_->capacity;
}

std::optional<int64_t> Scheduler::ask(TokenAsk wanted, std::shared_ptr<TokenListener> listener) {
  std::unique_lock lock(impl_->mutex);
  const int64_t places =
      impl_->options.most_waiting + std::max<int64_t>(impl_->slots - impl_->running_count, 0);
  if (std::ssize(impl_->queue) >= places) return std::nullopt;
  const int64_t number = impl_->numbers++;
  impl_->queue.push_back({number, std::move(wanted), std::move(listener), monotonic_now_ns()});
  lock.unlock();
  impl_->changed.notify_one();
  return number;
}

void Scheduler::cancel(int64_t number) {
  impl_->stop(number);
}

QueueState Scheduler::state() const {
  const std::lock_guard lock(impl_->mutex);
  return {impl_->slots, impl_->running_count, std::ssize(impl_->queue),
          impl_->options.most_waiting};
}

}  // namespace assay::server
