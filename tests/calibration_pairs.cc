// Two arms of one run in worlds that they share, and in worlds of one of them.
#include "calibration_parts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "analysis/analyze.h"
#include "analysis/rows/synthetic_bundle.h"
#include "base/process/thread_pool.h"
#include "calibration_lines.h"

namespace assay {
namespace {

constexpr int64_t kRepetitions = 30;
constexpr double kPairSlowdown = 1.05;

// Times of repetition r of both arms, over those on a quiet machine: with a mean of 1 for each arm.
using Factors = std::array<std::vector<double>, 2>;

struct PairWorld {
  std::string name;
  std::function<Factors(Random&)> draw;
  int64_t processes = 0;  // of kRepetitions / processes repetitions each; 0: rows name none
  // Dependence that lasts as long as half of the run is more than thirty rows can tell: said, not
  // promised.
  bool judged = true;
};

double log_normal(Random& random, double sd) {
  return std::exp(sd * standard_normal(random) - sd * sd / 2);
}

Factors noise(Random& random, double own, double common) {
  Factors factors;
  for (int64_t r = 0; r < kRepetitions; ++r) {
    const double shared = log_normal(random, common);
    for (auto& arm : factors) arm.push_back(shared * log_normal(random, own));
  }
  return factors;
}

// Noise of 5 %, of which a share of the variance is common to both arms.
std::function<Factors(Random&)> correlated(double correlation) {
  const double own = 0.05 * std::sqrt(1 - correlation);
  const double common = 0.05 * std::sqrt(correlation);
  return [=](Random& random) { return noise(random, own, common); };
}

// The same with what `change` does to the factors.
template <typename Change>
std::function<Factors(Random&)> changed(const Change& change) {
  return [=](Random& random) {
    Factors factors = noise(random, 0.05, 0);
    change(random, factors);
    return factors;
  };
}

void share(Factors& factors, int64_t r, double slowdown) {
  for (auto& arm : factors) arm[static_cast<size_t>(r)] *= slowdown;
}

// Student's t of 3 degrees of freedom.
double heavy(Random& random) {
  double squares = 0;
  for (int i = 0; i < 3; ++i) {
    const double z = standard_normal(random);
    squares += z * z;
  }
  return standard_normal(random) / std::sqrt(squares / 3);
}

std::vector<PairWorld> pair_worlds() {
  const auto shared_drift = [](Random& random, Factors& factors) {
    const double way = 0.2 * standard_normal(random);
    for (int64_t r = 0; r < kRepetitions; ++r) {
      share(factors, r, std::exp(way * static_cast<double>(r) / kRepetitions));
    }
  };
  const auto shared_bursts = [](Random& random, Factors& factors) {
    int64_t left = 0;
    for (int64_t r = 0; r < kRepetitions; ++r) {
      if (left == 0 && random.uniform() < 0.1) left = 3;
      if (left > 0) share(factors, r, 2);
      left = std::max<int64_t>(0, left - 1);
    }
  };
  const auto own_bursts = [](Random& random, Factors& factors) {
    for (double& factor : factors[1]) factor *= random.uniform() < 0.1 ? 2 / 1.1 : 1 / 1.1;
  };
  const auto shared_level = [](Random& random, Factors& factors) {
    const auto from = static_cast<int64_t>(random.below(kRepetitions));
    for (int64_t r = from; r < kRepetitions; ++r) share(factors, r, 1.3);
  };
  const auto heavy_tails = [](Random& random) {
    Factors factors;
    for (auto& arm : factors) {
      for (int64_t r = 0; r < kRepetitions; ++r) {
        arm.push_back(std::max(0.2, 1 + 0.05 * heavy(random)));
      }
    }
    return factors;
  };
  const auto first_slower = [](Random& random, Factors& factors) {
    for (int64_t r = 0; r < kRepetitions; ++r) {
      const size_t first = random.below(2);
      factors[first][static_cast<size_t>(r)] *= 1.05;
    }
  };
  const auto of_processes = [](double sd) {
    return changed([=](Random& random, Factors& factors) {
      for (auto& arm : factors) {
        double shift = 1;
        for (int64_t r = 0; r < kRepetitions; ++r) {
          if (r % 6 == 0) shift = log_normal(random, sd);
          arm[static_cast<size_t>(r)] *= shift;
        }
      }
    });
  };
  const auto of_rounds = changed([=](Random& random, Factors& factors) {
    shared_drift(random, factors);
    shared_bursts(random, factors);
  });
  return {{"5 % noise", correlated(0)},
          {"5 % noise, correlation 0.5", correlated(0.5)},
          {"5 % noise, correlation 0.9", correlated(0.9)},
          {"5 % noise, shared drift of 20 %", changed(shared_drift)},
          {"5 % noise, shared bursts of twice the time", changed(shared_bursts)},
          {"5 % noise, one arm in bursts of twice the time", changed(own_bursts)},
          {"5 % noise, shared change of level by 30 %", changed(shared_level)},
          {"heavy tails (t of 3 degrees of freedom)", heavy_tails},
          {"5 % noise, the first arm of a block 5 % slower", changed(first_slower)},
          {"5 % noise, 5 processes", correlated(0), 5},
          {"5 % noise, 5 processes that differ by 5 %", of_processes(0.05), 5},
          {"5 % noise, 5 processes that differ by 5 %, unknown", of_processes(0.05), 0, false},
          {"5 % noise, shared drift and bursts, 5 processes", of_rounds, 5}};
}

Contrast contrast_of(const PairWorld& world, double ratio, bool interleaved, Random random) {
  SyntheticBundle bundle(random());
  const Factors factors = world.draw(random);
  const char* const arms[] = {"eager", "static"};
  for (size_t arm = 0; arm < 2; ++arm) {
    const std::string cell = bundle.add(
        {.arm = arms[arm], .noise = 0, .repetitions = kRepetitions, .processes = world.processes});
    for (int64_t r = 0; r < kRepetitions; ++r) {
      bundle.row(cell, r).latency_ms =
          10 * (arm == 1 ? ratio : 1) * factors[arm][static_cast<size_t>(r)];
    }
  }
  if (!interleaved) bundle.run_by_cells("shuffled");
  AnalysisOptions options;
  options.resamples = 1000;
  return analyze(bundle.build(), options, nullptr)->contrasts.at(0);
}

bool differs(const Contrast& contrast) {
  return contrast.verdict == Verdict::kFaster || contrast.verdict == Verdict::kSlower;
}

// Results of one trial, as 0 or 1.
struct Seen {
  int alarm = 0;     // equal arms differ
  int covered = 0;   // the interval of the ratio holds 1
  int typical = 0;   // that of typical calls does
  int found = 0;     // 5 % more is slower
  int unpaired = 0;  // by the unpaired test
};

// Short trials count what has a bar: alarms and coverage.
Seen try_once(const PairWorld& world, bool shows, uint64_t seed, uint64_t stream) {
  const Contrast equal = contrast_of(world, 1, true, Random(seed, stream));
  const auto slower = [&](bool interleaved) {
    const Contrast c = contrast_of(world, kPairSlowdown, interleaved, Random(seed, stream + 1));
    return c.verdict == Verdict::kSlower ? 1 : 0;
  };
  Seen seen;
  seen.alarm = differs(equal) ? 1 : 0;
  seen.covered = equal.ratio_interval && equal.ratio_interval->contains(1) ? 1 : 0;
  seen.typical =
      equal.typical && equal.typical->interval && equal.typical->interval->contains(1) ? 1 : 0;
  if (!shows) return seen;
  seen.found = slower(true);
  seen.unpaired = slower(false);
  return seen;
}

}  // namespace

bool calibrate_pairs(int64_t trials, uint64_t seed) {
  fmt::print(
      "\ntwo arms of {} interleaved repetitions; bars: equal arms differ in at most 5 %, intervals "
      "of the ratio of means cover it in 93 to 97 %\n\n"
      "| world | equal arms differ | interval covers | typical call's | 5 % slower: paired finds | "
      "unpaired |\n|---|---:|---:|---:|---:|---:|\n",
      kRepetitions);
  bool met = true;
  ThreadPool pool(available_cpus());
  uint64_t stream = uint64_t{3} << 56;
  const bool shows = trials >= kLongTrials;
  for (const PairWorld& world : pair_worlds()) {
    if (!world.judged && !shows) continue;
    std::vector<Seen> all(static_cast<size_t>(trials));
    stream += uint64_t{1} << 32;
    pool.parallel_for(all.size(), 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) all[i] = try_once(world, shows, seed, stream + 2 * i);
    });
    const auto n = static_cast<double>(trials);
    const auto rate = [&](int Seen::*what) {
      double sum = 0;
      for (const Seen& one : all) sum += one.*what;
      return sum / n;
    };
    const auto error = [&](double p) { return std::sqrt(std::max(p * (1 - p), 1e-4) / n); };
    const double alarms = rate(&Seen::alarm);
    const double covered = rate(&Seen::covered);
    const bool missed =
        world.judged && (alarms - 2 * error(alarms) > 0.05 || covered + 2 * error(covered) < 0.93 ||
                         covered - 2 * error(covered) > 0.97);
    met = met && !missed;
    const auto drawn = [&](int Seen::*what) {
      return shows ? fmt::format("{:.1f} %", rate(what) * 100) : "";
    };
    fmt::print("| {} | {:.1f} +- {:.1f} % | {:.1f} +- {:.1f} %{} | {:.1f} % | {} | {} |\n",
               world.name, alarms * 100, error(alarms) * 100, covered * 100, error(covered) * 100,
               missed ? ", missed" : "", rate(&Seen::typical) * 100, drawn(&Seen::found),
               drawn(&Seen::unpaired));
  }
  return met;
}

}  // namespace assay
