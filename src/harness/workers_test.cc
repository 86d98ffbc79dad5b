#include "harness/workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Study study_of_threads(int64_t threads) {
  Study study;
  study.arms = {{.name = "x",
                 .backend = "native",
                 .mode = "eager",
                 .cache = "static",
                 .dynamic = "",
                 .threads = threads}};
  return study;
}

TEST(CpusOfRounds, TakeTurnsOverTheCpusThatAreAllowed) {
  const std::vector<int> allowed = {0, 2, 3, 5, 8};
  const Study one = study_of_threads(1), two = study_of_threads(2);
  EXPECT_THAT(cpus_of_round(one, 0, allowed), ElementsAre(0));
  EXPECT_THAT(cpus_of_round(one, 4, allowed), ElementsAre(8));
  EXPECT_THAT(cpus_of_round(one, 5, allowed), ElementsAre(0));
  EXPECT_THAT(cpus_of_round(two, 0, allowed), ElementsAre(0, 2));
  EXPECT_THAT(cpus_of_round(two, 1, allowed), ElementsAre(3, 5));
  EXPECT_THAT(cpus_of_round(two, 2, allowed), ElementsAre(0, 2)) << "8 alone is too few";
}

TEST(CpusOfRounds, AreTheKernelsChoiceWhereThereIsNone) {
  const std::vector<int> allowed = {0, 1};
  EXPECT_THAT(cpus_of_round(study_of_threads(2), 0, allowed), IsEmpty());
  EXPECT_THAT(cpus_of_round(study_of_threads(3), 0, allowed), IsEmpty());
  EXPECT_THAT(cpus_of_round(study_of_threads(0), 0, allowed), IsEmpty());
  EXPECT_THAT(cpus_of_round(study_of_threads(1), 0, {}), IsEmpty());
  Study free = study_of_threads(1);
  free.cpus = CpuChoice::kFree;
  EXPECT_THAT(cpus_of_round(free, 0, allowed), IsEmpty());
}

}  // namespace
}  // namespace assay
