// assay report BUNDLE: writes report.md into the bundle and prints its path. From the findings that
// an analysis left there, it needs nothing else of the bundle.
#include <cstdio>

#include "cli/bundle_analysis.h"
#include "report/report.h"

namespace assay::cli {
namespace {

Result<int> print_report(const Findings& findings, const std::filesystem::path& folder) {
  ASSAY_TRY(const std::filesystem::path path, write_report(findings, folder));
  fmt::print("{}\n", path.string());
  return 0;
}

}  // namespace

void add_report_command(CLI::App& app, Selected& selected) {
  CLI::App* command = app.add_subcommand("report", "write a bundle's report.md and print its path");
  const auto folder = std::make_shared<std::string>();
  command->add_option("bundle", *folder, "folder of a bundle that `assay run` wrote")
      ->required()
      ->type_name("BUNDLE");
  const auto options = add_analysis_options(*command);
  const auto from_findings = std::make_shared<bool>(false);
  CLI::Option* flag = command->add_flag("--from-findings", *from_findings,
                                        "take analysis/findings.json as it is and read no rows");
  for (const char* name : {"--margin", "--resamples", "--seed"}) {
    flag->excludes(command->get_option(name));
  }
  command->callback([=, &selected] {
    selected.body = [=]() -> Result<int> {
      if (*from_findings) {
        ASSAY_TRY(const Findings findings, read_findings(*folder));
        return print_report(findings, *folder);
      }
      ASSAY_TRY(const Findings findings, analyze_folder(*folder, *options));
      ASSAY_CHECK(write_findings(findings, *folder));
      return print_report(findings, *folder);
    };
  });
}

}  // namespace assay::cli
