// Runs whose inputs change under them.
#include "harness/run_inputs.h"

#include <gmock/gmock.h>

#include "base/files/files.h"
#include "harness/run_fixture.h"

namespace assay {
namespace {

using testing::HasSubstr;

class InputsTest : public RunTest {
 protected:
  void bind(const std::string& content) {
    ASSERT_TRUE(write_file(scratch_ / "weights", content));
    auto bound = BoundFiles::bind({{"model \"m\"", "weights", scratch_ / "weights"}});
    ASSERT_TRUE(bound) << bound.error().message;
    inputs_ = std::move(bound).value();
  }
};

TEST_F(InputsTest, AChangeEndsTheRunAndWhatWasCommittedStays) {
  bind("one");
  observer_.act_after = 20;
  observer_.act = [&] { ASSERT_TRUE(write_file(scratch_ / "weights", "two")); };
  const auto ended = run();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().kind, ErrorKind::kEnvironment);
  EXPECT_THAT(ended.error().message, HasSubstr("weights changed during the run: expected sha256"));
  const auto bundle = read_bundle(folder());
  ASSERT_TRUE(bundle) << bundle.error().message;
  EXPECT_FALSE(bundle->complete);
  EXPECT_EQ(bundle->manifest["refusals"][0]["of"], "model \"m\"");
  EXPECT_GT(bundle->rows.size(), 0u);
  EXPECT_LT(bundle->rows.size(), 20u) << "the unit under way isn't committed";
  // Nothing starts while it is another one, and the run goes on from there once it is back.
  const auto changed = run(true);
  ASSERT_FALSE(changed) << "of what is bound the file is another one still";
  bind("one");
  expect_whole(run(true));
}

TEST_F(InputsTest, AChangeBeforeTheFirstStartIsSeenToo) {
  bind("one");
  ASSERT_TRUE(write_file(scratch_ / "weights", "two"));
  EXPECT_FALSE(run());
  EXPECT_TRUE(read_bundle(folder())->rows.empty());
  EXPECT_TRUE(diary("base").empty()) << "no worker was asked anything";
}

TEST_F(InputsTest, AChangeAfterTheLastRowIsNotSealed) {
  bind("one");
  expect_whole(run());
  fs::remove_all(folder());
  bind("one");
  observer_.rows = 0;
  observer_.act_after = planned_rows_;
  observer_.act = [&] { ASSERT_TRUE(write_file(scratch_ / "weights", "two")); };
  EXPECT_FALSE(run());
  EXPECT_FALSE(read_bundle(folder())->complete);
}

TEST(RunInputs, AnotherBuildOfTheProgramDoesNotResume) {
  const Json one = {{"program_sha256", "aa"}};
  const Json two = {{"program_sha256", "bb"}};
  EXPECT_TRUE(check_same_inputs(one, one, {}));
  EXPECT_TRUE(check_same_inputs(Json::object(), one, {})) << "an older bundle doesn't say";
  const Status other = check_same_inputs(one, two, {});
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message,
              HasSubstr("program: expected the build with which the run began, sha256 aa, found "
                        "sha256 bb"));
}

}  // namespace
}  // namespace assay
