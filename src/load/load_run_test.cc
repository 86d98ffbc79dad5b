// Requests of a schedule, and the figures of runs whose truth is known.
#include "load/load_run.h"

#include <gtest/gtest.h>

#include <cmath>

#include "load/request_source.h"

namespace assay {
namespace {

constexpr int64_t kMs = 1'000'000;

// A request scheduled at so many ms that takes so long, with tokens 10 ms apart at its end.
SentRequest served(int64_t number, int64_t at_ms, int64_t first_ms, int64_t tokens = 3) {
  SentRequest request{.number = number,
                      .scheduled_ns = at_ms * kMs,
                      .sent_ns = at_ms * kMs,
                      .prompt_tokens = 5,
                      .new_tokens = tokens,
                      .tokens = tokens};
  request.first_token_ns = (at_ms + first_ms) * kMs;
  for (int64_t i = 0; i < tokens; ++i) request.token_us.push_back((first_ms + 10 * i) * 1000);
  request.last_token_ns = (at_ms + first_ms + 10 * (tokens - 1)) * kMs;
  request.end_ns = *request.last_token_ns;
  return request;
}

OfferedLoad open_loop(double rate, double duration_s) {
  OfferedLoad load{.point = {.rate = rate}, .duration_s = duration_s};
  load.seed = 7;
  return load;
}

std::vector<PlannedRequest> all_of(const OfferedLoad& load) {
  RequestSource source(load);
  std::vector<PlannedRequest> all;
  while (const auto next = source.next(0)) all.push_back(*next);
  return all;
}

TEST(RequestSource, ConstantArrivalsAreAsFarApartAsTheRateSays) {
  OfferedLoad load = open_loop(4, 2);
  load.arrivals = Arrivals::kConstant;
  const auto all = all_of(load);
  ASSERT_EQ(all.size(), 7u);  // 0.25 s, ..., 1.75 s
  EXPECT_EQ(all[0].scheduled_ns, 250 * kMs);
  EXPECT_EQ(all[6].scheduled_ns, 1750 * kMs);
}

TEST(RequestSource, PoissonGapsHaveTheirMeanAndSpread) {
  const auto all = all_of(open_loop(1000, 20));
  EXPECT_NEAR(static_cast<double>(all.size()), 20'000, 4 * std::sqrt(20'000.0));
  double squares = 0;
  for (size_t i = 1; i < all.size(); ++i) {
    const double gap = static_cast<double>(all[i].scheduled_ns - all[i - 1].scheduled_ns) / kMs;
    squares += gap * gap;
  }
  EXPECT_NEAR(squares / static_cast<double>(all.size() - 1), 2, 0.15);  // E of gap^2 is 2 mean^2
}

TEST(RequestSource, LengthsComeFromTheirDistribution) {
  OfferedLoad load{.point = {.concurrency = 1}, .requests = 4000};
  load.prompt_tokens = {.mean = 100, .deviation = 20, .least = 50, .most = 150};
  load.new_tokens = {.values = {3, 7}};
  double sum = 0;
  int64_t threes = 0;
  for (const PlannedRequest& one : all_of(load)) {
    EXPECT_GE(one.prompt_tokens, 50);
    EXPECT_LE(one.prompt_tokens, 150);
    EXPECT_TRUE(one.new_tokens == 3 || one.new_tokens == 7);
    sum += static_cast<double>(one.prompt_tokens);
    threes += one.new_tokens == 3 ? 1 : 0;
  }
  EXPECT_NEAR(sum / 4000, 100, 1.5);
  EXPECT_NEAR(static_cast<double>(threes), 2000, 130);
}

TEST(RequestSource, ATraceIsPlayedAtItsSpeed) {
  OfferedLoad load{.point = {.speed = 2}, .trace = {{0, 5, 1}, {3, 6, 2}}};
  const auto all = all_of(load);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].scheduled_ns, 1500 * kMs);
  EXPECT_EQ(all[1].prompt_tokens, 6);
}

TEST(RequestSource, NoRunHasMoreRequestsThanItsRowsMayBe) {
  OfferedLoad load{.point = {.concurrency = 1}, .duration_s = 10};
  RequestSource source(load);
  int64_t made = 0;
  while (source.next(0)) ++made;
  EXPECT_EQ(made, kMostLoadRequests);
}

TEST(RequestSource, AClosedLoopEndsWithItsDuration) {
  OfferedLoad load{.point = {.concurrency = 2}, .duration_s = 1};
  RequestSource source(load);
  EXPECT_TRUE(source.next(999 * kMs));
  EXPECT_FALSE(source.next(1000 * kMs));
}

TEST(RequestSource, SessionsBeginAtTheirShareOfTheRateAndTakeTurns) {
  OfferedLoad load = open_loop(40, 2);
  load.arrivals = Arrivals::kConstant;
  load.turns = 4;
  load.prompt_tokens = {.least = 1, .most = 1000};
  const auto first = all_of(load);
  ASSERT_EQ(first.size(), 19u);
  EXPECT_EQ(first[0].scheduled_ns, 100 * kMs);
  EXPECT_EQ(first[18].number, 72);
  // The lengths of a turn don't depend on when it comes.
  const RequestSource source(load), again(load);
  const auto second = source.following(first[3], 500 * kMs);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->number, 13);
  EXPECT_EQ(second->scheduled_ns, 500 * kMs);
  (void)again.following(first[4], 0);
  EXPECT_EQ(again.following(first[3], 900 * kMs)->prompt_tokens, second->prompt_tokens);
  EXPECT_NE(again.following(*second, 900 * kMs)->prompt_tokens, second->prompt_tokens);
  EXPECT_FALSE(source.following({.number = 15}, 0)) << "the fourth turn is the last";
  EXPECT_FALSE(source.following(first[3], 2000 * kMs)) << "the run is over";
}

TEST(RequestSource, NoTwoRatesShareAName) {
  EXPECT_EQ(load_point_name({.rate = 2}), "2 a second");
  EXPECT_EQ(load_point_name({.rate = 2.5}), "2.5 a second");
  EXPECT_NE(load_point_name({.rate = 1.0000001}), load_point_name({.rate = 1}));
}

// Ten requests a second for ten seconds, each of 50 ms to its first token.
std::vector<SentRequest> steady() {
  std::vector<SentRequest> sent;
  for (int64_t i = 0; i < 100; ++i) sent.push_back(served(i, 100 * i, 50));
  return sent;
}

TEST(LoadRun, FiguresAreThoseOfTheWindow) {
  std::vector<SentRequest> sent = steady();
  sent[5] = served(5, 500, 9000);  // in the part that is cut
  sent[50].sent_ns += 3 * kMs;
  const auto figures = load_run_figures(open_loop(10, 10), {.ttft_ms = 60}, sent);
  ASSERT_TRUE(figures);
  EXPECT_EQ(figures->window.begin_ns, 1000 * kMs);
  EXPECT_EQ(figures->window.end_ns, 9000 * kMs);
  EXPECT_EQ(figures->requests, 80);
  EXPECT_NEAR(figures->offered_per_s, 10, 1e-9);
  EXPECT_NEAR(figures->requests_per_s, 10, 1e-9);
  EXPECT_NEAR(figures->tokens_per_s, 30, 0.3);
  EXPECT_NEAR(figures->ttft_ms->mean, 50, 1e-9);
  EXPECT_NEAR(figures->latency_ms->mean, 70, 1e-9);
  EXPECT_NEAR(figures->tpot_ms->mean, 10, 1e-9);
  EXPECT_NEAR(figures->itl_ms->mean, 10, 1e-9);
  EXPECT_EQ(figures->itl_ms->count, 160);
  EXPECT_NEAR(figures->late_ms->most, 3, 1e-9);
  EXPECT_FALSE(figures->late_ms->p99);  // of 80
  EXPECT_TRUE(figures->itl_ms->p99);
  EXPECT_DOUBLE_EQ(*figures->within_bounds, 1);
  // 70 ms ten times a second, and the one that takes nine seconds through the whole window.
  EXPECT_NEAR(figures->in_flight, 1.7, 0.02);
  EXPECT_FALSE(figures->queue_grows);
}

TEST(LoadRun, FailedRequestsCountAgainstTheBoundsAndInNoLatency) {
  std::vector<SentRequest> sent = steady();
  for (const size_t i : {20u, 30u}) {
    sent[i].status = "error";
    sent[i].error_class = "stream_cut";
  }
  const auto figures = load_run_figures(open_loop(10, 10), {.latency_ms = 1000}, sent);
  EXPECT_EQ(figures->ok, 78);
  EXPECT_EQ(figures->failed.at("stream_cut"), 2);
  EXPECT_NEAR(*figures->within_bounds, 78.0 / 80, 1e-12);
  EXPECT_EQ(figures->latency_ms->count, 78);
  EXPECT_NEAR(figures->requests_per_s, 9.75, 1e-9);
}

TEST(LoadRun, ABoundOnGapsIsOfARequestsMeanGap) {
  std::vector<SentRequest> sent = steady();
  sent[40].last_token_ns = *sent[40].first_token_ns + 50 * kMs;  // two gaps of 25 ms
  const auto figures = load_run_figures(open_loop(10, 10), {.itl_ms = 20}, sent);
  EXPECT_NEAR(*figures->within_bounds, 79.0 / 80, 1e-12);
}

TEST(LoadRun, AQueueThatGrowsIsFoundAndAPauseIsNone) {
  std::vector<SentRequest> growing, paused;
  for (int64_t i = 0; i < 100; ++i) {
    growing.push_back(served(i, 100 * i, 50 + 60 * i));
    const bool waits = i >= 40 && i < 60;
    paused.push_back(served(i, 100 * i, waits ? 50 + 100 * (60 - i) : 50));
  }
  EXPECT_TRUE(load_run_figures(open_loop(10, 10), {}, growing)->queue_grows);
  EXPECT_FALSE(load_run_figures(open_loop(10, 10), {}, paused)->queue_grows);
}

// Share of 400 runs of 100 Poisson arrivals that are called growing: a server of one slot, which is
// busy for `busy` of the time (above 1: which doesn't keep up).
double called_growing(double busy) {
  int64_t found = 0;
  constexpr int64_t kRuns = 400;
  for (int64_t run = 0; run < kRuns; ++run) {
    OfferedLoad load = open_loop(10, 10);
    load.seed = static_cast<uint64_t>(run);
    std::vector<SentRequest> sent;
    int64_t free_ns = 0;
    for (const PlannedRequest& one : all_of(load)) {
      const int64_t begin_ns = std::max(free_ns, one.scheduled_ns);
      free_ns = begin_ns + std::llround(100 * busy * static_cast<double>(kMs));
      SentRequest request = served(one.number, 0, 0, 1);
      request.scheduled_ns = request.sent_ns = one.scheduled_ns;
      request.first_token_ns = request.last_token_ns = request.end_ns = free_ns;
      sent.push_back(request);
    }
    found += load_run_figures(load, {}, sent)->queue_grows ? 1 : 0;
  }
  return static_cast<double>(found) / kRuns;
}

TEST(LoadRun, ASteadyQueueIsSeldomCalledGrowing) {
  EXPECT_LE(called_growing(0.5), 0.01);
  EXPECT_LE(called_growing(0.8), 0.03);
  EXPECT_LE(called_growing(0.95), 0.05);
  EXPECT_GE(called_growing(1.5), 0.8);
  EXPECT_GE(called_growing(2), 0.95);
}

TEST(LoadRun, APauseAtTheEndIsNoGrowingQueue) {
  std::vector<SentRequest> sent;  // ten a second; nothing ends between 8 s and 10 s
  for (int64_t i = 0; i < 100; ++i)
    sent.push_back(served(i, 100 * i, i < 80 ? 50 : 50 + 100 * (100 - i)));
  EXPECT_FALSE(load_run_figures(open_loop(10, 10), {}, sent)->queue_grows);
}

TEST(LoadRun, ARateThatRisesIsNoGrowingQueue) {
  std::vector<SentRequest> sent;  // from 1 to 40 requests a second in 10 s, each of 1 s
  for (int64_t i = 0; i < 200; ++i) {
    sent.push_back(served(i, std::llround(1000 * std::sqrt(static_cast<double>(i) / 2)), 1000));
  }
  EXPECT_FALSE(load_run_figures(open_loop(20, 10), {}, sent)->queue_grows);
}

TEST(LoadRun, AClosedLoopsWindowBeginsOnceItsFirstRoundHasEnded) {
  OfferedLoad load{.point = {.concurrency = 2}, .requests = 10};
  std::vector<SentRequest> sent;
  for (int64_t i = 0; i < 10; ++i) sent.push_back(served(i, 500 * (i / 2), 480));
  const auto window = load_window(load, sent);
  ASSERT_TRUE(window);
  EXPECT_EQ(window->begin_ns, 500 * kMs);  // later than a tenth of the 2 s
  EXPECT_EQ(window->end_ns, 1800 * kMs);
}

TEST(LoadRun, AClosedLoopsFirstRoundEndsWithItsSlowestRequest) {
  OfferedLoad load{.point = {.concurrency = 2}, .requests = 12};
  std::vector<SentRequest> sent = {served(0, 0, 880), served(1, 0, 80)};  // ends at 900 and 100 ms
  for (int64_t i = 0; i < 10; ++i) sent.push_back(served(2 + i, 100 + 200 * i, 180));
  EXPECT_EQ(load_window(load, sent)->begin_ns, 900 * kMs);
}

TEST(LoadRun, AServerOfLongAnswersKeepsUpOnceItIsFull) {
  std::vector<SentRequest> sent;  // four a second, each of three seconds
  for (int64_t i = 0; i < 40; ++i) sent.push_back(served(i, 250 * i, 2980));
  const auto figures = load_run_figures(open_loop(4, 10), {}, sent);
  ASSERT_TRUE(figures);
  EXPECT_GT(figures->window.begin_ns, 3000 * kMs);
  EXPECT_NEAR(figures->requests_per_s, 4, 0.2);
  EXPECT_FALSE(figures->queue_grows);
}

TEST(LoadRun, NothingIsLeftOfARunThatIsTooShort) {
  OfferedLoad load{.point = {.concurrency = 4}, .requests = 4};
  std::vector<SentRequest> sent;
  for (int64_t i = 0; i < 4; ++i) sent.push_back(served(i, 0, 100));
  EXPECT_FALSE(load_run_figures(load, {}, sent));
  EXPECT_FALSE(load_run_figures(load, {}, {}));
}

}  // namespace
}  // namespace assay
