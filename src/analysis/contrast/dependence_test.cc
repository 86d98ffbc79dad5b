// Dependence that a family of series shows, and its effect on errors and intervals.
#include "analysis/contrast/dependence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "analysis/analyze.h"
#include "analysis/contrast/serial.h"
#include "analysis/rows/synthetic_bundle.h"

namespace assay {
namespace {

using testing::Each;
using testing::Field;
using testing::SizeIs;

std::vector<double> autoregressive(Random& random, size_t n, double r) {
  std::vector<double> x(n);
  double last = standard_normal(random);
  for (double& value : x) {
    value = last;
    last = r * last + std::sqrt(1 - r * r) * standard_normal(random);
  }
  return x;
}

std::vector<std::vector<double>> family_of(uint64_t seed, size_t series, double r) {
  Random random(seed);
  std::vector<std::vector<double>> family;
  for (size_t i = 0; i < series; ++i) family.push_back(autoregressive(random, 30, r));
  return family;
}

double mean_widening(const std::vector<Dependence>& all) {
  double sum = 0;
  for (const Dependence& one : all) sum += one.widening.error / static_cast<double>(all.size());
  return sum;
}

TEST(Dependences, OfWhiteNoiseDontCount) {
  int widened = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    for (const Dependence& one : dependences(family_of(seed, 20, 0))) widened += one.r > 0;
  }
  // 2.5 % of families count together, all of their series, and 2.5 % hold a series that counts
  // alone.
  EXPECT_LT(widened, 250);
}

TEST(Dependences, OfManyShortSeriesAreSeenTogether) {
  const auto found = dependences(family_of(5, 20, 0.3));
  EXPECT_THAT(found, Each(Field(&Dependence::r, testing::Gt(0.0))));
  EXPECT_NEAR(mean_widening(found), std::sqrt(1.3 / 0.7), 0.2);
  // One of them alone shows nothing that chance wouldn't.
  EXPECT_EQ(dependences(family_of(5, 1, 0.3))[0].widening.error, 1);
}

TEST(Dependences, OfOneSeriesAmongWhiteOnesCountThereAlone) {
  auto family = family_of(9, 19, 0);
  Random random(10);
  family.push_back(autoregressive(random, 30, 0.9));
  const auto found = dependences(family);
  EXPECT_GT(found.back().widening.error, 2);
  for (size_t i = 0; i + 1 < found.size(); ++i) EXPECT_LT(found[i].widening.error, 1.3) << i;
}

// Parts of one level each look like one dependent series when they stand in a row.
TEST(Dependences, WithinPartsAreNoneOfTheirLevels) {
  Random random(3);
  std::vector<SeriesInParts> family;
  std::vector<std::vector<double>> in_a_row;
  for (int series = 0; series < 10; ++series) {
    SeriesInParts& parts = family.emplace_back();
    std::vector<double>& whole = in_a_row.emplace_back();
    for (int part = 0; part < 6; ++part) {
      const double level = 2 * standard_normal(random);
      parts.push_back(autoregressive(random, 10, 0));
      for (double& value : parts.back()) whole.push_back(value += level);
    }
  }
  for (const Dependence& one : dependences(in_a_row)) EXPECT_GT(one.r, 0.4);
  EXPECT_THAT(inflations_within_parts(family), Each(1.0));
  for (SeriesInParts& parts : family) {
    for (std::vector<double>& part : parts) part = autoregressive(random, 10, 0.7);
  }
  EXPECT_THAT(inflations_within_parts(family), Each(testing::Gt(1.8)));
}

TEST(Dependences, OfRoundsCountSoonerAndMore) {
  const auto family = family_of(5, 3, 0.3);
  const auto plain = dependences(family);
  const auto sooner = dependences(family, {.level = 0.3, .errors = 1});
  for (size_t i = 0; i < family.size(); ++i) {
    EXPECT_GT(sooner[i].widening.error, plain[i].widening.error);
  }
}

TEST(Dependences, OfSeriesThatSayNothingAreNone) {
  EXPECT_THAT(dependences({}), SizeIs(0));
  const std::vector<std::vector<double>> family = {
      {}, {1}, {1, 2, 3}, std::vector<double>(30, 4.0)};
  for (const Dependence& one : dependences(family)) EXPECT_EQ(one.widening.error, 1);
}

TEST(Dependences, OfSeriesTooShortToShowThemAreTheFamilys) {
  auto family = family_of(5, 20, 0.6);
  family.push_back({1, 2, 3, 2, 1});
  family.push_back({2, 2, 2, 2, 2});
  const auto found = dependences(family);
  EXPECT_GT(found[20].widening.error, 1.4);
  EXPECT_EQ(found[21].widening.error, 1);
}

TEST(CountedR, OfALongSeriesIsThatOfItsBlocks) {
  Random random(4);
  for (const double r : {0.0, 0.5, 0.9}) {
    const double counts = counted_r(autoregressive(random, 40000, r), r);
    EXPECT_NEAR((1 + counts) / (1 - counts), (1 + r) / (1 - r), 0.2 * (1 + r) / (1 - r)) << r;
  }
  std::vector<double> ramp(200000);
  for (size_t i = 0; i < ramp.size(); ++i) ramp[i] = static_cast<double>(i);
  EXPECT_LT(static_cast<double>(ramp.size()) /
                stats::first_order(std::ssize(ramp), counted_r(ramp, 0.9)).inflation,
            10);
  EXPECT_EQ(counted_r(std::vector<double>{3, 1, 2}, -0.4), 0);
}

TEST(SeriesMeans, CountADriftWhereItShows) {
  auto family = family_of(12, 10, 0);
  for (size_t i = 0; i < 30; ++i) family[3][i] += 0.2 * static_cast<double>(i);
  const auto means = series_means(family);
  ASSERT_TRUE(means[3]->drift);
  EXPECT_NEAR(*means[3]->drift, 5.8, 1.5);
  EXPECT_GT(means[3]->error.value, *means[3]->drift / 2);
  EXPECT_FALSE(means[2]->drift);
}

// Two arms on five strata.
struct TwoArms {
  explicit TwoArms(double autocorrelation) : bundle(7) {
    for (int stratum = 0; stratum < 5; ++stratum) {
      for (const std::string arm : {"eager", "static"}) {
        cells.push_back(bundle.add({.arm = arm,
                                    .scenario = fmt::format("s{}", stratum),
                                    .noise = 0.05,
                                    .autocorrelation = autocorrelation}));
      }
    }
  }
  Findings findings() {
    AnalysisOptions options;
    options.resamples = 1000;
    return *analyze(bundle.build(), options, nullptr);
  }
  SyntheticBundle bundle;
  std::vector<std::string> cells;
};

TEST(Dependences, WidenTheIntervalsOfAnAnalysis) {
  const Findings white = TwoArms(0).findings();
  for (const Contrast& contrast : white.contrasts) EXPECT_EQ(contrast.widening.error, 1);
  for (const Latency& latency : white.latencies) EXPECT_EQ(latency.n_effective, 30);
  const Findings alike = TwoArms(0.6).findings();
  ASSERT_EQ(alike.contrasts.size(), 5u);
  for (const Contrast& contrast : alike.contrasts) {
    EXPECT_GT(contrast.widening.error, 1.3);
    EXPECT_LT(*contrast.test->df, 40);  // of 58
  }
  EXPECT_NEAR(alike.combined.at(0).widening.error, 2, 0.7);  // sqrt(1.6 / 0.4)
  for (const Latency& latency : alike.latencies) EXPECT_LT(latency.n_effective, 18);
}

double width(const std::optional<stats::Interval>& interval) {
  return std::log(interval->high / interval->low);
}

// One arm's rows in ascending order, the other's in descending: as dependent as can be.
TEST(Dependences, StretchEveryIntervalByAsMuch) {
  TwoArms run(0);
  for (const std::string& cell : run.cells) {
    std::vector<double> ms;
    for (int i = 0; i < 30; ++i) ms.push_back(*run.bundle.row(cell, i).latency_ms);
    std::ranges::sort(ms);
    if (cell.contains("static")) std::ranges::reverse(ms);
    for (int i = 0; i < 30; ++i) run.bundle.row(cell, i).latency_ms = ms[static_cast<size_t>(i)];
  }
  const Findings sorted = run.findings();
  for (const Contrast& contrast : sorted.contrasts) {
    EXPECT_GT(contrast.widening.error, 2);
    const stats::Interval welch = *contrast.difference_interval_ms;
    // With fewer than 3 degrees of freedom the bootstrap's is narrower.
    const double share = width(contrast.ratio_interval) * 10 / (welch.high - welch.low);
    EXPECT_GT(share, 0.4);
    EXPECT_LT(share, 1.3);
  }
  for (const Latency& latency : sorted.latencies) {
    EXPECT_GT(width(latency.mean_interval), 8 * *latency.sd / std::sqrt(30) / *latency.mean);
    EXPECT_GT(latency.mean_interval->low, 0);
  }
  EXPECT_GT(sorted.combined.at(0).widening.error, 2);
}

// Ten rows an arm whose neighbours are much alike still tell times apart of which one is a quarter
// of the other: a report that can't say so is of no use.
TEST(Dependences, LeaveTimesApartThatAreFarApart) {
  SyntheticBundle bundle(11);
  bundle.raw().manifest["study"]["arms"] = {"eager", "static", "graph"};
  for (int stratum = 0; stratum < 10; ++stratum) {
    for (const auto& [arm, ms, noise] :
         {std::tuple{"eager", 40.0, 0.05}, {"static", 20.0, 0.05}, {"graph", 10.0, 0.0005}}) {
      bundle.add({.arm = arm,
                  .scenario = fmt::format("s{}", stratum),
                  .mean_ms = ms,
                  .noise = noise,
                  .repetitions = 10,
                  .autocorrelation = 0.6});
    }
  }
  AnalysisOptions options;
  options.resamples = 1000;
  const Findings findings = *analyze(bundle.build(), options, nullptr);
  ASSERT_EQ(findings.contrasts.size(), 20u);
  for (const Contrast& contrast : findings.contrasts) {
    EXPECT_GT(contrast.widening.error, 1.4);
    EXPECT_EQ(contrast.verdict, Verdict::kFaster) << *contrast.p_holm;
  }
  for (const Decision& decision : findings.decisions) {
    EXPECT_EQ(decision.kind, Decision::Kind::kBest);
    EXPECT_EQ(decision.arm, "graph");
  }
}

TEST(Dependences, ThatBothArmsShareAreInNoContrast) {
  TwoArms run(0);
  Random random(3);
  const std::vector<double> machine = autoregressive(random, 30, 0.95);
  for (const std::string& cell : run.cells) {
    for (int i = 0; i < 30; ++i) {
      *run.bundle.row(cell, i).latency_ms *= 1 + 0.2 * machine[static_cast<size_t>(i)];
    }
  }
  const Findings findings = run.findings();
  for (const Latency& latency : findings.latencies) EXPECT_LT(latency.n_effective, 15);
  for (const Contrast& contrast : findings.contrasts) EXPECT_LT(contrast.widening.error, 1.2);
}

}  // namespace
}  // namespace assay
