// assay probe -- COMMAND: a benchmark command's figure without a study, and how near it comes to a
// published one.
#include <memory>
#include <optional>

#include "backend/http/server_facts_json.h"
#include "base/records/phase.h"
#include "base/text/text.h"
#include "cli/command.h"
#include "cli/option_types.h"
#include "cli/probe/probe.h"
#include "cli/process.h"
#include "cli/server_options.h"
#include "cli/study/measure.h"

namespace assay::cli {
namespace {

Status check_bands(const stats::BandLimits& bands) {
  if (bands.strong <= bands.match && bands.match <= bands.weak) return {};
  return bad_input("--bands: expected three ascending shares, found {}, {}, {}", bands.strong,
                   bands.match, bands.weak);
}

// The server's facts, and what it doesn't say.
Result<int> run_server_probe(const ServerOptions& options, OutputFormat format) {
  ASSAY_TRY(const KnownServer known, ask_server(options));
  Json facts = server_facts_json(known.facts);
  if (format == OutputFormat::kJson) {
    facts["api"] = known.api;
    facts["models"] = known.facts.models;
    fmt::print("{}", to_json_text(facts));
    return 0;
  }
  Table table;
  table.columns = columns_of("<fact|<value");
  table.rows.push_back({"api", known.api});
  for (const auto& [name, value] : facts.items()) {
    if (name == "unknown") continue;
    table.rows.push_back(
        {name, TableCell(value.is_string() ? value.get<std::string>() : to_json_line(value))});
  }
  for (const Json& name : facts["unknown"]) {
    table.rows.push_back({name.get<std::string>(), TableCell::absent()});
  }
  print_table(table, format);
  return 0;
}

Result<int> run_probe(ProbeOptions options, OutputFormat format) {
  if (options.command.empty()) {
    return bad_input("probe: expected a command behind \"--\", or --server URL, found neither");
  }
  if (options.command.front().empty()) {
    return bad_input("probe: expected a command behind \"--\", found an empty word");
  }
  ASSAY_CHECK(check_bands(options.bands));
  const bool saves = !options.save.bundle.empty();
  std::optional<TextPattern> pattern;
  if (times_invocations(options)) {
    if (saves || options.skip > 0) {
      return bad_input(
          "{}: expected --unit or --pattern beside it, found neither: an invocation's own time is "
          "one "
          "sample, and no row of a phase",
          saves ? "--save" : "--skip");
    }
    options.unit = "s";
  } else {
    ASSAY_TRY(pattern, probe_pattern(options));
  }
  if (saves) ASSAY_CHECK(check_probe_save(options, *pattern));
  ASSAY_TRY(auto invocations, saves ? probe_into_bundle(options, *pattern)
                                    : probe_invocations(options, pattern ? &*pattern : nullptr,
                                                        options.warmup, options.repetitions));
  if (!invocations) {
    if (!saves) tell("assay: interrupted; a probe keeps nothing without --save\n");
    return kExitInterrupted;
  }
  const ProbeResult result = probe_result(options, *std::move(invocations));
  show_probe(options, pattern ? pattern->text() : "", result, format);
  if (result.means.empty()) return 1;
  return result.reproduction.band == stats::ReproductionBand::kNone ? 1 : 0;
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

// Declares --save and the options that describe a bundle's rows beside the figure.
void add_save(CLI::App& command, ProbeSave& save) {
  CLI::Option* bundle =
      command.add_option("--save", save.bundle, "keep what is measured as a bundle in this folder")
          ->check(folder_path())
          ->excludes("--verbose")
          ->type_name("BUNDLE");
  const auto add_count = [&](const char* name, std::optional<int64_t>& count, const char* help) {
    command.add_option(name, count, help)
        ->check(count_between(1, 1'000'000))
        ->needs(bundle)
        ->type_name("N");
  };
  add_count("--samples", save.samples,
            "samples that an invocation prints, for --save (default: as many as the warm-up)");
  command.add_option("--model", save.cell.model, "model that the rows name, for --save")
      ->needs(bundle)
      ->type_name("NAME");
  command
      .add_option_function<std::string>(
          "--phase", [&save](const std::string& name) { save.cell.phase = *parse_phase(name); },
          "phase of the rows, for --save: prefill, kv_decode or e2e_kv (default)")
      ->check(word_of(phase_names()))
      ->needs(bundle)
      ->type_name("PHASE");
  add_count("--prompt-tokens", save.prompt_tokens,
            "prompt tokens of each sample, for --save (default 1)");
  add_count("--new-tokens", save.new_tokens,
            "tokens that each sample generates, for --save (default 1: a rate then gives the time "
            "of a token)");
}

}  // namespace

void add_probe_command(CLI::App& app, Selected& selected) {
  CLI::App* command = app.add_subcommand(
      "probe",
      "run a command several times: its time, or the figure that it prints, by a unit or pattern");
  const auto options = std::make_shared<ProbeOptions>();
  command
      ->add_option("command", options->command,
                   "the command and its arguments, behind \"--\"; no shell reads them")
      ->type_name("COMMAND");
  command
      ->add_option("--pattern", options->pattern,
                   "regular expression (PCRE2) with one named group, (?<value>...), that takes the "
                   "figure; each match is a sample (default: a number in front of --unit, or the "
                   "invocation's wall clock)")
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
  add_save(*command, options->save);
  const auto format = add_output_format(*command);
  command->footer(
      "Example: assay probe --unit tok/s --target 104.9 -- python bench.py --tokens 200\nThe mean "
      "and its t interval are of invocations, because samples of one invocation are alike.\nWith "
      "--save it runs the measured invocations as `assay run` does a command's (docs/commands.md), "
      "and writes analysis and report into the bundle.\nExit status: 1 if no invocation gave a "
      "figure, or if the band is none or null.");
  const auto server = std::make_shared<ServerOptions>();
  CLI::Option* const named = add_server_options(*command, *server, false);
  named->excludes("command");
  command->callback([=, &selected] {
    selected.body = [=] {
      return named->count() > 0 ? run_server_probe(*server, *format) : run_probe(*options, *format);
    };
  });
}

}  // namespace assay::cli
