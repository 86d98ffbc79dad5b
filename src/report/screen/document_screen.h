// A judgement on one screen: its outcome, its verdicts, and as much of the rest as has room.
#pragma once

#include <string>

#include "report/document.h"
#include "report/screen/fitter.h"

namespace assay {

// At most kScreenLines lines of at most `columns` columns. Whatever has no room is counted
// ("and 12 more rows: -o md"), or its part named.
std::string render_screen(const Document& document, size_t columns = kScreenColumns);

}  // namespace assay
