// A comparison of two bundles for people, spreadsheets, programs and pull requests.
#pragma once

#include <string>

#include "analysis/compare/demands.h"
#include "analysis/compare/false_alarms.h"
#include "base/tables/table.h"
#include "report/report.h"
#include "report/screen/fitter.h"

namespace assay {

// kTable: one screen of so many columns, or with `full` every part. kCsv: one line a cell.
std::string render_comparison(const Comparison& comparison, OutputFormat format,
                              const CompareDemands& demands, bool full = false,
                              size_t columns = kScreenColumns);

// The verdict, a row a cell, alarms first, then what the verdict rests on.
Document comparison_document(const Comparison& comparison, const CompareDemands& demands);

std::string render_self_test(const SelfTest& test, const CompareOptions& options,
                             OutputFormat format);

}  // namespace assay
