// `assay generate`: streams a greedy continuation, then says how fast it came and against which
// limit.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/files/hash.h"
#include "base/records/device_name.h"
#include "base/text/shown_text.h"
#include "base/text/text.h"
#include "cli/bench/bench_models.h"
#include "cli/command.h"
#include "cli/option_types.h"
#include "engine/codegen/kernel_cache.h"
#include "engine/device/device.h"
#include "engine/device/step_reads.h"
#include "engine/session/session.h"
#include "engine/tokenizer/tokenizer.h"

namespace assay::cli {
namespace {

using engine::PromptBatch;
using engine::Session;
using engine::Tokenizer;
using engine::TokenStream;

struct GenerateOptions {
  std::string model;
  std::string prompt;
  int64_t new_tokens = 128;
  std::string dtype;
  std::string cache = "static";
  std::string device = "cpu";
  int64_t threads = 0;
  bool ids = false;
  bool ignore_eos = false;
  std::string mode = "eager";
  std::string dynamic = "auto";
  std::string split;  // the phase that is compiled; empty: both
  int64_t recompile_limit = 8;
  int64_t bucket = 0;
  std::vector<std::string> disabled_passes;
  bool verify_passes = false;
  bool no_kernel_cache = false;
  std::vector<const CLI::Option*> compiled_only;  // those that mean nothing to --mode eager
};

// Times and results of a generation.
struct Outcome {
  std::vector<int32_t> tokens;
  int64_t prefill_ns = 0;
  int64_t timed_steps = 0;
  int64_t decode_ns = 0;
  int64_t first_step_ns = 0;  // the part of decode_ns in the first step, compilation included
  uint64_t decode_bytes = 0;  // that the decode steps had to read
  bool out_of_positions = false;
  bool finite = true;  // the logits that chose the tokens
};

// Words and bounds are the options' own (cli/option_types.h).
Result<engine::CompileOptions> compile_options(const GenerateOptions& options) {
  engine::CompileOptions result;
  if (options.mode == "eager") {
    ASSAY_CHECK(refuse_given(options.compiled_only, "--mode compiled", "eager"));
    return result;
  }
  result.prefill = options.split != "decode";
  result.decode = options.split != "prefill";
  result.dynamic = engine::parse_dynamic(options.dynamic).value();
  result.recompile_limit = options.recompile_limit;
  result.bucket = options.bucket;
  result.disabled_passes = options.disabled_passes;
  result.verify_passes = result.verify_passes || options.verify_passes;
  if (!options.no_kernel_cache) result.kernel_cache = engine::KernelCache::default_folder();
  return result;
}

Result<engine::SessionOptions> session_options(const GenerateOptions& options) {
  engine::SessionOptions result;
  ASSAY_TRY(result.compile, compile_options(options));
  if (!options.dtype.empty()) {
    result.dtype = engine::parse_dtype(options.dtype);
    if (!result.dtype) {
      return bad_input("--dtype: expected fp32, fp16 or bf16, found {}",
                       quoted_excerpt(options.dtype));
    }
  }
  result.cache =
      options.cache == "static" ? engine::CacheKind::kStatic : engine::CacheKind::kDynamic;
  result.threads = static_cast<size_t>(options.threads);
  ASSAY_TRY(const DeviceName device, parse_device_name(options.device, "--device"));
  result.gpu = device.gpu;
  if (result.gpu && !options.no_kernel_cache) {  // eager kernels are compiled there too
    result.compile.kernel_cache = engine::KernelCache::default_folder();
  }
  return result;
}

// "464,3290 318": token ids apart by commas or spaces.
Result<std::vector<int32_t>> parse_ids(std::string text) {
  std::ranges::replace(text, ',', ' ');
  std::vector<int32_t> ids;
  for (const std::string& word : split(text, ' ')) {
    if (word.empty()) continue;
    int32_t id = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || end != word.data() + word.size()) {
      return bad_input("prompt: expected token ids (--ids), found {}", quoted_excerpt(word));
    }
    ids.push_back(id);
  }
  return ids;
}

// Writes text as soon as it is complete.
class Printer {
 public:
  explicit Printer(const Tokenizer* tokenizer) {
    if (tokenizer != nullptr) stream_.emplace(*tokenizer);
  }
  Status print(int32_t token) {
    return write(stream_ ? stream_->push(token) : fmt::format("{} ", token));
  }
  Status finish() { return write((stream_ ? stream_->finish() : std::string()) + "\n"); }

 private:
  static Status write(const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() ||
        std::fflush(stdout) != 0) {
      return environment_error(
          "standard output: expected to write {} bytes, found it closed or full", text.size());
    }
    return {};
  }
  std::optional<TokenStream> stream_;  // absent: ids are printed
};

Result<Outcome> generate(Session& session, const std::vector<int32_t>& prompt,
                         const GenerateOptions& options, Printer& printer) {
  const auto& config = session.config();
  const auto prompt_len = static_cast<int64_t>(prompt.size());
  // The last new token is never fed back, so it needs no position.
  const int64_t wanted = prompt_len + options.new_tokens - 1;
  const int64_t capacity = std::min(wanted, config.max_positions);
  ASSAY_CHECK(session.prepare(1, capacity));
  Outcome outcome;
  outcome.out_of_positions = wanted > capacity;
  int64_t start = monotonic_now_ns();
  ASSAY_CHECK(session.prefill(PromptBatch::of({prompt})));
  outcome.prefill_ns = monotonic_now_ns() - start;
  while (true) {
    const int32_t token = session.next_tokens()[0];
    outcome.tokens.push_back(token);
    ASSAY_CHECK(printer.print(token));
    const bool ended = !options.ignore_eos &&
                       std::ranges::find(config.eos_token_ids, token) != config.eos_token_ids.end();
    if (ended) outcome.out_of_positions = false;
    if (ended || session.kv_len() == capacity) break;
    start = monotonic_now_ns();
    ASSAY_CHECK(session.decode(session.next_tokens()));
    const int64_t step_ns = monotonic_now_ns() - start;
    // A first compiled step compiles: its time is a figure of its own.
    if (outcome.first_step_ns == 0 && options.mode == "compiled") {
      outcome.first_step_ns = step_ns;
      continue;
    }
    outcome.decode_ns += step_ns;
    ++outcome.timed_steps;
    outcome.decode_bytes += session.model().step_bytes(1, session.kv_len());
  }
  ASSAY_CHECK(printer.finish());
  outcome.finite = session.logits_finite();
  return outcome;
}

// A compiler's words have many lines, and any bytes.
void print_warning(const std::string& text) {
  const char* before = "warning  ";
  for (const std::string& line : split(text, '\n')) {
    fmt::print(stderr, "{}{}\n", std::exchange(before, "         "), shown_line(line));
  }
}

// Prints the compiled kernels, their cost, and the parts that ran eager after all with the reason.
void print_compilation(const Session& session, const Outcome& outcome) {
  const engine::CompileEvidence evidence = session.compile_evidence();
  const engine::CompileCounters counters = session.counters();
  fmt::print(stderr,
             "compile  prefill {} with compilation, first step {}; {} compiled in {}, {} "
             "loaded in {}\n",
             format_duration(static_cast<double>(outcome.prefill_ns) * 1e-9),
             format_duration(static_cast<double>(outcome.first_step_ns) * 1e-9),
             counted(counters.kernels_compiled, "kernel"),
             format_duration(evidence.kernels.compile_seconds), counters.kernels_loaded,
             format_duration(evidence.kernels.load_seconds));
  fmt::print(stderr, "graphs   {}, {}, {} fell back to eager\n", counters.unique_graphs,
             counted(counters.recompiles, "recompile"), counted(counters.fallbacks, "run"));
  for (const auto& [name, frame] :
       {std::pair{"prefill", &evidence.prefill}, std::pair{"decode", &evidence.decode}}) {
    for (const engine::CompileRecord& graph : frame->graphs) {
      fmt::print(stderr, "         {}: {} in {}{}\n", name, graph.guards,
                 format_duration(graph.seconds),
                 graph.failed_guard.empty()
                     ? ""
                     : fmt::format(" ({}: expected {}, found {})", graph.failed_guard,
                                   graph.expected, graph.found));
    }
    if (!frame->fallback.empty())
      print_warning(fmt::format("{} runs eager: {}", name, frame->fallback));
  }
  for (const std::string& note : evidence.notes) print_warning(note);
}

// The text is printed by now: a bandwidth that can't be measured is said and fails nothing. Memory
// of the host is refused by an exception. A busy machine lowers the figure, so one below the speed
// of the steps is measured once more.
Result<double> read_limit_gb_per_s(engine::Device& device, double steps_gb_per_s) {
  try {
    ASSAY_TRY(const double limit, device.measure_read_bandwidth());
    if (limit >= steps_gb_per_s) return limit;
    ASSAY_TRY(const double again, device.measure_read_bandwidth());
    return std::max(limit, again);
  } catch (const std::exception& error) {
    return environment_error("bandwidth probe: expected memory for it, found: {}", error.what());
  }
}

std::string against_limit(const engine::StepReads& reads, engine::Device& device) {
  if (reads.fit_cache()) return engine::against_limit(reads, 0, "");
  const std::string reader =
      device.launches()
          ? "this GPU"
          : counted(static_cast<int64_t>(device.threads()), "thread") + " of this machine";
  const Result<double> limit = read_limit_gb_per_s(device, reads.gb_per_s());
  if (limit) return engine::against_limit(reads, *limit, reader);
  return fmt::format("the read bandwidth of {} is unknown: {}", reader, limit.error().message);
}

// Prints a GPU's name and driver, and the host's launches there.
void print_device(const Session& session) {
  const auto launches = session.device().launches();
  if (!launches) return;
  const engine::DeviceInfo device = session.device().info();
  fmt::print(stderr, "device   {}, compute capability {}, {}; {} captured, {}, {} launched\n",
             shown_line(device.name), device.compute_capability, device.driver,
             counted(launches->captures, "graph"), counted(launches->replays, "replay"),
             counted(launches->kernels, "kernel"));
}

void print_figures(Session& session, size_t prompt_tokens, const Outcome& outcome) {
  print_device(session);
  fmt::print(stderr, "prompt   {}, prefill {}\n",
             counted(static_cast<int64_t>(prompt_tokens), "token"),
             format_duration(static_cast<double>(outcome.prefill_ns) * 1e-9));
  if (outcome.decode_ns > 0) {
    const auto nanoseconds = static_cast<double>(outcome.decode_ns);
    const auto steps = static_cast<double>(outcome.timed_steps);
    const engine::StepReads reads{.bytes = static_cast<double>(outcome.decode_bytes) / steps,
                                  .nanoseconds = nanoseconds / steps,
                                  .cache_bytes = session.device().cache_bytes()};
    fmt::print(stderr, "decode   {:.1f} tokens/s, {:.2f} GB/s: {}\n", steps / nanoseconds * 1e9,
               reads.gb_per_s(), shown_line(against_limit(reads, session.device())));
  }
  fmt::print(stderr, "output   {}, hash {}{}\n", counted(std::ssize(outcome.tokens), "token"),
             token_hash(outcome.tokens),
             outcome.out_of_positions ? fmt::format("; stopped at the model's {} positions",
                                                    session.config().max_positions)
                                      : "");
}

Result<int> run_generate(const GenerateOptions& options) {
  ASSAY_TRY(const auto session_opts, session_options(options));
  ASSAY_TRY(const std::vector<BenchedModel> found, find_models({options.model}));
  const std::string& folder = found.front().path;
  ASSAY_TRY(Session session, Session::open(folder, session_opts));
  std::optional<Tokenizer> tokenizer;
  std::vector<int32_t> prompt;
  if (options.ids) {
    ASSAY_TRY(prompt, parse_ids(options.prompt));
  } else {
    ASSAY_TRY(tokenizer, Tokenizer::open(folder));
    ASSAY_TRY(prompt, tokenizer->encode(options.prompt, true));
  }
  if (prompt.empty()) return bad_input("prompt: expected at least one token, found none");
  if (static_cast<int64_t>(prompt.size()) > session.config().max_positions) {
    return bad_input("prompt: expected at most {} tokens (the model's positions), found {}",
                     session.config().max_positions, prompt.size());
  }
  Printer printer(tokenizer ? &*tokenizer : nullptr);
  ASSAY_TRY(const Outcome outcome, generate(session, prompt, options, printer));
  if (options.mode == "compiled") print_compilation(session, outcome);
  print_figures(session, prompt.size(), outcome);
  if (outcome.finite) return 0;
  print_warning(
      "logits: expected finite values, found NaN or infinity, so the tokens mean nothing");
  return 1;
}

// Declares the options that only --mode compiled takes.
void add_compiled_options(CLI::App& command, GenerateOptions& options) {
  options.compiled_only = {
      command
          .add_option(
              "--dynamic", options.dynamic,
              "compiled: whether the graphs' sizes are symbols: true, false or auto (default)")
          ->check(word_of({"true", "false", "auto"})),
      command
          .add_option("--split", options.split,
                      "compiled: compile only this phase, prefill or decode (default: both)")
          ->check(word_of({"prefill", "decode"})),
      command
          .add_option(
              "--recompile-limit", options.recompile_limit,
              "compiled: largest number of graphs of a phase, which then runs eager (default 8)")
          ->check(count_between(1, 1'000'000)),
      command
          .add_option(
              "--bucket", options.bucket,
              "compiled: pad the prompt to a multiple of this length (default 0: no padding)")
          ->check(count_between(0, engine::kMostBucket)),
      command.add_option("--disable-pass", options.disabled_passes,
                         "compiled: skip this pass; may be repeated"),
      command.add_flag("--verify-passes", options.verify_passes,
                       "compiled: check each pass on random inputs"),
      command.add_flag("--no-kernel-cache", options.no_kernel_cache,
                       "compiled: ignore the kernels on disk and compile all of them")};
}

}  // namespace

void add_generate_command(CLI::App& app, Selected& selected) {
  auto options = std::make_shared<GenerateOptions>();
  CLI::App* command = app.add_subcommand(
      "generate", "continue a prompt greedily; the text goes to stdout, figures go to stderr");
  command
      ->add_option("MODEL", options->model,
                   "checkpoint folder, GGUF file, or an architecture of `assay model make`, whose "
                   "random weights "
                   "are made once and kept in the cache")
      ->required();
  command->add_option("PROMPT", options->prompt, "text, or token ids with --ids")->required();
  command->add_option("-n,--tokens", options->new_tokens, "number of new tokens (default 128)")
      ->check(count_between(1));
  command->add_option("--dtype", options->dtype,
                      "type of the weights: fp32, fp16 or bf16 (default: as stored)");
  command->add_option("--cache", options->cache, "kind of cache: static (default) or dynamic")
      ->check(word_of({"static", "dynamic"}));
  command
      ->add_option("--device", options->device,
                   "device that computes: cpu (default), cuda or cuda:N")
      ->check(device_word());
  command->add_option("--threads", options->threads, "number of threads (default 0: all cores)")
      ->check(count_between(0, kMostThreads));
  command->add_flag("--ids", options->ids, "read and write token ids; needs no tokenizer");
  command->add_flag("--ignore-eos", options->ignore_eos, "don't stop at an end-of-text token");
  command->add_option("--mode", options->mode, "mode of execution: eager (default) or compiled")
      ->check(word_of({"eager", "compiled"}));
  add_compiled_options(*command, *options);
  command->callback(
      [&selected, options] { selected.body = [options] { return run_generate(*options); }; });
}

}  // namespace assay::cli
