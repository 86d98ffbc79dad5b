// One loop: admit, a chunk of prompts, steps of all who decode.
#include "server/scheduler.h"

#include <algorithm>
#include <atomic>
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

using engine::Onward;

constexpr const char* kNotFinite = "logits: expected finite values, found NaN or infinity";

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
    int64_t cached = 0;  // of them, those that its slot had already
    int64_t made = 0;    // new tokens
    int64_t begun_ns = 0, first_ns = 0, last_ns = 0;
    bool decodes() const { return fed == of.wanted.prompt.size(); }
    bool has_ended() const { return of.listener == nullptr; }
  };

  // A listener hears of a token, or of its end.
  struct Told {
    std::shared_ptr<TokenListener> listener;
    int64_t number = 0;
    int32_t id = 0;
    std::vector<TokenLogprobs> logprobs = {};
    std::optional<Finish> finish = {};
    GenerationTimes times = {};
    std::string error = {};
  };

  Impl(std::unique_ptr<SlotEngine> of_engine, const SchedulerOptions& with, Deliver by)
      : engine(std::move(of_engine)),
        options(with),
        deliver(std::move(by)),
        capacity(engine->capacity()),
        slots(engine->slots()),
        by_slot(static_cast<size_t>(slots), nullptr),
        thread([this] { work(); }) {}

  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      stops = has_changes = true;
    }
    changed.notify_all();
    thread.join();
  }

  void work() {
    while (take_changes()) {
      run_chunk();
      run_steps();
    }
    for (Running& one : running) tell_end(one, Finish::kCancelled, "");
    for (Waiting& one : queue) tell_cancelled(one);
    deliver_told();
  }

  // Waits for something to do. False: it is over.
  bool take_changes() {
    std::vector<Waiting> dropped;
    std::set<int64_t> gone;
    {
      std::unique_lock lock(mutex);
      slots_taken = std::ssize(running);
      rests = running.empty() && queue.empty();
      if (rests) rested.notify_all();
      changed.wait(lock, [&] { return stops || !running.empty() || !queue.empty(); });
      rests = false;
      if (stops) return false;
      has_changes = false;
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
    for (Running& one : running) {
      if (gone.contains(one.of.number)) tell_end(one, Finish::kCancelled, "");
    }
    leave_ended();
    admit();
    deliver_told();
    return true;
  }

  void leave_ended() {
    std::erase_if(running, [&](const Running& one) {
      if (one.has_ended()) engine->leave(one.slot);
      return one.has_ended();
    });
  }

  void admit() {
    while (const auto slot = join_first()) {
      Running one{.of = take_first(), .slot = *slot, .begun_ns = monotonic_now_ns()};
      const auto begun = engine->begin(*slot, one.of.wanted);
      if (!begun) {
        tell_end(one, Finish::kFailed, begun.error().message);
        engine->leave(*slot);
        continue;
      }
      one.cached = *begun;
      one.fed = static_cast<size_t>(*begun);
      running.push_back(std::move(one));
    }
    const std::lock_guard lock(mutex);
    slots_taken = std::ssize(running);
  }

  // A slot for the one who waits longest.
  std::optional<int64_t> join_first() {
    const std::lock_guard lock(mutex);
    if (queue.empty()) return std::nullopt;
    return engine->join(queue.front().wanted.prompt);
  }

  Waiting take_first() {
    const std::lock_guard lock(mutex);
    Waiting first = std::move(queue.front());
    queue.pop_front();
    ++slots_taken;
    return first;
  }

  // Chunks of the prompts that have waited longest for one.
  void run_chunk() {
    std::vector<engine::SlotPrompt> parts;
    std::vector<std::list<Running>::iterator> of;
    auto left = static_cast<size_t>(options.chunk_tokens);
    for (auto at = running.begin(); at != running.end() && left > 0; ++at) {
      if (at->decodes()) continue;
      const bool wants_logits = at->of.wanted.likeliest.has_value();
      if (wants_logits && !parts.empty()) break;
      const auto rest = std::span(at->of.wanted.prompt).subspan(at->fed);
      parts.push_back({at->slot, rest.first(std::min(rest.size(), left))});
      of.push_back(at);
      left -= parts.back().ids.size();
      if (wants_logits) break;
    }
    if (parts.empty()) return;
    const Status all = engine->extend(parts);
    for (size_t i = 0; i < parts.size(); ++i) {
      // An error is of those alone that meet it by themselves.
      const Status done =
          all || parts.size() == 1 ? all : engine->extend(std::span(parts).subspan(i, 1));
      if (!done) {
        tell_end(*of[i], Finish::kFailed, done.error().message);
        continue;
      }
      of[i]->fed += parts[i].ids.size();
      if (engine->is_broken(of[i]->slot)) {
        tell_end(*of[i], Finish::kFailed, kNotFinite);
      } else if (!of[i]->decodes()) {
        running.splice(running.end(), running, of[i]);  // others' prompts come first
      } else if (const auto id = engine->chosen(of[i]->slot)) {
        take_token(*of[i], *id);
      }
    }
    leave_ended();
    deliver_told();
  }

  int64_t tokens_left(const Running& one) const {
    const TokenAsk& wanted = one.of.wanted;
    return std::min(wanted.most_tokens, capacity - std::ssize(wanted.prompt)) - one.made;
  }

  // Steps until somebody ends, by their number of tokens or otherwise; one, if a prompt waits.
  void run_steps() {
    std::vector<int64_t> stepping;
    int64_t steps = capacity;
    bool wants_logits = false;
    for (Running& one : running) {
      if (!one.decodes()) {
        steps = 1;
        continue;
      }
      stepping.push_back(one.slot);
      by_slot[static_cast<size_t>(one.slot)] = &one;
      steps = std::min(steps, tokens_left(one));
      wants_logits |= one.of.wanted.likeliest.has_value();
    }
    if (stepping.empty()) return;
    const Status done = step(stepping, steps, wants_logits);
    for (const int64_t slot : stepping) {
      Running& one = *by_slot[static_cast<size_t>(slot)];
      if (done || one.has_ended()) continue;
      // An error is of those alone that meet it by themselves.
      const Status own = stepping.size() == 1 ? done : step({&slot, 1}, 1, wants_logits);
      if (!own && !one.has_ended()) tell_end(one, Finish::kFailed, own.error().message);
    }
    leave_ended();
    deliver_told();
  }

  Status step(std::span<const int64_t> stepping, int64_t steps, bool wants_logits) {
    size_t going = stepping.size(), heard = 0;  // in the step at hand
    size_t ended = 0;
    return engine->run(stepping, steps, wants_logits, [&](int64_t slot, int32_t id) {
      Running& one = *by_slot[static_cast<size_t>(slot)];
      if (engine->is_broken(slot)) {
        tell_end(one, Finish::kFailed, kNotFinite);
      } else {
        take_token(one, id);
      }
      ended += one.has_ended() ? 1 : 0;
      if (++heard == going) {
        deliver_told();
        going -= std::exchange(ended, 0);
        heard = 0;
      }
      if (one.has_ended()) {
        has_changes = true;  // its slot is for whoever waits
        return Onward::kStop;
      }
      return has_changes ? Onward::kLast : Onward::kGo;
    });
  }

  // Takes the token that the engine chose, which may end the request.
  void take_token(Running& one, int32_t id) {
    const TokenAsk& wanted = one.of.wanted;
    one.last_ns = monotonic_now_ns();
    if (one.made++ == 0) one.first_ns = one.last_ns;
    if (engine->ends_text(id) && !wanted.ignore_ends && one.made > wanted.least_tokens) {
      return tell_end(one, Finish::kStop, "");
    }
    Told next{.listener = one.of.listener, .number = one.of.number, .id = id};
    if (wanted.likeliest) {
      const auto logits = engine->logits(one.slot);
      if (logits.empty()) {
        return tell_end(one, Finish::kFailed, "logits: expected them from the engine, found none");
      }
      next.logprobs.push_back(token_logprobs(logits, id, *wanted.likeliest));
    }
    told.push_back(std::move(next));
    if (tokens_left(one) <= 0) tell_end(one, Finish::kLength, "");
  }

  // A listener ends where it is told of things: this thread keeps none.
  void tell_end(Running& one, Finish finish, const std::string& error) {
    engine->ended(one.slot);
    const GenerationTimes times{ms_between(one.of.asked_ns, one.begun_ns),
                                ms_between(one.begun_ns, one.first_ns),
                                ms_between(one.first_ns, one.last_ns), one.cached};
    told.push_back({std::move(one.of.listener), one.of.number, 0, {}, finish, times, error});
  }

  void tell_cancelled(Waiting& one) {
    const GenerationTimes times{ms_between(one.asked_ns, monotonic_now_ns())};
    told.push_back({std::move(one.listener), one.number, 0, {}, Finish::kCancelled, times});
  }

  // All of a step at once: each call wakes the listeners' thread.
  void deliver_told() {
    if (told.empty()) return;
    deliver([this, calls = std::exchange(told, {})] {
      for (const Told& one : calls) {
        if (one.finish) {
          note_heard();
          one.listener->ended(*one.finish, one.times, one.error);
        } else if (!one.listener->tokens(std::span(&one.id, 1), one.logprobs)) {
          stop(one.number);
        }
      }
    });
  }

  // Where listeners live, so that they find no generation under way that has ended for them, and
  // none of the ended ones uncounted.
  void note_heard() {
    const std::lock_guard lock(mutex);
    ++ends_heard;
  }

  // With the mutex.
  int64_t under_way() const { return numbers - ends_heard - std::ssize(queue); }

  void stop(int64_t number) {
    const std::lock_guard lock(mutex);
    cancelled.insert(number);
    has_changes = true;
  }

  std::unique_ptr<SlotEngine> engine;  // the thread's
  const SchedulerOptions options;
  const Deliver deliver;
  const int64_t capacity;
  const int64_t slots;
  // The thread's.
  std::list<Running> running = {};  // those whose prompt is next come first
  std::vector<Running*> by_slot;    // of the steps at hand
  std::vector<Told> told = {};      // not delivered yet

  std::atomic<bool> has_changes = false;  // since take_changes(), that steps shall end for
  mutable std::mutex mutex = {};
  std::condition_variable changed = {};
  std::deque<Waiting> queue = {};
  std::set<int64_t> cancelled = {};
  int64_t numbers = 0;
  int64_t ends_heard = 0;  // listeners that heard their end
  int64_t slots_taken = 0;
  bool stops = false;
  bool rests = false;  // the thread, until somebody asks
  std::condition_variable rested = {};
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
      impl_->options.most_waiting + std::max<int64_t>(impl_->slots - impl_->under_way(), 0);
  if (std::ssize(impl_->queue) >= places) return std::nullopt;
  const int64_t number = impl_->numbers++;
  impl_->queue.push_back({number, std::move(wanted), std::move(listener), monotonic_now_ns()});
  if (impl_->slots_taken < impl_->slots) impl_->has_changes = true;
  lock.unlock();
  impl_->changed.notify_one();
  return number;
}

void Scheduler::cancel(int64_t number) {
  impl_->stop(number);
}

QueueState Scheduler::state() const {
  const std::lock_guard lock(impl_->mutex);
  return {impl_->slots, impl_->under_way(), std::ssize(impl_->queue), impl_->options.most_waiting};
}

void Scheduler::settle() const {
  std::unique_lock lock(impl_->mutex);
  impl_->rested.wait(lock, [&] { return impl_->rests && impl_->queue.empty(); });
}

}  // namespace assay::server
