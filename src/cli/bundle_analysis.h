// What the commands that analyse a bundle share.
#pragma once

#include <filesystem>
#include <memory>

#include "analysis/findings.h"
#include "cli/command.h"

namespace assay::cli {

// Declares --margin, --resamples and --seed.
std::shared_ptr<AnalysisOptions> add_analysis_options(CLI::App& command);

// Reads and analyses the bundle on all of this process's CPUs.
Result<Findings> analyze_folder(const std::filesystem::path& folder,
                                const AnalysisOptions& options);

}  // namespace assay::cli
