// Findings as a report: identity first, then crash rates, latencies, contrasts, findings, decision.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "analysis/findings/findings.h"
#include "analysis/findings/plotted.h"
#include "base/tables/table.h"
#include "report/document.h"
#include "report/figures/figure.h"

namespace assay {

struct Judgement;
struct Route;

enum class Detail {
  kSummary,  // no strata without losses, cold samples or effect sizes; one line a kind of finding
  kTables,   // every table, for a terminal of 120 columns; one line a kind of finding
  kFull,     // every table, and every finding with its rows
};

std::vector<ReportSection> report_sections(const Findings& findings, Detail detail);

// kTable: every table as text. kMarkdown: the full report. kJson: findings.json. kCsv: one line an
// arm and stratum, with its contrast.
std::string render_report(const Findings& findings, OutputFormat format);

struct WrittenReport {
  std::filesystem::path page;
  std::filesystem::path markdown;
};
// FOLDER/report.html, report.md, and the figures of the latter as plots/*.svg; others there are
// removed. `plotted`, `judgement` and `route` are null where only the findings are there: figures
// of single rows, the gates and the policy are left out.
Result<WrittenReport> write_report(const Findings& findings, const PlottedRows* plotted,
                                   const Judgement* judgement, const Route* route,
                                   const std::filesystem::path& folder);

}  // namespace assay
