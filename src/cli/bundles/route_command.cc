// assay route: which arm serves which request, as a policy with evidence, triggers and abstentions.
// Exit status 1: on some measured stratum no arm is safe, or the rows refute a given policy.
#include <filesystem>
#include <set>

#include "base/text/shown_text.h"
#include "base/text/text.h"
#include "cli/command.h"
#include "cli/option_types.h"
#include "cli/output_file.h"
#include "report/html/judgement_pages.h"
#include "report/judgements/route_report.h"
#include "routing/merge.h"

namespace assay::cli {
namespace {

struct RouteArguments {
  std::vector<std::string> bundles;
  std::vector<std::string> outputs;  // a format and a policy's file, in any order
  std::string policy;                // to read
  std::string break_glass;
  std::string page;
  std::string trace;
  std::string model;
  int64_t replays = 200;
  AnalysisOptions options;
};

// The value of -o.
struct RouteOutput {
  OutputFormat format = OutputFormat::kTable;
  std::string file;  // empty: none
};

bool names_policy_file(const std::string& word) {
  return word.ends_with(".yaml") || word.ends_with(".yml");
}

Result<RouteOutput> route_output(const std::vector<std::string>& words) {
  RouteOutput output;
  bool format_given = false;
  for (const std::string& word : words) {
    if (names_policy_file(word)) {
      if (!output.file.empty()) {
        return bad_input("-o: expected one policy to write, found {} and {}", output.file, word);
      }
      output.file = word;
      continue;
    }
    const auto format = parse_output_format(word);
    if (!format) {
      return bad_input("{}, or a policy's file that ends in .yaml or .yml", format.error().message);
    }
    if (format_given) return bad_input("-o: expected one format, found another: {}", word);
    format_given = true;
    output.format = *format;
  }
  return output;
}

// Checks before the bundles are read: nobody waits for a refusal, and nothing is half written.
Status check_outputs(const RouteArguments& arguments, const RouteOutput& output) {
  if (!output.file.empty()) ASSAY_CHECK(check_output_file(output.file, policy_output()));
  if (!arguments.break_glass.empty()) {
    ASSAY_CHECK(check_output_file(arguments.break_glass, break_glass_output()));
  }
  ASSAY_CHECK(check_page_option(arguments.page));
  std::set<std::filesystem::path> named;
  for (const std::string& file : {output.file, arguments.break_glass, arguments.page}) {
    std::error_code unknown;
    if (file.empty()) continue;
    if (named.insert(std::filesystem::weakly_canonical(std::filesystem::absolute(file), unknown))
            .second) {
      continue;
    }
    return bad_input("{}: expected a file of its own for each output, found it named twice", file);
  }
  return {};
}

Result<int> run_route(const RouteArguments& arguments) {
  if (arguments.bundles.empty()) {
    return bad_input("route: expected a bundle, or make-trace, found nothing");
  }
  ASSAY_TRY(const RouteOutput output, route_output(arguments.outputs));
  ASSAY_CHECK(check_outputs(arguments, output));
  RouteRequest request{.analysis = arguments.options, .policy = {}, .trace = {}};
  if (!arguments.trace.empty()) {
    ASSAY_TRY(std::vector<TraceRequest> requests, read_request_trace(arguments.trace));
    request.trace =
        TraceToReplay{arguments.trace, std::move(requests), arguments.model, arguments.replays};
  }
  if (!arguments.policy.empty()) {
    ASSAY_TRY(request.policy, read_policy(arguments.policy));
  }
  ASSAY_TRY(const Bundle bundle, read_runs(arguments.bundles));
  ThreadPool pool(available_cpus());
  ASSAY_TRY(const Route route, judge_route(bundle, request, &pool));
  if (!output.file.empty()) {
    ASSAY_TRY(const std::string text, checked_policy_text(route.policy));
    ASSAY_CHECK(write_output_file(output.file, policy_output(), text));
  }
  if (!arguments.break_glass.empty()) {
    ASSAY_CHECK(
        write_output_file(arguments.break_glass, break_glass_output(), break_glass_text(route)));
  }
  if (!arguments.page.empty()) {
    ASSAY_CHECK(write_output_file(arguments.page, page_output(), route_page(route)));
  }
  fmt::print("{}", render_route(route, output.format, screen_columns()));
  return route.failures().empty() ? 0 : 1;
}

void add_route_options(CLI::App& command, RouteArguments& arguments) {
  command
      .add_option("bundles", arguments.bundles,
                  "folders of bundles; several are runs of one study under one identity, and count "
                  "as one run with all their processes")
      ->type_name("BUNDLE");
  command
      .add_option("-o,--output-format", arguments.outputs,
                  "table (default), json, csv or md; a path that ends in .yaml or .yml: write the "
                  "policy there; may be given once for each")
      ->check(known_words({"table", "json", "csv", "md"}))
      ->type_name("FORMAT|FILE.yaml")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      .add_option("--policy", arguments.policy,
                  "judge this policy in the place of the one that the rows give; its identity has "
                  "to be the bundles'")
      ->type_name("FILE");
  command
      .add_option("--break-glass", arguments.break_glass,
                  "write the decision rule for a person, as Markdown")
      ->type_name("FILE.md");
  add_page_option(command, arguments.page);
  CLI::Option* simulate =
      command
          .add_option("--simulate", arguments.trace,
                      "replay this trace (arrival_s, prompt_tokens, new_tokens, batch) over the "
                      "measured rows, under the policy and beside other strategies")
          ->type_name("FILE.csv");
  command
      .add_option("--model", arguments.model,
                  "the model that serves the trace (default: the only one)")
      ->needs(simulate)
      ->type_name("NAME");
  command.add_option("--replays", arguments.replays, "replays of the trace (default 200)")
      ->needs(simulate)
      ->check(count_between(20, 100'000))
      ->type_name("N");
  command
      .add_option("--resamples", arguments.options.resamples,
                  "bootstrap resamples of intervals (default 10000)")
      ->check(count_between(100, 1'000'000))
      ->type_name("N");
  command.add_flag("--allow-single-process", arguments.options.allow_single_process,
                   "judge arms of one process each by their rows");
  command.add_option("--seed", arguments.options.seed, "seed of every resample (default 42)")
      ->check(seed_number())
      ->type_name("N");
}

struct MakeTraceArguments {
  TraceRecipe recipe;
  std::string file;
};

Result<int> run_make_trace(const MakeTraceArguments& arguments) {
  const TraceRecipe& recipe = arguments.recipe;
  if (recipe.shortest > recipe.longest) {
    return bad_input("--prompt-least: expected at most {}, found {}", recipe.longest,
                     recipe.shortest);
  }
  const std::vector<TraceRequest> trace = make_trace(recipe);
  if (trace.back().arrival_s > kMostArrivalSeconds) {
    return bad_input("--rate: expected one at which {} arrive within {:.0e} s, found {}",
                     counted(recipe.requests, "request"), kMostArrivalSeconds, recipe.rate_per_s);
  }
  ASSAY_CHECK(write_output_file(arguments.file, trace_output(), trace_to_csv(trace)));
  fmt::print("{}: {} in {:.1f} s, seed {}, sha256 {}\n", shown_line(arguments.file),
             counted(std::ssize(trace), "request"), trace.back().arrival_s, recipe.seed,
             trace_hash(trace));
  return 0;
}

CLI::App* add_make_trace(CLI::App& route, Selected& selected) {
  CLI::App* command =
      route.add_subcommand("make-trace", "write a seeded trace of requests for --simulate");
  const auto arguments = std::make_shared<MakeTraceArguments>();
  TraceRecipe& recipe = arguments->recipe;
  command->add_option("-o,--output", arguments->file, "the trace to write")
      ->required()
      ->type_name("FILE.csv");
  command->add_option("-n,--requests", recipe.requests, "requests (default 1000)")
      ->check(count_between(1, static_cast<int64_t>(kMostRequests)))
      ->type_name("N");
  command->add_option("--rate", recipe.rate_per_s, "requests a second, on average (default 10)")
      ->check(number_between(1e-3, 1e6))
      ->type_name("RATE");
  command
      ->add_option("--burst", recipe.burst,
                   "requests of a burst, on average (default 1: Poisson arrivals)")
      ->check(number_between(1, 1e4))
      ->type_name("N");
  command
      ->add_option("--prompt-median", recipe.prompt_median,
                   "median prompt tokens, log-normal (default 80)")
      ->check(number_between(1, 1e6))
      ->type_name("TOKENS");
  command
      ->add_option("--prompt-sigma", recipe.prompt_sigma,
                   "sigma of the prompts' logarithm (default 0.8)")
      ->check(number_between(0, 5))
      ->type_name("SIGMA");
  command->add_option("--prompt-least", recipe.shortest, "shortest prompt (default 1)")
      ->check(count_between(1, 1'000'000))
      ->type_name("TOKENS");
  command->add_option("--prompt-most", recipe.longest, "longest prompt (default 4096)")
      ->check(count_between(1, 1'000'000))
      ->type_name("TOKENS");
  command
      ->add_option("--new-median", recipe.new_median,
                   "median new tokens, log-normal (default 64); 0: prompts alone")
      ->check(number_between(0, 1e6))
      ->type_name("TOKENS");
  command
      ->add_option("--new-sigma", recipe.new_sigma,
                   "sigma of the new tokens' logarithm (default 0: all the same)")
      ->check(number_between(0, 5))
      ->type_name("SIGMA");
  command
      ->add_option("--batch", recipe.batches,
                   "batch of a request (default 1); may be repeated, each is as likely")
      ->check(count_between(1, 1'000'000))
      ->type_name("N")
      ->allow_extra_args(false);
  command->add_option("--seed", recipe.seed, "seed of the trace (default 42)")
      ->check(seed_number())
      ->type_name("N");
  command->footer(
      "Example: assay route make-trace -o trace.csv --burst 8\n"
      "         assay route bundles/demo --simulate trace.csv");
  command->callback([=, &selected] { selected.body = [=] { return run_make_trace(*arguments); }; });
  return command;
}

}  // namespace

void add_route_command(CLI::App& app, Selected& selected) {
  CLI::App* command =
      app.add_subcommand("route", "write a routing policy: which arm serves which request");
  const auto arguments = std::make_shared<RouteArguments>();
  add_route_options(*command, *arguments);
  const CLI::App* make_trace = add_make_trace(*command, selected);
  command->footer(  // after the subcommand, which would print it too
      "Example: assay route bundles/demo -o policy.yaml\nExit status: 1 if some measured stratum "
      "has no safe arm, or the rows refute the policy that was given.");
  command->callback([=, &selected] {
    if (!make_trace->parsed()) {
      selected.body = [=] { return run_route(*arguments); };
      return;
    }
    for (const CLI::Option* option : command->get_options()) {
      if (option->count() == 0) continue;
      selected.body = [name = option->get_name()]() -> Result<int> {
        return bad_input("route make-trace: expected its own options alone, found {} of route",
                         name);
      };
      return;
    }
  });
}

}  // namespace assay::cli
