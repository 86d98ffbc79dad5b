// assay analyze BUNDLE: prints the findings on one screen, or all its tables, and leaves
// analysis/findings.json and the report. Exit status 1: the study has requirements, and one isn't
// met.
// assay analyze --from-findings FILE: prints the same of a findings.json, and writes nothing.
#include <cstdio>
#include <future>

#include "cli/bundle_analysis.h"
#include "cli/command.h"
#include "report/report.h"
#include "report/screen/document_screen.h"
#include "report/slow_calls.h"

namespace assay::cli {
namespace {

struct AnalyzeArguments {
  std::string path;  // a bundle, or findings
  bool full = false;
  bool slow_calls = false;
  OutputFormat format = OutputFormat::kTable;
};

// The findings in the form that was asked for.
std::string text_of(const Findings& findings, const AnalyzeArguments& asked, ScreenOf of) {
  if (asked.format != OutputFormat::kTable || asked.full) {
    return render_report(findings, asked.format);
  }
  if (asked.slow_calls) return render_screen(slow_calls_document(findings), screen_columns());
  return screen_text(findings, asked.path, of);
}

int status_of(const Findings& findings) {
  const bool failed =
      findings.requirements && findings.requirements->verdict == Requirements::Verdict::kFailed;
  return failed ? 1 : 0;
}

Result<int> analyze_findings(const AnalyzeArguments& asked) {
  ASSAY_TRY(const Findings findings, read_findings(asked.path));
  const ScreenOf of = is_bundle(asked.path) ? ScreenOf::kBundle : ScreenOf::kFindingsFile;
  fmt::print("{}", text_of(findings, asked, of));
  return status_of(findings);
}

Result<int> analyze_bundle(const AnalyzeArguments& asked, const AnalysisOptions& options) {
  ASSAY_TRY(const AnalyzedBundle analyzed, analyze_folder(asked.path, options));
  const Findings& findings = analyzed.findings;
  Result<WrittenReport> written;
  auto writer = std::async([&] { written = write_analysis(analyzed, asked.path); });
  const std::string text = text_of(findings, asked, ScreenOf::kBundle);
  writer.get();
  ASSAY_CHECK(std::move(written));
  fmt::print("{}", text);
  return status_of(findings);
}

}  // namespace

void add_analyze_command(CLI::App& app, Selected& selected) {
  CLI::App* command = app.add_subcommand("analyze",
                                         "print a bundle's findings on one screen and write its "
                                         "findings.json, report.html and report.md");
  const auto asked = std::make_shared<AnalyzeArguments>();
  command
      ->add_option("bundle", asked->path,
                   "folder of a bundle that `assay run` wrote; with --from-findings also a "
                   "findings.json")
      ->required()
      ->type_name("BUNDLE");
  const auto options = add_analysis_options(*command);
  const auto from_findings = add_from_findings(*command);
  CLI::Option* full = command->add_flag(
      "--full", asked->full, "print every table of report.md, and the notes beside the warnings");
  command
      ->add_flag("--slow-calls", asked->slow_calls,
                 "tell why p99 is high: each arm's slow calls, and what was recorded beside them "
                 "(other formats have that as slow_calls)")
      ->excludes(full);
  const auto format = add_output_format(*command);
  command->callback([=, &selected] {
    selected.body = [=]() -> Result<int> {
      asked->format = *format;
      return *from_findings ? analyze_findings(*asked) : analyze_bundle(*asked, *options);
    };
  });
}

}  // namespace assay::cli
