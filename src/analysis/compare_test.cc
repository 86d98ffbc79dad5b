// Two bundles against each other: verdicts, refusals, missing cells, crash rates.
#include "analysis/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/false_alarms.h"
#include "analysis/synthetic_bundle.h"
#include "stats/reference_samples.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<std::pair<std::string, int>> kScenarios = {
    {"single_micro", 10}, {"single_short", 30}, {"single_long", 200}};

// Two arms on three prompt lengths; `slower` multiplies the arm static's time on single_long.
struct Study {
  explicit Study(uint64_t seed, double slower = 1, double noise = 0.01) : bundle(seed) {
    for (const auto& [scenario, tokens] : kScenarios) {
      for (const std::string arm : {"eager", "static"}) {
        SyntheticCell cell{.arm = arm, .scenario = scenario, .prompt_tokens = tokens};
        cell.noise = noise;
        cell.mean_ms = 10;
        cell.processes = 10;
        if (arm == "static" && tokens == 200) cell.mean_ms *= slower;
        cells.push_back(bundle.add(cell));
      }
    }
  }
  SyntheticBundle bundle;
  std::vector<std::string> cells;  // eager and static of each scenario
};

Comparison compared(Study& base, Study& cand, CompareOptions options = {}) {
  auto result = compare(base.bundle.build(), cand.bundle.build(), options, {});
  EXPECT_TRUE(result) << result.error().message;
  return *std::move(result);
}

std::vector<std::string> regressed(const Comparison& comparison) {
  std::vector<std::string> names;
  for (const ComparedCell& cell : comparison.cells) {
    if (cell.regression)
      names.push_back(cell.arm + " " + comparison.strata[*cell.stratum].scenario);
  }
  return names;
}

TEST(Compare, APlantedFivePercentIsFoundInItsCellAlone) {
  Study base(1);
  Study cand(2, 1.05);
  const Comparison comparison = compared(base, cand);
  EXPECT_THAT(regressed(comparison), ElementsAre("static single_long"));
  const auto failures = comparison.failures(true);
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_THAT(failures[0], HasSubstr("slower: static on prefill, gpt2-25m, single_long: 1.05"));
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

// Of two arms on one stratum, 20 processes of 20 rows.
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
      EXPECT_THAT(failures[0], HasSubstr("single_micro: its typical call takes 1."));
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
  Study base(3, 1.05);
  Study cand(4);
  const Comparison comparison = compared(base, cand);
  EXPECT_THAT(comparison.failures(true), IsEmpty());
  EXPECT_EQ(comparison.cells.back().verdict, Verdict::kFaster);
}

TEST(Compare, SlowerWithinTheMarginDoesNotFail) {
  Study base(5, 1, 0.004);
  Study cand(6, 1.03, 0.004);
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
  Study base(9);
  Study cand(10);
  const Json json = comparison_to_json(compared(base, cand));
  ASSERT_EQ(json["families"].size(), 6u);
  EXPECT_EQ(json["families"][0]["name"], "difference");
  EXPECT_EQ(json["families"][0]["members"], 8) << "6 cells, and 2 arms combined";
  EXPECT_EQ(json["families"][2]["name"], "regression");
  EXPECT_EQ(json["families"][3]["name"], "typical_regression");
  EXPECT_EQ(json["families"][3]["members"], 8);
  EXPECT_EQ(json["families"][3]["alpha"], 0.025);
  EXPECT_EQ(json["families"][4]["members"], 0) << "no row was lost";
}

TEST(Compare, UnlikeIdentitiesAreRefusedUnlessTheAxisIsNamed) {
  Study base(11);
  Study cand(12);
  cand.bundle.raw().manifest["identity"]["code_sha"] = "def";
  cand.bundle.raw().environment["threads"] = 4;
  const Bundle left = base.bundle.build();
  const Bundle right = cand.bundle.build();
  const auto refused = compare(left, right, {}, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(refused.error().message,
              HasSubstr("code_sha: expected \"abc\", found \"def\", and 1 more"));
  EXPECT_FALSE(compare(left, right, {}, {"code_sha"}));
  EXPECT_FALSE(compare(left, right, {}, {"threads"}));
  const auto allowed = compare(left, right, {}, {"code_sha", "threads"});
  ASSERT_TRUE(allowed) << allowed.error().message;
  EXPECT_EQ(allowed->varied.size(), 2u);
}

TEST(Compare, EveryAxisOfTheIdentityIsSeen) {
  const std::vector<std::pair<std::string, std::function<void(Bundle&)>>> changes = {
      {"device", [](Bundle& b) { b.manifest["identity"]["device"] = "another"; }},
      {"code_generator", [](Bundle& b) { b.manifest["identity"]["code_generator"] = "gcc 99"; }},
      {"code_generator",
       [](Bundle& b) {
         for (auto& [cell, evidence] : b.evidence) {
           evidence["reported"]["toolchain"] = {{"name", "triton"}, {"version", "3.6.0"}};
         }
       }},
      {"framework_build", [](Bundle& b) { b.manifest["identity"]["framework_build"] = "Debug"; }},
      {"cache", [](Bundle& b) { b.rows.back().cache = "static"; }},
      {"compile_mode", [](Bundle& b) { b.rows.back().compile_mode = "eager"; }},
      {"quantization", [](Bundle& b) { b.rows.back().quantization = "q4"; }},
      {"dtype", [](Bundle& b) { b.rows.back().dtype = "fp16"; }},
      {"code_sha", [](Bundle& b) { b.manifest["identity"]["code_sha"] = "def"; }},
      {"model", [](Bundle& b) { b.manifest["completion"]["model_sha256"]["gpt2-25m"] = "2"; }},
      {"threads", [](Bundle& b) { b.environment["threads"] = 8; }},
      {"environment_variables",
       [](Bundle& b) {
         b.environment["environment_variables"] = {{"OMP_NUM_THREADS", "1"}};
       }},
      {"libraries",
       [](Bundle& b) {
         b.environment["libraries"] = {{{"name", "libdnnl.so.2"}, {"version", "2.8"}}};
       }},
      {"host", [](Bundle& b) { b.environment["host"]["cpu"]["governor"] = "powersave"; }},
      {"triton", [](Bundle& b) { b.manifest["identity"]["triton"] = "3.6.0"; }},
  };
  for (const auto& [axis, change] : changes) {
    SyntheticBundle made(13);
    made.add_compiled({.arm = "static", .repetitions = 5}, "false");
    Bundle base = made.build();
    base.manifest["completion"]["model_sha256"]["gpt2-25m"] = "1";
    EXPECT_THAT(identity_differences(base, base), IsEmpty());
    Bundle cand = base;
    change(cand);
    if (axis == "cache" || axis == "compile_mode" || axis == "quantization" || axis == "dtype") {
      cand.rows = {cand.rows.back()};
    }
    const auto differences = identity_differences(base, cand);
    ASSERT_EQ(differences.size(), 1u) << axis;
    EXPECT_EQ(differences[0].axis, axis);
    EXPECT_EQ(parse_axis(axis, base, cand).value_or(""), axis);
  }
}

TEST(Compare, TheCommitInTheFrameworkBuildIsTheCodesMatter) {
  Study base(14);
  Study cand(15);
  const auto set = [](Study& study, const std::string& sha) {
    Json& identity = study.bundle.raw().manifest["identity"];
    identity["code_sha"] = sha;
    identity["framework_build"] = "assay 0.1.0 " + sha.substr(0, 12) + " Release";
  };
  set(base, std::string(40, 'a'));
  set(cand, std::string(40, 'b'));
  EXPECT_TRUE(compare(base.bundle.build(), cand.bundle.build(), {}, {"code_sha"}));
}

TEST(Compare, AnAxisThatIsNoneIsRefusedWithTheNearestOne) {
  Study study(16);
  const Bundle bundle = study.bundle.build();
  EXPECT_EQ(parse_axis("gpu", bundle, bundle).value_or(""), "device");
  const auto axis = parse_axis("code_shaa", bundle, bundle);
  ASSERT_FALSE(axis);
  EXPECT_THAT(axis.error().message, HasSubstr("did you mean \"code_sha\"?"));
}

TEST(Compare, MissingCellsFailAndNewOnesAreListed) {
  Study base(17);
  Study cand(18);
  std::erase_if(cand.bundle.raw().rows, [&](const Row& r) { return r.cell_id == cand.cells[3]; });
  cand.bundle.add({.arm = "static", .scenario = "stress_single", .prompt_tokens = 400});
  const Comparison comparison = compared(base, cand);
  ASSERT_EQ(comparison.missing.size(), 1u);
  EXPECT_EQ(comparison.missing[0].arm, "static");
  EXPECT_EQ(comparison.added.size(), 1u);
  EXPECT_THAT(comparison.failures(false), ElementsAre(HasSubstr("missing: static on prefill")));
}

TEST(Compare, ARiseInTheCrashRateFailsAndNoLatencyIsReadOffTheSurvivors) {
  Study base(19);
  Study cand(20);
  for (int i = 24; i < 30; ++i) {
    cand.bundle.lose(cand.cells[1], i, RowStatus::kCrash, "SIGSEGV");
  }
  const Comparison comparison = compared(base, cand);
  EXPECT_THAT(comparison.failures(true),
              testing::Contains(HasSubstr("crash rate: static on prefill, gpt2-25m, single_micro: "
                                          "6 of 30 rows lost, 0 of 30 in the base")));
  EXPECT_EQ(comparison.cells.size(), 5u);
  EXPECT_THAT(comparison.not_comparable.at(0).reason, HasSubstr("candidate: lost 6 of 30 rows"));
  EXPECT_THAT(compared(cand, base).failures(true), IsEmpty()) << "fewer crashes are no rise";
  EXPECT_THAT(compared(cand, cand).failures(true), IsEmpty());
}

TEST(Compare, OneLostRowIsWithinChance) {
  Study base(21);
  Study cand(22);
  cand.bundle.lose(cand.cells[1], 4, RowStatus::kTimeout, "");
  EXPECT_THAT(compared(base, cand).failures(true), IsEmpty());
}

TEST(Compare, OutputThatNoLongerPassesParityFails) {
  Study base(23);
  Study cand(24);
  cand.bundle.raw().parity[cand.cells[1]] = {{"passed", false}};
  EXPECT_THAT(compared(base, cand).failures(true), ElementsAre(HasSubstr("output: static")));
  EXPECT_THAT(compared(cand, cand).failures(true), IsEmpty());
}

TEST(Compare, AnArmThatNoLongerRunsCompiledIsNoted) {
  const auto study = [](uint64_t seed, bool falls_back) {
    SyntheticBundle bundle(seed);
    const auto cell = bundle.add_compiled({.arm = "static"}, "false");
    for (int i = 0; falls_back && i < 30; ++i) bundle.row(cell, i).fallbacks_delta = 1;
    return bundle.build();
  };
  const auto comparison = compare(study(25, false), study(26, true), {}, {});
  ASSERT_TRUE(comparison);
  EXPECT_THAT(comparison->notes.at(0).reason, HasSubstr("compiled in the base, fell back in"));
  EXPECT_THAT(compare(study(25, false), study(26, false), {}, {})->notes, IsEmpty());
}

TEST(Compare, OtherPromptsAreNotCompared) {
  Study base(27);
  Study cand(28);
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

// Two arms on three prompt lengths.
Bundle run_of(uint64_t seed, const SyntheticCell& like) {
  SyntheticBundle bundle(seed);
  for (const auto& [scenario, tokens] : kScenarios) {
    for (const std::string arm : {"eager", "static"}) {
      SyntheticCell cell = like;
      cell.arm = arm;
      cell.scenario = scenario;
      cell.prompt_tokens = tokens;
      bundle.add(cell);
    }
  }
  return bundle.build();
}

TEST(CompareProcesses, OneProcessASideIsNotDecided) {
  const Bundle base = run_of(1, {.arm = "eager", .noise = 0.01});
  const Bundle cand = run_of(2, {.arm = "eager", .mean_ms = 15, .noise = 0.01});
  const Bundle several = run_of(3, {.arm = "eager", .mean_ms = 15, .noise = 0.01, .processes = 5});
  for (const auto& [left, right] :
       {std::pair{&base, &cand}, {&base, &several}, {&several, &cand}}) {
    const Comparison comparison = *compare(*left, *right, {}, {});
    EXPECT_EQ(comparison.undecided(), 6);
    EXPECT_THAT(comparison.failures(true), IsEmpty());
    for (const auto* cells : {&comparison.cells, &comparison.combined}) {
      for (const ComparedCell& cell : *cells) {
        EXPECT_FALSE(cell.verdict || cell.test || cell.ratio_interval || cell.tost);
      }
    }
    EXPECT_EQ(comparison_to_json(comparison)["cells"][0]["status"], "not_decided");
    EXPECT_EQ(comparison.families.at(0).members, 0);
  }
  EXPECT_GT(compare(base, cand, {}, {})->cells.at(0).ratio, 1.4) << "the estimate is shown";
  CompareOptions allowed;
  allowed.allow_single_process = true;
  const Comparison by_rows = *compare(base, cand, allowed, {});
  EXPECT_EQ(by_rows.undecided(), 0);
  EXPECT_EQ(regressed(by_rows).size(), 6u);
}

TEST(CompareProcesses, ACrashOrAMissingCellFailsWithOneProcessToo) {
  const Bundle base = run_of(1, {.arm = "eager", .noise = 0.01});
  Bundle cand = run_of(2, {.arm = "eager", .noise = 0.01});
  std::erase_if(cand.rows, [](const Row& row) {
    return row.arm.str() == "static" && row.scenario.str() == "single_long";
  });
  EXPECT_THAT(compare(base, cand, {}, {})->failures(false), ElementsAre(HasSubstr("missing")));
}

// How many of 60 pairs of runs of one program fail, and of 30 with a candidate so much slower.
struct Pairs {
  int alarms = 0;
  int found = 0;
};
Pairs count_pairs(const SyntheticCell& like, const CompareOptions& options, double slower = 1.1) {
  Pairs pairs;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Bundle base = run_of(1000 + 2 * seed, like);
    const auto fails = [&](double factor) {
      SyntheticCell cell = like;
      cell.mean_ms *= factor;
      const Bundle cand = run_of(1001 + 2 * seed, cell);
      return !compare(base, cand, options, {})->failures(true).empty();
    };
    pairs.alarms += fails(1) ? 1 : 0;
    if (seed < 30) pairs.found += fails(slower) ? 1 : 0;
  }
  return pairs;
}

TEST(CompareProcesses, ProcessesThatDifferAreNoRegression) {
  const SyntheticCell like{.arm = "eager", .noise = 0.02, .processes = 10, .process_shift = 0.05};
  const Pairs judged = count_pairs(like, {});
  EXPECT_LE(judged.alarms, 3);
  EXPECT_GE(judged.found, 27);
  // One process a side, as bundles were before: its rows know nothing of the next process.
  SyntheticCell one = like;
  one.processes = 1;
  CompareOptions allowed;
  allowed.allow_single_process = true;
  EXPECT_GT(count_pairs(one, allowed).alarms, 30);
  EXPECT_EQ(count_pairs(one, {}).alarms, 0);
  EXPECT_EQ(count_pairs(one, {}).found, 0) << "nothing is claimed either";
}

TEST(CompareProcesses, WhatRunsDifferByIsNoRegressionWhereOtherCellsShowIt) {
  const SyntheticCell like{.arm = "eager", .noise = 0.02, .processes = 10, .run_shift = 0.02};
  EXPECT_LE(count_pairs(like, {}).alarms, 6);
  const Comparison comparison = *compare(run_of(7, like), run_of(8, like), {}, {});
  ASSERT_TRUE(comparison.between_cells);
  EXPECT_GT(*comparison.between_cells, 0.01);
  EXPECT_LT(*comparison.between_cells, 0.06);
}

TEST(CompareProcesses, FewProcessesMakeWideIntervals) {
  const auto width = [](int64_t processes) {
    const SyntheticCell like{
        .arm = "eager", .noise = 0.02, .processes = processes, .process_shift = 0.02};
    const Comparison comparison = *compare(run_of(1, like), run_of(2, like), {}, {});
    double sum = 0;
    for (const ComparedCell& cell : comparison.cells) {
      sum += std::log(cell.ratio_interval->high / cell.ratio_interval->low);
      EXPECT_EQ(cell.base->processes, processes);
      EXPECT_TRUE(cell.base->process_noise);
    }
    return sum;
  };
  EXPECT_GT(width(2), 3 * width(10));
}

// A year has 3e10 ms; the least double above 0 is 5e-324.
TEST(Compare, LatenciesThatCantBeEndInAReasonNotInALoop) {
  for (const double latency : {5e-324, 1e-310, 1e308}) {
    Study base(1);
    Study cand(2);
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

TEST(SelfTest, FindsNoAlarmInAQuietBundleAndTheSameOnAnyNumberOfThreads) {
  Study study(31, 1, 0.03);
  const Bundle bundle = study.bundle.build();
  ThreadPool pool(3);
  const auto alone = self_test(bundle, {}, 200, 42, nullptr);
  const auto pooled = self_test(bundle, {}, 200, 42, &pool);
  ASSERT_TRUE(alone && pooled);
  EXPECT_EQ(alone->splits, 200);
  EXPECT_FALSE(alone->every_split);
  EXPECT_EQ(alone->processes, 10);
  EXPECT_LE(alone->alarms, 10);
  EXPECT_EQ(alone->alarms, pooled->alarms);
  EXPECT_EQ(alone->differences, pooled->differences);
  EXPECT_GT(*alone->minimum_detectable, 0);
  EXPECT_EQ(self_test(bundle, {}, 252, 42, nullptr)->every_split, true) << "10 over 5";
}

// Halves of rows would share every process, and promise a precision that two runs don't have.
TEST(SelfTest, KeepsProcessesTogether) {
  const auto detectable = [](double process_shift) {
    const SyntheticCell like{
        .arm = "eager", .noise = 0.01, .processes = 4, .process_shift = process_shift};
    const auto test = self_test(run_of(33, like), {}, 100, 1, nullptr);
    EXPECT_EQ(test->splits, 6) << "of four, two at a time";
    EXPECT_TRUE(test->every_split);
    return *test->minimum_detectable;
  };
  EXPECT_GT(detectable(0.1), 5 * detectable(0));
}

TEST(SelfTest, RefusesABundleThatHasTooFewProcessesOrRows) {
  const auto refused = [](int64_t repetitions, int64_t processes) {
    SyntheticBundle bundle(32);
    bundle.add({.arm = "eager", .repetitions = repetitions, .processes = processes});
    const auto test = self_test(bundle.build(), {}, 10, 1, nullptr);
    return test ? "" : test.error().message;
  };
  EXPECT_THAT(refused(30, 0),
              HasSubstr("at least 4 processes and 10 warm ok rows to split, found 1 "
                        "process: rows of one process can't show"));
  EXPECT_THAT(refused(30, 3), HasSubstr("found 3 processes"));
  EXPECT_THAT(refused(9, 9), HasSubstr("found none"));
  EXPECT_EQ(refused(10, 4), "");
}

}  // namespace
}  // namespace assay
