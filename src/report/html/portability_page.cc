// A judgement across bundles as a page.
#include "report/html/elements.h"
#include "report/portability_report.h"
#include "report/portability_tables.h"

namespace assay {

std::string portability_page(const Portability& of) {
  const std::string title = fmt::format("assay portability: beside {}", of.regimes[0].name);
  std::string content = element("h1", title) + element("p", portability_outcome(of));
  content += figure_html(portability_figure(of));
  for (const ReportSection& section : portability_sections(of)) {
    content += element("h2", section.title);
    for (const std::string& line : section.lines) content += element("p", line);
    for (const Table& table : section.tables) content += table_html(table, section.title);
  }
  return page_html(title, content);
}

}  // namespace assay
