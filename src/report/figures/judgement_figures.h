// Figures of judgements: made of verdicts, not of findings.
#pragma once

#include <optional>
#include <vector>

#include "analysis/compare/compare.h"
#include "portability/portability.h"
#include "report/figures/figure.h"
#include "routing/route.h"

namespace assay {

// Gains of compilation in prefill and losses in decode, as heat maps; without panels where there
// are none.
Figure headline_figure(const Portability& of);
// Each condition's move from the first regime to the given one; absent: no condition has times in
// both.
std::optional<Figure> moves_figure(const Portability& of, size_t regime);
// Each claim's ratio in every regime; absent: no claim has one.
std::optional<Figure> claims_figure(const Portability& of);
// The robustness index of each claim, axis by axis; absent: no claim has one.
std::optional<Figure> robustness_figure(const Portability& of);

// The candidate's time over the base's, cell by cell; absent: the phase has no cell.
std::optional<Figure> comparison_figure(const Comparison& of, Phase phase);

// The arms with the prompt lengths that they serve; absent: the policy has no rules.
std::optional<Figure> policy_figure(const Route& route);
// The ratios to the safe arm that the rules rest on; absent: every rule takes the safe arm.
std::optional<Figure> evidence_figure(const Route& route);
// Strategies beside each other; absent: no trace was replayed.
std::optional<Figure> strategies_figure(const Route& route);

// All of a judgement's, for its page.
std::vector<Figure> all_figures(const Portability& of);
std::vector<Figure> all_figures(const Comparison& of);
std::vector<Figure> all_figures(const Route& route);

}  // namespace assay
