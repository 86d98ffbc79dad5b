// A judgement across bundles for people, spreadsheets and programs.
#pragma once

#include <string>

#include "base/tables/table.h"
#include "portability/portability.h"

namespace assay {

inline constexpr size_t kPortabilityScreenLines = 40;
inline constexpr size_t kPortabilityScreenColumns = 100;

// kTable: one screen of at most that many lines and columns, which counts the lines that it has no
// room for. kMarkdown: every table. kCsv: one line a condition and regime. kJson:
// portability_to_json().
std::string render_portability(const Portability& portability, OutputFormat format);

// The headline matrix as an .svg file.
std::string portability_heat_map(const Portability& portability);

}  // namespace assay
