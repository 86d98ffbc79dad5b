// assay compare: whether a change made anything slower, with the exit status for CI; of two
// bundles or result files, of several runs a side, or of two programs that it measures side by side
// itself.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "analysis/compare/demands.h"
#include "analysis/compare/false_alarms.h"
#include "analysis/compare/other_tools.h"
#include "analysis/compare/runs.h"
#include "analysis/compare/sides.h"
#include "artifact/each_once.h"
#include "base/clock.h"
#include "base/process/thread_pool.h"
#include "base/text/shown_text.h"
#include "base/text/text.h"
#include "cli/bundles/history_folder.h"
#include "cli/bundles/result_files.h"
#include "cli/command.h"
#include "cli/option_types.h"
#include "cli/output_file.h"
#include "cli/process.h"
#include "cli/study/measure.h"
#include "report/html/judgement_pages.h"
#include "report/judgements/ci_report.h"
#include "report/judgements/compare_report.h"

namespace assay::cli {
namespace {

// Besides the formats of other commands, those of services that run builds.
enum class CompareFormat { kTable, kJson, kCsv, kMarkdown, kJunit, kGithub };
const std::vector<std::string> kCompareFormats = {"table", "json", "csv", "md", "junit", "github"};

struct Request {
  std::vector<std::string> bundles;     // or, of run, the programs and the study
  std::vector<std::string> candidates;  // the arguments behind "--"
  CompareOptions options;
  std::optional<double> margin;
  std::vector<std::string> vary;
  std::string history;
  CompareDemands demands;
  bool self_test = false;
  bool full = false;
  bool run = false;
  std::string bundle;  // of run: where it goes
  bool resume = false;
  std::string page;
  int64_t splits = 1000;
  uint64_t seed = 42;
  std::vector<const CLI::Option*> of_self_test;   // that mean nothing without it
  std::vector<const CLI::Option*> of_comparison;  // ... and with it
};

Result<OutputFormat> plain_format(CompareFormat format) {
  if (format < CompareFormat::kJunit) return static_cast<OutputFormat>(format);
  return bad_input("--self-test: expected -o table, json, csv or md, found one for builds");
}

// The lines that a runner of GitHub Actions obeys; its summary, if it has one, gets the Markdown.
Result<std::string> github_text(const Comparison& comparison, const CompareDemands& demands) {
  if (const char* path = std::getenv("GITHUB_STEP_SUMMARY"); path != nullptr && *path != '\0') {
    std::ofstream summary(path, std::ios::app);
    summary << render_comparison(comparison, OutputFormat::kMarkdown, demands);
    if (!summary.flush()) {
      return bad_input("GITHUB_STEP_SUMMARY: expected a file that can be written, found {}",
                       quoted_excerpt(path));
    }
  }
  return render_workflow_commands(comparison, demands);
}

Result<std::string> rendered(const Comparison& comparison, const Request& request,
                             CompareFormat format) {
  if (format == CompareFormat::kJunit) return render_junit(comparison, request.demands);
  if (format == CompareFormat::kGithub) return github_text(comparison, request.demands);
  return render_comparison(comparison, static_cast<OutputFormat>(format), request.demands,
                           request.full, screen_columns());
}

Result<int> run_self_test(const Request& request, CompareFormat of) {
  ASSAY_TRY(const OutputFormat format, plain_format(of));
  if (request.bundles.size() != 1 || !request.candidates.empty()) {
    return bad_input("--self-test: expected one bundle, found {}",
                     request.bundles.size() + request.candidates.size());
  }
  ASSAY_TRY(const Bundle bundle, read_bundle(request.bundles[0]));
  ThreadPool pool(available_cpus());
  ASSAY_TRY(const SelfTest test,
            self_test(bundle, request.options, request.splits, request.seed, &pool));
  fmt::print("{}", render_self_test(test, request.options, format));
  return test.alarm_interval && test.alarm_interval->low > request.options.alpha ? 1 : 0;
}

Result<int> print_comparison(const Request& request, const Comparison& comparison,
                             CompareFormat format) {
  if (!request.page.empty()) {
    ASSAY_CHECK(write_output_file(request.page, page_output(),
                                  comparison_page(comparison, request.demands)));
  }
  ASSAY_TRY(const std::string text, rendered(comparison, request, format));
  fmt::print("{}", text);
  switch (compare_outcome(comparison, request.demands)) {
    case CompareOutcome::kPasses:
      return 0;
    case CompareOutcome::kNothingJudged:
      return request.demands.any() ? 1 : 0;  // a demand that nobody looked at isn't met
    case CompareOutcome::kFails:
      break;
  }
  return 1;
}

// Compares the two sides that one bundle holds.
Result<int> compare_both_sides(const Request& request, const std::string& folder,
                               CompareFormat format) {
  ASSAY_TRY(const Bundle bundle, read_bundle(folder));
  if (!has_sides(bundle)) {
    return bad_input(
        "compare: expected two bundles (several a side: BASE... -- CAND...), one of `compare "
        "--run`, "
        "or one and --self-test, found one");
  }
  ASSAY_TRY(const Comparison comparison, compare_sides(bundle, request.options));
  return print_comparison(request, comparison, format);
}

// "study-20261123T085059Z"
std::string bundle_name(const std::string& study) {
  std::string time = format_utc(system_clock().wall_ns());
  std::erase_if(time, [](char c) { return c == '-' || c == ':'; });
  return fmt::format("{}-{}", std::filesystem::path(study).stem().string(), time);
}

Result<int> measure_both_sides(const Request& request, CompareFormat format) {
  if (request.bundles.size() != 3 || !request.candidates.empty()) {
    return bad_input(
        "--run: expected two programs and a study, BASE CAND STUDY, found {} arguments",
        request.bundles.size() + request.candidates.size());
  }
  if (!request.history.empty() || !request.vary.empty()) {
    return bad_input(
        "--run: expected no --history and no --vary with it (both sides are of one run), "
        "found one");
  }
  const std::string& study = request.bundles[2];
  MeasureOptions options{
      .study = study,
      .bundle = request.bundle.empty() ? bundle_name(study) : request.bundle,
      .resume = request.resume,
      .profile = false,
      .only = {},
      .sides = StudySides{request.bundles[0], request.bundles[1]},
  };
  ASSAY_TRY(const Measured summary, measure_study(options));
  if (summary.interrupted) {
    tell(
        fmt::format("assay: interrupted with {} committed; continue with: assay compare --run "
                    "{} {} {} --bundle {} --resume\n",
                    counted(summary.rows, "row"), shown_line(request.bundles[0]),
                    shown_line(request.bundles[1]), shown_line(study), shown_line(options.bundle)));
    return kExitInterrupted;
  }
  if (request.bundle.empty()) print_remark("note", "bundle: " + options.bundle);
  return compare_both_sides(request, options.bundle, format);
}

Result<std::vector<Bundle>> read_bundles(const std::vector<std::string>& paths) {
  std::vector<Bundle> bundles;
  for (const std::string& path : paths) {
    ASSAY_TRY(Bundle bundle, read_bundle_or_results(path));
    bundles.push_back(std::move(bundle));
  }
  return bundles;
}

Result<Comparison> compare_bundles(const Request& request, const std::vector<Bundle>& base,
                                   const std::vector<Bundle>& cand) {
  std::set<std::string> vary;
  for (const std::string& word : request.vary) {
    ASSAY_TRY(std::string axis, parse_axis(word, base.front(), cand.front()));
    vary.insert(std::move(axis));
  }
  CompareOptions options = request.options;
  if (all_imported(base, cand)) {
    vary.merge(axes_of_other_tools());
    // A build that fails on a demand has to name the rows of one process itself.
    if (!request.demands.any()) options = options_for_other_tools(base, cand, options);
  }
  if (base.size() + cand.size() > 2) {
    if (!request.history.empty()) {
      return bad_input(
          "--history: expected one bundle a side, found {} and {} (several runs a side already "
          "show the spread between runs)",
          base.size(), cand.size());
    }
    return compare_runs(base, cand, options, vary);
  }
  if (request.history.empty()) return compare(base[0], cand[0], options, vary);
  ASSAY_TRY(const History history, read_history(request.history, base[0], cand[0], vary));
  return compare_with_history(base[0], cand[0], options, vary, history);
}

// BASE CAND, or BASE... -- CAND...
Result<int> compare_sets(Request request, CompareFormat format) {
  if (request.candidates.empty()) {
    if (request.bundles.size() != 2) {
      return bad_input(
          "compare: expected two bundles, or several a side (BASE... -- CAND...), found {}",
          request.bundles.size());
    }
    request.candidates.push_back(request.bundles.back());
    request.bundles.pop_back();
  }
  if (request.bundles.empty()) {
    return bad_input("compare: expected bundles of the base before the \"--\", found none");
  }
  ASSAY_TRY(const std::vector<Bundle> base, read_bundles(request.bundles));
  ASSAY_TRY(const std::vector<Bundle> cand, read_bundles(request.candidates));
  std::vector<std::string> both_sides = request.bundles;
  both_sides.insert(both_sides.end(), request.candidates.begin(), request.candidates.end());
  ASSAY_CHECK(check_each_once("compare", both_sides));
  std::vector<RunMark> marks;
  for (const Bundle& bundle : base) marks.push_back(run_mark(bundle));
  for (const Bundle& bundle : cand) marks.push_back(run_mark(bundle));
  ASSAY_CHECK(check_distinct_runs("compare", marks));
  ASSAY_TRY(const Comparison comparison, compare_bundles(request, base, cand));
  return print_comparison(request, comparison, format);
}

Status check_options(const Request& request) {
  const auto& odd = request.self_test ? request.of_comparison : request.of_self_test;
  for (const CLI::Option* option : odd) {
    if (option->count() == 0) continue;
    return bad_input("{}: expected {} --self-test, found it {}", option->get_name(),
                     request.self_test ? "no" : "a", request.self_test ? "beside it" : "alone");
  }
  return {};
}

Result<int> run_compare(Request request, CompareFormat format) {
  ASSAY_CHECK(check_options(request));
  ASSAY_CHECK(check_page_option(request.page));
  const bool of_sides = request.run || (request.bundles.size() == 1 && request.candidates.empty());
  if (request.margin) {
    request.options.margin = *request.margin;
  } else if (of_sides && !request.self_test) {
    request.options.margin = kSidesMargin;
  }
  if (request.run) return measure_both_sides(request, format);
  if (request.self_test) return run_self_test(request, format);
  if (of_sides) return compare_both_sides(request, request.bundles[0], format);
  return compare_sets(std::move(request), format);
}

}  // namespace

void add_compare_command(CLI::App& app, Selected& selected) {
  CLI::App* command =
      app.add_subcommand("compare", "compare bundles, or two programs side by side, for CI");
  const auto request = std::make_shared<Request>();
  command
      ->add_option(
          "bundles", request->bundles,
          "bundles of a baseline and a candidate, or other tools' result files: BASE CAND, or "
          "several runs a side: BASE... -- CAND...; with --run two programs or revisions and a "
          "study: BASE CAND STUDY")
      ->type_name("BASE CAND");
  command
      ->add_option("--candidates", request->candidates,
                   "folders of the candidate's runs; \"--\" is short for this option")
      ->type_name("CAND");
  CLI::Option* run =
      command->add_flag("--run", request->run,
                        "measure the study with both sides in turn; the sides are assay "
                        "executables, or for torch arms Python interpreters, or for command arms "
                        "revisions of the checkout or values of {side}");
  command
      ->add_option("--bundle", request->bundle,
                   "with --run: the folder to write (default: STUDY-TIME)")
      ->needs(run)
      ->type_name("BUNDLE");
  command
      ->add_flag("--resume", request->resume, "with --run: continue a bundle that was interrupted")
      ->needs(run);
  CLI::Option* history =
      command
          ->add_option("--history", request->history,
                       "a folder of earlier runs of the program: an alarm has to exceed the "
                       "spread between those runs")
          ->type_name("DIR");
  CLI::Option* fail = command->add_flag(
      "--fail-on-regression", request->demands.regression,
      "exit 1 also if a cell is slower by more than the margin, loses more rows, or "
      "gives other output, and if no cell could be judged");
  CLI::Option* open =
      command->add_flag("--fail-on-undecided", request->demands.undecided,
                        "exit 1 also if a cell has no verdict, or an inconclusive one");
  CLI::Option* resolution =
      command
          ->add_option("--require-mde", request->demands.resolution,
                       "exit 1 also if a cell's rows wouldn't show a difference of this share of "
                       "the base's time, as 5% or 0.05")
          ->transform(share_between(1e-6, 1))
          ->type_name("SHARE");
  command
      ->add_option("--margin", request->margin,
                   "tolerated slowdown, as 2% or 0.02 (default 2%; with --run 0.2%)")
      ->transform(share_between(1e-6, 1))
      ->type_name("SHARE");
  CLI::Option* vary =
      command
          ->add_option("--vary", request->vary,
                       "an identity axis on which the bundles may differ; may be repeated")
          ->type_name("AXIS")
          ->allow_extra_args(false);
  CLI::Option* single = command->add_flag(
      "--allow-single-process", request->options.allow_single_process,
      "judge cells that have one process a side by their rows, although rows can't "
      "show how processes differ");
  command->add_flag_callback(
      "--unadjusted", [request] { request->options.machine_off = false; },
      "leave ratios as measured: don't correct them for the machine's own speed");
  CLI::Option* full = command->add_flag(
      "--full", request->full, "print every part, cell by cell, in the place of one screen");
  command->add_flag("--self-test", request->self_test,
                    "split one bundle's processes into two halves many times, and report how often "
                    "that raises a false alarm");
  CLI::Option* splits = command
                            ->add_option("--splits", request->splits,
                                         "largest number of splits for --self-test (default 1000)")
                            ->check(count_between(10, 1'000'000))
                            ->type_name("N");
  CLI::Option* seed =
      command->add_option("--seed", request->seed, "seed of --self-test (default 42)")
          ->check(seed_number())
          ->type_name("N");
  const CLI::Option* page = add_page_option(*command, request->page);
  request->of_self_test = {splits, seed};
  request->of_comparison = {run, history, vary, fail, open, resolution, single, full, page};
  const auto format = std::make_shared<std::string>("table");
  command
      ->add_option(
          "-o,--output-format", *format,
          "table (default), json, csv, md, junit (XML), or github (annotations, and a step "
          "summary)")
      ->check(known_words(kCompareFormats))
      ->type_name("FORMAT");
  command->callback([=, &selected] {
    selected.body = [=] {
      const auto at = std::ranges::find(kCompareFormats, *format) - kCompareFormats.begin();
      return run_compare(*request, static_cast<CompareFormat>(at));
    };
  });
}

}  // namespace assay::cli
