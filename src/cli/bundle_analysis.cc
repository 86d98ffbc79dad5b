// What the commands that analyse a bundle share.
#include "cli/bundle_analysis.h"

#include <unistd.h>

#include "analysis/analyze.h"
#include "analysis/plot_rows.h"
#include "artifact/bundle.h"
#include "base/terminal.h"
#include "cli/option_types.h"
#include "report/screen/colours.h"
#include "report/screen/screen.h"

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
          "equivalence margin, as a share (default 0.03; of a study that stopped by one, that)")
      ->check(number_between(1e-6, 1))
      ->type_name("SHARE");
  command.add_option("--resamples", options->resamples, "bootstrap resamples (default 10000)")
      ->check(count_between(100, 1'000'000))
      ->type_name("N");
  command.add_option("--seed", options->seed, "seed of the bootstrap (default 42)")
      ->check(seed_number())
      ->type_name("N");
  return options;
}

Result<AnalyzedBundle> analyze_folder(const std::filesystem::path& folder,
                                      const AnalysisOptions& options) {
  ASSAY_TRY(const Bundle bundle, read_bundle(folder));
  ThreadPool pool(available_cpus());
  AnalyzedBundle analyzed;
  ASSAY_TRY(analyzed.findings, analyze(bundle, options, &pool));
  ASSAY_TRY(analyzed.plotted, plot_rows(bundle, analyzed.findings));
  return analyzed;
}

void print_screen(const Findings& findings, const std::string& folder) {
  const std::string screen = render_screen(findings, folder);
  fmt::print("{}", terminal_of(STDOUT_FILENO).colours ? with_colours(screen) : screen);
}

Result<WrittenReport> write_analysis(const AnalyzedBundle& analyzed,
                                     const std::filesystem::path& folder) {
  ASSAY_CHECK(write_findings(analyzed.findings, folder));
  return write_report(analyzed.findings, &analyzed.plotted, folder);
}

}  // namespace assay::cli
