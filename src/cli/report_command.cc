// assay report BUNDLE: writes report.md into the bundle and prints its path.
#include <cstdio>

#include "cli/bundle_analysis.h"
#include "report/report.h"

namespace assay::cli {

void add_report_command(CLI::App& app, Selected& selected) {
  CLI::App* command = app.add_subcommand("report", "write a bundle's report.md and print its path");
  const auto folder = std::make_shared<std::string>();
  command->add_option("bundle", *folder, "folder that `assay run` wrote")
      ->required()
      ->type_name("BUNDLE");
  const auto options = add_analysis_options(*command);
  command->callback([=, &selected] {
    selected.body = [=]() -> Result<int> {
      ASSAY_TRY(const Findings findings, analyze_folder(*folder, *options));
      ASSAY_CHECK(write_findings(findings, *folder));
      ASSAY_TRY(const std::filesystem::path path, write_report(findings, *folder));
      fmt::print("{}\n", path.string());
      return 0;
    };
  });
}

}  // namespace assay::cli
