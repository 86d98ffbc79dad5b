// Findings with something in every member, for tests and fuzzers of those who read them.
#pragma once

#include "analysis/findings/findings.h"

namespace assay {
namespace whole {

inline constexpr stats::Interval kInterval = {0.25, 0.75};
inline const stats::TestResult kTest = {-3.5, 17.25, 0.01, -4.6};

inline Contrast contrast(std::optional<size_t> stratum) {
  Contrast c;
  c.phase = Phase::kKvDecode;
  c.stratum = stratum;
  c.strata = 2;
  c.arm = "static";
  c.baseline = "eager";
  c.n_arm = 30;
  c.n_baseline = 29;
  c.unit = ContrastUnit::kProcesses;
  c.paired = true;
  c.units_arm = 5;
  c.units_baseline = 4;
  c.left_out = 1;
  c.one_process = true;
  c.shared_df = 6.5;
  c.widening = {1.5, 0.5, 0.125};
  c.ratio = 0.875;
  c.ratio_interval = kInterval;
  c.ratio_process_range = kInterval;
  c.unseen_slow_factor = 1.2;
  c.slow_arm = "b";
  c.median_ratio = 0.9;
  c.typical = SpreadRatio{0.8, kInterval, kInterval};
  c.difference_ms = -1.5;
  c.difference_interval_ms = kInterval;
  c.difference_process_range_ms = kInterval;
  c.test = kTest;
  c.p_holm = 0.02;
  c.cohen_d = 0.5;
  c.hedges_g = 0.4;
  c.mann_whitney_u = 12;
  c.vargha_delaney_a = 0.3;
  c.tost = kTest;
  c.tost_p_holm = 0.03;
  c.minimum_detectable = 0.05;
  c.verdict = Verdict::kFaster;
  if (!stratum) c.stratum_verdicts = {{Verdict::kFaster, 2}, {Verdict::kSlower, 1}};
  return c;
}

inline Latency latency() {
  Latency l;
  l.stratum = 1;
  l.arm = "static";
  l.parity_failed = true;
  l.n = 30;
  l.mean_interval = kInterval;
  l.mean_process_range = kInterval;
  double value = 1;
  for (auto* figure :
       {&l.min, &l.mean, &l.median, &l.sd, &l.p90, &l.p95, &l.p99, &l.max, &l.tokens_per_s,
        &l.joules_per_token, &l.cold_median, &l.cold_max, &l.mean_with_cold, &l.n_effective}) {
    *figure = value += 0.25;
  }
  l.joules_interval = kInterval;
  l.energy_n = 3;
  l.cold_n = 2;
  l.widening = 1.25;
  l.processes = 5;
  l.intraclass = 0.75;
  l.processes_p_holm = 0.001;
  return l;
}

inline SizeAnalysis size_analysis() {
  const stats::AnovaTerm term = {1.5, 2, 3.5, 0.02, -3.9, 0.1, 0.2};
  return {.phase = Phase::kPrefill,
          .scenario = "short",
          .new_tokens = 8,
          .batch = 2,
          .arms = {"eager", "static"},
          .models = {"small", "large"},
          .type2 = stats::TwoWayAnova{term, term, term, 0.5, 9, 7.5},
          .interaction_p_holm = 0.3,
          .crossovers = {{.arm = "static",
                          .ratios = {{"small", 1e6, 1.1, kInterval, kInterval}},
                          .crossover = 2e6,
                          .interval = Reach{1e6, 3e6}}}};
}

inline CellProfile profile() {
  CellProfile p;
  p.arm = "static";
  p.missing = "it stopped";
  p.device = "cuda:0";
  p.counts = "kernels";
  int64_t value = 0;
  for (auto* count : {&p.wall_ns, &p.kernels, &p.distinct_kernels, &p.launch_calls, &p.gpu_busy_ns,
                      &p.gpu_gap_ns, &p.copies, &p.synchronizations}) {
    *count = ++value;
  }
  p.top = {{"gemm", 4, 5}};
  return p;
}

}  // namespace whole

namespace whole {

inline LoadSummary load_summary() {
  const OverRuns figure = {.mean = 2, .interval = kInterval, .least = 1, .most = 3};
  const LatencyOverRuns latency = {figure, figure, figure, figure};
  return {.slo = {.ttft_ms = 200, .itl_ms = 30, .latency_ms = 1000},
          .points = {{.stratum = 1,
                      .arm = "static",
                      .point = {.concurrency = 4},
                      .runs = 5,
                      .lost_runs = 1,
                      .window_s = 8,
                      .requests = 40,
                      .failed = {{"stream_cut", 2}},
                      .offered_per_s = figure,
                      .requests_per_s = figure,
                      .tokens_per_s = figure,
                      .latency_ms = latency,
                      .ttft_ms = latency,
                      .tpot_ms = latency,
                      .itl_ms = latency,
                      .within_bounds = figure,
                      .good_per_s = figure,
                      .kept = BoundsKept::kYes,
                      .cached = figure,
                      .in_flight = figure,
                      .most_in_flight = 4,
                      .late_p99_ms = 0.5,
                      .growing_runs = 1}},
          .lost = {{.stratum = 1, .arm = "eager", .runs = {{"sent_late", 3}}}}};
}

}  // namespace whole

inline Findings whole_findings() {
  Findings f;
  f.options = {.margin = 0.02,
               .alpha = 0.01,
               .power = 0.7,
               .resamples = 500,
               .seed = UINT64_MAX,
               .minimum_rows = 6,
               .cold_factor = 4,
               .notable = 0.5,
               .allow_single_process = true};
  f.identity = {{"cpu", "Example"}, {"arms.eager.threads", "2"}};
  f.study = {"s", "eager", {"eager", "static"}, "shuffled", 1, 2, 3, "2026-11-20", true, 60};
  f.sittings = {{"2026-11-20", 5, 55, {{"gpus.uuid", "GPU-1", "GPU-2"}}}};
  f.requirements = Requirements{Requirements::Verdict::kFailed,
                                {{"triton", ">= 3", Criterion::Status::kNotMet, "found 2"}}};
  f.strata = {{Phase::kPrefill, "m", "short", 0, 1}, {Phase::kKvDecode, "m", "short", 8, 1}};
  f.prompts = {{10, 12}, {20, 20}};
  f.outcomes = {{Phase::kKvDecode,
                 std::nullopt,
                 "static",
                 33,
                 3,
                 whole::kInterval,
                 6,
                 2,
                 whole::kInterval,
                 {{"oom", 3}},
                 {{"OutOfMemoryError", 3}}},
                {Phase::kKvDecode,
                 1,
                 "static",
                 33,
                 3,
                 whole::kInterval,
                 6,
                 2,
                 whole::kInterval,
                 {{"oom", 3}},
                 {{"E", 3}}}};
  f.latencies = {whole::latency()};
  f.tails = {{.stratum = 1,
              .arm = "static",
              .execution = Execution::kOtherMode,
              .n = 30,
              .p50 = 2,
              .high = 9,
              .high_is_max = true,
              .slow = 2,
              .slow_recompiled = 1,
              .recompiled = 3,
              .ran_eager = 4,
              .fence = 5,
              .beyond_fence = 6,
              .beyond_fence_recompiled = 5,
              .high_without = 8,
              .p50_ratio = 0.5,
              .ratio_interval = whole::kInterval,
              .ratio_process_range = whole::kInterval}};
  f.slow_calls = {{.stratum = 1,
                   .arm = "static",
                   .n = 30,
                   .p50 = 2,
                   .high = 9,
                   .high_is_max = true,
                   .limit = 5,
                   .slow = 4,
                   .causes = {{"recompile", 3, 1}},
                   .high_without = 8}};
  f.compile_costs = {{.stratum = 1,
                      .arm = "static",
                      .compiler_real = CompilerReal::kFallback,
                      .prepare_s = 1.5,
                      .first_loaded = true,
                      .later_prepare_s = 0.25,
                      .later_processes = 4,
                      .compile_s = 0.5,
                      .parity_compile_s = 1.25,
                      .counts = {{Counter::kUniqueGraphs, 2}, {Counter::kGraphReplays, 0}},
                      .problem = "ran as eager"}};
  f.read_shares = {{1, "static", 5e9, 1e10, 4e14, 8e14}};
  const QualityFigure figure{.value = 0.25, .interval = EvidenceInterval{0.125, 0.5}};
  f.qualities = {{.model = "llama",
                  .arm = "static",
                  .beside_model = {.model = "q4.gguf",
                                   .reference = "llama",
                                   .text = "drawn",
                                   .window = 64,
                                   .windows = 8,
                                   .positions = 256,
                                   .kl_mean = figure,
                                   .kl_p99 = figure,
                                   .same_choice = figure,
                                   .nll = figure,
                                   .reference_nll = figure,
                                   .nll_change = figure,
                                   .problem = "none"}}};
  f.profiles = {whole::profile()};
  f.blocks = {{1, BlockState::kWhole, 20, 19}, {0, BlockState::kSeveral, 3, 0}};
  f.contrasts = {whole::contrast(1)};
  f.combined = {whole::contrast(std::nullopt)};
  f.not_comparable = {{0, "static", {"other output"}}};
  Finding finding{"drift", Severity::kWarning, Phase::kKvDecode, 1, "static", "it drifts", 0.5, {}};
  finding.rows = {{"c001", {-1, 0, 7}}};
  f.named = {finding};
  f.decisions = {
      {.stratum = 1,
       .kind = Decision::Kind::kBest,
       .arm = "static",
       .void_because = "nothing",
       .tied = {{"eager", 0.75, whole::kInterval, 0.1, whole::kInterval}},
       .ahead = {"static"},
       .runner_up = Rival{"eager", 0.5, whole::kInterval, 0.2, whole::kInterval},
       .typical =
           TypicalChoice{"static", "eager", {0.7, whole::kInterval, whole::kInterval}, "eager", 3},
       .alternatives = {{"p99", "eager", 0.9, whole::kInterval}},
       .left_out = {{"broken", "crashed"}}}};
  f.splits = {{.model = "m",
               .scenario = "short",
               .batch = 1,
               .arm = "static",
               .prefill_stratum = 0,
               .gain_ms = 1.5,
               .gain_interval = whole::kInterval,
               .gain_process_range = whole::kInterval,
               .at = {{8, true, 0.5, 0.75, whole::kInterval}},
               .stops_mattering = 100,
               .stops_interval = Reach{50, 200},
               .breaks_even = 300,
               .even_interval = Reach{250, 400}}};
  f.load = whole::load_summary();
  f.size_unit = "parameters";
  f.sizes = {whole::size_analysis()};
  return f;
}

}  // namespace assay
