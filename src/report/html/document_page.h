// Pages of judgements: the verdicts of `assay gate`, `portability`, `route` and `compare` as HTML
// files that fetch nothing and can be read without scripts.
#pragma once

#include <string>
#include <vector>

#include "report/document.h"

namespace assay {

std::string document_page(const Document& document, const std::vector<Figure>& figures = {});
// The sections without the page around them, each behind a heading of its own: figures, then
// sentences, then tables. Those without content are left out.
std::string sections_html(const std::vector<ReportSection>& sections,
                          const std::vector<Figure>& figures);

}  // namespace assay
