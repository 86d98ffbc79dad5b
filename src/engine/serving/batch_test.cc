#include "engine/serving/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "engine/serving/schedules.h"

namespace assay::engine {
namespace {

using test::Schedules;
using ::testing::HasSubstr;

std::filesystem::path kernel_folder() {
  return std::filesystem::path(::testing::TempDir()) / fmt::format("assay-kernels-{}", getuid());
}

ModelOptions options(CacheRows rows = CacheRows::kNamed) {
  return {.dtype = DType::kF32,
          .rows = rows,
          .threads = 2,
          .compiler = {.verify_passes = false, .kernel_cache = kernel_folder()}};
}

std::shared_ptr<Model> load(const TinyCheckpoint& checkpoint, const ModelOptions& asked) {
  auto opened = Checkpoint::open(checkpoint.folder());
  EXPECT_TRUE(opened);
  return *Model::load(*std::move(opened), asked, *open_device(asked));
}

class BatchSchedules : public ::testing::TestWithParam<std::tuple<size_t, bool>> {};

TEST_P(BatchSchedules, GiveEachRequestItsTokens) {
  const auto [family, compiled] = GetParam();
  Schedules schedules(families()[family], options(), compiled);
  schedules.run(100, 1, [](std::byte* to, size_t bytes) -> Status {
    std::memset(to, 0xff, bytes);
    return {};
  });
}

INSTANTIATE_TEST_SUITE_P(Families, BatchSchedules,
                         ::testing::Combine(::testing::Range(size_t{0}, families().size()),
                                            ::testing::Bool()),
                         [](const auto& test) {
                           return families()[std::get<0>(test.param)].name +
                                  (std::get<1>(test.param) ? "_compiled" : "_eager");
                         });

class BatchErrors : public ::testing::Test {
 protected:
  static void expect_error(const Status& status, const std::string& message) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(status.error().message, HasSubstr(message));
  }
  template <typename T>
  static void expect_refused(const Result<T>& result, const std::string& message) {
    ASSERT_FALSE(result);
    expect_error(std::unexpected(result.error()), message);
  }

  TinyCheckpoint checkpoint_{families()[1]};
  std::shared_ptr<Model> model_ = load(checkpoint_, options());
};

TEST_F(BatchErrors, OptionsOutOfTheirRange) {
  expect_refused(Batch::create(model_, {.slots = 0, .capacity = 8}), "slots: expected at least 1");
  expect_refused(Batch::create(model_, {.slots = 1, .capacity = 8, .chunk = 0}),
                 "chunk: expected at least 1, found 0");
  expect_refused(Batch::create(model_, {.slots = 1, .capacity = kTinyPositions + 1}),
                 "expected 1 to 48 positions (the model's), found 49");
  const auto in_order = load(checkpoint_, options(CacheRows::kInOrder));
  expect_refused(Batch::create(in_order, {.slots = 1, .capacity = 8}), "with named rows");
}

TEST_F(BatchErrors, CallsThatCannotBeLeaveSlotsAsTheyAre) {
  auto batch = Batch::create(model_, {.slots = 2, .capacity = 4});
  ASSERT_TRUE(batch);
  const auto never = [](int64_t, int32_t) {
    ADD_FAILURE() << "nothing has run";
    return Onward::kGo;
  };
  const Prompt three = {1, 2, 3};
  expect_error(batch->extend(0, three), "slot: expected one of join(), found 0");
  expect_error(batch->leave(-1), "found -1");
  ASSERT_EQ(batch->join(), 0);
  ASSERT_EQ(batch->join(), 1);
  EXPECT_EQ(batch->join(), std::nullopt);
  expect_error(batch->extend(2, three), "found 2");
  expect_error(batch->extend(0, {}), "expected at least 1, found none");
  expect_error(batch->extend({}), "expected at least 1, found none");
  expect_error(batch->extend(0, Prompt(5, 1)), "slot 0: expected at most 4 tokens more, found 5");
  expect_error(batch->extend(0, Prompt{41}), "expected ids from 0 to 40, found 41");
  const std::vector<int64_t> both = {0, 1}, first = {0};
  expect_error(batch->run(both, 1, never), "slot 0: expected a prompt in it, found none");
  EXPECT_EQ(batch->length(0), 0);
  expect_error(batch->sample(0, {.top_p = 2}), "top_p: expected more than 0");
  expect_error(batch->sample(5, {}), "expected one of join(), found 5");
  ASSERT_TRUE(batch->extend(0, three));
  expect_error(batch->sample(0, {}), "slot 0: expected it empty, found 3 tokens");
  const int32_t next = batch->next(0);
  const std::vector<SlotToken> twice = {{0, 1}, {0, 2}}, wrong = {{0, -1}}, one = {{0, 7}};
  expect_error(batch->step(twice), "expected each once, found 0 twice");
  expect_error(batch->step(wrong), "found -1");
  expect_error(batch->step({}), "expected at least 1, found none");
  EXPECT_EQ(batch->length(0), 3);
  EXPECT_EQ(batch->next(0), next);
  ASSERT_TRUE(batch->step(one));
  expect_error(batch->step(one), "slot 0: expected at most 0 tokens more, found 1");
  expect_error(batch->run(first, 1, never), "expected at most 0 tokens more");
  EXPECT_TRUE(batch->run(first, 0, never));
  ASSERT_TRUE(batch->leave(0));
  expect_error(batch->leave(0), "slot: expected one of join(), found 0");
  EXPECT_EQ(batch->join(), 0) << "a slot is given again";
  EXPECT_EQ(batch->length(0), 0);
}

// One model: two batches and a session in turns.
TEST(Models, AreSharedByBatchesAndSessions) {
  const TinyCheckpoint checkpoint(families()[2]);
  const Prompt prompt = {1, 2, 3, 30, 31, 7};
  Session alone = open(checkpoint, {.dtype = DType::kF32, .threads = 2});
  const std::vector<int32_t> expected =
      generate(alone, PromptBatch::of({prompt}), 6).tokens.front();
  const auto model = load(checkpoint, options());
  auto first = Batch::create(model, {.slots = 2, .capacity = 12, .compiled = true});
  auto second = Batch::create(model, {.slots = 3, .capacity = 12, .compiled = true});
  auto session = Session::on(model, CacheKind::kStatic, {.prefill = true, .decode = true});
  ASSERT_TRUE(first && second && session);
  ASSERT_TRUE(session->prepare(1, 12) && session->prefill(PromptBatch::of({prompt})));
  for (Batch* batch : {&*first, &*second}) {
    ASSERT_TRUE(batch->join() && batch->join());
    ASSERT_TRUE(batch->extend(1, prompt));
  }
  EXPECT_TRUE(first->logits(1).empty()) << "the second's run came behind it";
  EXPECT_TRUE(second->logits(0).empty()) << "its slot is empty";
  EXPECT_FALSE(second->logits(1).empty());
  for (size_t step = 0;; ++step) {
    ASSERT_EQ(session->next_tokens()[0], expected[step]);
    ASSERT_EQ(first->next(1), expected[step]);
    ASSERT_EQ(second->next(1), expected[step]);
    if (step == 6) break;
    ASSERT_TRUE(session->decode(session->next_tokens()));
    for (Batch* batch : {&*first, &*second}) {
      const SlotToken fed{1, batch->next(1)};
      ASSERT_TRUE(batch->step({&fed, 1}));
    }
  }
}

}  // namespace
}  // namespace assay::engine
