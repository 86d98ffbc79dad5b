// Compiled sessions against eager ones: the same tokens in every family, cache and kind of
// specialisation, exact counters, and eager runs if nothing can be compiled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "engine/ops/cpu/panel_product.h"
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

void expect_same(const Generation& found, const Generation& expected, double tolerance = 1e-4) {
  EXPECT_EQ(found.tokens, expected.tokens);
  ASSERT_EQ(found.logits.size(), expected.logits.size());
  for (size_t i = 0; i < found.logits.size(); ++i) {
    expect_near(found.logits[i], expected.logits[i], tolerance);
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

// If the processor multiplies bf16, eager's products of all of a prompt's rows round their inputs,
// and compiled ones behind the last attention, of one row, don't.
TEST_P(CompiledTest, StoredTypesAreClose) {
  constexpr int64_t kTokens = 12;
  const double tolerance = cpu::panel_x_dtype(DType::kBF16) == DType::kF32 ? 1e-4 : 4e-3;
  Session eager = open(checkpoint_, {.threads = 2});
  Session session = open(checkpoint_, compiled());
  for (const PromptBatch& prompts : {PromptBatch::of({kLong}), PromptBatch::of({kShort, kLong})}) {
    expect_same(generate(session, prompts, kTokens), generate(eager, prompts, kTokens), tolerance);
  }
  EXPECT_EQ(session.counters().fallbacks, 0);
}

INSTANTIATE_TEST_SUITE_P(Families, CompiledTest, ::testing::Range(size_t{0}, families().size()),
                         [](const auto& family) { return families()[family.param].name; });

class CompiledGpt2 : public ::testing::Test {
 protected:
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

TEST_F(CompiledGpt2, WeightsArePackedWhileLoading) {
  Session s = session(Dynamic::kFalse);
  const uint64_t packed = s.compile_evidence().packed_bytes;
  EXPECT_GT(packed, 0u);
  generate(s, PromptBatch::of({kShort}), 1);
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
