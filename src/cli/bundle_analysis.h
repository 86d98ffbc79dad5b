// What the commands that analyse a bundle share.
#pragma once

#include <filesystem>
#include <memory>

#include "analysis/findings/findings.h"
#include "analysis/findings/plotted.h"
#include "cli/command.h"
#include "report/report.h"

namespace assay::cli {

// Declares --margin, --resamples and --seed.
std::shared_ptr<AnalysisOptions> add_analysis_options(CLI::App& command);

struct AnalyzedBundle {
  Findings findings;
  PlottedRows plotted;
};
// Reads and analyses the bundle on all of this process's CPUs.
Result<AnalyzedBundle> analyze_folder(const std::filesystem::path& folder,
                                      const AnalysisOptions& options);

// The findings on one screen, in colours where stdout has them.
void print_screen(const Findings& findings, const std::string& folder);

// What an analysis leaves in the bundle: analysis/findings.json and the report.
Result<WrittenReport> write_analysis(const AnalyzedBundle& analyzed,
                                     const std::filesystem::path& folder);

}  // namespace assay::cli
