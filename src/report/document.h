// A report as data: what an analysis or a judgement says, before anything is drawn. One renderer
// each makes text, Markdown, a screen (screen/document_screen.h) and a page (html/document_page.h)
// of it.
#pragma once

#include <string>
#include <vector>

#include "base/tables/table.h"
#include "report/figures/figure.h"

namespace assay {

// A titled part: sentences that say unit, n, estimator and interval (those that begin with "- " are
// a list), then tables. A part without content isn't shown.
struct ReportSection {
  std::string title;
  std::vector<std::string> lines = {};
  std::vector<Table> tables = {};
  std::vector<std::string> figures = {};  // ids of those that draw it
  std::string id = {};                    // its anchor on a page
  // Lines that it may take of a screen before other parts have theirs; 0: it isn't on the screen.
  size_t screen_lines = 0;
  bool folded = false;  // on a page, its tables are
};
// Sentences, or a table with rows.
bool has_text(const ReportSection& section);
// The same items as a list: each with "- " before it.
std::vector<std::string> as_list(const std::vector<std::string>& items);

// A judgement: its conclusion, then what it rests on.
struct Document {
  std::string title;
  bool failed = false;
  std::vector<std::string> outcome;  // sentences, of which the first says it all
  Table verdicts = {};               // has a column "verdict"
  std::string legend = {};           // explains its columns
  // Its columns that give way on a screen too narrow for all, the first one first.
  std::vector<std::string> spare = {};
  std::vector<ReportSection> sections = {};
};

// Sections as text of at most 120 columns, and as Markdown below a title. Markdown shows those
// figures that are in `figures`, as files of the folder plots/ (plot_file()).
std::string render_text(const std::vector<ReportSection>& sections);
std::string render_markdown(const std::string& title, const std::vector<ReportSection>& sections,
                            const std::vector<FigureGroup>& figures = {});
std::string render_markdown(const Document& document);
std::string plot_file(const Figure& figure);

}  // namespace assay
