// Open loops by the clock, closed loops by the ends of requests, both on one event loop.
#include "backend/http/load_sender.h"

#include <sys/resource.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <time.h>

#include "base/clock.h"
#include "base/text/text.h"

namespace assay {
namespace {

// A thousand streams need more descriptors than a shell allows at first.
void allow_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);  // without it connections fail by name
}

void sleep_until(int64_t at_ns) {
  const timespec at{at_ns / 1'000'000'000, at_ns % 1'000'000'000};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR) {
  }
}

// A count that a row can have; a server may say anything.
std::optional<int64_t> believable(const std::optional<int64_t>& count) {
  constexpr int64_t kMost = 1'000'000'000;
  return count && *count >= 0 && *count <= kMost ? count : std::nullopt;
}

class LoadRun {
 public:
  LoadRun(HttpLoop& loop, const LoadTarget& target, const OfferedLoad& load)
      : loop_(loop), target_(target), load_(load), source_(load), begin_ns_(monotonic_now_ns()) {}

  void run() {
    if (load_.point.concurrency) {
      for (int64_t i = 0; i < *load_.point.concurrency; ++i) begin_next_of_closed(0);
    } else {
      send_by_the_clock();
    }
    loop_.run();
  }

 private:
  // A request before it is sent.
  struct Ready {
    PlannedRequest planned;
    HttpRequest request;
    HttpPrompt prompt;  // kept in a session alone
    std::optional<Conversation> before;
  };

  // One request under way. It outlives its exchange.
  struct Listening final : GenerationListener {
    Listening(LoadRun& of_run, Ready&& of_request)
        : in_run(of_run),
          planned(of_request.planned),
          prompt(std::move(of_request.prompt)),
          before(std::move(of_request.before)) {}
    void ended(const Generated& generated, HttpResult<void> result) override {
      in_run.note_end(*this, generated, std::move(result));
    }
    const Conversation* said() const { return before ? &*before : nullptr; }

    LoadRun& in_run;
    PlannedRequest planned;
    HttpPrompt prompt;
    std::optional<Conversation> before;
    SentRequest sent;
  };

  int64_t since_begin(int64_t at_ns) const { return std::max<int64_t>(at_ns - begin_ns_, 0); }

  Ready prepare(const PlannedRequest& planned, std::optional<Conversation> before) const {
    Generation generation = target_.make(planned, before ? &*before : nullptr);
    generation.in_session = load_.turns > 1;
    Ready ready{planned, target_.dialect.generate(generation), {}, std::move(before)};
    ready.request.fresh = true;
    ready.request.id = fmt::format("{:x}-{}", load_.seed, planned.number);
    if (generation.in_session) ready.prompt = std::move(generation.prompt);
    return ready;
  }

  void send(Ready&& ready) {
    HttpRequest request = std::move(ready.request);
    listening_.push_back(std::make_unique<Listening>(*this, std::move(ready)));
    Listening& listening = *listening_.back();
    const PlannedRequest& planned = listening.planned;
    listening.sent = {
        .number = planned.number,
        .scheduled_ns = planned.scheduled_ns,
        .prompt_tokens = planned.prompt_tokens + (listening.before ? listening.before->tokens : 0),
        .new_tokens = planned.new_tokens};
    auto exchange = make_generation(target_.dialect, listening);
    listening.sent.sent_ns = std::max(since_begin(monotonic_now_ns()), planned.scheduled_ns);
    loop_.start(target_.endpoint, std::move(request), target_.limits, std::move(exchange));
  }

  void send_by_the_clock() {
    while (const auto planned = source_.next(0)) {
      Ready ready = prepare(*planned, std::nullopt);
      const int64_t due_ns = begin_ns_ + planned->scheduled_ns;
      loop_.run_until(due_ns);
      sleep_until(due_ns);  // the loop stops early where nothing is under way
      send(std::move(ready));
    }
  }

  void begin_next_of_closed(int64_t due_ns) {
    auto planned = source_.next(due_ns);
    if (!planned) return;
    planned->scheduled_ns = due_ns;
    send(prepare(*planned, std::nullopt));
  }

  void note_end(Listening& of, const Generated& generated, HttpResult<void> result) {
    SentRequest& request = of.sent;
    note_times(generated, request);
    request.tokens = believable(generated.figures.new_tokens);
    request.cached_tokens = believable(generated.figures.cached_tokens);
    // No text's tokens are known before a server has counted them.
    if (of.before)
      request.prompt_tokens =
          believable(generated.figures.prompt_tokens).value_or(request.prompt_tokens);
    std::optional<ErrorReply> wrong;
    if (!result) {
      wrong = reply_of(result.error());
    } else {
      wrong = target_.check(generated, of.planned, of.said());
    }
    if (wrong) {
      request.status = wrong->outcome.empty() ? "error" : wrong->outcome;
      request.error_class = std::move(wrong->error_class);
    }
    failed_in_a_row_ = request.ok() ? 0 : failed_in_a_row_ + 1;
    const int64_t end_ns = request.end_ns;
    if (!go_on_with_session(of, generated) && load_.point.concurrency &&
        failed_in_a_row_ < kMostFailedInARow) {
      begin_next_of_closed(end_ns);
    }
    target_.take(std::move(request));
  }

  void note_times(const Generated& generated, SentRequest& request) const {
    // The loop may have had other work when the request was handed to it.
    request.sent_ns = std::max(request.sent_ns, since_begin(generated.started_ns));
    const auto after_sent = [&](int64_t at_ns) {
      return std::max(since_begin(at_ns), request.sent_ns);
    };
    if (!generated.token_ns.empty()) {
      request.first_token_ns = after_sent(generated.token_ns.front());
      request.last_token_ns = after_sent(std::max(generated.finish_ns, generated.token_ns.back()));
      for (const int64_t at_ns : generated.token_ns) {
        request.token_us.push_back((after_sent(at_ns) - request.scheduled_ns) / 1000);
      }
    }
    request.end_ns = std::max(after_sent(generated.end_ns), request.last_token_ns.value_or(0));
  }

  // True if the session's next turn was sent.
  bool go_on_with_session(Listening& of, const Generated& generated) {
    if (load_.turns == 1 || !of.sent.ok()) return false;
    const auto next = source_.following(of.planned, of.sent.end_ns);
    if (!next) return false;
    const int64_t said =
        believable(generated.figures.prompt_tokens).value_or(of.sent.prompt_tokens);
    send(prepare(*next, Conversation{std::move(of.prompt), generated.text,
                                     said + of.sent.tokens.value_or(0)}));
    return true;
  }

  HttpLoop& loop_;
  const LoadTarget& target_;
  const OfferedLoad& load_;
  RequestSource source_;
  int64_t begin_ns_;
  // A closed loop ends with so many: a server that refuses each at once would be asked a hundred
  // thousand times a second.
  static constexpr int64_t kMostFailedInARow = 1000;
  int64_t failed_in_a_row_ = 0;
  std::vector<std::unique_ptr<Listening>> listening_;
};

}  // namespace

void send_load(HttpLoop& loop, const LoadTarget& target, const OfferedLoad& load) {
  allow_descriptors();
  LoadRun(loop, target, load).run();
}

ErrorReply reply_of(const HttpFailure& failure) {
  ErrorReply reply{failure.error_class, failure.message};
  if (failure.error_class == http_class::kTimeout || failure.error_class == http_class::kStalled) {
    reply.outcome = "timeout";
  }
  return reply;
}

}  // namespace assay
