// assay analyze BUNDLE: prints the findings on one screen, or all its tables, and leaves
// analysis/findings.json and the report. Exit status 1: the study has requirements, and one isn't
// met.
#include <cstdio>
#include <thread>

#include "cli/bundle_analysis.h"
#include "report/report.h"

namespace assay::cli {

void add_analyze_command(CLI::App& app, Selected& selected) {
  CLI::App* command = app.add_subcommand("analyze",
                                         "print a bundle's findings on one screen and write its "
                                         "findings.json, report.html and report.md");
  const auto folder = std::make_shared<std::string>();
  command->add_option("bundle", *folder, "folder of a bundle that `assay run` wrote")
      ->required()
      ->type_name("BUNDLE");
  const auto options = add_analysis_options(*command);
  const auto full = std::make_shared<bool>(false);
  command->add_flag("--full", *full,
                    "print every table of report.md, and the notes beside the warnings");
  const auto format = add_output_format(*command);
  command->callback([=, &selected] {
    selected.body = [=]() -> Result<int> {
      ASSAY_TRY(const AnalyzedBundle analyzed, analyze_folder(*folder, *options));
      const Findings& findings = analyzed.findings;
      Result<WrittenReport> written;
      std::jthread writer([&] { written = write_analysis(analyzed, *folder); });
      const bool on_a_screen = *format == OutputFormat::kTable && !*full;
      const std::string report = on_a_screen ? "" : render_report(findings, *format);
      writer.join();
      ASSAY_CHECK(std::move(written));
      if (on_a_screen) print_screen(findings, *folder);
      fmt::print("{}", report);
      const bool failed =
          findings.requirements && findings.requirements->verdict == Requirements::Verdict::kFailed;
      return failed ? 1 : 0;
    };
  });
}

}  // namespace assay::cli
