// Two bundles against each other: verdicts, missing cells, crash rates.
#include "analysis/compare/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/compare/false_alarms.h"
#include "analysis/compare/two_arms.h"
#include "stats/samples/reference_samples.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Compare, APlantedFivePercentIsFoundInItsCellAlone) {
  TwoArms base(1);
  TwoArms cand(2, 1.05);
  const Comparison comparison = compared(base, cand);
  EXPECT_THAT(regressed(comparison), ElementsAre("static single_long"));
  const auto failures = comparison.failures(true);
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_THAT(failures[0], HasSubstr("slower: static on prefill, gpt2-25m, 200 tokens: 1.05"));
  EXPECT_THAT(comparison.failures(false), IsEmpty());
  for (const ComparedCell& cell : comparison.cells) {
    EXPECT_EQ(cell.verdict, cell.regression ? Verdict::kSlower : Verdict::kEquivalent);
  }
}

TEST(Compare, AFewHugeRowsAreNoRegression) {
  SyntheticBundle base(5);
  SyntheticBundle cand(6);
  for (SyntheticBundle* bundle : {&base, &cand}) {
    for (const std::string arm : {"eager", "static"}) {
      const auto cell = bundle->add({.arm = arm, .noise = 0.01, .repetitions = 5, .processes = 5});
      if (bundle != &cand) continue;
      for (const int i : {1, 3}) *bundle->row(cell, i).latency_ms *= 1000;
    }
  }
  const Comparison comparison = *compare(base.build(), cand.build(), {}, {});
  for (const ComparedCell& cell : comparison.cells) {
    EXPECT_GT(cell.ratio, 100);
    EXPECT_EQ(cell.verdict, Verdict::kInconclusive);
  }
}

// Apart by a hair, and a mean that one row made.
TEST(Compare, OneHugeRowIsNoRegressionWhereSamplesDontOverlap) {
  SyntheticBundle base(5);
  SyntheticBundle cand(6);
  for (SyntheticBundle* bundle : {&base, &cand}) {
    const double factor = bundle == &cand ? 1.001 : 1;
    const auto cell = bundle->add({.arm = "eager", .repetitions = 10, .processes = 10});
    for (int i = 0; i < 10; ++i) bundle->row(cell, i).latency_ms = (10 + i * 0.0001) * factor;
    if (bundle == &cand) *bundle->row(cell, 4).latency_ms *= 1e6;
  }
  const Comparison comparison = *compare(base.build(), cand.build(), {}, {});
  EXPECT_GT(comparison.cells.at(0).ratio, 1e4);
  EXPECT_EQ(comparison.cells.at(0).verdict, Verdict::kInconclusive);
}

// Adds two arms on one stratum, with 20 processes of 20 rows.
std::vector<std::string> add_two_arms(SyntheticBundle& bundle, double mean_ms) {
  std::vector<std::string> cells;
  for (const std::string arm : {"eager", "static"}) {
    SyntheticCell cell{.arm = arm, .mean_ms = mean_ms, .repetitions = 400};
    cell.processes = 20;
    cells.push_back(bundle.add(cell));
  }
  return cells;
}

TEST(Compare, ASlowdownThatAFewStoppedCallsHideShowsInTheTypicalCall) {
  for (const double factor : {1.0, 1.1}) {
    SyntheticBundle base(5);
    SyntheticBundle cand(6);
    for (const std::string& cell : add_two_arms(base, 10)) {
      for (const int i : {33, 207, 290}) *base.row(cell, i).latency_ms *= 500;
    }
    for (const std::string& cell : add_two_arms(cand, 10 * factor)) {
      for (const int i : {100, 351}) *cand.row(cell, i).latency_ms *= 500;
    }
    const Comparison comparison = *compare(base.build(), cand.build(), {}, {});
    for (const ComparedCell& cell : comparison.cells) {
      EXPECT_EQ(cell.verdict, Verdict::kInconclusive) << "the mean can't tell";
      EXPECT_FALSE(cell.regression);
      EXPECT_NEAR(cell.typical->ratio, factor, 0.01);
      EXPECT_EQ(cell.alarm(), factor > 1);
    }
    const auto failures = comparison.failures(true);
    ASSERT_EQ(failures.size(), factor > 1 ? 2u : 0u);
    if (factor > 1) {
      EXPECT_THAT(failures[0], HasSubstr("10 tokens: its typical call takes 1."));
      EXPECT_THAT(failures[0], HasSubstr("of the base's time (its mean "));
      const Json json = comparison_to_json(comparison);
      EXPECT_TRUE(json["cells"][0]["typical_call"]["regression"]);
      EXPECT_TRUE(json["cells"][0]["regression"]);
    }
  }
}

// A neighbour on the same core makes whole processes slow, more of them in one run than in the
// other.
TEST(Compare, ASlowdownThatAFewSlowProcessesHideShowsInTheTypicalCall) {
  const auto slow_down = [](SyntheticBundle& bundle, const std::string& cell, int processes) {
    for (int i = 0; i < processes * 100; ++i) {
      if (i % 100 < 20) *bundle.row(cell, i).latency_ms *= 1.7;  // every fifth process
    }
  };
  for (const double factor : {1.0, 1.06}) {
    SyntheticBundle base(5);
    SyntheticBundle cand(6);
    for (const std::string& cell : add_two_arms(base, 10)) slow_down(base, cell, 4);
    for (const std::string& cell : add_two_arms(cand, 10 * factor)) slow_down(cand, cell, 1);
    const Comparison comparison = *compare(base.build(), cand.build(), {}, {});
    for (const ComparedCell& cell : comparison.cells) {
      EXPECT_FALSE(cell.regression);
      EXPECT_NEAR(cell.typical->ratio, factor, 0.02);
      EXPECT_EQ(cell.alarm(), factor > 1);
    }
  }
}

TEST(Compare, SlowCallsThatAreNotTheTypicalOnesShowInTheMean) {
  SyntheticBundle base(5);
  SyntheticBundle cand(6);
  add_two_arms(base, 10);
  for (const std::string& cell : add_two_arms(cand, 10)) {
    for (int i = 0; i < 400; i += 5) *cand.row(cell, i).latency_ms *= 3;
  }
  const Comparison comparison = *compare(base.build(), cand.build(), {}, {});
  for (const ComparedCell& cell : comparison.cells) {
    EXPECT_TRUE(cell.regression);
    EXPECT_FALSE(cell.typical->regression) << cell.typical->ratio;
  }
}

TEST(Compare, TenTimesTheTimeIsARegressionWhateverTheMoods) {
  SyntheticBundle base(5);
  SyntheticBundle cand(6);
  for (SyntheticBundle* bundle : {&base, &cand}) {
    for (const std::string arm : {"eager", "static"}) {
      const auto cell =
          bundle->add({.arm = arm, .mean_ms = 156, .repetitions = 10, .processes = 10});
      if (bundle != &cand) continue;
      for (int i = 0; i < 10; ++i) bundle->row(cell, i).latency_ms = stats::kMoodyMs[i];
    }
  }
  const Comparison comparison = *compare(base.build(), cand.build(), {}, {});
  for (const ComparedCell& cell : comparison.cells) EXPECT_TRUE(cell.regression) << *cell.p_holm;
}

TEST(Compare, WhatGotFasterIsNoRegression) {
  TwoArms base(3, 1.05);
  TwoArms cand(4);
  const Comparison comparison = compared(base, cand);
  EXPECT_THAT(comparison.failures(true), IsEmpty());
  EXPECT_EQ(comparison.cells.back().verdict, Verdict::kFaster);
}

TEST(Compare, SlowerWithinTheMarginDoesNotFail) {
  TwoArms base(5, 1, 0.004);
  TwoArms cand(6, 1.03, 0.004);
  CompareOptions loose;
  loose.margin = 0.05;
  EXPECT_THAT(compared(base, cand, loose).failures(true), IsEmpty());
  CompareOptions tight;
  tight.margin = 0.01;
  EXPECT_THAT(regressed(compared(base, cand, tight)), ElementsAre("static single_long"));
}

TEST(Compare, ASmallSlowdownEverywhereShowsCombined) {
  SyntheticBundle base(7);
  SyntheticBundle cand(8);
  for (int i = 0; i < 12; ++i) {
    SyntheticCell cell{.arm = "eager", .scenario = fmt::format("s{}", i), .noise = 0.06};
    cell.processes = 10;
    base.add(cell);
    cell.mean_ms = 10.35;
    cand.add(cell);
  }
  const auto comparison = compare(base.build(), cand.build(), {}, {});
  ASSERT_TRUE(comparison);
  ASSERT_EQ(comparison->combined.size(), 1u);
  EXPECT_TRUE(comparison->combined[0].regression);
  EXPECT_EQ(comparison->combined[0].strata, 12);
  EXPECT_NEAR(comparison->combined[0].ratio, 1.035, 0.01);
  EXPECT_LT(regressed(*comparison).size(), 12u) << "cell by cell it is too small to be sure of";
}

TEST(Compare, FamiliesAreDeclared) {
  TwoArms base(9);
  TwoArms cand(10);
  const Json json = comparison_to_json(compared(base, cand));
  ASSERT_EQ(json["families"].size(), 6u);
  EXPECT_EQ(json["families"][0]["name"], "difference");
  EXPECT_EQ(json["families"][0]["members"], 8) << "6 cells, and 2 arms combined";
  EXPECT_EQ(json["families"][2]["name"], "regression");
  EXPECT_EQ(json["families"][3]["name"], "typical_regression");
  EXPECT_EQ(json["families"][3]["members"], 8);
  EXPECT_EQ(json["families"][3]["alpha"], 0.025);
  EXPECT_EQ(json["families"][4]["members"], 0) << "no row was lost";
  EXPECT_TRUE(json["machines"]["ref"]["mean_load"].is_null()) << "nothing was recorded";
}

TEST(Compare, MissingCellsFailAndNewOnesAreListed) {
  TwoArms base(17);
  TwoArms cand(18);
  std::erase_if(cand.bundle.raw().rows, [&](const Row& r) { return r.cell_id == cand.cells[3]; });
  cand.bundle.add({.arm = "static", .scenario = "stress_single", .prompt_tokens = 400});
  const Comparison comparison = compared(base, cand);
  ASSERT_EQ(comparison.missing.size(), 1u);
  EXPECT_EQ(comparison.missing[0].arm, "static");
  EXPECT_EQ(comparison.added.size(), 1u);
  EXPECT_THAT(comparison.failures(false), ElementsAre(HasSubstr("missing: static on prefill")));
}

// Two bundles are two times: a program that computed on the GPU in one of them looks like a change.
TEST(Compare, ASharedGpuLeavesItsCellsUncompared) {
  TwoArms base(19);
  TwoArms cand(20);
  const Row& row = cand.bundle.row(cand.cells[1], 3);
  Json other = {
      {"unit", 0}, {"first_row", row.order_index}, {"rows", 1}, {"pid", 41}, {"process", "train"}};
  for (const double share : {0.005, 0.5}) {
    other["share"] = share;
    cand.bundle.evidence(cand.cells[1])["gpu_neighbours"] = {other};
    const Comparison comparison = compared(base, cand);
    ASSERT_EQ(comparison.not_comparable.size(), share > 0.1 ? 1u : 0u) << share;
    if (share > 0.1) {
      EXPECT_THAT(comparison.not_comparable[0].reason,
                  HasSubstr("candidate: another program computed on the GPU (gpu_shared)"));
    }
  }
}

// Ten processes of three rows a cell.
TEST(Compare, ARiseInTheShareOfProcessesThatDieFails) {
  TwoArms base(19);
  TwoArms cand(20);
  for (int process = 0; process < 6; ++process) {
    cand.bundle.lose(cand.cells[1], 3 * process, RowStatus::kCrash, "SIGSEGV");
  }
  const Comparison comparison = compared(base, cand);
  EXPECT_THAT(comparison.failures(true),
              testing::Contains(HasSubstr("crash rate: static on prefill, gpt2-25m, 10 tokens: "
                                          "6 of 10 processes died, 0 of 10 in the base")));
  EXPECT_EQ(comparison.cells.size(), 6u) << "speed is judged by what is left";
  EXPECT_THAT(compared(cand, base).failures(true), IsEmpty()) << "fewer crashes are no rise";
  EXPECT_THAT(compared(cand, cand).failures(true), IsEmpty());
}

TEST(Compare, RowsThatGoWithTheirProcessAreOneObservation) {
  TwoArms base(19);
  TwoArms cand(20);
  for (int i = 24; i < 30; ++i) {
    cand.bundle.lose(cand.cells[1], i, RowStatus::kCrash, "SIGSEGV");
  }
  const Comparison comparison = compared(base, cand);
  EXPECT_EQ(comparison.crashes.at(1).cand.died, 2);
  EXPECT_THAT(comparison.failures(true), IsEmpty()) << "two of ten processes are within chance";
}

TEST(Compare, RowsWithoutAnAnswerFromLivingProcessesAreCountedAsRows) {
  TwoArms base(19);
  TwoArms cand(20);
  for (int i = 0; i < 30; i += 3) {
    cand.bundle.lose(cand.cells[1], i, RowStatus::kFalseSuccess, "too_few_tokens");
  }
  EXPECT_THAT(compared(base, cand).failures(true),
              testing::Contains(HasSubstr("10 of 30 rows lost, 0 of 30 in the base")));
}

TEST(Compare, ALostRowHidesNoSlowdown) {
  TwoArms base(21);
  TwoArms cand(22, 2);
  cand.bundle.lose(cand.cells[5], 4, RowStatus::kCrash, "SIGSEGV");
  EXPECT_THAT(compared(base, cand).failures(true),
              testing::Contains(HasSubstr("slower: static on prefill, gpt2-25m, 200 tokens")));
}

// The rows that are left are as fast as the base's; had the others been as slow as the slowest of
// them, the candidate would be slower by a quarter.
TEST(Compare, ManyLostRowsAreNotTakenForFastOnes) {
  const auto run = [](uint64_t seed, bool loses) {
    SyntheticBundle bundle(seed);
    const std::string cell =
        bundle.add({.arm = "eager", .noise = 0.15, .repetitions = 200, .processes = 10});
    for (int i = 0; loses && i < 200; i += 2) {
      bundle.lose(cell, i, RowStatus::kFalseSuccess, "too_few_tokens");
    }
    return bundle.build();
  };
  const auto comparison = compare(run(31, false), run(32, true), {}, {});
  ASSERT_TRUE(comparison);
  const ComparedCell& cell = comparison->cells.at(0);
  EXPECT_NE(cell.verdict, Verdict::kSlower);
  ASSERT_TRUE(cell.lost_factor);
  EXPECT_LT(cell.lost_factor->low, 1);
  EXPECT_GT(cell.lost_factor->high, 1.1);
  EXPECT_THAT(comparison->failures(true),
              testing::Contains(HasSubstr("if those that it lost beyond the base's share")));
  EXPECT_FALSE(compare(run(31, true), run(32, false), {}, {})->cells.at(0).lost_factor)
      << "the base's losses don't count against the candidate";
}

TEST(Compare, ACandidateThatKeepsTooFewRowsFails) {
  TwoArms base(23);
  TwoArms cand(24);
  for (int i = 0; i < 28; ++i) {
    cand.bundle.lose(cand.cells[1], i, RowStatus::kFalseSuccess, "too_few_tokens");
  }
  EXPECT_THAT(compared(base, cand).failures(true),
              testing::Contains("lost: static on prefill, gpt2-25m, 10 tokens: candidate: 2 warm "
                                "ok rows, needs 5"));
}

TEST(Compare, ASlowdownWithinTheMarginIsNoAlarm) {
  const auto run = [](uint64_t seed, double ms) {
    SyntheticBundle bundle(seed);
    bundle.add({.arm = "eager", .mean_ms = ms, .noise = 0.002, .processes = 10});
    return bundle.build();
  };
  const auto beside = [&](double factor) {
    return *compare(run(1, 10), run(2, 10 * factor), {}, {});
  };
  const Comparison within = beside(1.0205);
  EXPECT_EQ(within.cells.at(0).verdict, Verdict::kSlower);
  EXPECT_GT(within.cells.at(0).ratio, 1.0195);
  EXPECT_THAT(within.failures(true), IsEmpty()) << "it isn't shown to be beyond the margin";
  EXPECT_THAT(beside(1.03).failures(true), testing::Not(IsEmpty()));
}

TEST(Compare, OneLostRowIsWithinChance) {
  TwoArms base(21);
  TwoArms cand(22);
  cand.bundle.lose(cand.cells[1], 4, RowStatus::kTimeout, "");
  EXPECT_THAT(compared(base, cand).failures(true), IsEmpty());
}

TEST(Compare, OutputThatNoLongerPassesParityFails) {
  TwoArms base(23);
  TwoArms cand(24);
  cand.bundle.raw().parity[cand.cells[1]] = {{"passed", false}};
  EXPECT_THAT(compared(base, cand).failures(true), ElementsAre(HasSubstr("output: static")));
  EXPECT_THAT(compared(cand, cand).failures(true), IsEmpty());
}

TEST(Compare, AnArmThatNoLongerRunsCompiledIsNoted) {
  const auto study = [](uint64_t seed, bool falls_back) {
    SyntheticBundle bundle(seed);
    const auto cell = bundle.add_compiled({.arm = "static"}, "false");
    for (int i = 0; falls_back && i < 30; ++i) bundle.row(cell, i).counts[Counter::kFallbacks] = 1;
    return bundle.build();
  };
  const auto comparison = compare(study(25, false), study(26, true), {}, {});
  ASSERT_TRUE(comparison);
  EXPECT_THAT(comparison->notes.at(0).reason, HasSubstr("compiled in the base, fell back in"));
  EXPECT_THAT(compare(study(25, false), study(26, false), {}, {})->notes, IsEmpty());
}

TEST(Compare, OtherPromptsAreNotCompared) {
  TwoArms base(27);
  TwoArms cand(28);
  for (Row& row : cand.bundle.raw().rows) {
    if (row.cell_id == cand.cells[0]) row.prompt_tokens = 11;
  }
  EXPECT_THAT(compared(base, cand).not_comparable.at(0).reason, HasSubstr("different prompts"));
}

TEST(Compare, BundlesWithoutACommonCellAreRefused) {
  SyntheticBundle base(29);
  base.add({.arm = "eager"});
  SyntheticBundle cand(30);
  cand.add({.arm = "eager", .scenario = "single_long"});
  const auto comparison = compare(base.build(), cand.build(), {}, {});
  ASSERT_FALSE(comparison);
  EXPECT_THAT(comparison.error().message, HasSubstr("expected cells that"));
}

TEST(Compare, DriftAndNeighboursThatAreAlikeWidenTheInterval) {
  const auto width = [](int64_t processes, double autocorrelation, double drift) {
    double sum = 0;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const auto side = [&](uint64_t s) {
        SyntheticBundle bundle(s);
        bundle.add({.arm = "eager",
                    .noise = 0.02,
                    .autocorrelation = autocorrelation,
                    .drift = drift,
                    .processes = processes});
        return bundle.build();
      };
      CompareOptions options;
      options.allow_single_process = true;
      const auto comparison = compare(side(100 + seed), side(200 + seed), options, {});
      const stats::Interval interval = *comparison->cells.at(0).ratio_interval;
      sum += interval.high - interval.low;
    }
    return sum / 20;
  };
  for (const int64_t processes : {0, 10}) {
    const double plain = width(processes, 0, 0);
    EXPECT_GT(width(processes, processes > 0 ? 0.9 : 0.6, 0), 1.5 * plain);
    EXPECT_GT(width(processes, 0, 0.06), 1.5 * plain);
  }
}

// A year has 3e10 ms; the least double above 0 is 5e-324.
TEST(Compare, LatenciesThatCantBeEndInAReasonNotInALoop) {
  for (const double latency : {5e-324, 1e-310, 1e308}) {
    TwoArms base(1);
    TwoArms cand(2);
    for (Row& row : cand.bundle.raw().rows) {
      if (row.cell_id == cand.cells[0]) row.latency_ms = latency;
    }
    for (const int repetition : {3, 4}) {
      *base.bundle.row(base.cells[1], repetition).latency_ms = latency;
    }
    const Comparison comparison = compared(base, cand);
    EXPECT_EQ(comparison.not_comparable.empty(), false) << latency;
    for (const ComparedCell& cell : comparison.cells) {
      EXPECT_TRUE(std::isfinite(cell.ratio)) << latency;
    }
    EXPECT_TRUE(self_test(base.bundle.build(), {}, 20, 1, nullptr));
  }
}

}  // namespace
}  // namespace assay
