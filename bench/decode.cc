// Eager and compiled decode in GB/s beside the machine's read bandwidth, each measured by turns
// with it in one run, so that the machine's noise hits both alike; prefill for information.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/process/thread_pool.h"
#include "base/tables/table.h"
#include "base/text/text.h"
#include "engine/codegen/kernel_cache.h"
#include "engine/device/cpu/bandwidth.h"
#include "engine/model/make.h"
#include "engine/session/session.h"
#include "samples.h"

namespace assay::bench {
namespace {

using engine::DType;
using engine::Session;

constexpr double kEagerBar = 0.60;  // of the read bandwidth, by the median
constexpr double kCompiledBar = 0.85;
constexpr int kRepetitions = 15;
constexpr int kWarmup = 2;
constexpr int kStepsARepetition = 8;
constexpr int64_t kPromptTokens = 16;

struct Case {
  std::string architecture;
  DType stored;
  DType used;
};

std::vector<int32_t> some_prompt(int64_t tokens) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < tokens; ++i) ids.push_back(static_cast<int32_t>(100 + i * 7));
  return ids;
}

Result<std::filesystem::path> checkpoint(const Case& which, const std::filesystem::path& models) {
  const auto folder =
      models / fmt::format("{}-{}", which.architecture, engine::dtype_name(which.stored));
  if (std::filesystem::exists(folder / "config.json")) return folder;
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);  // of an interrupted run
  ASSAY_CHECK(
      engine::make_checkpoint(which.architecture, folder, {.seed = 42, .dtype = which.stored}));
  return folder;
}

struct DecodeSamples {
  Samples decode_gb_s, read_gb_s, ms_per_token;
};

// Runs the repetitions: one pass of the probe, then some decode steps, timed together.
Result<DecodeSamples> measure_decode(Session& session, engine::BandwidthProbe& probe) {
  constexpr int64_t kSteps = (kWarmup + kRepetitions) * kStepsARepetition;
  ASSAY_CHECK(session.prepare(1, kPromptTokens + kSteps));
  ASSAY_CHECK(session.prefill(engine::PromptBatch::of({some_prompt(kPromptTokens)})));
  DecodeSamples samples;
  for (int repetition = -kWarmup; repetition < kRepetitions; ++repetition) {
    const double read = probe.measure_once();
    uint64_t bytes = 0;
    const int64_t start = monotonic_now_ns();
    for (int step = 0; step < kStepsARepetition; ++step) {
      ASSAY_CHECK(session.decode(session.next_tokens()));
    }
    const auto ns = static_cast<double>(monotonic_now_ns() - start);
    for (int step = 0; step < kStepsARepetition; ++step) {
      bytes += session.model().step_bytes(1, session.kv_len() - step);
    }
    if (repetition < 0) continue;
    samples.read_gb_s.add(read);
    samples.decode_gb_s.add(static_cast<double>(bytes) / ns);
    samples.ms_per_token.add(ns * 1e-6 / kStepsARepetition);
  }
  return samples;
}

// Tokens a second, the best of some runs after a warm-up.
Result<double> measure_prefill(Session& session, int64_t tokens) {
  ASSAY_CHECK(session.prepare(1, tokens));
  const auto prompt = engine::PromptBatch::of({some_prompt(tokens)});
  int64_t best_ns = INT64_MAX;
  for (int run = 0; run < 4; ++run) {
    const int64_t start = monotonic_now_ns();
    ASSAY_CHECK(session.prefill(prompt));
    if (run > 0) best_ns = std::min(best_ns, monotonic_now_ns() - start);
  }
  return static_cast<double>(tokens) / static_cast<double>(best_ns) * 1e9;
}

Result<std::vector<TableCell>> measure(const Case& which, bool compiled,
                                       const std::filesystem::path& models) {
  ASSAY_TRY(const auto folder, checkpoint(which, models));
  engine::SessionOptions options{.dtype = which.used};
  options.compile.prefill = options.compile.decode = compiled;
  options.compile.kernel_cache = engine::KernelCache::default_folder();
  ASSAY_TRY(Session session, Session::open(folder, options));
  const double bar = compiled ? kCompiledBar : kEagerBar;
  ThreadPool pool(session.device().threads());
  ASSAY_TRY(auto probe, engine::BandwidthProbe::create(pool));
  ASSAY_TRY(const DecodeSamples samples, measure_decode(session, probe));
  ASSAY_TRY(const double prefill_128, measure_prefill(session, 128));
  ASSAY_TRY(const double prefill_512, measure_prefill(session, 512));
  if (session.counters().fallbacks > 0) {
    return environment_error("compiled: expected kernels, found: {}{}",
                             session.compile_evidence().prefill.fallback,
                             session.compile_evidence().decode.fallback);
  }
  const double fraction = samples.decode_gb_s.median() / samples.read_gb_s.median();
  return std::vector<TableCell>{which.architecture,
                                engine::dtype_name(which.used),
                                compiled ? "compiled" : "eager",
                                samples.ms_per_token.median(),
                                samples.decode_gb_s.median(),
                                TableCell(samples.decode_gb_s.spread(), 2),
                                samples.read_gb_s.median(),
                                TableCell(samples.read_gb_s.spread(), 2),
                                TableCell(fraction, 3),
                                TableCell(bar, 2),
                                std::string(verdict(fraction, bar)),
                                prefill_128,
                                prefill_512};
}

Result<Table> run(const std::filesystem::path& models, const std::string& only) {
  Table table{
      .title =
          "decode, batch 1, against the read bandwidth (medians; spread: (p90 - p10) "
          "/ median)",
      .columns = columns_of("<model|<dtype|<mode|ms_per_token|decode_gb_s|decode_spread|read_gb_s|"
                            "read_spread|fraction|expected|<verdict|prefill_128_tok_s|"
                            "prefill_512_tok_s"),
      .rows = {}};
  const std::vector<Case> cases = {{"gpt2-100m", DType::kF32, DType::kF32},
                                   {"qwen2.5-0.5b", DType::kBF16, DType::kBF16},
                                   {"qwen2.5-0.5b", DType::kBF16, DType::kF32}};
  const bool known =
      std::ranges::any_of(cases, [&](const Case& which) { return which.architecture == only; });
  if (!only.empty() && !known) {
    return bad_input("bench_decode: expected one of gpt2-100m, qwen2.5-0.5b, found {}",
                     quoted_excerpt(only));
  }
  for (const Case& which : cases) {
    if (!only.empty() && which.architecture != only) continue;
    for (const bool compiled : {false, true}) {
      fmt::print(stderr, "{} {} {} ...\n", which.architecture, engine::dtype_name(which.used),
                 compiled ? "compiled" : "eager");
      ASSAY_TRY(auto row, measure(which, compiled, models));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

}  // namespace
}  // namespace assay::bench

// usage: bench_decode [MODEL]; checkpoints are kept in the build folder.
int main(int argc, char** argv) {
  const auto table = assay::bench::run(ASSAY_BENCH_MODELS, argc > 1 ? argv[1] : "");
  if (!table) {
    fmt::print(stderr, "{}\n", table.error().message);
    return table.error().kind == assay::ErrorKind::kBadInput ? 2 : 3;
  }
  fmt::print("{}", table->render(assay::OutputFormat::kTable));
  return 0;
}
