// A comparison of two bundles for people, spreadsheets, programs and pull requests.
#pragma once

#include <string>

#include "analysis/compare/demands.h"
#include "analysis/compare/false_alarms.h"
#include "base/tables/table.h"
#include "report/report.h"

namespace assay {

// Crash rates first, then combined cells, then cell by cell. kCsv: one line a cell.
std::string render_comparison(const Comparison& comparison, OutputFormat format,
                              const CompareDemands& demands);

// The verdict in sentences, then the tables that they rest on.
Document comparison_document(const Comparison& comparison, const CompareDemands& demands);

std::string render_self_test(const SelfTest& test, const CompareOptions& options,
                             OutputFormat format);

}  // namespace assay
