// A comparison of two bundles for people, spreadsheets, programs and pull requests.
#pragma once

#include <string>

#include "analysis/compare/compare.h"
#include "analysis/compare/false_alarms.h"
#include "base/table.h"
#include "report/report.h"

namespace assay {

// Crash rates first, then what is combined, then cell by cell. kCsv: one line a cell.
// `on_regression`: what --fail-on-regression makes fail is said to fail.
std::string render_comparison(const Comparison& comparison, OutputFormat format,
                              bool on_regression);

// The verdict first, then what the tables say.
std::vector<ReportSection> comparison_sections(const Comparison& comparison, bool on_regression);

std::string render_self_test(const SelfTest& test, const CompareOptions& options,
                             OutputFormat format);

}  // namespace assay
