// Strata that end once they are decided: simulated rows through the harness's own rule.
#include "calibration_parts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "analysis/analyze.h"
#include "analysis/rows/synthetic_bundle.h"
#include "base/process/thread_pool.h"
#include "base/random.h"
#include "calibration_lines.h"
#include "harness/decisions.h"
#include "stats/distributions/distributions.h"
#include "stats/distributions/standard_normal.h"

namespace assay {
namespace {

using stats::standard_normal;

constexpr int64_t kShare = 6;  // repetitions of a process
constexpr int64_t kFixedRounds = 5;
constexpr size_t kAnalysed = 25;  // runs of a world that `assay analyze` judges again

// A machine's effects on the latencies of one stratum.
struct Rounds {
  std::string name;
  double noise = 0.05;       // sd of the logarithm of a call
  double process = 0;        // and of a process' factor
  double spike_rate = 0;     // of calls that take three times as long
  double mood_rate = 0;      // of processes that take 1.7 times as long
  double alike = 0;          // autocorrelation of an arm's processes
  double drift = 0;          // of all arms, per round
  double wander = 0;         // sd of the change of all arms' calls from one to the next
  double burst_rate = 0;     // of blocks at which a burst begins: three that take twice the time
  double own_rate = 0;       // of the second arm's calls that take longer; its mean stays
  double own_factor = 2;     // that many times as long
  int64_t own_length = 1;    // that many of them in a row
  int strata = 1;            // in all of which this holds; the first one's verdict counts
  double level = 0;          // share by which all arms are slower from some block on
  bool heavy = false;        // noise is t of 3 degrees of freedom
  double first_slower = 0;   // share by which the first call of each block is slower
  std::vector<double> arms;  // their typical latencies
};

Study study_of(const Rounds& world) {
  Study study;
  study.models = {{"m", "m", "fp32"}};
  for (size_t arm = 0; arm < world.arms.size(); ++arm) {
    study.arms.emplace_back().name = fmt::format("arm{}", arm);
  }
  study.phases = {Phase::kPrefill};
  study.scenarios = {{"s", {10}, ""}};
  study.batch = {1};
  study.repetitions = kFixedRounds * kShare;
  study.processes = kFixedRounds;
  study.stopping = Stopping{.max_repetitions = 200, .decide = true};
  return study;
}

// Student's t of 3 degrees of freedom.
double heavy_tailed(Random& random) {
  double squares = 0;
  for (int i = 0; i < 3; ++i) {
    const double z = standard_normal(random);
    squares += z * z;
  }
  return standard_normal(random) / std::sqrt(squares / 3);
}

using RoundRows = std::vector<std::vector<double>>;  // [arm][block]

// Rows of all arms, round by round.
class Machine {
 public:
  Machine(const Rounds& world, Random random)
      : world_(world), random_(random), levels_(world.arms.size()) {
    if (world.level > 0) changes_at_ = static_cast<int64_t>(random_.below(kFixedRounds * kShare));
  }

  RoundRows round(int64_t number) {
    RoundRows rows;
    for (size_t arm = 0; arm < world_.arms.size(); ++arm) rows.push_back(process(arm, number));
    for (int64_t i = 0; i < kShare; ++i) block(number * kShare + i, static_cast<size_t>(i), rows);
    return rows;
  }

  bool saw_own_burst() const { return saw_own_burst_; }

 private:
  std::vector<double> process(size_t arm, int64_t round) {
    const double fresh = standard_normal(random_);
    double& level = levels_[arm];
    const double kept = round == 0 ? 0 : world_.alike;
    level = kept * level + std::sqrt(1 - kept * kept) * fresh;
    const double base = std::log(world_.arms[arm]) + world_.process * level +
                        world_.drift * static_cast<double>(round) +
                        (random_.uniform() < world_.mood_rate ? std::log(1.7) : 0);
    std::vector<double> rows(kShare);
    for (double& row : rows) {
      const double spike = random_.uniform() < world_.spike_rate ? std::log(3) : 0;
      if (world_.heavy) {
        row = std::exp(base) * std::max(0.2, 1 + world_.noise * heavy_tailed(random_));
      } else {
        row = std::exp(base + world_.noise * standard_normal(random_) + spike);
      }
      if (arm == 1 && world_.own_rate > 0) row *= own_burst();
    }
    return rows;
  }

  // Factor of one call, with a mean of 1.
  double own_burst() {
    if (own_left_ == 0 && random_.uniform() < own_start()) own_left_ = world_.own_length;
    const bool slow = own_left_ > 0;
    saw_own_burst_ = saw_own_burst_ || slow;
    own_left_ = std::max<int64_t>(0, own_left_ - 1);
    return (slow ? world_.own_factor : 1) / (1 + world_.own_rate * (world_.own_factor - 1));
  }
  // Bursts of n calls that begin with a chance of s at any other one are s n / (1 + s (n - 1)) of
  // all calls.
  double own_start() const {
    const auto length = static_cast<double>(world_.own_length);
    return world_.own_rate / (length - world_.own_rate * (length - 1));
  }

  // Applies the factors that the arms of a block share, in an order by chance.
  void block(int64_t number, size_t at, RoundRows& rows) {
    double shared = number >= changes_at_ ? 1 + world_.level : 1;
    if (world_.burst_rate > 0) {
      if (burst_left_ == 0 && random_.uniform() < world_.burst_rate) burst_left_ = 3;
      if (burst_left_ > 0) shared *= 2;
      burst_left_ = std::max<int64_t>(0, burst_left_ - 1);
    }
    for (std::vector<double>& arm : rows) arm[at] *= shared;
    if (world_.first_slower > 0) rows[random_.below(rows.size())][at] *= 1 + world_.first_slower;
    if (world_.wander == 0) return;
    const size_t first = random_.below(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      wandered_ += world_.wander * standard_normal(random_);
      rows[(first + i) % rows.size()][at] *= std::exp(wandered_);
    }
  }

  const Rounds& world_;
  Random random_;
  std::vector<double> levels_;  // of each arm's last process
  int64_t changes_at_ = std::numeric_limits<int64_t>::max();
  int64_t burst_left_ = 0;  // blocks
  int64_t own_left_ = 0;    // calls
  bool saw_own_burst_ = false;
  double wandered_ = 0;
};

struct Outcome {
  bool wrong = false;
  bool unseen = false;  // wrong, and no row was in a burst that one arm alone has
  bool decided = false;
  int64_t rounds = 0;
  bool analysis_agrees = true;
};

// A claim is wrong that an arm is faster than one that it isn't, or equivalent to one that differs
// by the margin or more.
bool is_wrong(const Rounds& world, const StratumLook& look, double margin) {
  return std::ranges::any_of(look.pairs, [&](const LeaderPair& pair) {
    const double truth = std::log(world.arms[*look.leader] / world.arms[pair.arm]);
    if (pair.verdict == PairVerdict::kFaster) return truth >= 0;
    return pair.verdict == PairVerdict::kEquivalent &&
           std::abs(truth) >= std::log1p(margin) - 1e-12;
  });
}

// The run's verdict on the first arm, seen from each other one.
Verdict verdict_of(const StratumLook& look, size_t arm) {
  for (const LeaderPair& pair : look.pairs) {
    if (pair.arm != arm && pair.arm != 0) continue;
    if (*look.leader != arm && *look.leader != 0) continue;
    if (pair.verdict == PairVerdict::kEquivalent) return Verdict::kEquivalent;
    if (pair.verdict == PairVerdict::kOpen) return Verdict::kInconclusive;
    return *look.leader == arm ? Verdict::kFaster : Verdict::kSlower;
  }
  return Verdict::kInconclusive;
}

// Findings of `assay analyze` on the rows of a run, by stratum and round.
Findings findings_of(const Rounds& world, const std::vector<std::vector<RoundRows>>& strata,
                     double margin) {
  SyntheticBundle bundle(1);
  Json& told = bundle.raw().manifest["study"];
  told["baseline"] = "arm0";
  told["arms"] = Json::array();
  for (size_t arm = 0; arm < world.arms.size(); ++arm) {
    told["arms"].push_back(fmt::format("arm{}", arm));
  }
  for (size_t s = 0; s < strata.size(); ++s) {
    const std::vector<RoundRows>& rounds = strata[s];
    const auto count = static_cast<int64_t>(rounds.size());
    for (size_t arm = 0; arm < world.arms.size(); ++arm) {
      const std::string cell = bundle.add({.arm = fmt::format("arm{}", arm),
                                           .scenario = fmt::format("s{}", s),
                                           .repetitions = count * kShare,
                                           .processes = count});
      bundle.evidence(cell)["stopping"] = {
          {"rounds", count}, {"margin", margin}, {"pairs", Json::array()}};
      for (int64_t r = 0; r < count * kShare; ++r) {
        bundle.row(cell, r).latency_ms =
            rounds[static_cast<size_t>(r / kShare)][arm][static_cast<size_t>(r % kShare)];
      }
    }
  }
  AnalysisOptions options;
  options.resamples = 100;
  return *analyze(bundle.build(), options, nullptr);
}

// True if `assay analyze` of the bundle agrees with the run, wherever the first arm or its rival
// leads.
bool analysis_agrees(const Rounds& world, const Findings& findings, const StratumLook& last) {
  for (size_t arm = 1; arm < world.arms.size(); ++arm) {
    if (*last.leader != 0 && *last.leader != arm) continue;
    const Contrast& contrast = findings.contrasts.at(arm - 1);
    if (!contrast.any_look || contrast.verdict != verdict_of(last, arm)) return false;
  }
  return true;
}

// One stratum of a run.
struct StoppedStratum {
  StratumLook last;
  std::vector<RoundRows> rounds;
  bool saw_own_burst = false;
};

StoppedStratum stop_when_decided(const Rounds& world, const Study& study, Random random) {
  const Plan plan;  // of one condition: cells are arms
  Decisions decisions(study, plan);
  Machine machine(world, random);
  StoppedStratum run;
  int64_t round = 0;
  for (; round < rounds(study) && !decisions.over(0, round); ++round) {
    run.rounds.push_back(machine.round(round));
    for (size_t arm = 0; arm < world.arms.size(); ++arm) {
      Row row;
      row.status = RowStatus::kOk;
      for (const double latency : run.rounds.back()[arm]) {
        row.latency_ms = latency;
        decisions.add(arm, round, row);
      }
    }
  }
  run.last = decisions.look(0, round);
  run.saw_own_burst = machine.saw_own_burst();
  return run;
}

// `analysed`: the analysis judges again; it judges any run of several strata, whose rows tell more
// than a stratum's own do.
Outcome outcome_of(const Rounds& world, bool analysed, Random random) {
  const Study study = study_of(world);
  const double margin = study.stopping->margin;
  bool saw_own_burst = false;
  StratumLook first;
  std::vector<std::vector<RoundRows>> strata;
  for (int s = 0; s < world.strata; ++s) {
    StoppedStratum run =
        stop_when_decided(world, study, world.strata > 1 ? Random(random()) : random);
    saw_own_burst = saw_own_burst || run.saw_own_burst;
    if (s == 0) first = std::move(run.last);
    strata.push_back(std::move(run.rounds));
  }
  Outcome outcome{is_wrong(world, first, margin), false, first.decided(),
                  std::ssize(strata.front()), true};
  if (world.strata > 1) {
    const Verdict verdict = findings_of(world, strata, margin).contrasts.front().verdict;
    outcome.wrong = verdict == Verdict::kFaster || verdict == Verdict::kSlower;
  } else if (analysed) {
    outcome.analysis_agrees = analysis_agrees(world, findings_of(world, strata, margin), first);
  }
  outcome.unseen = outcome.wrong && world.own_rate > 0 && !saw_own_burst;
  return outcome;
}

// True if the t interval of the first pair's log ratios, over the rounds of a fixed plan, excludes
// a ratio of 1.
bool fixed_plan_finds(const Rounds& world, Random random) {
  Machine machine(world, random);
  std::vector<double> log_ratios;
  for (int64_t round = 0; round < kFixedRounds; ++round) {
    const RoundRows rows = machine.round(round);
    const auto sum = [&](size_t arm) {
      return std::accumulate(rows[arm].begin(), rows[arm].end(), 0.0);
    };
    log_ratios.push_back(std::log(sum(0) / sum(1)));
  }
  double mean = 0;
  for (const double value : log_ratios) mean += value / kFixedRounds;
  double squares = 0;
  for (const double value : log_ratios) squares += (value - mean) * (value - mean);
  const double error = std::sqrt(squares / (kFixedRounds - 1) / kFixedRounds);
  return std::abs(mean) > *stats::student_t_quantile(0.975, kFixedRounds - 1) * error;
}

Rounds with_arms(Rounds world, std::vector<double> arms, const std::string& truth) {
  world.arms = std::move(arms);
  world.name = truth + "; " + world.name;
  return world;
}

std::vector<Rounds> sequential_worlds() {
  const std::vector<Rounds> machines = {
      {.name = "5 % noise", .arms = {}},
      {.name = "50 % noise", .noise = 0.5, .arms = {}},
      {.name = "5 % noise, 5 % spikes of 3 times", .spike_rate = 0.05, .arms = {}},
      {.name = "5 % noise, processes differ by 5 %", .process = 0.05, .arms = {}},
      {.name = "5 % noise, a tenth of the processes takes 1.7 times as long",
       .mood_rate = 0.1,
       .arms = {}},
      {.name = "5 % noise, drift of 1 % a round", .drift = 0.01, .arms = {}}};
  std::vector<Rounds> all;
  for (const Rounds& machine : machines) all.push_back(with_arms(machine, {1, 1}, "equal arms"));
  all.push_back(with_arms(machines[0], {1, 1, 1, 1}, "four equal arms"));
  all.push_back(with_arms(machines[0], {1, 1.03}, "ratio at the margin, 3 %"));
  all.push_back(with_arms(machines[3], {1, 1.03}, "ratio at the margin, 3 %"));
  all.push_back(with_arms(machines[0], {1, 1.05}, "5 % slower"));
  all.push_back(with_arms(machines[3], {1, 1.05}, "5 % slower"));
  all.push_back(with_arms(machines[0], {1, 1.2}, "20 % slower"));
  all.push_back(with_arms(machines[3], {1, 1.2}, "20 % slower"));
  all.push_back(with_arms(machines[2], {1, 1.2}, "20 % slower"));
  all.push_back(with_arms(machines[0], {1, 1.1, 1.2, 2}, "10 %, 20 % and 100 % slower"));
  const std::vector<Rounds> disturbed = {
      {.name = "5 % noise, shared drift of 2 % from call to call", .wander = 0.02, .arms = {}},
      {.name = "5 % noise, shared bursts of twice the time", .burst_rate = 0.1, .arms = {}},
      {.name = "5 % noise, a tenth of the second arm's calls take twice the time",
       .own_rate = 0.1,
       .arms = {}},
      {.name = "5 % noise, shared change of level by 30 %", .level = 0.3, .arms = {}},
      {.name = "heavy tails (t of 3 degrees of freedom)", .heavy = true, .arms = {}},
      {.name = "5 % noise, the first arm of a block 5 % slower", .first_slower = 0.05, .arms = {}}};
  for (const Rounds& world : disturbed) {
    all.push_back(with_arms(world, {1, 1}, "equal arms"));
    all.push_back(with_arms(world, {1, 1.1}, "10 % slower"));
  }
  Rounds rare = disturbed[2];
  rare.own_length = 6;
  rare.name += ", six of them in a row";
  all.push_back(with_arms(rare, {1, 1}, "equal arms"));
  all.push_back(with_arms(rare, {1, 1.1}, "10 % slower"));
  const Rounds stops = {.name = "5 % noise, 2 % of the second arm's calls take five times as long",
                        .own_rate = 0.02,
                        .own_factor = 5,
                        .arms = {}};
  all.push_back(with_arms(stops, {1, 1}, "equal arms"));
  Rounds several = stops;
  several.strata = 5;
  all.push_back(with_arms(several, {1, 1}, "equal arms, five strata"));
  Rounds alike = machines[3];
  alike.alike = 0.3;
  alike.name += ", autocorrelation of processes 0.3";
  all.push_back(with_arms(alike, {1, 1}, "equal arms"));
  return all;
}

}  // namespace

bool calibrate_sequential(int64_t trials, uint64_t seed) {
  fmt::print(
      "\nstopping by decisions, {} repetitions a process, at most 200; bar: at most 5 % wrong, "
      "but for rare slow calls of one stratum, where runs count whose rows hold one\n\n"
      "| truth | wrong | without a slow row | decided | mean repetitions | fixed plan of {}: "
      "differs |\n"
      "|---|---:|---:|---:|---:|---:|\n",
      kShare, kFixedRounds * kShare);
  bool met = true;
  ThreadPool pool(available_cpus());
  uint64_t stream = uint64_t{1} << 56;
  for (const Rounds& world : sequential_worlds()) {
    const auto count = static_cast<size_t>(trials);
    std::vector<Outcome> outcomes(count);
    std::vector<int> fixed(count);
    stream += uint64_t{1} << 32;
    pool.parallel_for(count, 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        outcomes[i] = outcome_of(world, i < kAnalysed, Random(seed, stream + 2 * i));
        fixed[i] = fixed_plan_finds(world, Random(seed, stream + 2 * i + 1)) ? 1 : 0;
      }
    });
    const auto share = [&](auto counts) {
      return static_cast<double>(std::ranges::count_if(outcomes, counts)) /
             static_cast<double>(trials);
    };
    const double wrong = share([](const Outcome& one) { return one.wrong; });
    double repetitions = 0;
    for (const Outcome& one : outcomes) {
      repetitions += static_cast<double>(one.rounds * kShare) / static_cast<double>(trials);
    }
    const double error = standard_error(wrong, static_cast<double>(trials));
    const double unseen = share([](const Outcome& one) { return one.unseen; });
    // The rows of most runs of one stratum hold none of such slow calls, and no rule can know of
    // them (docs/calibration.md, "Stopping when it knows").
    const bool rare = world.own_length > 1 || world.own_factor > 2;
    const double counted = rare && world.strata == 1 ? wrong - unseen : wrong;
    const bool missed = counted - 2 * error > kDecisionAlpha;
    const bool agrees = std::ranges::all_of(outcomes, &Outcome::analysis_agrees);
    if (!agrees) fmt::print("analyze and the run's own decisions differ: {}\n", world.name);
    met = met && !missed && agrees;
    fmt::print("| {} | {:.1f} +- {:.1f} %{} | {} | {:.1f} % | {:.0f} | {:.1f} % |\n", world.name,
               wrong * 100, error * 100, missed ? ", missed" : "",
               world.own_rate > 0 ? fmt::format("{:.1f} %", unseen * 100) : "",
               share([](const Outcome& one) { return one.decided; }) * 100, repetitions,
               100 * static_cast<double>(std::accumulate(fixed.begin(), fixed.end(), 0)) /
                   static_cast<double>(trials));
  }
  return met;
}

}  // namespace assay
