// The judgement as data.
#include <cmath>

#include "analysis/findings/json_parts.h"
#include "portability/portability.h"

namespace assay {
namespace {

Json config_json(const ArmConfig& config) {
  return {{"name", text_json(config.arm)},
          {"mode", text_json(config.mode)},
          {"cache", text_json(config.cache)},
          {"dynamic", text_json(config.dynamic)},
          {"quantization", text_json(config.quantization)}};
}

Json crash_json(const CrashRate& rate) {
  return {{"lost", rate.lost},
          {"attempted", rate.attempted},
          {"interval", interval_json(rate.interval)}};
}

Json regime_json(const Portability& of, size_t regime) {
  const Regime& r = of.regimes[regime];
  Json json = {{"name", r.name}, {"folder", r.folder}};
  if (regime == 0) return json;
  Json differences = Json::array();
  const RegimePair& pair = pair_of(of.pairs, 0, regime);
  for (const AxisDifference& d : pair.differences) {
    differences.push_back({{"axis", d.axis},
                           {"about", text_json(d.about)},
                           {"a", text_json(d.base)},
                           {"b", text_json(d.cand)}});
  }
  json["differences"] = std::move(differences);
  json["perturbations"] = perturbations_of(axes_of(pair));
  Json counts = Json::object();
  const auto counted = of.counts(regime);
  for (const PortabilityVerdict verdict : kPortabilityVerdicts) {
    const auto at = counted.find(verdict);
    counts[std::string(portability_verdict_name(verdict))] = at == counted.end() ? 0 : at->second;
  }
  json["counts"] = std::move(counts);
  return json;
}

Json direction_json(const ArmDirection& of) {
  if (!of.shown) return {{"verdict", nullptr}, {"reason", text_json(of.reason)}};
  return {{"verdict", verdict_name(of.decided)},
          {"ratio", of.shown->ratio},
          {"p_holm", optional_json(of.p_holm)},
          {"tost_p_holm", optional_json(of.tost_p_holm)}};
}

Json attribution_json(const Portability& of, const Attribution& attribution) {
  Json json = {{"basis", attribution_basis_name(attribution.basis)},
               {"axes", attribution.axes},
               {"unstated", attribution.unstated},
               {"suspect", text_json(attribution.suspect)},
               {"responsible", text_json(attribution.is_responsible ? attribution.suspect : "")},
               {"runs", {attribution.runs_a, attribution.runs_b}},
               {"control", control_state_name(attribution.control)},
               {"control_arm", text_json(attribution.control_arm)},
               {"about_compiler", attribution.about_compiler},
               {"text", attribution.text}};
  if (attribution.basis == AttributionBasis::kCleanPair) {
    json["clean_pair"] = {of.regimes[attribution.clean_a].name,
                          of.regimes[attribution.clean_b].name};
  }
  return json;
}

Json verdict_json(const Portability& of, size_t i) {
  const ConditionVerdict& verdict = of.verdicts[i];
  const PortedCondition& condition = of.conditions[verdict.condition];
  Json json = {{"condition", stratum_json(condition.stratum)},
               {"arm", condition.arm()},
               {"config", config_json(condition.config)},
               {"a", of.regimes[verdict.a].name},
               {"b", of.regimes[verdict.b].name},
               {"verdict", portability_verdict_name(verdict.verdict)},
               {"reason", text_json(verdict.reason)}};
  if (verdict.shown) {
    json["ratio"] = verdict.shown->ratio;
    json["ratio_interval"] = interval_json(verdict.shown->interval);
    json["ratio_range"] = interval_json(verdict.shown->process_range);
    json["p_holm"] = optional_json(verdict.p_holm);
    json["tost_p_holm"] = optional_json(verdict.tost_p_holm);
  }
  for (const auto& [name, regime] : {std::pair{"a", verdict.a}, {"b", verdict.b}}) {
    const RegimeCell* cell = condition.cells[regime];
    if (cell == nullptr) continue;
    json[fmt::format("crashes_{}", name)] = crash_json(cell->crashes);
    json[fmt::format("execution_{}", name)] = execution_name(cell->execution);
    json[fmt::format("direction_{}", name)] =
        direction_json(of.directions[verdict.condition][regime]);
  }
  if (is_change(verdict.verdict)) json["attribution"] = attribution_json(of, of.attributions[i]);
  return json;
}

Json index_json(const RobustnessIndex& index) {
  Json points = Json::array();
  for (const RetainedShare& point : index.points) {
    points.push_back({{"name", point.name},
                      {"log_ratio", optional_json(point.log_ratio)},
                      {"share", optional_json(point.share)},
                      {"interval", interval_json(point.interval)},
                      {"lost", text_json(point.lost)},
                      {"gone", text_json(point.gone)}});
  }
  return {{"axis", index.axis},
          {"index", optional_json(index.index)},
          {"interval", interval_json(index.interval)},
          {"band", robustness_band_name(index.band)},
          {"best_band", robustness_band_name(index.best)},
          {"worst_band", robustness_band_name(index.worst)},
          {"reason", text_json(index.reason)},
          {"points", std::move(points)}};
}

Json claim_json(const Portability& of, const JudgedClaim& claim) {
  Json regimes = Json::array();
  for (const ClaimInRegime& in : claim.regimes) {
    const SpreadRatio ratio = in.shown.value_or(SpreadRatio());
    regimes.push_back({{"name", of.regimes[in.regime].name},
                       {"state", claim_state_name(in.state)},
                       {"ratio", in.shown ? Json(ratio.ratio) : Json()},
                       {"ratio_interval", interval_json(ratio.interval)},
                       {"ratio_range", interval_json(ratio.process_range)},
                       {"p_holm", optional_json(in.p_holm)},
                       {"differs_on", in.axes},
                       {"unstated", in.unstated},
                       {"reason", text_json(in.reason)}});
  }
  Json indexes = Json::array();
  for (const RobustnessIndex& index : claim.indexes) indexes.push_back(index_json(index));
  return {{"claim", claim_text(claim.claim.words)},
          {"arm", config_json(claim.claim.arm)},
          {"than", config_json(claim.claim.than)},
          {"verdict", claim_verdict_name(claim.verdict)},
          {"reason", claim.reason},
          {"strata", claim.strata},
          {"regimes", std::move(regimes)},
          {"robustness", std::move(indexes)}};
}

Json headline_json(const Portability& of, const HeadlineCell& cell) {
  return {{"regime", of.regimes[cell.regime].name},
          {"arm", cell.arm},
          {"config", config_json(cell.config)},
          {"model_class", cell.model_class},
          {"prefill_gain", optional_json(cell.prefill_gain)},
          {"prefill_gain_interval", interval_json(cell.gain_interval)},
          {"prefill_gain_range", interval_json(cell.gain_range)},
          {"prefill_strata", cell.prefill_strata},
          {"prefill_left_out", cell.prefill_left_out},
          {"decode_crashes", cell.decode_crashes ? crash_json(*cell.decode_crashes) : Json()}};
}

}  // namespace

Json portability_to_json(const Portability& of) {
  Json json = {{"schema_version", kPortabilitySchemaVersion},
               {"options",
                {{"margin", of.options.margin},
                 {"alpha", of.options.alpha},
                 {"confidence", kConfidence},
                 {"crash_share", of.options.crash_share},
                 {"minimum_rows", of.options.minimum_rows}}},
               {"baseline", of.baseline_arm}};
  for (const char* list : {"regimes", "claims", "headline", "verdicts"}) json[list] = Json::array();
  for (size_t r = 0; r < of.regimes.size(); ++r) json["regimes"].push_back(regime_json(of, r));
  for (const JudgedClaim& claim : of.claims) json["claims"].push_back(claim_json(of, claim));
  for (const HeadlineCell& cell : of.matrix) json["headline"].push_back(headline_json(of, cell));
  for (size_t i = 0; i < of.verdicts.size(); ++i) json["verdicts"].push_back(verdict_json(of, i));
  json["failures"] = of.failures();
  return json;
}

}  // namespace assay
