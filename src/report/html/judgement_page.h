// Pages of judgements: the verdicts of `assay gate`, `portability`, `route` and `compare` as HTML
// files that fetch nothing and can be read without scripts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/compare/compare.h"
#include "gates/judge.h"
#include "portability/portability.h"
#include "report/figures/figure.h"
#include "report/report.h"
#include "routing/route.h"

namespace assay {

// A titled part of such a page: figures, then sentences (those that begin with "- " are a list),
// then tables.
struct JudgementPart {
  std::string id;     // its anchor
  std::string title;  // also its link's
  std::vector<Figure> figures = {};
  std::vector<std::string> lines = {};
  std::vector<Table> tables = {};
  bool folded = false;  // its tables are
};

struct JudgementPage {
  std::string title;
  bool failed = false;
  std::vector<std::string> outcome;  // sentences, of which the first says it all
  Table verdicts;                    // has a column "verdict"
  std::vector<JudgementPart> parts;  // those without content are left out
};

std::string judgement_page(const JudgementPage& page);
// The parts without the page around them, each behind a heading of its own.
std::string judgement_parts_html(const std::vector<JudgementPart>& parts);

std::string gate_page(const Judgement& judgement);
std::string portability_page(const Portability& portability);
std::string route_page(const Route& route);
// `on_regression` as render_comparison()'s.
std::string comparison_page(const Comparison& comparison, bool on_regression);

// The parts between the verdict and the identities on the page of portability, for a page of
// several bundles.
std::vector<JudgementPart> portability_parts(const Portability& portability);

}  // namespace assay
