// A routing policy for people, spreadsheets, programs, and whoever is on duty at night.
#pragma once

#include <string>

#include "base/tables/table.h"
#include "report/report.h"
#include "report/screen/fitter.h"
#include "routing/route.h"

namespace assay {

// The outcome, the rules, and what they rest on.
Document route_document(const Route& route);

// kTable: one screen. kMarkdown: everything. kCsv: one line a rule.
// kJson: route_to_json().
std::string render_route(const Route& route, OutputFormat format, size_t columns = kScreenColumns);

// The policy as a part of a bundle's report.
ReportSection route_section(const Route& route);

// The decision rule for a person without this program: about ten lines of Markdown below the
// heading kBreakGlassHeading.
inline constexpr std::string_view kBreakGlassHeading = "# Break glass: which arm serves a request";
std::string break_glass_text(const Route& route);

}  // namespace assay
