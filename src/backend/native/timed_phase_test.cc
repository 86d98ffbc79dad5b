// The calls of each phase, their inputs, and which of them are timed.
#include "backend/native/timed_phase.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

// Two rows; each call spins so that a region shows by its latency which calls it holds.
class ScriptedSession {
 public:
  static constexpr int64_t kPrefill_ns = 3'000'000;
  static constexpr int64_t kStep_ns = 1'000'000;

  Status prefill(const engine::PromptBatch&) {
    spin(kPrefill_ns);
    ++prefills;
    tokens_ = {10, 20};
    if (fail_prefill) return bad_input("prefill fails");
    return {};
  }
  template <typename Sink>
  Status decode_greedy(int64_t count, const Sink& sink) {
    for (int64_t i = 0; i < count; ++i) {
      spin(kStep_ns);
      for (int32_t& token : tokens_) ++token;
      if (++steps == fail_at_step) return bad_input("step fails");
      sink(tokens_);
    }
    return {};
  }
  std::span<const int32_t> next_tokens() const { return tokens_; }

  bool fail_prefill = false;
  int64_t fail_at_step = -1;
  int64_t prefills = 0;
  int64_t steps = 0;

 private:
  static void spin(int64_t ns) {
    const int64_t end_ns = monotonic_now_ns() + ns;
    while (monotonic_now_ns() < end_ns) {
    }
  }
  std::vector<int32_t> tokens_ = {0, 0};
};

const engine::PromptBatch kPrompts;

TEST(TimedPhase, PrefillIsOnePassAndItsTokens) {
  ScriptedSession session;
  const WireShape shape{Phase::kPrefill, 2, 0, 8};
  TimedPhase timed(session, shape, kPrompts);
  ASSERT_TRUE(timed.feed());
  ASSERT_TRUE(timed.run());
  EXPECT_EQ(timed.output(), (std::vector<int32_t>{10, 20}));
  EXPECT_EQ(session.steps, 0);
  EXPECT_EQ(session.prefills, 1);
  EXPECT_GE(timed.latency_ns(), ScriptedSession::kPrefill_ns);
  EXPECT_FALSE(timed.ttft_ns());
}

TEST(TimedPhase, DecodeTimesTheStepsAlone) {
  ScriptedSession session;
  const WireShape shape{Phase::kKvDecode, 2, 3, 8};
  TimedPhase timed(session, shape, kPrompts);
  ASSERT_TRUE(timed.feed());
  EXPECT_EQ(session.steps, 0);
  const int64_t start_ns = monotonic_now_ns();
  ASSERT_TRUE(timed.run());
  const int64_t all_ns = monotonic_now_ns() - start_ns;
  // Row after row, without the prefill's token.
  EXPECT_EQ(timed.output(), (std::vector<int32_t>{11, 12, 13, 21, 22, 23}));
  EXPECT_GE(timed.latency_ns(), 3 * ScriptedSession::kStep_ns);
  EXPECT_LE(timed.latency_ns(), all_ns);
  EXPECT_EQ(session.prefills, 1);
  EXPECT_FALSE(timed.ttft_ns());
}

TEST(TimedPhase, EndToEndHoldsBothAndTheFirstToken) {
  ScriptedSession session;
  const WireShape shape{Phase::kE2eKv, 2, 3, 8};
  TimedPhase timed(session, shape, kPrompts);
  ASSERT_TRUE(timed.feed());
  ASSERT_TRUE(timed.run());
  EXPECT_EQ(timed.output(), (std::vector<int32_t>{11, 12, 13, 21, 22, 23}));
  ASSERT_TRUE(timed.ttft_ns());
  EXPECT_GE(*timed.ttft_ns(), ScriptedSession::kPrefill_ns);
  EXPECT_GE(timed.latency_ns(), *timed.ttft_ns() + 3 * ScriptedSession::kStep_ns);
}

TEST(TimedPhase, AFailedCallFailsTheRepetition) {
  for (const Phase phase : kPhases) {
    ScriptedSession session;
    session.fail_prefill = true;
    const WireShape shape{phase, 2, phase == Phase::kPrefill ? 0 : 3, 8};
    TimedPhase timed(session, shape, kPrompts);
    EXPECT_FALSE(timed.feed() && timed.run());
    EXPECT_EQ(session.steps, 0);
  }
  ScriptedSession session;
  session.fail_at_step = 2;
  const WireShape shape{Phase::kE2eKv, 2, 3, 8};
  EXPECT_FALSE(TimedPhase(session, shape, kPrompts).run());
  EXPECT_EQ(session.steps, 2);
}

}  // namespace
}  // namespace assay
