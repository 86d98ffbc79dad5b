// A judgement across bundles for people, spreadsheets and programs.
#pragma once

#include <string>

#include "base/tables/table.h"
#include "portability/portability.h"
#include "report/document.h"
#include "report/screen/fitter.h"

namespace assay {

// Bundles beside the first whose moves are drawn.
inline constexpr size_t kDrawnBundles = 12;

// The outcome, the claims' verdicts, and the parts between them and the identities.
Document portability_document(const Portability& portability);

// kTable: one screen. kMarkdown: every table. kCsv: one line a condition and regime. kJson:
// portability_to_json().
std::string render_portability(const Portability& portability, OutputFormat format,
                               size_t columns = kScreenColumns);

// The headline matrix as an .svg file.
std::string portability_heat_map(const Portability& portability);

}  // namespace assay
