// The parts shared by the commands that analyse a bundle.
#pragma once

#include <filesystem>
#include <memory>

#include "analysis/findings/findings.h"
#include "analysis/findings/plotted.h"
#include "artifact/each_once.h"
#include "cli/command.h"
#include "gates/judge.h"
#include "report/report.h"
#include "report/screen/screen.h"
#include "routing/route.h"

namespace assay::cli {

// Declares --margin, --resamples and --seed.
std::shared_ptr<AnalysisOptions> add_analysis_options(CLI::App& command);

// Declares --from-findings, which excludes those options: the findings' own hold.
std::shared_ptr<bool> add_from_findings(CLI::App& command);

struct AnalyzedBundle {
  Findings findings;
  std::string findings_json;  // their text, made beside the judgements
  PlottedRows plotted;
  Judgement judgement;  // of every decision
  Route route;
  RunMark mark;
};
// Reads, verifies, analyses and judges the bundle on all of this process's CPUs.
Result<AnalyzedBundle> analyze_folder(const std::filesystem::path& folder,
                                      const AnalysisOptions& options);

// True if the path given to --from-findings is a bundle, not a findings.json.
bool is_bundle(const std::filesystem::path& path);

// The findings on one screen, in colours if stdout has them. `path` is the user's word.
std::string screen_text(const Findings& findings, const std::string& path,
                        ScreenOf of = ScreenOf::kBundle);

// Writes an analysis into the bundle: findings.json and plotted.json in analysis/, and the
// report.
Result<WrittenReport> write_analysis(const AnalyzedBundle& analyzed,
                                     const std::filesystem::path& folder);

}  // namespace assay::cli
