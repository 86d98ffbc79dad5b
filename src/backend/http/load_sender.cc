// Open loops by the clock, closed loops by the ends of requests, both on one event loop.
#include "backend/http/load_sender.h"

#include <sys/resource.h>

#include <algorithm>
#include <memory>
#include <utility>

#include <time.h>

#include "base/clock.h"

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

  std::vector<SentRequest> run() {
    if (load_.point.concurrency) {
      for (int64_t i = 0; i < *load_.point.concurrency; ++i) send_next_of_closed(0);
    } else {
      send_by_the_clock();
    }
    loop_.run();
    return std::move(sent_);
  }

 private:
  // One request under way. It outlives its exchange.
  struct Listening final : GenerationListener {
    Listening(LoadRun& of_run, PlannedRequest of_request, size_t in_sent)
        : in_run(of_run), planned(of_request), place(in_sent) {}
    void ended(const Generated& generated, HttpResult<void> result) override {
      in_run.note_end(*this, generated, std::move(result));
    }
    LoadRun& in_run;
    PlannedRequest planned;
    size_t place;  // in sent_
  };

  int64_t since_begin(int64_t at_ns) const { return std::max<int64_t>(at_ns - begin_ns_, 0); }

  HttpRequest prepare(const PlannedRequest& planned) const {
    HttpRequest request = target_.dialect.generate(target_.make(planned));
    request.fresh = true;
    return request;
  }

  void send(const PlannedRequest& planned, HttpRequest request) {
    sent_.push_back({.number = planned.number,
                     .scheduled_ns = planned.scheduled_ns,
                     .prompt_tokens = planned.prompt_tokens,
                     .new_tokens = planned.new_tokens});
    listening_.push_back(std::make_unique<Listening>(*this, planned, sent_.size() - 1));
    auto exchange = make_generation(target_.dialect, *listening_.back());
    sent_.back().sent_ns = std::max(since_begin(monotonic_now_ns()), planned.scheduled_ns);
    loop_.start(target_.endpoint, std::move(request), target_.limits, std::move(exchange));
  }

  void send_by_the_clock() {
    while (const auto planned = source_.next(0)) {
      HttpRequest request = prepare(*planned);
      const int64_t due_ns = begin_ns_ + planned->scheduled_ns;
      loop_.run_until(due_ns);
      sleep_until(due_ns);  // the loop stops early where nothing is under way
      send(*planned, std::move(request));
    }
  }

  void send_next_of_closed(int64_t due_ns) {
    auto planned = source_.next(due_ns);
    if (!planned) return;
    planned->scheduled_ns = due_ns;
    send(*planned, prepare(*planned));
  }

  void note_end(const Listening& of, const Generated& generated, HttpResult<void> result) {
    SentRequest& request = sent_[of.place];
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
    request.tokens = believable(generated.figures.new_tokens);
    request.cached_tokens = believable(generated.figures.cached_tokens);
    std::optional<ErrorReply> wrong;
    if (!result) {
      wrong = reply_of(result.error());
    } else {
      wrong = target_.check(generated, of.planned);
    }
    if (wrong) {
      request.status = wrong->outcome.empty() ? "error" : wrong->outcome;
      request.error_class = std::move(wrong->error_class);
    }
    failed_in_a_row_ = request.ok() ? 0 : failed_in_a_row_ + 1;
    if (load_.point.concurrency && failed_in_a_row_ < kMostFailedInARow)
      send_next_of_closed(request.end_ns);
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
  std::vector<SentRequest> sent_;
  std::vector<std::unique_ptr<Listening>> listening_;
};

}  // namespace

std::vector<SentRequest> send_load(HttpLoop& loop, const LoadTarget& target,
                                   const OfferedLoad& load) {
  allow_descriptors();
  return LoadRun(loop, target, load).run();
}

ErrorReply reply_of(const HttpFailure& failure) {
  ErrorReply reply{failure.error_class, failure.message};
  if (failure.error_class == http_class::kTimeout || failure.error_class == http_class::kStalled) {
    reply.outcome = "timeout";
  }
  return reply;
}

}  // namespace assay
