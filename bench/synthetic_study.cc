// Writes a large bundle for analysis_vs_python: synthetic_study FOLDER ROWS. For `judgements` with
// a third argument, a NUMBER from 1 on: other rows, of the commit of that number, or with a fourth,
// `rerun`, of the same commit.
//
// 400 strata (3 phases, 4 models, 5 scenarios, batches, decode lengths), 4 arms, interleaved, a
// repetition a block as `assay run` does; arm torch is missing on 12 strata. Latencies are
// log-normal (4 %) with 1 % of samples three times as slow and cold warm-ups; arm compiled-dynamic
// recompiles in 1 % of its rows at 10 times the time; arm torch loses 5 rows on 8 strata. 52,410
// rows are 30 repetitions after 3 warm-ups a cell.
#include <charconv>
#include <cstdio>
#include <cstring>

#include "analysis/rows/synthetic_bundle.h"
#include "base/files/files.h"
#include "base/files/hash.h"

// The program's own definitions, in the place of the C library's: a bundle for a benchmark needn't
// outlive the machine, and some 4,000 waits for the device took 61 of the 64 s that one took.
extern "C" int fsync(int /*file*/) {
  return 0;
}
extern "C" int fdatasync(int /*file*/) {
  return 0;
}

namespace assay {
namespace {

struct Condition {
  Phase phase = Phase::kPrefill;
  std::string model;
  std::string scenario;
  int64_t prompt_tokens = 0;
  int64_t new_tokens = 0;
  int64_t batch = 1;
  double mean_ms = 1;
};

constexpr const char* kArms[] = {"eager", "compiled-dynamic", "compiled-static", "torch"};
constexpr double kFactors[] = {1, 0.9, 0.72, 1.01};
constexpr int64_t kWarmups = 3;
constexpr size_t kStrata = 400;  // the published costs are those of as many

std::vector<Condition> conditions() {
  const std::vector<std::pair<std::string, double>> models = {
      {"gpt2-25m", 1}, {"gpt2-50m", 2}, {"gpt2-100m", 4}, {"qwen2.5-0.5b", 20}};
  const std::vector<std::pair<std::string, int64_t>> scenarios = {{"single_micro", 10},
                                                                  {"single_short", 30},
                                                                  {"single_medium", 80},
                                                                  {"single_long", 200},
                                                                  {"stress_single", 400}};
  std::vector<Condition> all;
  for (const Phase phase : kRequestPhases) {
    for (const auto& [model, size] : models) {
      for (const auto& [scenario, tokens] : scenarios) {
        for (const int64_t new_tokens : {64, 128}) {
          if (phase == Phase::kPrefill && new_tokens == 128) continue;
          for (const int64_t batch : {1, 2, 4, 8}) {
            const auto work = static_cast<double>(decodes(phase) ? 8 * new_tokens : tokens + 8);
            all.push_back({phase, model, scenario, tokens, decodes(phase) ? new_tokens : 0, batch,
                           0.02 * size * work * static_cast<double>(batch)});
          }
        }
      }
    }
  }
  return all;
}

class Study {
 public:
  Study(BundleWriter writer, int64_t rows, int64_t number)
      : writer_(std::move(writer)), random_(20261121 + number), rows_(rows) {}

  Status write() {
    const auto all = conditions();
    if (all.size() != kStrata) return bad_input("expected {} strata, made {}", kStrata, all.size());
    const auto cells = static_cast<int64_t>(all.size() * std::size(kArms)) - 12;
    const int64_t repetitions = rows_ / cells - kWarmups;
    int64_t spare = rows_ - cells * (repetitions + kWarmups);
    for (size_t c = 0; c < all.size(); ++c) {
      const int64_t extra = std::min<int64_t>(spare, 1);  // a repetition more of the first arm
      spare -= extra;
      ASSAY_CHECK(write_condition(all[c], c, repetitions, extra));
    }
    return writer_.seal({{"rows", order_}});
  }

 private:
  Status write_condition(const Condition& condition, size_t number, int64_t repetitions,
                         int64_t extra) {
    const size_t arms = number < 12 ? std::size(kArms) - 1 : std::size(kArms);
    for (int64_t block = 0; block < repetitions + extra; ++block) {
      for (size_t arm = 0; arm < arms; ++arm) {
        if (block >= repetitions && arm > 0) continue;
        for (int64_t i = block == 0 ? -kWarmups : block; i <= block; ++i) {
          ASSAY_CHECK(writer_.append(row(condition, number, arm, i, block)));
        }
      }
    }
    for (size_t arm = 0; arm < arms; ++arm) {
      const std::string id = cell_id(condition, number, arm);
      ASSAY_CHECK(writer_.write_cell_json(id, "parity.json", {{"passed", true}}));
      ASSAY_CHECK(writer_.write_cell_json(id, "evidence.json",
                                          {{"compiler_real", arm == 0 ? "not_applicable" : "yes"},
                                           {"reported", {{"counters", {{"unique_graphs", 1}}}}}}));
    }
    return writer_.commit_unit(static_cast<int64_t>(number), nullptr);
  }

  static std::string cell_id(const Condition& condition, size_t number, size_t arm) {
    return fmt::format("c{:04}-{}-{}-{}-{}-b{}", number * std::size(kArms) + arm, kArms[arm],
                       condition.model, phase_name(condition.phase), condition.scenario,
                       condition.batch);
  }

  Row row(const Condition& condition, size_t number, size_t arm, int64_t repetition,
          int64_t block) {
    Row row;
    row.cell_id = cell_id(condition, number, arm);
    row.backend = arm == 3 ? "torch" : "native";
    row.arm = kArms[arm];
    row.model = condition.model;
    row.dtype = "fp32";
    row.cache = arm == 1 ? "dynamic" : "static";
    row.compile_mode = arm == 0 ? "eager" : "compiled";
    row.dynamic = arm == 0 ? "" : "false";
    row.padding = "none";
    row.phase = condition.phase;
    row.scenario = condition.scenario;
    row.prompt_id = "0";
    row.batch = condition.batch;
    row.prompt_tokens = row.padded_tokens = condition.prompt_tokens;
    row.new_tokens = condition.new_tokens;
    row.repetition = repetition;
    row.block = block;
    row.order_index = order_++;
    row.cold = repetition < 0;
    row.started_at_ns = 1'700'000'000'000'000'000 + order_ * 10'000'000;
    if (arm == 3 && number % 50 == 20 && repetition >= 0 && repetition < 5) {
      row.status = RowStatus::kCrash;
      row.error_class = "SIGSEGV";
      return row;
    }
    double ms = condition.mean_ms * kFactors[arm] * std::exp(0.04 * standard_normal(random_));
    if (random_.uniform() < 0.01) ms *= 3;
    if (row.cold) ms *= 2;
    if (arm > 0) {
      const bool recompiles = arm == 1 && random_.uniform() < 0.01;
      row.counts[Counter::kUniqueGraphs] = row.counts[Counter::kRecompiles] = recompiles ? 1 : 0;
      row.counts[Counter::kFallbacks] = row.counts[Counter::kKernelsCompiled] =
          row.counts[Counter::kGraphReplays] = 0;
      row.counts[Counter::kGraphBreaks] = row.counts[Counter::kRecompileLimitHits] =
          row.counts[Counter::kFxCacheHits] = 0;
      row.counts[Counter::kCudagraphCaptures] = row.counts[Counter::kCudagraphSkips] = 0;
      row.compile_ms_delta = recompiles ? 1200.25 : 0;
      row.fresh_cache = true;
      if (recompiles) ms *= 10;
    }
    row.latency_ms = ms;
    row.tokens = std::max<int64_t>(1, condition.new_tokens) * condition.batch;
    row.tokens_per_s = static_cast<double>(*row.tokens) / ms * 1000;
    row.sm_clock_mhz = 2100 + 100 * random_.uniform();
    row.temperature_c = 60 + 10 * random_.uniform();
    row.throttled = false;
    row.output_hash = "0123456789abcdef";
    return row;
  }

  BundleWriter writer_;
  Random random_;
  int64_t rows_ = 0;
  int64_t order_ = 0;
};

Status write_study(const std::string& folder, int64_t rows, int64_t number, bool rerun) {
  BundleHeader header;
  header.environment = {{"warnings", Json::array()}};
  // No plan stands behind these rows, as none stands behind imported ones.
  header.identity = {{"device", "synthetic"}, {"imported_from", "code"}};
  if (number > 0 && !rerun) header.identity["code_sha"] = fmt::format("{:040x}", number);
  Json arms = Json::array();
  for (const char* arm : kArms) arms.push_back(arm);
  header.study = {{"name", "synthetic"},
                  {"baseline", "eager"},
                  {"seed", 42},
                  {"order", "interleaved"},
                  {"arms", std::move(arms)}};
  const std::string plan =
      to_json_text({{"imported", "code"}, {"rows", rows}, {"study", header.study}});
  header.study_yaml = plan;
  header.plan_hash = sha256_hex(plan);
  header.assay_version = ASSAY_VERSION;
  ASSAY_TRY(BundleWriter writer, BundleWriter::create(disk(), folder, header));
  return Study(std::move(writer), rows, number).write();
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  const auto number_of = [&](int at) {
    int64_t value = 0;
    if (at < argc) std::from_chars(argv[at], argv[at] + std::strlen(argv[at]), value);
    return value;
  };
  const int64_t rows = number_of(2);
  const bool rerun = argc == 5 && std::strcmp(argv[4], "rerun") == 0;
  if (argc > 5 || rows < 20000 || (argc > 3 && number_of(3) < 1) || (argc == 5 && !rerun)) {
    fmt::print(
        stderr,
        "synthetic_study: expected FOLDER, at least 20000 ROWS and, if any, a NUMBER and rerun\n");
    return 2;
  }
  const assay::Status written = assay::write_study(argv[1], rows, number_of(3), rerun);
  if (written) return 0;
  fmt::print(stderr, "synthetic_study: {}\n", written.error().message);
  return written.error().kind == assay::ErrorKind::kBadInput ? 2 : 3;
}
