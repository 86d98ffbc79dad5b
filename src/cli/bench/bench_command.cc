// assay bench MODEL...: no study file, one row a test and arm. It writes the study itself, measures
// it as `assay run` would, and shows the findings as a benchmark's rows.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <optional>

#include "analysis/analyze.h"
#include "analysis/describe/speeds.h"
#include "base/add_once.h"
#include "base/files/temporary_folder.h"
#include "base/process/terminal.h"
#include "base/text/shown_text.h"
#include "base/text/text.h"
#include "cli/bench/bench_models.h"
#include "cli/bundle_analysis.h"
#include "cli/command.h"
#include "cli/option_types.h"
#include "cli/process.h"
#include "cli/server_options.h"
#include "cli/study/measure.h"
#include "engine/model/architectures.h"
#include "report/bench/bench_text.h"
#include "report/bench/load_text.h"
#include "study/bench_study.h"
#include "study/default_processes.h"
#include "study/load_study.h"

namespace assay::cli {
namespace {

// The name in errors of the study that bench writes.
constexpr const char* kStudyName = "`assay bench --print-study`";
constexpr std::string_view kTemporaryPrefix = "assay-bench.";
constexpr int kExitLost = 1;  // a row of some test and arm is missing

struct BenchOptions {
  std::vector<std::string> models;
  ServerOptions server;
  BenchTests tests;
  std::string save;  // folder of the bundle; empty: it isn't kept
  bool print_study = false;
  BenchFormat format = BenchFormat::kTable;
};

Result<int> interrupted(const BenchOptions& options, const Measured& measured) {
  const std::string where = shown_line(options.save);
  tell(options.save.empty()
           ? std::string("assay: interrupted; nothing is kept without --save\n")
           : fmt::format("assay: interrupted with {} committed; continue with: assay run "
                         "{}/study.yaml -o {} --resume\n",
                         counted(measured.rows, "row"), where, where));
  return kExitInterrupted;
}

// The rows, from the bundle that was written.
Status show(const BenchOptions& options, const std::vector<BenchedModel>& models,
            const std::string& folder) {
  ASSAY_TRY(const Bundle bundle, read_bundle(folder));
  Findings findings;
  if (options.save.empty()) {
    ThreadPool pool(available_cpus());
    ASSAY_TRY(findings, analyze(bundle, {}, &pool));
  } else {
    ASSAY_TRY(AnalyzedBundle analyzed, analyze_folder(folder, {}));
    ASSAY_CHECK(write_analysis(analyzed, folder));
    findings = std::move(analyzed.findings);
  }
  if (options.tests.load.any()) {
    ASSAY_TRY(const std::string text, render_load_bench(findings, options.format));
    fmt::print("{}", text);
    if (!options.save.empty()) print_remark("note", "the bundle is kept in " + folder);
    return {};
  }
  ASSAY_TRY(const Samples samples, group_rows(bundle, findings.study.arms));
  fmt::print("{}", render_bench(make_bench(findings, speeds(samples), models), options.format,
                                stdout_columns()));
  if (!options.save.empty()) print_remark("note", "the bundle is kept in " + folder);
  return {};
}

// The exit status, and a line if a row was lost: the figure of some test and arm is then of fewer
// rows than asked for, or missing.
int lost_rows(const Measured& measured) {
  std::vector<std::string> lost;
  for (const auto& [status, rows] : measured.rows_by_status) {
    if (status != RowStatus::kOk && rows > 0) {
      lost.push_back(fmt::format("{} {}", rows, row_status_name(status)));
    }
  }
  if (lost.empty()) return 0;
  tell(fmt::format("assay: expected {} (warm-ups included) to be ok, found {}\n",
                   counted(measured.rows, "row"), join(lost, ", ")));
  return kExitLost;
}

// Fewer repetitions than processes would leave some without any: where starts are cheap, each makes
// one. Says so.
Status raise_repetitions(BenchTests& tests) {
  ASSAY_TRY(const Study study, parse_study(bench_study(tests), kStudyName));
  const int64_t least = least_repetitions(study);
  if (tests.repetitions >= least) return {};
  print_remark("note", fmt::format("-r {} becomes {}: each of an arm's {} processes makes one "
                                   "repetition of a test",
                                   tests.repetitions, least, least));
  tests.repetitions = least;
  return {};
}

// The processes' cost beside the timed work, and the reason if there are only few of them.
std::string cost_text(const Measured& measured) {
  return fmt::format(
      "{} of each arm: starting them took {}, and preparing tests {}; no figure includes that{}",
      counted(measured.processes, "process", "processes"), format_duration(measured.starting_s),
      format_duration(measured.preparing_s),
      measured.processes < kMostProcesses ? ". " + measured.processes_because : "");
}

// A run under load has lengths of its own defaults, and an end.
Status settle_load(const CLI::App& command, BenchTests& tests) {
  constexpr double kDuration_s = 10;
  ASSAY_CHECK(refuse_given({command.get_option("--n-depth")},
                           "-p and -n, the lengths of a load's requests", "-d"));
  if (tests.prompts.empty() || tests.generations.empty())
    return bad_input("-p and -n: expected a load's requests to have both, found 0 for one");
  if (command.get_option("--n-prompt")->count() == 0) tests.prompts = {128};
  if (tests.load.duration_s == 0 && tests.load.requests == 0) tests.load.duration_s = kDuration_s;
  return {};
}

// The server's one model and arm, in the place of models and modes.
Result<BenchedModel> settle_server(const CLI::App& command, BenchOptions& options) {
  constexpr int64_t kRepetitions = 10, kDepth = 32;
  for (const char* const other :
       {"--arms", "--cache", "--dynamic", "--device", "--threads", "--dtype", "--batch"}) {
    ASSAY_CHECK(refuse_given({command.get_option(other)}, "it without --server",
                             "both: a server has its own"));
  }
  if (!options.models.empty()) {
    return bad_input("--server: expected no other model beside a server's own (--model), found {}",
                     options.models.front());
  }
  ASSAY_TRY(const KnownServer known, ask_server(options.server));
  BenchTests& tests = options.tests;
  if (tests.load.any()) ASSAY_CHECK(settle_load(command, tests));
  options.server.api = known.api;
  options.server.model = known.facts.model;
  tests.server = options.server.arm_keys();
  tests.arms.clear();
  if (command.get_option("--repetitions")->count() == 0)
    tests.repetitions = tests.load.any() ? kDefaultLoadRuns : kRepetitions;
  if (command.get_option("--n-depth")->count() == 0) tests.depths = {kDepth};
  const std::string file = std::filesystem::path(known.facts.model).filename().string();
  return BenchedModel{file.empty() ? known.api : file, options.server.url,
                      known.facts.weight_bytes.value_or(0), 0};
}

Result<int> run_bench(const CLI::App& command, BenchOptions options) {
  if (options.tests.prompts.empty() && options.tests.generations.empty()) {
    return bad_input("-p and -n: expected at least one length above 0, found 0 for both");
  }
  std::vector<BenchedModel> models;
  if (!options.server.url.empty()) {
    ASSAY_TRY(models.emplace_back(), settle_server(command, options));
  } else if (options.models.empty()) {
    return bad_input("bench: expected a MODEL, or --server URL, found neither");
  } else {
    ASSAY_TRY(models, find_models(options.models));
  }
  for (const BenchedModel& model : models) {
    options.tests.models.push_back({model.name, model.path});
  }
  const bool loaded = options.tests.load.any();
  if (!loaded) {
    for (const char* const one : {"--arrivals", "--duration", "--requests", "--slo"}) {
      ASSAY_CHECK(refuse_given({command.get_option(one)}, "it beside --concurrency or --rate",
                               "neither of them"));
    }
  } else if (options.format == BenchFormat::kSql || options.format == BenchFormat::kJsonl) {
    return bad_input("-o: expected table, md, csv or json of a load, found another format");
  }
  if (loaded && options.server.url.empty())
    return bad_input(
        "--concurrency and --rate: expected --server URL, whose load they are, found none");
  if (!loaded) ASSAY_CHECK(raise_repetitions(options.tests));
  const std::string text = bench_study(options.tests);
  if (options.print_study) {
    fmt::print("{}", text);
    return 0;
  }
  std::optional<TemporaryFolder> temporary;
  std::string folder = options.save;
  if (folder.empty()) {
    remove_left_folders(kTemporaryPrefix);
    ASSAY_TRY(temporary, TemporaryFolder::make(kTemporaryPrefix));
    folder = temporary->path() / "bundle";
  }
  ASSAY_TRY(const Measured measured,
            measure_study({.study = kStudyName, .study_text = text, .bundle = folder, .only = {}}));
  if (measured.interrupted) return interrupted(options, measured);
  ASSAY_CHECK(show(options, models, folder));
  if (!loaded) print_remark("note", cost_text(measured));
  return lost_rows(measured);
}

// An option of one or several values apart by commas, which may be given again.
CLI::Option* add_list(CLI::App& command, const std::string& flags, const std::string& type,
                      const std::string& help, std::function<void(const std::string&)> take) {
  return command
      .add_option_function<std::vector<std::string>>(
          flags,
          [take = std::move(take)](const std::vector<std::string>& given) {
            for (const std::string& text : given) {
              for (const std::string& value : split(text, ',')) take(value);
            }
          },
          help)
      ->type_name(type)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

// Each value once; the first that is given replaces the default.
template <typename T>
void take_value(std::vector<T>& values, bool& given, const std::string& flags, T value) {
  if (!std::exchange(given, true)) values.clear();
  if (add_once(values, std::move(value))) return;
  throw CLI::ValidationError(
      fmt::format("{}: expected each value once, found {} again", flags, value));
}

// A 0 among counts.
enum class Zero {
  kRefused,
  kNoTest,
  kOne,  // of tokens before others: there is always one
};

void add_counts(CLI::App& command, const std::string& flags, const std::string& help,
                std::vector<int64_t>& values, Zero zero, int64_t most = 1'000'000) {
  const auto given = std::make_shared<bool>(false);
  const CLI::Validator check = count_between(zero == Zero::kRefused ? 1 : 0, most);
  add_list(command, flags, "N,...", help,
           [&values, given, flags, check, zero](const std::string& text) {
             std::string checked = text;
             if (const std::string wrong = check(checked); !wrong.empty()) {
               throw CLI::ValidationError(fmt::format("{}: {}", flags, wrong));
             }
             int64_t value = 0;
             std::from_chars(text.data(), text.data() + text.size(), value);
             if (zero == Zero::kOne) value = std::max<int64_t>(value, 1);
             take_value(values, *given, flags, value);
             std::erase(values, 0);
           });
}

CLI::Option* add_words(CLI::App& command, const std::string& flags, const std::string& type,
                       const std::string& help, std::vector<std::string>& values) {
  const auto given = std::make_shared<bool>(false);
  return add_list(command, flags, type, help, [&values, given, flags](const std::string& text) {
    take_value(values, *given, flags, text);
  });
}

// "ttft_ms=200"
void take_bound(const std::string& text, std::map<std::string, double>& slo) {
  const size_t equals = std::min(text.find('='), text.size());
  const std::string key = text.substr(0, equals);
  const std::string value = text.substr(std::min(equals + 1, text.size()));
  double ms = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), ms);
  const bool known = key == "ttft_ms" || key == "itl_ms" || key == "latency_ms";
  if (!known || error != std::errc() || end != value.data() + value.size() || !(ms > 0)) {
    throw CLI::ValidationError(fmt::format(
        "--slo: expected ttft_ms=MS, itl_ms=MS or latency_ms=MS, found {}", quoted_excerpt(text)));
  }
  slo[key] = ms;
}

void add_load(CLI::App& command, BenchLoad& load, CLI::Option* server) {
  const auto given = std::make_shared<bool>(false);
  add_counts(command, "--concurrency",
             "measure the server under load: so many requests in flight, each", load.concurrency,
             Zero::kRefused, 20'000);
  add_list(
      command, "--rate", "R,...",
      "measure the server under load: so many requests a second, each, whatever becomes of them",
      [&load, given](const std::string& text) {
        double rate = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rate);
        if (error != std::errc() || end != text.data() + text.size() || !(rate > 0)) {
          throw CLI::ValidationError(fmt::format(
              "--rate: expected requests a second, above 0, found {}", quoted_excerpt(text)));
        }
        take_value(load.rates, *given, "--rate", rate);
      });
  command
      .add_option("--arrivals", load.arrivals,
                  "times between the requests of --rate: poisson (default) or constant")
      ->check(word_of({"poisson", "constant"}))
      ->type_name("WORD");
  command
      .add_option("--duration", load.duration_s,
                  "seconds of a run under load (default 10 without --requests)")
      ->check(CLI::PositiveNumber)
      ->type_name("S");
  command.add_option("--requests", load.requests, "requests of a run under load")
      ->check(count_between(1, kMostLoadRequests))
      ->type_name("N");
  add_list(command, "--slo", "BOUND,...",
           "bounds that a request has to keep: ttft_ms=MS, itl_ms=MS, latency_ms=MS",
           [&load](const std::string& text) { take_bound(text, load.slo); });
  for (const char* const one :
       {"--concurrency", "--rate", "--arrivals", "--duration", "--requests", "--slo"}) {
    command.get_option(one)->needs(server);
  }
}

void add_tests(CLI::App& command, BenchTests& tests) {
  add_counts(command, "-p,--n-prompt",
             "lengths of the prompts to prefill (default 128,512); 0 measures no prefill",
             tests.prompts, Zero::kNoTest);
  add_counts(command, "-n,--n-gen",
             "numbers of tokens to generate (default 64); 0 measures no generation",
             tests.generations, Zero::kNoTest);
  add_counts(
      command, "-d,--n-depth",
      "tokens in the cache before the first generated token, each (default 1; 0 is 1, since a "
      "prompt has one)",
      tests.depths, Zero::kOne);
  add_counts(command, "-b,--batch", "number of sequences in a batch (default 1)", tests.batches,
             Zero::kRefused);
  command
      .add_option("-r,--repetitions", tests.repetitions,
                  "repetitions of each test and arm, one at least for each of its processes "
                  "(default 20)")
      ->check(count_between(1, 1'000'000))
      ->type_name("N");
  add_words(command, "--arms", "MODE,...",
            "arms to compare, the baseline first: modes of the native engine, or torch:MODE "
            "(default eager,compiled)",
            tests.arms)
      ->check(known_words({"eager", "compiled"}));
  add_words(command, "--cache", "KIND,...", "kind of cache: static (default) or dynamic",
            tests.caches)
      ->check(known_words({"static", "dynamic"}));
  command
      .add_option(
          "--dynamic", tests.dynamic,
          "sizes that compiled arms specialise on: false (each cell's own; default with a "
          "static cache), true (none; default with a dynamic one) or auto (those that never "
          "changed)")
      ->check(word_of({"false", "true", "auto"}))
      ->type_name("WORD");
  command
      .add_option("--device", tests.device, "device that computes: cpu (default), cuda or cuda:N")
      ->check(device_word())
      ->type_name("DEVICE");
  add_counts(
      command, "-t,--threads",
      "threads of each arm on the CPU; an arm each of several (default: as many as the process "
      "may use)",
      tests.threads, Zero::kRefused, kMostThreads);
  command
      .add_option("--dtype", tests.dtype,
                  "type of the weights: fp32, fp16 or bf16 (default: as stored); fp8: that of a "
                  "prompt's products, on a GPU")
      ->check(word_of({"fp32", "fp16", "bf16", "fp8"}))
      ->type_name("TYPE");
}

}  // namespace

void add_bench_command(CLI::App& app, Selected& selected) {
  CLI::App* command =
      app.add_subcommand("bench", "measure models without a study file, one row a test and arm");
  const auto options = std::make_shared<BenchOptions>();
  command
      ->add_option(
          "models", options->models,
          "checkpoint folders, GGUF files, or architectures of `assay model make`, whose random "
          "weights are made once and kept in the cache")
      ->check(known_words(engine::architecture_names()))
      ->type_name("MODEL");
  CLI::Option* const server = add_server_options(*command, options->server, true);
  add_load(*command, options->tests.load, server);
  add_tests(*command, options->tests);
  command->add_option("--save", options->save, "keep the bundle in this folder")
      ->check(folder_path())
      ->type_name("BUNDLE");
  command->add_flag("--print-study", options->print_study,
                    "print the study file that would be measured, and stop");
  command
      ->add_option_function<std::string>(
          "-o,--output-format",
          [options](const std::string& name) {
            const auto parsed = parse_bench_format(name);
            if (!parsed) throw CLI::ValidationError(parsed.error().message);
            options->format = *parsed;
          },
          join(bench_format_names(), ", "))
      ->check(known_words(bench_format_names()))
      ->type_name("FORMAT");
  command->callback(
      [=, &selected] { selected.body = [=] { return run_bench(*command, *options); }; });
}

}  // namespace assay::cli
