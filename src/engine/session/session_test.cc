#include "engine/session/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/model/summary.h"
#include "engine/ops/cpu/panel_product.h"
#include "engine/session/session_properties.h"
#include "engine/session/tiny_checkpoint.h"

namespace assay::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kSteps = 12;
const Prompt kShort = {5, 0, 17};
const Prompt kLong = {1, 2, 3, 30, 31, 7, 7, 12, 9};

class SessionTest : public ::testing::TestWithParam<size_t> {
 protected:
  // Prompts of more than 8 tokens go through products whose inputs may be rounded (adr/0003).
  static double tolerance() {
    const DType dtype = families()[GetParam()].dtype;
    return cpu::panel_x_dtype(dtype) == DType::kF32 ? 1e-5 : 0.03;
  }
  Session session(SessionOptions options = {}) {
    if (options.threads == 0) options.threads = 2;
    return open(checkpoint_, options);
  }

  TinyCheckpoint checkpoint_{families()[GetParam()]};
};

TEST_P(SessionTest, CpuOperatorsAgreeWithTheReference) {
  Session reference = session({.reference_ops = true});
  Session cpu = session();
  for (const Prompt& prompt : {kShort, kLong, Prompt{4}}) {
    const PromptBatch prompts = PromptBatch::of({prompt});
    const Generation expected = generate(reference, prompts, kSteps);
    const Generation found = generate(cpu, prompts, kSteps);
    EXPECT_EQ(found.tokens, expected.tokens);
    for (size_t i = 0; i < found.logits.size(); ++i) {
      expect_near(found.logits[i], expected.logits[i], tolerance());
    }
  }
}

TEST_P(SessionTest, CompileOptionsOutOfTheirRangeAreRefused) {
  const auto refused = [&](int64_t recompile_limit, int64_t bucket) {
    SessionOptions options{.threads = 1};
    options.compile.recompile_limit = recompile_limit;
    options.compile.bucket = bucket;
    return !Session::open(checkpoint_.folder(), options);
  };
  EXPECT_FALSE(refused(1, 0));
  EXPECT_FALSE(refused(8, kMostBucket));
  EXPECT_TRUE(refused(0, 0)) << "the contract says at least 1";
  EXPECT_TRUE(refused(-4, 0));
  EXPECT_TRUE(refused(8, -1));
  EXPECT_TRUE(refused(8, INT64_MAX)) << "it would overflow the cache's length";
}

TEST_P(SessionTest, WeightsMayBeConverted) {
  Session stored = session();
  EXPECT_EQ(stored.model().dtype(), families()[GetParam()].dtype);
  Session widened = session({.dtype = DType::kF32});
  EXPECT_EQ(widened.model().dtype(), DType::kF32);
  const uint64_t factor = 4 / dtype_size_bytes(stored.model().dtype());
  EXPECT_EQ(widened.model().weight_bytes(), factor * stored.model().weight_bytes());
  const PromptBatch prompts = PromptBatch::of({kLong});
  const Generation a = generate(stored, prompts, kSteps);
  const Generation b = generate(widened, prompts, kSteps);  // widening is exact
  EXPECT_EQ(a.tokens, b.tokens);
  expect_near(a.logits.back(), b.logits.back(), tolerance());
}

TEST_P(SessionTest, StepBytesCountWeightsOnceAndTheCache) {
  const Session s = session();
  const ModelConfig& c = s.config();
  const auto of_cache = static_cast<uint64_t>(2 * c.layers * c.kv_heads * c.head_dim * 4);
  EXPECT_EQ(s.model().step_bytes(1, 10) - s.model().step_bytes(1, 9), of_cache);
  const uint64_t per_element = dtype_size_bytes(s.model().dtype());
  uint64_t expected = s.model().weight_bytes();
  const auto rows_only = [&](int64_t table_rows) {  // of a table that is looked up, one row is read
    expected -= static_cast<uint64_t>((table_rows - 1) * c.hidden_size) * per_element;
  };
  if (!c.tied_embeddings) rows_only(c.vocab_size);
  if (c.learned_positions) rows_only(c.max_positions);
  EXPECT_EQ(s.model().step_bytes(1, 0), expected);
  for (const int64_t batch : {1, 3}) {  // the model's summary says the same
    EXPECT_EQ(s.model().step_bytes(batch, 0), decode_weight_bytes(c, tensor_specs(c), batch));
  }
}

INSTANTIATE_TEST_SUITE_P(Families, SessionTest, ::testing::Range(size_t{0}, families().size()),
                         [](const auto& family) { return families()[family.param].name; });

// Properties of sessions on every device, here on the processor; tests/device has a GPU's.
class SessionPropertiesTest : public ::testing::TestWithParam<std::tuple<size_t, size_t>> {};

TEST_P(SessionPropertiesTest, Holds) {
  const auto [family, property] = GetParam();
  SessionOptions options{.threads = 2};
  options.compile.kernel_cache =
      std::filesystem::path(::testing::TempDir()) / fmt::format("assay-kernels-{}", getuid());
  const bool rounds = cpu::panel_x_dtype(families()[family].dtype) != DType::kF32;
  test::SessionProperties properties(families()[family], options, rounds ? 0.03 : 1e-5);
  (properties.*test::SessionProperties::all()[property].property)();
}

INSTANTIATE_TEST_SUITE_P(
    Processor, SessionPropertiesTest,
    ::testing::Combine(::testing::Range(size_t{0}, families().size()),
                       ::testing::Range(size_t{0}, test::SessionProperties::all().size())),
    [](const auto& test) {
      return families()[std::get<0>(test.param)].name + "_" +
             test::SessionProperties::all()[std::get<1>(test.param)].name;
    });

class SessionErrors : public ::testing::Test {
 protected:
  static void expect_error(const Status& status, const std::string& message) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(status.error().message, HasSubstr(message));
  }

  TinyCheckpoint checkpoint_{families()[0]};
  Session session_ = open(checkpoint_, {.threads = 1, .reference_ops = true});
};

TEST_F(SessionErrors, CapacityBeyondTheModelsPositionsNamesBoth) {
  expect_error(session_.prepare(1, 49), "expected 1 to 48 positions (the model's), found 49");
  expect_error(session_.prepare(1, 0), "found 0");
  expect_error(session_.prepare(0, 8), "batch: expected at least 1 row, found 0");
  EXPECT_TRUE(session_.prepare(1, 48));
}

TEST_F(SessionErrors, OutOfOrder) {
  expect_error(session_.prefill(PromptBatch::of({kShort})), "expected prepare() before it");
  ASSERT_TRUE(session_.prepare(1, 8));
  expect_error(session_.decode(std::vector<int32_t>{1}), "expected a prefill before it");
}

TEST_F(SessionErrors, PromptsThatDoNotFit) {
  ASSERT_TRUE(session_.prepare(1, 8));
  expect_error(session_.prefill(PromptBatch::of({kLong})),
               "at most 8 tokens (the prepared capacity), found 9");
  expect_error(session_.prefill(PromptBatch::of({kShort, kShort})), "prepared batch of 1, found 2");
  expect_error(session_.prefill(PromptBatch::of({Prompt{}})), "expected at least 1 token");
  expect_error(session_.prefill(PromptBatch::of({{3, 37}})), "expected ids from 0 to 36, found 37");
  expect_error(session_.prefill(PromptBatch::of({{-1}})), "found -1");
}

TEST_F(SessionErrors, MalformedBatches) {
  ASSERT_TRUE(session_.prepare(1, 8));
  PromptBatch all_padding = PromptBatch::of({kShort});
  all_padding.pad[0] = 3;
  expect_error(session_.prefill(all_padding), "expected a padding from 0 to 2, found 3");
  PromptBatch short_ids = PromptBatch::of({kShort});
  short_ids.ids.pop_back();
  expect_error(session_.prefill(short_ids), "expected 1 x 3 ids and 1 paddings, found 2 and 1");
}

TEST_F(SessionErrors, DecodingPastTheCapacityLeavesTheSessionUsable) {
  ASSERT_TRUE(session_.prepare(1, 4));
  ASSERT_TRUE(session_.prefill(PromptBatch::of({kShort})));
  expect_error(session_.decode(std::vector<int32_t>{1, 2}), "expected 1 token, one a row, found 2");
  expect_error(session_.decode(std::vector<int32_t>{37}), "expected ids from 0 to 36, found 37");
  ASSERT_TRUE(session_.decode(session_.next_tokens()));
  expect_error(session_.decode(session_.next_tokens()), "below the capacity of 4");
  EXPECT_EQ(session_.kv_len(), 4);
  EXPECT_TRUE(session_.prefill(PromptBatch::of({kShort})));
}

TEST_F(SessionErrors, MissingFolder) {
  const auto missing = Session::open(checkpoint_.folder() / "none", {});
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("none"));
}

}  // namespace
}  // namespace assay::engine
