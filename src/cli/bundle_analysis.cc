// Analyses a bundle for every command that does.
#include "cli/bundle_analysis.h"

#include <unistd.h>

#include <future>

#include "analysis/analyze.h"
#include "analysis/findings/findings_text.h"
#include "analysis/findings/plotted_json.h"
#include "analysis/plot_rows.h"
#include "analysis/rows/samples.h"
#include "artifact/bundle.h"
#include "base/process/terminal.h"
#include "cli/command.h"
#include "cli/option_types.h"
#include "crosscheck/crosscheck.h"
#include "report/screen/colours.h"

namespace assay::cli {
std::shared_ptr<AnalysisOptions> add_analysis_options(CLI::App& command) {
  auto options = std::make_shared<AnalysisOptions>();
  command
      .add_option_function<double>(
          "--margin",
          [options](double margin) {
            options->margin = margin;
            options->margin_asked = true;
          },
          "equivalence margin, as a share of the baseline's time: 3% or 0.03 (default 3%, or the "
          "margin by which the study stopped)")
      ->transform(share_between(1e-6, 1))
      ->type_name("SHARE");
  command.add_option("--resamples", options->resamples, "bootstrap resamples (default 10000)")
      ->check(count_between(100, 1'000'000))
      ->type_name("N");
  command.add_flag("--allow-single-process", options->allow_single_process,
                   "judge arms of one process each by their rows, as if nothing differed between "
                   "processes of one program");
  command.add_option("--seed", options->seed, "seed of the bootstrap (default 42)")
      ->check(seed_number())
      ->type_name("N");
  return options;
}

std::shared_ptr<bool> add_from_findings(CLI::App& command) {
  auto given = std::make_shared<bool>(false);
  CLI::Option* flag = command.add_flag("--from-findings", *given,
                                       "take findings as they are and read no rows: each path is a "
                                       "findings.json, or a bundle with an analysis/findings.json");
  for (const char* name : {"--margin", "--resamples", "--seed", "--allow-single-process"}) {
    flag->excludes(command.get_option(name));
  }
  return given;
}

Result<AnalyzedBundle> analyze_folder(const std::filesystem::path& folder,
                                      const AnalysisOptions& options) {
  std::vector<CommittedUnit> units;
  ASSAY_TRY(Bundle bundle, read_bundle_or_rows(folder, units));
  ThreadPool pool(available_cpus());
  Result<std::vector<VerifyProblem>> problems;
  auto verifier = std::async([&] {
    if (!bundle.rows_alone) problems = check_bundle(bundle, units);
  });
  AnalyzedBundle analyzed;
  ASSAY_TRY(analyzed.findings, analyze(bundle, options, &pool));
  auto writer = std::async([&] { analyzed.findings_json = findings_text(analyzed.findings); });
  ASSAY_TRY(const Samples samples, group_rows(bundle, analyzed.findings.study.arms));
  analyzed.plotted = plot_rows(bundle, samples);
  analyzed.mark = run_mark(bundle);
  analyzed.route = route_of_findings(bundle, samples, analyzed.findings);
  verifier.get();
  ASSAY_CHECK(problems);
  ASSAY_TRY(const BundleFacts facts,
            facts_of(std::move(bundle), samples, {.findings = analyzed.findings},
                     *std::move(problems), std::nullopt, &pool));
  analyzed.judgement = judge_facts({facts}, std::nullopt, "");
  writer.get();
  return analyzed;
}

bool is_bundle(const std::filesystem::path& path) {
  std::error_code unknown;  // the reader of the path reports it
  return std::filesystem::is_directory(path, unknown);
}

std::string screen_text(const Findings& findings, const std::string& path, ScreenOf of) {
  const std::string screen = render_screen(findings, path, of, screen_columns());
  return terminal_of(STDOUT_FILENO).colours ? with_colours(screen) : screen;
}

Result<WrittenReport> write_analysis(const AnalyzedBundle& analyzed,
                                     const std::filesystem::path& folder) {
  Status findings;
  Result<WrittenReport> report;
  auto writer = std::async([&] {
    findings = write_findings_with_rows(analyzed.findings, analyzed.findings_json, analyzed.plotted,
                                        folder);
  });
  report = write_report(analyzed.findings, &analyzed.plotted, &analyzed.judgement, &analyzed.route,
                        folder);
  writer.get();
  ASSAY_CHECK(std::move(findings));
  return report;
}

}  // namespace assay::cli
