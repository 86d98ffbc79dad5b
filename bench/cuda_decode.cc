// Decode and prefill on a GPU: cuda_decode [--prompts N,N...] [--compiled]
// [MODEL[:DTYPE[:BATCH]]...]. Compiled and eager (unless --compiled) over a static cache, ms by the
// wall clock as a caller sees them, the GPU's own ms of a step, and the memory that a step reads
// beside what the GPU reads at best; with --prompts, prompts of these lengths instead. Without a
// GPU: exit status 3.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apart.h"
#include "base/clock.h"
#include "base/tables/table.h"
#include "base/text/text.h"
#include "engine/codegen/kernel_cache.h"
#include "engine/device/cuda/driver.h"
#include "engine/device/cuda/read_bandwidth.h"
#include "engine/model/make.h"
#include "engine/session/session.h"
#include "samples.h"

namespace assay::bench {
namespace {

using engine::DType;
using engine::Session;

constexpr int64_t kPromptTokens = 128, kNewTokens = 128;
constexpr int kRuns = 7;  // after one that isn't counted

std::vector<int32_t> some_prompt(int64_t tokens) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < tokens; ++i) ids.push_back(static_cast<int32_t>(100 + i * 7 % 20000));
  return ids;
}

Result<std::filesystem::path> checkpoint(const std::string& model, DType dtype,
                                         const std::filesystem::path& models) {
  const auto folder = models / fmt::format("{}-{}", model, engine::dtype_name(dtype));
  if (std::filesystem::exists(folder / "config.json")) return folder;
  ASSAY_CHECK(engine::make_checkpoint(model, folder, {.seed = 42, .dtype = dtype}));
  return folder;
}

struct Measured {
  Samples decode_ms, prefill_ms;
  double first_step_s = 0;  // compiling included
  uint64_t step_bytes = 0;
  std::vector<int32_t> tokens;  // [1 + new ones, batch]
};

engine::PromptBatch prompts_of(int64_t batch) {
  return engine::PromptBatch::of(
      std::vector<std::vector<int32_t>>(static_cast<size_t>(batch), some_prompt(kPromptTokens)));
}

Result<Measured> measure(Session& session, int64_t batch) {
  Measured measured;
  ASSAY_CHECK(session.prepare(batch, kPromptTokens + kNewTokens));
  const auto prompt = prompts_of(batch);
  for (int run = -1; run < kRuns; ++run) {
    const int64_t start = monotonic_now_ns();
    ASSAY_CHECK(session.prefill(prompt));
    const int64_t filled = monotonic_now_ns();
    measured.tokens.assign(session.next_tokens().begin(), session.next_tokens().end());
    int64_t first = filled;
    ASSAY_CHECK(session.decode_greedy(kNewTokens, [&](std::span<const int32_t> tokens) {
      if (first == filled) first = monotonic_now_ns();
      measured.tokens.insert(measured.tokens.end(), tokens.begin(), tokens.end());
      return true;
    }));
    const int64_t end = monotonic_now_ns();
    if (run < 0) {
      measured.first_step_s = static_cast<double>(first - filled) * 1e-9;
      continue;
    }
    measured.prefill_ms.add(static_cast<double>(filled - start) * 1e-6);
    measured.decode_ms.add(static_cast<double>(end - filled) * 1e-6 /
                           static_cast<double>(kNewTokens));
  }
  measured.step_bytes = session.model().step_bytes(batch, kPromptTokens + kNewTokens / 2);
  return measured;
}

// Each length on a session of its own, so that a compiled one has seen no other.
Result<Samples> measure_prompt(Session& session, int64_t tokens, int32_t& first_token) {
  constexpr int kWarmUps = 3;  // compiles, records
  ASSAY_CHECK(session.prepare(1, tokens + 8));
  const auto prompt = engine::PromptBatch::of({some_prompt(tokens)});
  Samples ms;
  for (int run = -kWarmUps; run < 3 * kRuns; ++run) {
    const int64_t start = monotonic_now_ns();
    ASSAY_CHECK(session.prefill(prompt));
    if (run >= 0) ms.add(static_cast<double>(monotonic_now_ns() - start) * 1e-6);
  }
  first_token = session.next_tokens()[0];
  return ms;
}

struct Case {
  std::string model;
  DType dtype = DType::kBF16;
  int64_t batch = 1;
};

Result<Case> parse_case(const std::string& text) {
  const size_t at = text.find(':');
  Case result{.model = text.substr(0, at)};
  if (at == std::string::npos) return result;
  const size_t second = std::min(text.find(':', at + 1), text.size());
  const auto dtype = engine::parse_dtype(text.substr(at + 1, second - at - 1));
  if (!dtype) return bad_input("{}: expected MODEL or MODEL:DTYPE, found no such type", text);
  result.dtype = *dtype;
  if (second == text.size()) return result;
  result.batch = std::atoll(text.c_str() + second + 1);
  if (result.batch < 1) return bad_input("{}: expected a batch of at least 1, found none", text);
  return result;
}

// For kernels and choices of algorithms: a new one for each session, so that its first step
// compiles what it needs. They go with the process.
class ColdCaches {
 public:
  ColdCaches() : folder_((std::filesystem::temp_directory_path() / "cuda-decode-XXXXXX").string()) {
    if (::mkdtemp(folder_.data()) == nullptr) folder_.clear();
  }
  ColdCaches(const ColdCaches&) = delete;
  ColdCaches& operator=(const ColdCaches&) = delete;
  ~ColdCaches() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  std::optional<std::filesystem::path> next() {
    if (folder_.empty()) return std::nullopt;
    return std::filesystem::path(folder_) / std::to_string(used_++);
  }

 private:
  std::string folder_;
  int used_ = 0;
};

Result<Session> open(const std::filesystem::path& folder, bool compiled,
                     std::optional<DType> dtype = {}) {
  static ColdCaches caches;
  engine::SessionOptions options{.dtype = dtype, .gpu = 0};
  options.compile.prefill = options.compile.decode = compiled;
  options.compile.dynamic = engine::Dynamic::kFalse;
  options.compile.kernel_cache = caches.next();
  return Session::open(folder, options);
}

Status measure_prompts(const Case& which, const std::filesystem::path& models,
                       const std::vector<int64_t>& lengths, bool eager, Table& table) {
  ASSAY_TRY(const auto folder, checkpoint(which.model, which.dtype, models));
  for (const int64_t tokens : lengths) {
    std::optional<int32_t> eager_token;
    for (const bool compiled : {false, true}) {
      if (!compiled && !eager) continue;
      ASSAY_TRY(Session session, open(folder, compiled));
      int32_t token = -1;
      ASSAY_TRY(const Samples ms, measure_prompt(session, tokens, token));
      const auto evidence = session.compile_evidence();
      if (session.counters().fallbacks > 0) {
        return environment_error("compiled: expected kernels, found: {}",
                                 evidence.prefill.fallback);
      }
      for (const std::string& note : evidence.notes) fmt::print(stderr, "{}\n", note);
      table.rows.push_back({which.model, engine::dtype_name(which.dtype),
                            compiled ? "compiled" : "eager", tokens, ms.median(),
                            TableCell(ms.spread(), 2), static_cast<double>(tokens) / ms.median(),
                            eager_token.value_or(token) == token ? "as eager" : "DIFFERS"});
      eager_token = token;
    }
  }
  return {};
}

// Those behind the first of `tokens` that differs from eager's.
Result<std::vector<float>> logits_at_difference(Session& session, const Case& which,
                                                const std::vector<int32_t>& eager,
                                                const std::vector<int32_t>& tokens) {
  const size_t step = first_difference(eager, tokens) / static_cast<size_t>(which.batch);
  ASSAY_TRY(auto logits, logits_behind(session, prompts_of(which.batch), eager, step + 1));
  return std::move(logits.back());
}

// "equal", or what the logits say of the first token that differs. The executors' sessions are
// closed: a third one computes the same weights in fp32.
Result<std::string> compare(const Case& which, const std::filesystem::path& folder,
                            const Generated& eager, const std::vector<int32_t>& tokens,
                            const std::vector<float>& compiled) {
  if (tokens == eager.tokens) return "equal";
  ASSAY_TRY(Session session, open(folder, false, DType::kF32));
  ASSAY_CHECK(session.prepare(which.batch, kPromptTokens + kNewTokens));
  ASSAY_TRY(const auto exact, logits_at_difference(session, which, eager.tokens, tokens));
  return describe_difference(eager, tokens, compiled, exact, which.batch);
}

Status measure_case(const Case& which, const std::filesystem::path& models, double read_gb_s,
                    bool with_eager, Table& table) {
  ASSAY_TRY(const auto folder, checkpoint(which.model, which.dtype, models));
  Generated eager;
  std::vector<int32_t> tokens;
  std::vector<float> there;  // compiled's logits at the first token that differs
  for (const bool compiled : {false, true}) {
    if (!compiled && !with_eager) continue;
    const int64_t start = monotonic_now_ns();
    ASSAY_TRY(Session session, open(folder, compiled));
    const double load_s = static_cast<double>(monotonic_now_ns() - start) * 1e-9;
    ASSAY_TRY(const Measured m, measure(session, which.batch));
    if (session.counters().fallbacks > 0) {
      return environment_error("compiled: expected kernels, found: {}{}",
                               session.compile_evidence().prefill.fallback,
                               session.compile_evidence().decode.fallback);
    }
    tokens = m.tokens;
    if (!compiled) {
      eager.tokens = tokens;
      ASSAY_TRY(eager.logits,
                logits_behind(session, prompts_of(which.batch), tokens, kNewTokens + 1));
    } else if (with_eager && tokens != eager.tokens) {
      ASSAY_TRY(there, logits_at_difference(session, which, eager.tokens, tokens));
    }
    const double gb_s = static_cast<double>(m.step_bytes) / m.decode_ms.median() * 1e-6;
    table.rows.push_back(
        {which.model, engine::dtype_name(which.dtype), fmt::format("{}", which.batch),
         compiled ? "compiled" : "eager", m.decode_ms.median(), TableCell(m.decode_ms.spread(), 2),
         gb_s, TableCell(gb_s / read_gb_s, 2), m.prefill_ms.median(), load_s, m.first_step_s,
         !with_eager              ? "-"
         : tokens == eager.tokens ? "equal"
                                  : "differ"});
    fmt::print(stderr, "{} {} {:.3f} ms a step\n", which.model, compiled ? "compiled" : "eager",
               m.decode_ms.median());
  }
  if (!with_eager) return {};
  ASSAY_TRY(const std::string difference, compare(which, folder, eager, tokens, there));
  fmt::print("{} {}: tokens of compiled and eager: {}\n", which.model,
             engine::dtype_name(which.dtype), difference);
  return {};
}

Result<Table> run_prompts(const std::vector<std::string>& asked,
                          const std::vector<int64_t>& lengths, bool eager) {
  Table table{.title = fmt::format("prompts, batch 1, median of {}", 3 * kRuns),
              .columns = columns_of("<model|<dtype|<mode|tokens|ms|spread|tokens_a_ms|<token"),
              .rows = {}};
  for (const std::string& text : asked) {
    ASSAY_TRY(const Case which, parse_case(text));
    ASSAY_CHECK(measure_prompts(which, ASSAY_BENCH_MODELS, lengths, eager, table));
  }
  return table;
}

Result<Table> run(const std::vector<std::string>& asked, bool eager) {
  ASSAY_TRY(const double read_gb_s, [&]() -> Result<double> {
    ASSAY_TRY(auto driver, engine::cuda::Driver::open());
    fmt::print("{}, {} multiprocessors\n", driver->info().name, driver->info().multiprocessors);
    return engine::cuda::measure_read_bandwidth(*driver);
  }());
  Table table{
      .title = fmt::format("prompt {}, {} new tokens; reading at best: {:.0f} GB/s", kPromptTokens,
                           kNewTokens, read_gb_s),
      .columns = columns_of("<model|<dtype|batch|<mode|ms_a_step|spread|gb_s|share|prefill_ms|"
                            "load_s|first_step_s|<tokens"),
      .rows = {}};
  for (const std::string& text : asked) {
    ASSAY_TRY(const Case which, parse_case(text));
    ASSAY_CHECK(measure_case(which, ASSAY_BENCH_MODELS, read_gb_s, eager, table));
  }
  return table;
}

}  // namespace
}  // namespace assay::bench

int main(int argc, char** argv) {
  std::vector<std::string> asked(argv + 1, argv + argc);
  std::vector<int64_t> lengths;
  if (asked.size() > 1 && asked[0] == "--prompts") {
    for (const std::string& length : assay::split(asked[1], ',')) {
      lengths.push_back(std::strtoll(length.c_str(), nullptr, 10));
    }
    asked.erase(asked.begin(), asked.begin() + 2);
  }
  const bool eager = asked.empty() || asked[0] != "--compiled";
  if (!eager) asked.erase(asked.begin());
  if (asked.empty()) asked = {"qwen2.5-0.5b", "llama3.2-1b"};
  const auto table = lengths.empty() ? assay::bench::run(asked, eager)
                                     : assay::bench::run_prompts(asked, lengths, eager);
  if (!table) {
    fmt::print(stderr, "cuda_decode: {}\n", table.error().message);
    return table.error().kind == assay::ErrorKind::kEnvironment ? 3 : 2;
  }
  fmt::print("{}", table->render(assay::OutputFormat::kTable));
  return 0;
}
