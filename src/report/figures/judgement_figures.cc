#include "report/figures/judgement_figures.h"

#include <algorithm>

#include "report/judgements/portability_report.h"

namespace assay {
namespace {

void put(std::optional<Figure> figure, std::vector<Figure>& all) {
  if (figure && !figure->panels.empty()) all.push_back(*std::move(figure));
}

}  // namespace

std::vector<Figure> all_figures(const Portability& of) {
  std::vector<Figure> all;
  put(claims_figure(of), all);
  put(robustness_figure(of), all);
  put(headline_figure(of), all);
  for (size_t r = 1; r < std::min(of.regimes.size(), kDrawnBundles + 1); ++r) {
    put(moves_figure(of, r), all);
  }
  return all;
}

std::vector<Figure> all_figures(const Comparison& of) {
  std::vector<Figure> all;
  for (const Phase phase : kPhases) put(comparison_figure(of, phase), all);
  return all;
}

std::vector<Figure> all_figures(const Route& route) {
  std::vector<Figure> all;
  put(policy_figure(route), all);
  put(evidence_figure(route), all);
  put(strategies_figure(route), all);
  return all;
}

}  // namespace assay
