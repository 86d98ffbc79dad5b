// For tests of every device: a session's promises on any device, eager and compiled.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "engine/session/tiny_checkpoint.h"

namespace assay::engine::test {

// Properties on the device of `base`, which may also name the kernel cache; each opens sessions of
// its own, in fp32. The kernel cache changes only the time that this takes.
class SessionProperties {
 public:
  using Property = void (SessionProperties::*)();
  struct Named {
    const char* name;
    Property property;
  };
  static const std::vector<Named>& all() {
    static const std::vector<Named> kAll = {
        {"BothCachesGiveTheSame", &SessionProperties::both_caches_give_the_same},
        {"RowsOfABatchEqualSingleRuns", &SessionProperties::rows_equal_single_runs},
        {"SteppingEqualsALongerPrompt", &SessionProperties::stepping_equals_a_longer_prompt},
        {"AllLogitsAreThoseOfEveryPrefix", &SessionProperties::all_logits_are_every_prefixs},
        {"RunsAreRepeatableAndSurviveAMove", &SessionProperties::runs_are_repeatable},
        {"GreedyIsDecodeOfItsOwnTokens", &SessionProperties::greedy_is_decode},
        {"GreedyStopsWhereItIsTold", &SessionProperties::greedy_stops},
        {"OneModelServesTwoSessions", &SessionProperties::one_model_serves_two},
        {"LogitsThatAreNotFiniteAreSeen", &SessionProperties::not_finite_is_seen},
        {"ErrorsLeaveItUsable", &SessionProperties::errors_leave_it_usable},
        {"CountersOfScriptedLengths", &SessionProperties::counters_of_scripted_lengths},
        {"SymbolicLengthsInAnyOrder", &SessionProperties::symbolic_lengths_in_any_order},
        {"TheRecompileLimitEndsCompilation", &SessionProperties::the_limit_ends_compilation},
        {"BucketsShareAGraph", &SessionProperties::buckets_share_a_graph},
        {"SplitArmsCompileOnePhase", &SessionProperties::split_arms_compile_one_phase},
        {"MakeReadyLeavesNothing", &SessionProperties::make_ready_leaves_nothing},
    };
    return kAll;
  }

  SessionProperties(const Family& family, const SessionOptions& base, double tolerance)
      : checkpoint_(family), base_(base), tolerance_(tolerance) {
    base_.compile.verify_passes = false;  // each pass has tests of its own
  }

  void both_caches_give_the_same() {
    const PromptBatch prompts = PromptBatch::of({kLong, kShort});
    for (const bool compiled : {false, true}) {
      Session growing = session(compiled, CacheKind::kDynamic);
      Session fixed = session(compiled, CacheKind::kStatic);
      expect_same(generate(growing, prompts, kSteps), generate(fixed, prompts, kSteps));
    }
  }

  void rows_equal_single_runs() {
    const std::vector<Prompt> rows = {kShort, kLong, {8}, kLong};
    const PromptBatch prompts = PromptBatch::of(rows, 13);
    for (const bool compiled : {false, true}) {
      Session batched = session(compiled), single = session(compiled);
      const Generation all = generate(batched, prompts, kSteps);
      const auto vocab = static_cast<size_t>(batched.config().vocab_size);
      for (size_t row = 0; row < rows.size(); ++row) {
        const Generation alone = generate(single, PromptBatch::of({rows[row]}), kSteps);
        EXPECT_EQ(all.tokens[row], alone.tokens[0]) << "row " << row;
        for (size_t i = 0; i < alone.logits.size(); ++i) {
          expect_near(std::span(all.logits[i]).subspan(row * vocab, vocab), alone.logits[i],
                      tolerance_);
        }
      }
    }
  }

  void stepping_equals_a_longer_prompt() {
    for (const CacheKind cache : {CacheKind::kDynamic, CacheKind::kStatic}) {
      for (const bool compiled : {false, true}) {
        Session stepped = session(compiled, cache);
        ASSERT_TRUE(stepped.prepare(1, 9));
        ASSERT_TRUE(stepped.prefill(PromptBatch::of({Prompt(kLong.begin(), kLong.begin() + 2)})));
        for (size_t i = 2; i < kLong.size(); ++i) {
          ASSERT_TRUE(stepped.decode(std::span(&kLong[i], 1)));
        }
        EXPECT_EQ(stepped.kv_len(), 9);
        Session whole = session(compiled, cache);
        ASSERT_TRUE(whole.prepare(1, 9));
        ASSERT_TRUE(whole.prefill(PromptBatch::of({kLong})));
        expect_near(stepped.logits(), whole.logits(), tolerance_);
        EXPECT_EQ(stepped.next_tokens()[0], whole.next_tokens()[0]);
      }
    }
  }

  void all_logits_are_every_prefixs() {
    Session whole = session(false), prefix = session(false);
    ASSERT_TRUE(whole.prepare(1, 16));
    const auto all = whole.prefill_all_logits(PromptBatch::of({kLong}));
    ASSERT_TRUE(all) << all.error().message;
    const auto vocab = static_cast<size_t>(whole.config().vocab_size);
    ASSERT_EQ(all->size(), kLong.size() * vocab);
    EXPECT_EQ(whole.kv_len(), 9);
    ASSERT_TRUE(prefix.prepare(1, 16));
    for (size_t n = 1; n <= kLong.size(); ++n) {
      ASSERT_TRUE(prefix.prefill(
          PromptBatch::of({Prompt(kLong.begin(), kLong.begin() + static_cast<long>(n))})));
      expect_near(std::span(*all).subspan((n - 1) * vocab, vocab), prefix.logits(), tolerance_);
    }
    expect_near(whole.logits(), prefix.logits(), tolerance_);
    EXPECT_EQ(whole.next_tokens()[0], prefix.next_tokens()[0]);
    ASSERT_TRUE(whole.decode(whole.next_tokens()));  // the cache is as after prefill()
    ASSERT_TRUE(prefix.decode(prefix.next_tokens()));
    expect_near(whole.logits(), prefix.logits(), tolerance_);
  }

  void runs_are_repeatable() {
    for (const bool compiled : {false, true}) {
      Session first = session(compiled);
      const Generation a = generate(first, PromptBatch::of({kLong}), kSteps);
      generate(first, PromptBatch::of({kShort, kLong}), 3);
      Session moved = std::move(first);
      const Generation b = generate(moved, PromptBatch::of({kLong}), kSteps);
      EXPECT_EQ(a.tokens, b.tokens);
      EXPECT_EQ(a.logits, b.logits);
    }
  }

  void greedy_is_decode() {
    const PromptBatch prompts = PromptBatch::of({{1, 2, 3, 4}, {5, 6}});
    for (const bool compiled : {false, true}) {
      Session session = this->session(compiled);
      const Generation expected = generate(session, prompts, 6);
      ASSERT_TRUE(session.prepare(2, 10));
      EXPECT_FALSE(session.decode_greedy(1, [](auto) { return true; })) << "before a prefill";
      ASSERT_TRUE(session.prefill(prompts));
      std::vector<Prompt> tokens = {{session.next_tokens()[0]}, {session.next_tokens()[1]}};
      const auto keep = [&](std::span<const int32_t> next) {
        for (size_t row = 0; row < 2; ++row) tokens[row].push_back(next[row]);
        return true;
      };
      const Status past = session.decode_greedy(7, keep);
      ASSERT_FALSE(past);
      EXPECT_THAT(past.error().message, testing::HasSubstr("expected 0 to 6 steps"));
      ASSERT_TRUE(session.decode_greedy(0, keep));
      ASSERT_TRUE(session.decode_greedy(2, keep));
      ASSERT_TRUE(session.decode_greedy(4, keep));
      EXPECT_EQ(tokens, expected.tokens);
      EXPECT_EQ(copy(session.logits()), expected.logits.back());
    }
  }

  // Behind each step of the first ones, which are run one by one, and of those that aren't.
  void greedy_stops() {
    const PromptBatch prompts = PromptBatch::of({{1, 2, 3, 4}, {5, 6}});
    constexpr int64_t kMost = 20;
    for (const bool compiled : {false, true}) {
      Session session = this->session(compiled);
      const Generation expected = generate(session, prompts, kMost);
      for (const int64_t stop : {1, 2, 3, 11, 12}) {
        SCOPED_TRACE(testing::Message() << "behind step " << stop);
        ASSERT_TRUE(session.prepare(2, 4 + kMost));
        ASSERT_TRUE(session.prefill(prompts));
        std::vector<Prompt> tokens = {{session.next_tokens()[0]}, {session.next_tokens()[1]}};
        int64_t asked_to_stop = stop;
        const auto keep = [&](std::span<const int32_t> next) {
          for (size_t row = 0; row < 2; ++row) tokens[row].push_back(next[row]);
          return --asked_to_stop != 0;
        };
        ASSERT_TRUE(session.decode_greedy(kMost, keep));
        EXPECT_EQ(tokens[0].size(), static_cast<size_t>(1 + stop));
        EXPECT_EQ(session.kv_len(), 4 + stop);
        EXPECT_EQ(session.next_tokens()[1], tokens[1].back());
        EXPECT_TRUE(session.logits().empty());
        ASSERT_TRUE(session.decode_greedy(kMost - stop, keep)) << "it goes on from there";
        EXPECT_EQ(tokens, expected.tokens);
        expect_near(session.logits(), expected.logits.back(), tolerance_);
      }
    }
  }

  // Steps of one and the other in turns, over caches of equal size, which share compiled steps, and
  // of another size.
  void one_model_serves_two() {
    const PromptBatch prompts = PromptBatch::of({kLong}), others = PromptBatch::of({kShort}, 9);
    for (const bool compiled : {false, true}) {
      Session first = session(compiled);
      const Generation expected = generate(first, prompts, kSteps);
      const Generation expected_of_others = generate(first, others, kSteps);
      const CompileCounters alone = first.counters();
      for (const int64_t more : {0, 5}) {
        FrameOptions frames{.prefill = compiled, .decode = compiled, .dynamic = Dynamic::kTrue};
        auto second = Session::on(first.shared_model(), CacheKind::kStatic, frames);
        ASSERT_TRUE(second) << second.error().message;
        ASSERT_TRUE(first.prepare(1, 9 + kSteps) && second->prepare(1, 9 + kSteps + more));
        ASSERT_TRUE(first.prefill(prompts));
        EXPECT_FALSE(first.logits().empty());
        ASSERT_TRUE(second->prefill(others));
        EXPECT_TRUE(first.logits().empty()) << "they may be the other's";
        for (size_t step = 0;; ++step) {
          ASSERT_EQ(first.next_tokens()[0], expected.tokens[0][step]);
          ASSERT_EQ(second->next_tokens()[0], expected_of_others.tokens[0][step]);
          expect_near(second->logits(), expected_of_others.logits[step], tolerance_);
          if (step == kSteps) break;
          ASSERT_TRUE(first.decode(first.next_tokens()));
          ASSERT_TRUE(second->decode(second->next_tokens()));
        }
        EXPECT_EQ(first.model().weight_bytes(), second->model().weight_bytes());
        EXPECT_EQ(second->counters().kernels_compiled, alone.kernels_compiled);
        EXPECT_EQ(second->counters().kernels_loaded, alone.kernels_loaded);
        EXPECT_EQ(second->counters().fallbacks, 0);
      }
    }
  }

  void not_finite_is_seen() {
    for (const bool compiled : {false, true}) {
      Session whole = session(compiled);
      generate(whole, PromptBatch::of({kLong, kShort}), 2);
      EXPECT_TRUE(whole.logits_finite());
    }
    const auto file = checkpoint_.folder() / "model.safetensors";
    std::string broken = *read_file(file);
    uint64_t header = 0;
    std::memcpy(&header, broken.data(), sizeof header);
    for (size_t at = 8 + header; at < broken.size(); ++at)
      broken[at] = '\xff';  // NaN in every type
    ASSERT_TRUE(write_file(file, broken));
    for (const CacheKind cache : {CacheKind::kStatic, CacheKind::kDynamic}) {
      for (const bool compiled : {false, true}) {
        Session nothing = session(compiled, cache);
        ASSERT_TRUE(nothing.prepare(1, 8));
        ASSERT_TRUE(nothing.prefill(PromptBatch::of({kShort})));
        EXPECT_FALSE(nothing.logits_finite());
        ASSERT_TRUE(nothing.decode(nothing.next_tokens()));
        EXPECT_FALSE(nothing.logits_finite());
      }
    }
  }

  void errors_leave_it_usable() {
    for (const bool compiled : {false, true}) {
      Session session = this->session(compiled);
      EXPECT_FALSE(session.prefill(PromptBatch::of({kShort}))) << "before prepare()";
      EXPECT_FALSE(session.make_ready(3, true)) << "before prepare()";
      ASSERT_TRUE(session.prepare(1, 4));
      EXPECT_FALSE(session.decode(std::vector<int32_t>{1})) << "before a prefill";
      EXPECT_FALSE(session.make_ready(5, true));
      EXPECT_FALSE(session.prefill(PromptBatch::of({kLong})));
      ASSERT_TRUE(session.prefill(PromptBatch::of({kShort})));
      EXPECT_FALSE(session.decode(std::vector<int32_t>{1, 2}));
      EXPECT_FALSE(session.decode(std::vector<int32_t>{1000}));
      ASSERT_TRUE(session.decode(session.next_tokens()));
      const Status full = session.decode(session.next_tokens());
      ASSERT_FALSE(full);
      EXPECT_THAT(full.error().message, testing::HasSubstr("below the capacity of 4"));
      EXPECT_EQ(session.kv_len(), 4);
      EXPECT_TRUE(session.prefill(PromptBatch::of({kShort})));
    }
  }

  void counters_of_scripted_lengths() {
    const auto graphs = [&](Dynamic dynamic) {
      Session s = compiled(dynamic);
      prefill(s, {3, 9, 3, 5, 9, 12}, 40);
      EXPECT_EQ(s.counters().fallbacks, 0);
      EXPECT_EQ(s.counters().recompiles, s.counters().unique_graphs - 1);
      return s.counters().unique_graphs;
    };
    EXPECT_EQ(graphs(Dynamic::kFalse), 4);
    EXPECT_EQ(graphs(Dynamic::kAuto), 2);
    EXPECT_EQ(graphs(Dynamic::kTrue), 1);
    Session one = compiled(Dynamic::kTrue);
    prefill(one, {4, 1, 6}, 40);  // a size of one is always a constant
    const auto records = one.compile_evidence().prefill.graphs;
    ASSERT_EQ(records.size(), 2u);
    EXPECT_EQ(records[0].guards, "batch == 1, q_len >= 2, capacity >= 2");
    EXPECT_EQ(records[1].failed_guard, "q_len");
    EXPECT_EQ(records[1].expected, ">= 2");
    EXPECT_EQ(records[1].found, "1");
  }

  void symbolic_lengths_in_any_order() {
    Session eager = session(false);
    Session s = compiled(Dynamic::kTrue);
    for (const size_t length : {2, 40, 3, 17, 9, 31, 2}) {
      const PromptBatch prompts = PromptBatch::of({Prompt(length, 3), Prompt(2, 7)});
      expect_same(generate(s, prompts, 3), generate(eager, prompts, 3));
    }
    EXPECT_EQ(s.counters().unique_graphs, 2);
    EXPECT_EQ(s.counters().fallbacks, 0);
  }

  void the_limit_ends_compilation() {
    Session s = compiled(Dynamic::kFalse, [](CompileOptions& o) { o.recompile_limit = 3; });
    prefill(s, {2, 3, 4, 3}, 40);
    EXPECT_EQ(s.counters().unique_graphs, 3);
    EXPECT_EQ(s.counters().fallbacks, 0);
    prefill(s, {5, 3}, 40);  // both run eager, though 3 had compiled
    EXPECT_EQ(s.counters().unique_graphs, 3);
    EXPECT_EQ(s.counters().fallbacks, 2);
    EXPECT_EQ(s.counters().recompile_limit_hits, 1);
    EXPECT_EQ(s.prefill_runs().compiled, 4);
  }

  void buckets_share_a_graph() {
    Session eager = session(false);
    Session s = compiled(Dynamic::kFalse, [](CompileOptions& o) { o.bucket = 8; });
    for (const Prompt& prompt : {Prompt{4}, kShort, kLong}) {
      const PromptBatch prompts = PromptBatch::of({prompt});
      expect_same(generate(s, prompts, kSteps), generate(eager, prompts, kSteps));
      EXPECT_EQ(s.kv_len(), eager.kv_len());
      EXPECT_FALSE(s.decode(s.next_tokens()));  // full, as the eager one
    }
    EXPECT_EQ(s.compile_evidence().prefill.graphs.size(), 3u);  // three capacities
    prefill(s, {1, 5, 8}, 30);
    EXPECT_EQ(s.compile_evidence().prefill.graphs.size(), 4u);  // one bucket
  }

  void split_arms_compile_one_phase() {
    Session s = compiled(Dynamic::kAuto, [](CompileOptions& o) { o.prefill = false; });
    generate(s, PromptBatch::of({kShort}), 3);
    EXPECT_EQ(s.decode_runs().compiled, 3);
    EXPECT_EQ(s.prefill_runs().compiled, 0);
    EXPECT_EQ(s.counters().fallbacks, 0);  // a phase that was to be eager is no fallback
    EXPECT_FALSE(s.compile_evidence().prefill.requested);
  }

  void make_ready_leaves_nothing() {
    for (const CacheKind cache : {CacheKind::kStatic, CacheKind::kDynamic}) {
      Session s = compiled(Dynamic::kFalse, {}, cache);
      ASSERT_TRUE(s.prepare(1, 20));
      ASSERT_TRUE(s.make_ready(3, true));
      EXPECT_EQ(s.kv_len(), 0);
      const CompileCounters ready = s.counters();
      EXPECT_EQ(ready.unique_graphs, 2);
      ASSERT_TRUE(s.prefill(PromptBatch::of({kShort})));
      ASSERT_TRUE(s.decode(s.next_tokens()));
      EXPECT_EQ(s.counters().unique_graphs, 2);
      EXPECT_EQ(s.counters().kernels_compiled, ready.kernels_compiled);
      EXPECT_EQ(s.counters().graph_captures, ready.graph_captures);
    }
  }

 private:
  static constexpr int64_t kSteps = 6;
  inline static const Prompt kShort = {5, 0, 17}, kLong = {1, 2, 3, 30, 31, 7, 7, 12, 9};

  void expect_same(const Generation& found, const Generation& expected) const {
    EXPECT_EQ(found.tokens, expected.tokens);
    ASSERT_EQ(found.logits.size(), expected.logits.size());
    for (size_t i = 0; i < found.logits.size(); ++i) {
      expect_near(found.logits[i], expected.logits[i], tolerance_);
    }
  }

  // Prompts of these lengths, with room for `capacity`.
  static void prefill(Session& session, const std::vector<int64_t>& lengths, int64_t capacity) {
    for (const int64_t length : lengths) {
      ASSERT_TRUE(session.prepare(1, capacity));
      ASSERT_TRUE(session.prefill(PromptBatch::of({Prompt(static_cast<size_t>(length), 3)})));
    }
  }

  Session session(bool compiled, CacheKind cache = CacheKind::kStatic) {
    if (compiled) return this->compiled(Dynamic::kTrue, {}, cache);
    SessionOptions options = base_;
    options.cache = cache;
    return open(checkpoint_, options);
  }
  Session compiled(Dynamic dynamic, const std::function<void(CompileOptions&)>& change = {},
                   CacheKind cache = CacheKind::kStatic) {
    SessionOptions options = base_;
    options.cache = cache;
    options.compile.prefill = options.compile.decode = true;
    options.compile.dynamic = dynamic;
    if (change) change(options.compile);
    return open(checkpoint_, options);
  }

  TinyCheckpoint checkpoint_;
  SessionOptions base_;
  double tolerance_;
};

}  // namespace assay::engine::test
