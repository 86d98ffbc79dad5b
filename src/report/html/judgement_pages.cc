#include "report/html/judgement_pages.h"

#include "report/figures/judgement_figures.h"
#include "report/html/document_page.h"
#include "report/judgements/compare_report.h"
#include "report/judgements/gate_report.h"
#include "report/judgements/portability_report.h"
#include "report/judgements/route_report.h"

namespace assay {

std::string gate_page(const Judgement& judgement) {
  return document_page(gate_document(judgement));
}

std::string portability_page(const Portability& of) {
  return document_page(portability_document(of), all_figures(of));
}

std::string route_page(const Route& route) {
  return document_page(route_document(route), all_figures(route));
}

std::string comparison_page(const Comparison& of, const CompareDemands& demands) {
  return document_page(comparison_document(of, demands), all_figures(of));
}

}  // namespace assay
