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

// A process may begin within a round and end before that does.
TEST_F(RunTest, EachProcessThatCommittedRowsIsInTheEvidenceWhereverARunEnds) {
  study_.order = RunOrder::kInterleaved;
  study_.repetitions = 8;
  observer_.interrupt_fd = interrupt_[1];
  std::set<int64_t> processes;
  bool interrupted = true;
  for (int sitting = 0; interrupted && sitting < 40; ++sitting) {
    observer_.interrupt_after = observer_.rows + 5;
    const auto summary = run(sitting > 0);
    ASSERT_TRUE(summary) << summary.error().message;
    interrupted = summary->interrupted;
    std::array<char, 8> drain{};
    if (interrupted) {
      EXPECT_GT(read(interrupt_[0], drain.data(), drain.size()), 0);
    }
    const auto bundle = read_bundle(folder());
    ASSERT_TRUE(bundle);
    for (const Row& row : bundle->rows) {
      if (!row.process) continue;
      processes.insert(*row.process);
      const auto& known = bundle->evidence.at(row.cell_id).processes;
      EXPECT_NE(std::ranges::count(known, *row.process, &EvidenceProcess::process), 0)
          << row.cell_id.str() << " process " << *row.process;
    }
  }
  EXPECT_FALSE(interrupted);
  EXPECT_GT(processes.size(), 2u);
}

}  // namespace
}  // namespace assay
