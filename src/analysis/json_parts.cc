// Phase splits and model sizes as JSON.
#include "analysis/json_parts.h"

namespace assay {
namespace {

Json term_json(const stats::AnovaTerm& term) {
  return {{"sum_of_squares", term.sum_of_squares},
          {"df", term.df},
          {"f", optional_json(term.f)},
          {"p", optional_json(term.p)},
          {"ln_p", optional_json(term.log_p)},
          {"eta_squared", optional_json(term.eta_squared)},
          {"partial_eta_squared", optional_json(term.partial_eta_squared)}};
}

Json anova_json(const std::optional<stats::TwoWayAnova>& anova) {
  if (!anova) return nullptr;
  return {{"arm", term_json(anova->a)},
          {"model", term_json(anova->b)},
          {"interaction", term_json(anova->interaction)},
          {"residual_sum_of_squares", anova->residual_sum_of_squares},
          {"residual_df", anova->residual_df},
          {"total_sum_of_squares", anova->total_sum_of_squares}};
}

Json crossover_json(const SizeCrossover& crossover) {
  Json ratios = Json::array();
  for (const SizeRatio& ratio : crossover.ratios) {
    ratios.push_back({{"model", ratio.model},
                      {"size", ratio.size},
                      {"ratio", ratio.ratio},
                      {"ratio_interval", interval_json(ratio.interval)}});
  }
  return {{"arm", crossover.arm},
          {"ratios", std::move(ratios)},
          {"crossings", crossover.crossings},
          {"crossover_size", optional_json(crossover.crossover)},
          {"crossover_interval", reach_json(crossover.interval)}};
}

}  // namespace

Json split_json(const Findings&, const PhaseSplit& split) {
  Json lengths = Json::array();
  for (const SplitAt& at : split.at) {
    lengths.push_back({{"new_tokens", at.new_tokens},
                       {"extrapolated", at.extrapolated},
                       {"prefill_share", at.prefill_share},
                       {"prefill_share_interval", interval_json(at.prefill_share_interval)},
                       {"ratio", at.ratio},
                       {"ratio_interval", interval_json(at.ratio_interval)}});
  }
  return {{"model", split.model},
          {"scenario", split.scenario},
          {"batch", split.batch},
          {"arm", split.arm},
          {"prefill_gain_ms", split.gain_ms},
          {"prefill_gain_interval_ms", interval_json(split.gain_interval)},
          {"token_ratio", split.token_ratio},
          {"by_new_tokens", std::move(lengths)},
          {"stops_mattering_at_tokens", optional_json(split.stops_mattering)},
          {"stops_mattering_interval", reach_json(split.stops_interval)},
          {"breaks_even_at_tokens", optional_json(split.breaks_even)},
          {"breaks_even_interval", reach_json(split.even_interval)}};
}

Json size_json(const Findings& findings, const SizeAnalysis& size) {
  Json crossovers = Json::array();
  for (const SizeCrossover& crossover : size.crossovers) {
    crossovers.push_back(crossover_json(crossover));
  }
  return {{"phase", phase_name(size.phase)},
          {"scenario", size.scenario},
          {"new_tokens", size.new_tokens},
          {"batch", size.batch},
          {"arms", size.arms},
          {"models", size.models},
          {"anova_type_ii", anova_json(size.type2)},
          {"anova_type_iii", anova_json(size.type3)},
          {"interaction_p_holm", optional_json(size.interaction_p_holm)},
          {"size_unit", findings.size_unit.empty() ? Json(nullptr) : Json(findings.size_unit)},
          {"crossovers", std::move(crossovers)}};
}

}  // namespace assay
