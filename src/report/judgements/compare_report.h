// A comparison of two bundles for people, spreadsheets, programs and pull requests.
#pragma once

#include <string>

#include "analysis/compare/compare.h"
#include "analysis/compare/false_alarms.h"
#include "base/tables/table.h"
#include "report/report.h"

namespace assay {

// Crash rates first, then combined cells, then cell by cell. kCsv: one line a cell.
// `on_regression`: regressions are said to fail, as with --fail-on-regression.
std::string render_comparison(const Comparison& comparison, OutputFormat format,
                              bool on_regression);

// The verdict in sentences, then the tables that they rest on.
Document comparison_document(const Comparison& comparison, bool on_regression);

std::string render_self_test(const SelfTest& test, const CompareOptions& options,
                             OutputFormat format);

}  // namespace assay
