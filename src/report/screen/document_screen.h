// A judgement on one screen: its outcome, its verdicts, and as much of the rest as has room.
#pragma once

#include <functional>
#include <string>

#include "report/document.h"
#include "report/screen/fitter.h"

namespace assay {

// At most kScreenLines lines of at most `columns` columns. Whatever has no room is counted
// ("and 12 more rows: -o md"), or its part named.
std::string render_screen(const Document& document, size_t columns = kScreenColumns);

// A judgement's forms, each made when it is asked for.
struct DocumentForms {
  std::function<Document()> document;  // for a screen and for Markdown
  std::function<Table()> lines;        // for CSV
  std::function<Json()> json;
};
std::string render_document(const DocumentForms& of, OutputFormat format, size_t columns);

}  // namespace assay
