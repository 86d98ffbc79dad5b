// Compiled sessions against eager ones: the same tokens in every family, cache and kind of
// specialisation, exact counters, and what happens where nothing can be compiled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "engine/passes/pass.h"
#include "engine/session/tiny_checkpoint.h"

namespace assay::engine {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kPositions = 160;
const Prompt kShort = {5, 0, 17};
const Prompt kLong = {1, 2, 3, 30, 31, 7, 7, 12, 9};

// Kernels of all tests, so that each is compiled once however many processes run them.
std::filesystem::path kernel_folder() {
  return std::filesystem::path(::testing::TempDir()) / fmt::format("assay-kernels-{}", getuid());
}

SessionOptions compiled(SessionOptions options = {}) {
  options.compile.prefill = options.compile.decode = true;
  options.compile.kernel_cache = kernel_folder();
  options.compile.verify_passes = false;  // each pass has tests of its own
  if (options.threads == 0) options.threads = 2;
  return options;
}

void expect_same(const Generation& found, const Generation& expected) {
  EXPECT_EQ(found.tokens, expected.tokens);
  ASSERT_EQ(found.logits.size(), expected.logits.size());
  for (size_t i = 0; i < found.logits.size(); ++i) {
    expect_near(found.logits[i], expected.logits[i], 1e-4);
  }
}

// No frame fell back, and kernels ran.
void expect_compiled(const Session& session) {
  const CompileEvidence evidence = session.compile_evidence();
  EXPECT_EQ(evidence.prefill.fallback, "");
  EXPECT_EQ(evidence.decode.fallback, "");
  EXPECT_EQ(session.counters().fallbacks, 0);
  EXPECT_GT(evidence.prefill.runs.compiled, 0);
  EXPECT_GT(evidence.decode.runs.compiled, 0);
  EXPECT_GT(evidence.kernels.compiled + evidence.kernels.loaded, 0);
}

class CompiledTest : public ::testing::TestWithParam<size_t> {
 protected:
  TinyCheckpoint checkpoint_{families()[GetParam()], kPositions};
};

TEST_P(CompiledTest, GivesTheTokensOfEagerOver128Steps) {
  constexpr int64_t kTokens = 128;
  Session eager = open(checkpoint_, {.dtype = DType::kF32, .threads = 2});
  const PromptBatch prompts = PromptBatch::of({kLong});
  const Generation expected = generate(eager, prompts, kTokens);
  for (const CacheKind cache : {CacheKind::kStatic, CacheKind::kDynamic}) {
    for (const Dynamic dynamic : {Dynamic::kFalse, Dynamic::kTrue, Dynamic::kAuto}) {
      SCOPED_TRACE(
          fmt::format("cache {} dynamic {}", static_cast<int>(cache), static_cast<int>(dynamic)));
      SessionOptions options = compiled({.cache = cache, .dtype = DType::kF32});
      options.compile.dynamic = dynamic;
      Session session = open(checkpoint_, options);
      expect_same(generate(session, prompts, kTokens), expected);
      const CompileCounters counters = session.counters();
      if (cache == CacheKind::kDynamic && dynamic == Dynamic::kFalse) {
        // One graph a length until the limit, then eager for good.
        EXPECT_EQ(counters.unique_graphs, 1 + 8);
        EXPECT_EQ(counters.recompile_limit_hits, 1);
        EXPECT_EQ(counters.fallbacks, kTokens - 8);
        EXPECT_THAT(session.compile_evidence().decode.fallback,
                    HasSubstr("recompile limit of 8 reached: kv_len: expected == 17, found 18"));
      } else {
        expect_compiled(session);
        const bool grows = cache == CacheKind::kDynamic && dynamic == Dynamic::kAuto;
        EXPECT_EQ(counters.unique_graphs, grows ? 3 : 2);
      }
    }
  }
}

TEST_P(CompiledTest, BatchesPaddingAndThreads) {
  constexpr int64_t kTokens = 12;
  const PromptBatch prompts = PromptBatch::of({kShort, kLong, {8}}, 11);
  Session eager = open(checkpoint_, {.dtype = DType::kF32, .threads = 2});
  const Generation expected = generate(eager, prompts, kTokens);
  for (const size_t threads : {1, 2, 4}) {
    for (const Dynamic dynamic : {Dynamic::kFalse, Dynamic::kTrue}) {
      SessionOptions options = compiled({.dtype = DType::kF32, .threads = threads});
      options.compile.dynamic = dynamic;
      Session session = open(checkpoint_, options);
      expect_same(generate(session, prompts, kTokens), expected);
      expect_compiled(session);
    }
  }
}

TEST_P(CompiledTest, EachPassMayBeLeftOut) {
  constexpr int64_t kTokens = 6;
  Session eager = open(checkpoint_, {.dtype = DType::kF32, .threads = 2});
  const PromptBatch prompts = PromptBatch::of({kLong});
  const Generation expected = generate(eager, prompts, kTokens);
  std::vector<std::vector<std::string>> choices = {{}, {std::string(kPlanMemory)}};
  for (const Pass& pass : graph_passes()) {
    choices.front().push_back(std::string(pass.name));
    choices.push_back({std::string(pass.name)});
  }
  for (const auto& disabled : choices) {
    SCOPED_TRACE(fmt::format("without {}", fmt::join(disabled, ", ")));
    SessionOptions options = compiled({.dtype = DType::kF32});
    options.compile.disabled_passes = disabled;
    Session session = open(checkpoint_, options);
    expect_same(generate(session, prompts, kTokens), expected);
    expect_compiled(session);
  }
}

TEST_P(CompiledTest, StoredTypesAreClose) {
  constexpr int64_t kTokens = 12;
  Session eager = open(checkpoint_, {.threads = 2});
  Session session = open(checkpoint_, compiled());
  for (const PromptBatch& prompts : {PromptBatch::of({kLong}), PromptBatch::of({kShort, kLong})}) {
    expect_same(generate(session, prompts, kTokens), generate(eager, prompts, kTokens));
  }
  EXPECT_EQ(session.counters().fallbacks, 0);
}

INSTANTIATE_TEST_SUITE_P(Families, CompiledTest, ::testing::Range(size_t{0}, families().size()),
                         [](const auto& family) { return families()[family.param].name; });

class CompiledGpt2 : public ::testing::Test {
 protected:
  // Prefills of these lengths, with room for `capacity`.
  static void prefill(Session& session, const std::vector<int64_t>& lengths, int64_t capacity) {
    for (const int64_t length : lengths) {
      ASSERT_TRUE(session.prepare(1, capacity));
      ASSERT_TRUE(session.prefill(PromptBatch::of({Prompt(static_cast<size_t>(length), 3)})));
    }
  }

  Session session(Dynamic dynamic, const std::function<void(CompileOptions&)>& change = {}) {
    SessionOptions options = compiled();
    options.compile.dynamic = dynamic;
    if (change) change(options.compile);
    return open(checkpoint_, options);
  }

  // Runs eager with this as the compiler, and says `why`.
  void expect_fallback(const std::string& compiler, const std::string& why) {
    Session eager = open(checkpoint_, {.threads = 2});
    setenv("ASSAY_CXX", compiler.c_str(), 1);
    Session broken =
        session(Dynamic::kAuto, [](CompileOptions& options) { options.kernel_cache.reset(); });
    const PromptBatch prompts = PromptBatch::of({kShort});
    const Generation found = generate(broken, prompts, 3);
    unsetenv("ASSAY_CXX");
    expect_same(found, generate(eager, prompts, 3));
    EXPECT_THAT(broken.compile_evidence().prefill.fallback, HasSubstr(why));
    EXPECT_THAT(broken.compile_evidence().decode.fallback, HasSubstr(why));
    EXPECT_EQ(broken.counters().fallbacks, 4);
    EXPECT_EQ(broken.counters().unique_graphs, 0);
  }

  TinyCheckpoint checkpoint_{families()[0]};
};

TEST_F(CompiledGpt2, CountersOfScriptedLengths) {
  const std::vector<int64_t> lengths = {3, 9, 3, 5, 9, 12};
  const auto graphs = [&](Dynamic dynamic) {
    Session s = session(dynamic);
    prefill(s, lengths, 40);
    EXPECT_EQ(s.counters().fallbacks, 0);
    EXPECT_EQ(s.counters().recompiles, s.counters().unique_graphs - 1);
    return s.counters().unique_graphs;
  };
  EXPECT_EQ(graphs(Dynamic::kFalse), 4);
  EXPECT_EQ(graphs(Dynamic::kAuto), 2);
  EXPECT_EQ(graphs(Dynamic::kTrue), 1);
  Session one = session(Dynamic::kTrue);
  prefill(one, {4, 1, 6}, 40);  // a size of one is always a constant
  EXPECT_EQ(one.counters().unique_graphs, 2);
  const auto records = one.compile_evidence().prefill.graphs;
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].failed_guard, "");
  EXPECT_EQ(records[0].guards, "batch == 1, q_len >= 2, capacity >= 2");
  EXPECT_EQ(records[1].failed_guard, "q_len");
  EXPECT_EQ(records[1].expected, ">= 2");
  EXPECT_EQ(records[1].found, "1");
}

TEST_F(CompiledGpt2, SymbolicLengthsInAnyOrderAreEager) {
  Session eager = open(checkpoint_, {.threads = 2});
  Session s = session(Dynamic::kTrue);
  for (const size_t length : {2, 40, 3, 17, 9, 31, 2}) {
    const PromptBatch prompts = PromptBatch::of({Prompt(length, 3), Prompt(2, 7)});
    expect_same(generate(s, prompts, 3), generate(eager, prompts, 3));
  }
  EXPECT_EQ(s.counters().unique_graphs, 2);
}

TEST_F(CompiledGpt2, TheRecompileLimitEndsCompilationForGood) {
  Session s =
      session(Dynamic::kFalse, [](CompileOptions& options) { options.recompile_limit = 3; });
  prefill(s, {2, 3, 4, 3}, 40);
  EXPECT_EQ(s.counters().unique_graphs, 3);
  EXPECT_EQ(s.counters().fallbacks, 0);
  prefill(s, {5, 3}, 40);  // also what had compiled
  EXPECT_EQ(s.counters().unique_graphs, 3);
  EXPECT_EQ(s.counters().fallbacks, 2);
  EXPECT_EQ(s.counters().recompile_limit_hits, 1);
  EXPECT_EQ(s.prefill_runs().compiled, 4);
}

TEST_F(CompiledGpt2, BucketsShareAGraphAndLeaveTheCapacityAlone) {
  Session eager = open(checkpoint_, {.threads = 2});
  Session s = session(Dynamic::kFalse, [](CompileOptions& options) { options.bucket = 8; });
  for (const Prompt& prompt : {Prompt{4}, kShort, kLong}) {
    const PromptBatch prompts = PromptBatch::of({prompt});
    expect_same(generate(s, prompts, 20), generate(eager, prompts, 20));
    EXPECT_EQ(s.kv_len(), eager.kv_len());
    EXPECT_FALSE(s.decode(s.next_tokens()));  // full, as the eager one
  }
  EXPECT_EQ(s.compile_evidence().prefill.graphs.size(), 3u);  // three capacities
  prefill(s, {1, 5, 8}, 30);
  EXPECT_EQ(s.compile_evidence().prefill.graphs.size(), 4u);  // one bucket
}

TEST_F(CompiledGpt2, SplitArmsCompileOnePhase) {
  Session s = session(Dynamic::kAuto, [](CompileOptions& options) { options.prefill = false; });
  generate(s, PromptBatch::of({kShort}), 3);
  EXPECT_EQ(s.decode_runs().compiled, 3);
  EXPECT_EQ(s.prefill_runs().compiled, 0);
  EXPECT_EQ(s.counters().fallbacks, 0);  // what was to be eager is no fallback
  EXPECT_FALSE(s.compile_evidence().prefill.requested);
}

TEST_F(CompiledGpt2, MakeReadyLeavesNothingToTheFirstRun) {
  Session s = session(Dynamic::kFalse);
  const uint64_t packed = s.compile_evidence().packed_bytes;
  EXPECT_GT(packed, 0u);                // while loading
  EXPECT_FALSE(s.make_ready(3, true));  // before prepare()
  ASSERT_TRUE(s.prepare(1, 20));
  EXPECT_FALSE(s.make_ready(21, true));
  ASSERT_TRUE(s.make_ready(3, true));
  const CompileCounters ready = s.counters();
  EXPECT_EQ(ready.unique_graphs, 2);
  ASSERT_TRUE(s.prefill(PromptBatch::of({kShort})));
  ASSERT_TRUE(s.decode(s.next_tokens()));
  EXPECT_EQ(s.counters().unique_graphs, 2);
  EXPECT_EQ(s.counters().kernels_compiled, ready.kernels_compiled);
  EXPECT_EQ(s.compile_evidence().packed_bytes, packed);
}

TEST_F(CompiledGpt2, AnUnknownPassIsRefusedAtOnce) {
  SessionOptions options = compiled();
  options.compile.disabled_passes = {"fuse_nrom"};
  const auto opened = Session::open(checkpoint_.folder(), options);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("fuse_norm"));
}

TEST_F(CompiledGpt2, NoWorkingCompilerIsARecordedFallback) {
  expect_fallback("/nonexistent/c++", "/nonexistent/c++");
  expect_fallback("/bin/false", "/bin/false");
  // One that answers questions and writes garbage.
  const auto script = checkpoint_.folder() / "garbage";
  ASSERT_TRUE(write_file(script,
                         "#!/bin/sh\ncase \"$*\" in *--version*) echo 'c++ 1.0'; exit 0;; "
                         "esac\nfor a; do last=$a; done\n"
                         "for a; do [ \"$p\" = -o ] && echo junk > \"$a\"; p=$a; done\n"));
  chmod(script.c_str(), 0755);
  expect_fallback(script.string(), "");
}

}  // namespace
}  // namespace assay::engine
