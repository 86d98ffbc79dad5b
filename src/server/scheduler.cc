// One loop: admit, a chunk of prompts, steps of all who decode.
#include "server/scheduler.h"

#include <algorithm>
#include <atomic>
#include <chrono>
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
#include "server/scheduled_request.h"

namespace assay::server {
namespace {

using engine::Onward;

constexpr const char* kNotFinite = "logits: expected finite values, found NaN or infinity";
constexpr int64_t kMostDeaths = 3;       // calls in a row by which a request's slot may be lost
constexpr int64_t kRestoredTokens = 64;  // between two steps of the others, at most
constexpr auto kRest = std::chrono::milliseconds(100);  // between two calls of an engine at rest

}  // namespace

struct Scheduler::Impl {
  using Waiting = WaitingRequest;
  using Running = RunningRequest;

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
      restore_lost();
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
      const auto is_asked = [&] { return stops || !running.empty() || !queue.empty(); };
      while (!is_asked()) {
        lock.unlock();
        const bool again = engine->rest();
        lock.lock();
        if (!again) changed.wait(lock, is_asked);
        if (again) changed.wait_for(lock, kRest, is_asked);
      }
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

  // Those who have sent tokens already come first, one after the other.
  void restore_lost() {
    auto lost = running.end();
    for (auto at = running.begin(); at != running.end(); ++at) {
      if (!engine->is_lost(at->slot)) continue;
      if (lost == running.end() || (at->decodes() && !lost->decodes())) lost = at;
    }
    if (lost == running.end()) return;
    const int64_t most = std::min(options.chunk_tokens, kRestoredTokens);
    const Status done = engine->restore(lost->slot, most);
    if (!done) failed(*lost, done.error());
    leave_ended();
    deliver_told();
  }

  // A call of this request alone has failed, or one of several that lost it.
  void failed(Running& one, const Error& error) {
    if (engine->is_lost(one.slot) && ++one.deaths < kMostDeaths) return;
    tell_end(one, Finish::kFailed, error.message);
  }

  // Chunks of the prompts that have waited longest for one.
  void run_chunk() {
    std::vector<engine::SlotPrompt> parts;
    std::vector<std::list<Running>::iterator> of;
    auto left = static_cast<size_t>(options.chunk_tokens);
    for (auto at = running.begin(); at != running.end() && left > 0; ++at) {
      if (at->decodes() || engine->is_lost(at->slot)) continue;
      const bool is_alone = at->of.wanted.likeliest.has_value() || at->deaths > 0;
      if (is_alone && !parts.empty()) break;
      const auto rest = std::span(at->of.wanted.prompt).subspan(at->fed);
      parts.push_back({at->slot, rest.first(std::min(rest.size(), left))});
      of.push_back(at);
      left -= parts.back().ids.size();
      if (is_alone) break;
    }
    if (parts.empty()) return;
    const auto is_in = [&](size_t i) {
      return engine->fed(parts[i].slot) == static_cast<int64_t>(of[i]->fed + parts[i].ids.size());
    };
    const Status all = engine->extend(parts);
    std::vector<size_t> again;
    for (size_t i = 0; !all && i < parts.size(); ++i) {
      if (is_in(i)) continue;
      if (parts.size() == 1 || engine->is_lost(parts[i].slot)) {
        failed(*of[i], all.error());
      } else {
        again.push_back(i);
      }
    }
    // An error is of those alone that meet it by themselves.
    for (const size_t i : again) {
      if (engine->is_lost(parts[i].slot)) continue;  // by another one's call
      if (const Status own = engine->extend({&parts[i], 1}); !own) failed(*of[i], own.error());
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      if (of[i]->has_ended() || !is_in(i)) continue;
      of[i]->fed += parts[i].ids.size();
      of[i]->deaths = 0;
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

  // Steps until somebody ends, by their number of tokens or otherwise; one, if somebody isn't among
  // those that step together.
  void run_steps() {
    std::vector<int64_t> stepping, alone;
    int64_t steps = capacity;
    bool wants_logits = false;
    for (Running& one : running) {
      by_slot[static_cast<size_t>(one.slot)] = &one;
      const bool waits = !one.decodes() || engine->is_lost(one.slot);
      if (waits || one.deaths > 0) steps = 1;
      if (waits) continue;
      (one.deaths > 0 ? alone : stepping).push_back(one.slot);
      steps = std::min(steps, one.tokens_left(capacity));
      wants_logits |= one.of.wanted.likeliest.has_value();
    }
    if (!stepping.empty()) {
      const Status done = step(stepping, steps, wants_logits);
      for (const int64_t slot : stepping) {
        Running& one = *by_slot[static_cast<size_t>(slot)];
        if (done || one.has_ended()) continue;
        if (stepping.size() == 1 || engine->is_lost(slot)) {
          failed(one, done.error());
        } else {
          alone.push_back(slot);
        }
      }
    }
    // An error is of those alone that meet it by themselves.
    for (const int64_t slot : alone) step_alone(*by_slot[static_cast<size_t>(slot)], wants_logits);
    leave_ended();
    deliver_told();
  }

  void step_alone(Running& one, bool wants_logits) {
    if (engine->is_lost(one.slot)) return;  // by another one's call
    const Status own = step({&one.slot, 1}, 1, wants_logits);
    if (own) one.deaths = 0;
    if (!own && !one.has_ended()) failed(one, own.error());
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
    ToldEvent next{.listener = one.of.listener, .number = one.of.number, .id = id};
    if (wanted.likeliest) {
      const auto logits = engine->logits(one.slot);
      if (logits.empty()) {
        return tell_end(one, Finish::kFailed, "logits: expected them from the engine, found none");
      }
      next.logprobs.push_back(token_logprobs(logits, id, *wanted.likeliest));
    }
    told.push_back(std::move(next));
    if (one.tokens_left(capacity) <= 0) tell_end(one, Finish::kLength, "");
  }

  // A listener ends where it is told of things: this thread keeps none.
  void tell_end(Running& one, Finish finish, const std::string& error) {
    engine->ended(one.slot);
    told.push_back({std::move(one.of.listener), one.of.number, 0, {}, finish, one.times(), error});
  }

  void tell_cancelled(Waiting& one) {
    told.push_back({std::move(one.listener), one.number, 0, {}, Finish::kCancelled, one.times()});
  }

  // All of a step at once: each call wakes the listeners' thread.
  void deliver_told() {
    if (told.empty()) return;
    deliver([this, calls = std::exchange(told, {})] {
      for (const ToldEvent& one : calls) {
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
  std::list<Running> running = {};   // those whose prompt is next come first
  std::vector<Running*> by_slot;     // of the steps at hand
  std::vector<ToldEvent> told = {};  // not delivered yet

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
