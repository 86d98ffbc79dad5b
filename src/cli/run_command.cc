// assay run: measures a study into a bundle, and prints what it found.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/shown_text.h"
#include "base/text.h"
#include "cli/bundle_analysis.h"
#include "cli/command.h"
#include "cli/measure.h"
#include "cli/process.h"

namespace assay::cli {
namespace {

Table summary_table(const Measured& summary) {
  Table table;
  table.columns = {{"status", Align::kLeft}, {"rows"}};
  for (const auto& [status, rows] : summary.rows_by_status) {
    table.rows.push_back(
        {TableCell::of(std::string(row_status_name(status))), TableCell::of(rows)});
  }
  return table;
}

// The findings on a screen, or the rows by status for whoever asked for another format.
Result<int> finish(const MeasureOptions& options, const Measured& summary, OutputFormat format) {
  if (format != OutputFormat::kTable) {
    print_table(summary_table(summary), format);
    return 0;
  }
  ASSAY_TRY(const AnalyzedBundle analyzed, analyze_folder(options.bundle, {}));
  ASSAY_CHECK(write_analysis(analyzed, options.bundle));
  print_screen(analyzed.findings, options.bundle);
  return 0;
}

Result<int> run(const MeasureOptions& options, OutputFormat format) {
  ASSAY_TRY(const Measured summary, measure_study(options));
  if (summary.interrupted) {
    tell(fmt::format(
        "assay: interrupted with {} committed; continue with: assay run {} -o {} --resume\n",
        counted(summary.rows, "row"), shown_line(options.study), shown_line(options.bundle)));
    return kExitInterrupted;
  }
  return finish(options, summary, format);
}

}  // namespace

void add_run_command(CLI::App& app, Selected& selected) {
  CLI::App* command =
      app.add_subcommand("run", "measure a study, write a bundle, and print the findings");
  auto options = std::make_shared<MeasureOptions>();
  command->add_option("study", options->study, "study file")->required()->type_name("STUDY");
  command->add_option("-o,--output", options->bundle, "folder of the bundle to write")
      ->required()
      ->type_name("BUNDLE");
  command->add_flag("--resume", options->resume, "continue a bundle that was interrupted");
  command->add_flag("--profile", options->profile,
                    "trace one repetition of each cell after its timing, if the backend can");
  add_only_option(*command, options->only);
  const auto format = add_output_format(*command, "--output-format");
  command->callback([=, &selected] { selected.body = [=] { return run(*options, *format); }; });
}

}  // namespace assay::cli
