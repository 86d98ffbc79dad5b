// assay probe -- COMMAND: a benchmark command's figure without a study, and how near it comes to a
// published one.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "backend/command/figures.h"
#include "base/shown_text.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/measure.h"
#include "cli/option_types.h"
#include "cli/process.h"
#include "stats/reproduction.h"
#include "stats/summary.h"
#include "stats/tests.h"

namespace assay::cli {
namespace {

constexpr int kProbeSchemaVersion = 1;  // of the document that -o json prints
constexpr double kConfidence = 0.95;

struct ProbeOptions {
  std::vector<std::string> command;
  std::string pattern;
  std::string unit;
  std::string workdir;
  std::optional<double> target;
  stats::BandLimits bands;
  int64_t repetitions = 5;
  int64_t warmup = 1;  // invocations
  int64_t skip = 0;    // samples of each invocation
  double timeout_s = 600;
  bool verbose = false;
};

// One invocation, and what became of it.
struct Probed {
  bool warmup = false;
  double seconds = 0;
  std::vector<double> values;  // without those that are skipped
  std::string status = "ok";
  std::string error_class = {};
  std::string message = {};

  std::optional<double> mean() const { return stats::mean(values); }
};

struct ProbeResult {
  std::vector<Probed> invocations;
  std::vector<double> means;  // of those that count and have a value
  int64_t lost = 0;           // of those that count
  std::optional<stats::Interval> interval;
  stats::Reproduction reproduction;  // where there is a target
};

// A number in front of the unit, where no pattern is given.
std::string pattern_text(const ProbeOptions& options) {
  if (!options.pattern.empty()) return options.pattern;
  return fmt::format(R"((?<value>\d[\d.]*(?:[eE][-+]?\d+)?)\s*\Q{}\E(?!\w))", options.unit);
}

Result<TextPattern> probe_pattern(const ProbeOptions& options) {
  if (options.pattern.empty() && options.unit.empty()) {
    return bad_input(
        "--pattern: expected a regular expression with a named group, (?<value>...), or "
        "--unit for the number in front of it, found neither");
  }
  if (options.unit.find("\\E") != std::string::npos) {
    return bad_input("--unit: expected a text without \\E, found {}", quoted_excerpt(options.unit));
  }
  ASSAY_TRY(TextPattern pattern, TextPattern::compile(pattern_text(options), "--pattern"));
  if (pattern.names().size() == 1) return pattern;
  return bad_input("--pattern: expected one named group, (?<value>...), found {} in {}",
                   pattern.names().size(), quoted_excerpt(pattern.text()));
}

void fail(Probed& probed, const NoFigures& why, bool out_of_memory) {
  probed.status = out_of_memory ? "oom" : why.outcome.empty() ? "error" : why.outcome;
  probed.error_class = why.error_class;
  probed.message = why.message;
}

void take_values(const ProbeOptions& options, const std::vector<Figures>& figures, Probed& probed) {
  for (size_t i = static_cast<size_t>(options.skip); i < figures.size(); ++i) {
    probed.values.push_back(figures[i].begin()->second);
  }
  if (!probed.values.empty()) return;
  fail(probed,
       {"too_few_samples",
        fmt::format("expected more than {} to skip, found {}", counted(options.skip, "sample"),
                    figures.size()),
        ""},
       false);
}

// Absent: the user stopped it.
Result<std::optional<Probed>> probe_once(const ProbeOptions& options, const TextPattern& pattern,
                                         int interrupt_fd) {
  InvocationSpec spec{.argv = options.command};
  spec.folder = options.workdir;
  spec.timeout_s = options.timeout_s;
  spec.interrupt_fd = interrupt_fd;
  if (options.verbose) spec.echo = [](std::string_view bytes) { tell(std::string(bytes)); };
  ASSAY_TRY(const Invocation invocation, invoke(system_spawner(), spec));
  Probed probed;
  probed.seconds = invocation.seconds;
  if (invocation.stopped == Invocation::Stopped::kInterrupted) return std::optional<Probed>();
  if (const auto failure = failure_of(invocation)) {
    fail(probed, *failure, ran_out_of_memory(invocation, *failure));
    return std::optional(std::move(probed));
  }
  const auto figures = read_figures(std::span(&pattern, 1), invocation);
  if (figures) {
    take_values(options, *figures, probed);
  } else {
    fail(probed, figures.error(), false);
  }
  return std::optional(std::move(probed));
}

// Absent: the user stopped it. Shows on a terminal how it goes on.
Result<std::optional<ProbeResult>> probe(const ProbeOptions& options, const TextPattern& pattern) {
  ASSAY_TRY(Interrupt interrupt, Interrupt::create());
  ProbeResult result;
  const int64_t all = options.warmup + options.repetitions;
  for (int64_t i = 0; i < all; ++i) {
    ASSAY_TRY(auto probed, probe_once(options, pattern, interrupt.descriptor()));
    if (!probed) return std::optional<ProbeResult>();
    probed->warmup = i < options.warmup;
    const auto mean = probed->mean();
    if (!probed->warmup && mean) result.means.push_back(*mean);
    if (!probed->warmup && !mean) ++result.lost;
    if (::isatty(STDERR_FILENO) == 1) {
      print_remark("note", fmt::format("{} of {}: {}", i + 1, all,
                                       mean ? format_significant(*mean) + " " + options.unit
                                            : probed->error_class));
    }
    result.invocations.push_back(*std::move(probed));
  }
  if (const auto spread = stats::moments(result.means)) {
    const auto n = static_cast<double>(spread->n);
    result.interval = stats::t_interval(
        spread->mean, {.value = std::sqrt(spread->variance / n), .df = n - 1}, kConfidence);
  }
  if (options.target) {
    result.reproduction =
        stats::reproduction(result.means, *options.target, options.bands, kConfidence);
  }
  return std::optional(std::move(result));
}

std::string value_name(const ProbeOptions& options) {
  return options.unit.empty() ? "value" : options.unit;
}

Table invocation_table(const ProbeOptions& options, const ProbeResult& result) {
  Table table;
  table.columns = {{"invocation"},
                   {"warmup", Align::kLeft},
                   {"seconds"},
                   {"samples"},
                   {value_name(options)},
                   {"status", Align::kLeft},
                   {"error_class", Align::kLeft}};
  for (size_t i = 0; i < result.invocations.size(); ++i) {
    const Probed& one = result.invocations[i];
    table.rows.push_back(
        {TableCell::of(static_cast<int64_t>(i)), TableCell::of(one.warmup ? "yes" : "no"),
         TableCell::of(one.seconds, 3), TableCell::of(std::ssize(one.values)),
         TableCell::of(one.mean(), 5), TableCell::of(one.status),
         one.error_class.empty() ? TableCell::absent() : TableCell::of(one.error_class)});
  }
  return table;
}

std::string between(const std::optional<stats::Interval>& interval, int digits) {
  if (!interval) return "absent (it needs two invocations that differ)";
  return fmt::format("[{}, {}]", format_significant(interval->low, digits),
                     format_significant(interval->high, digits));
}

std::string band_line(const ProbeOptions& options) {
  const auto percent = [](double share) { return fmt::format("{:g}", share * 100); };
  return fmt::format(
      "bands: strong_match within {} % of the target, match {} %, weak {} %, else none",
      percent(options.bands.strong), percent(options.bands.match), percent(options.bands.weak));
}

// What the table doesn't say.
std::string summary_text(const ProbeOptions& options, const ProbeResult& result) {
  const std::string unit = options.unit.empty() ? "" : " " + options.unit;
  std::string text;
  if (const auto mean = stats::mean(result.means)) {
    text += fmt::format("mean of {}: {}{}, 95 % interval {}; median {}\n",
                        counted(std::ssize(result.means), "invocation"),
                        format_significant(*mean, 5), unit, between(result.interval, 5),
                        format_significant(*stats::median(stats::sorted(result.means)), 5));
  }
  if (result.lost > 0) {
    const auto first = std::ranges::find_if(
        result.invocations, [](const Probed& one) { return !one.warmup && one.values.empty(); });
    text += fmt::format("lost: {} of {}; the first: {}\n", result.lost, options.repetitions,
                        shown_line(first->message));
  }
  if (!options.target) return text;
  const stats::Reproduction& found = result.reproduction;
  text += fmt::format("target: {}{}", format_significant(*options.target, 6), unit);
  if (found.ratio) {
    text += fmt::format("; measured / target: {}, 95 % interval {}",
                        format_significant(*found.ratio), between(found.interval, 4));
  }
  text += fmt::format("\nreproduction: {}", stats::band_name(found.band));
  if (found.best != found.worst) {
    text += fmt::format(" (the interval allows {} to {})", stats::band_name(found.best),
                        stats::band_name(found.worst));
  }
  return text + "\n" + band_line(options) + "\n";
}

Json interval_json(const std::optional<stats::Interval>& interval) {
  if (!interval) return nullptr;
  return {{"low", interval->low}, {"high", interval->high}, {"confidence", kConfidence}};
}

Json probe_json(const ProbeOptions& options, const ProbeResult& result) {
  const auto number = [](std::optional<double> value) { return value ? Json(*value) : Json(); };
  Json invocations = Json::array();
  for (const Probed& one : result.invocations) {
    invocations.push_back({{"warmup", one.warmup},
                           {"seconds", one.seconds},
                           {"values", one.values},
                           {"mean", number(one.mean())},
                           {"status", one.status},
                           {"error_class", one.error_class},
                           {"message", one.message}});
  }
  Json json = {{"schema_version", kProbeSchemaVersion},
               {"command", options.command},
               {"pattern", pattern_text(options)},
               {"unit", options.unit},
               {"invocations", std::move(invocations)},
               {"n", result.means.size()},
               {"lost", result.lost},
               {"mean", number(stats::mean(result.means))},
               {"interval", interval_json(result.interval)},
               {"median", number(stats::median(stats::sorted(result.means)))},
               {"sd", number(stats::standard_deviation(result.means))}};
  if (!options.target) return json;
  const stats::Reproduction& found = result.reproduction;
  json["target"] = *options.target;
  json["ratio"] = number(found.ratio);
  json["ratio_interval"] = interval_json(found.interval);
  json["band"] = stats::band_name(found.band);
  json["best_band"] = stats::band_name(found.best);
  json["worst_band"] = stats::band_name(found.worst);
  json["bands"] = {{"strong_match", options.bands.strong},
                   {"match", options.bands.match},
                   {"weak", options.bands.weak}};
  return json;
}

Status check_bands(const stats::BandLimits& bands) {
  if (bands.strong <= bands.match && bands.match <= bands.weak) return {};
  return bad_input("--bands: expected three ascending shares, found {}, {}, {}", bands.strong,
                   bands.match, bands.weak);
}

Result<int> run_probe(const ProbeOptions& options, OutputFormat format) {
  ASSAY_CHECK(check_bands(options.bands));
  ASSAY_TRY(const TextPattern pattern, probe_pattern(options));
  ASSAY_TRY(const auto result, probe(options, pattern));
  if (!result) {
    tell("assay: interrupted; a probe keeps nothing\n");
    return kExitInterrupted;
  }
  if (format == OutputFormat::kJson) {
    fmt::print("{}", to_json_text(probe_json(options, *result)));
  } else {
    print_table(invocation_table(options, *result), format);
    if (format != OutputFormat::kCsv) fmt::print("\n{}", summary_text(options, *result));
  }
  if (result->means.empty()) return 1;
  return result->reproduction.band == stats::ReproductionBand::kNone ? 1 : 0;
}

// "0.02,0.05,0.15"
void add_bands(CLI::App& command, ProbeOptions& options, CLI::Option* target) {
  command
      .add_option_function<std::string>(
          "--bands",
          [&options](const std::string& text) {
            const std::vector<std::string> parts = split(text, ',');
            if (parts.size() != 3) {
              throw CLI::ValidationError(
                  fmt::format("--bands: expected three shares, 0.02,0.05,0.15, found {}",
                              quoted_excerpt(text)));
            }
            double* const limits[] = {&options.bands.strong, &options.bands.match,
                                      &options.bands.weak};
            const CLI::Validator check = number_between(1e-6, 10);
            for (size_t i = 0; i < parts.size(); ++i) {
              std::string part = parts[i];
              if (const std::string wrong = check(part); !wrong.empty()) {
                throw CLI::ValidationError("--bands: " + wrong);
              }
              *limits[i] = std::stod(part);
            }
          },
          "largest distance from the target of strong_match, match and weak (default "
          "0.02,0.05,0.15)")
      ->needs(target)
      ->type_name("SHARE,SHARE,SHARE");
}

}  // namespace

void add_probe_command(CLI::App& app, Selected& selected) {
  CLI::App* command = app.add_subcommand(
      "probe", "run a benchmark command several times, and read its figure by a pattern");
  const auto options = std::make_shared<ProbeOptions>();
  command
      ->add_option("command", options->command,
                   "the command and its arguments, behind \"--\"; no shell reads them")
      ->required()
      ->type_name("COMMAND");
  command
      ->add_option("--pattern", options->pattern,
                   "regular expression (PCRE2) with one named group, (?<value>...), that takes the "
                   "figure; each match is a sample (default: a number in front of --unit)")
      ->type_name("REGEX");
  command->add_option("--unit", options->unit, "unit of the figure, such as tok/s")
      ->type_name("UNIT");
  command
      ->add_option("-r,--repetitions", options->repetitions,
                   "number of measured invocations (default 5); each is one observation")
      ->check(count_between(1, 100'000))
      ->type_name("N");
  command
      ->add_option("--warmup", options->warmup,
                   "number of warm-up invocations, which don't count (default 1)")
      ->check(count_between(0, 100'000))
      ->type_name("N");
  command
      ->add_option("--skip", options->skip,
                   "number of samples to leave out at the start of each invocation (default 0)")
      ->check(count_between(0, 1'000'000))
      ->type_name("N");
  command
      ->add_option("--timeout", options->timeout_s,
                   "time limit of an invocation, in seconds (default 600)")
      ->check(number_between(1e-3, 1e6))
      ->type_name("SECONDS");
  CLI::Option* target = command
                            ->add_option("--target", options->target,
                                         "a published figure; report how near the measured figure "
                                         "comes, and exit 1 if the band is none or null")
                            ->check(number_between(1e-12, 1e15))
                            ->type_name("NUMBER");
  add_bands(*command, *options, target);
  command->add_option("--workdir", options->workdir, "folder in which the command runs")
      ->type_name("DIR");
  command->add_flag("-v,--verbose", options->verbose, "show what the command prints, on stderr");
  const auto format = add_output_format(*command);
  command->footer(
      "Example: assay probe --unit tok/s --target 104.9 -- python bench.py --tokens 200\nThe mean "
      "and its t interval are of invocations, because samples of one invocation are alike.\nExit "
      "status: 1 if no invocation gave a figure, or if the band is none or null.");
  command->callback(
      [=, &selected] { selected.body = [=] { return run_probe(*options, *format); }; });
}

}  // namespace assay::cli
