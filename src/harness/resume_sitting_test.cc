// Traces of a resumed run in its bundle.
#include "harness/run_fixture.h"

namespace assay {
namespace {

TEST_F(RunTest, AResumeThatMeasuresIsASittingOfItsOwn) {
  observer_.interrupt_after = 9;
  observer_.interrupt_fd = interrupt_[1];
  ASSERT_TRUE(run()->interrupted);
  const auto before = read_bundle(folder());
  ASSERT_TRUE(before);
  EXPECT_EQ(before->sittings.size(), 1u);
  expect_whole(resume());
  const auto after = read_bundle(folder());
  ASSERT_TRUE(after);
  ASSERT_EQ(after->sittings.size(), 2u);
  EXPECT_EQ(after->sittings[1].rows_before, static_cast<int64_t>(before->rows.size()));
  EXPECT_EQ(after->sittings[1].environment, after->environment);
}

}  // namespace
}  // namespace assay
