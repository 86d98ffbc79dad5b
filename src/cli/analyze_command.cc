// assay analyze BUNDLE: prints the findings and leaves them in analysis/findings.json. Exit status
// 1: the study has requirements, and one isn't met.
#include <cstdio>
#include <thread>

#include "cli/bundle_analysis.h"
#include "report/report.h"

namespace assay::cli {

void add_analyze_command(CLI::App& app, Selected& selected) {
  CLI::App* command = app.add_subcommand(
      "analyze", "print a bundle's findings and write them to analysis/findings.json in it");
  const auto folder = std::make_shared<std::string>();
  command->add_option("bundle", *folder, "folder that `assay run` wrote")
      ->required()
      ->type_name("BUNDLE");
  const auto options = add_analysis_options(*command);
  const auto format = add_output_format(*command);
  command->callback([=, &selected] {
    selected.body = [=]() -> Result<int> {
      ASSAY_TRY(const Findings findings, analyze_folder(*folder, *options));
      Status written;
      std::jthread writer([&] { written = write_findings(findings, *folder); });
      const std::string report = render_report(findings, *format);
      writer.join();
      ASSAY_CHECK(std::move(written));
      fmt::print("{}", report);
      const bool failed =
          findings.requirements && findings.requirements->verdict == Requirements::Verdict::kFailed;
      return failed ? 1 : 0;
    };
  });
}

}  // namespace assay::cli
