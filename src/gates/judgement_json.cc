// A judgement as JSON.
#include "analysis/findings/json_parts.h"
#include "gates/judge.h"

namespace assay {
namespace {

Json check_json(const GateCheck& check) {
  return {{"name", check.name},
          {"verdict", gate_word(check.verdict)},
          {"looked_at", text_json(check.looked_at)},
          {"found", check.found},
          {"decided_by", check.decided_by},
          {"decided_by_more", check.decided_by_more}};
}

Json gate_json(const JudgedGate& gate) {
  Json checks = Json::array();
  for (const GateCheck& check : gate.checks) checks.push_back(check_json(check));
  return {{"gate", gate_name(gate.kind)},
          {"verdict", gate_word(gate.verdict())},
          {"looked_at", gate.looked_at},
          {"checks", std::move(checks)}};
}

Json claim_json(const SpeedClaim& claim) {
  return {{"claim", claim_text(claim)},
          {"arm", claim.arm},
          {"relation", claim_relation_name(claim.relation)},
          {"other", text_json(claim.other)},
          {"phase", claim.phase ? Json(phase_name(*claim.phase)) : Json()},
          {"model", text_json(claim.model)},
          {"scenario", text_json(claim.scenario)},
          {"batch", optional_json(claim.batch)},
          {"new_tokens", optional_json(claim.new_tokens)}};
}

Json judged_claim_json(const GatedClaim& judged) {
  Json json = claim_json(judged.claim);
  json["holds"] = gate_word(judged.answer.verdict);
  json["because"] = judged.answer.because;
  json["decided_by"] = judged.answer.decided_by;
  json["decided_by_more"] = judged.answer.decided_by_more;
  for (size_t i = 0; i < judged.gates.size(); ++i) {
    json["gates"][std::string(gate_name(kGateKinds[i]))] = gate_word(judged.gates[i]);
  }
  return json;
}

Json bundle_json(const JudgedBundle& bundle) {
  Json json = {{"bundle", bundle.name},
               {"study", text_json(bundle.study.name)},
               {"started_at", text_json(bundle.study.started_at)},
               {"rows", bundle.study.rows},
               {"findings",
                {{"from", bundle.findings_from_file ? "analysis/findings.json" : "rows"},
                 {"why", text_json(bundle.why_anew)},
                 {"margin", bundle.options.margin},
                 {"alpha", bundle.options.alpha}}},
               {"gates", Json::array()},
               {"claims", Json::array()},
               {"decisions_without_claim", bundle.silent}};
  for (const JudgedGate& gate : bundle.gates) json["gates"].push_back(gate_json(gate));
  for (const GatedClaim& claim : bundle.claims) {
    json["claims"].push_back(judged_claim_json(claim));
  }
  return json;
}

Json pair_json(const std::vector<JudgedBundle>& bundles, const AxisPair& pair) {
  Json differences = Json::array();
  for (const AxisDifference& difference : pair.differences) {
    differences.push_back({{"axis", difference.axis},
                           {"about", text_json(difference.about)},
                           {"first", text_json(difference.base)},
                           {"second", text_json(difference.cand)}});
  }
  return {{"first", bundles[pair.first].name},
          {"second", bundles[pair.second].name},
          {"axes", pair.axes},
          {"axis", text_json(pair.axis)},
          {"why_not", text_json(pair.why_not)},
          {"differences", std::move(differences)}};
}

Json regimes_json(const Judgement& judgement) {
  Json json = gate_json(judgement.regimes.gate);
  json["pairs"] = Json::array();
  for (const AxisPair& pair : judgement.regimes.pairs) {
    json["pairs"].push_back(pair_json(judgement.bundles, pair));
  }
  json["claims"] = Json::array();
  for (const ReproducedClaim& claim : judgement.regimes.claims) {
    Json one = claim_json(claim.claim);
    one["verdict"] = gate_word(claim.verdict);
    one["because"] = claim.because;
    one["holds"] = Json::array();
    for (const GateVerdict verdict : claim.holds) one["holds"].push_back(gate_word(verdict));
    json["claims"].push_back(std::move(one));
  }
  return json;
}

}  // namespace

Json judgement_to_json(const Judgement& judgement) {
  Json json = {{"schema_version", kJudgementSchemaVersion},
               {"verdict", gate_word(judgement.verdict())},
               {"claim", judgement.claim ? claim_json(*judgement.claim) : Json()},
               {"claim_holds", Json()},
               {"declared_axis", text_json(judgement.axis)},
               {"gates", Json::object()},
               {"bundles", Json::array()}};
  if (const auto holds = judgement.claim_verdict()) json["claim_holds"] = gate_word(*holds);
  for (const GateKind kind : kGateKinds) {
    json["gates"][std::string(gate_name(kind))] = gate_word(judgement.gate_verdict(kind));
  }
  for (const JudgedBundle& bundle : judgement.bundles) {
    json["bundles"].push_back(bundle_json(bundle));
  }
  json["cross_regime"] = regimes_json(judgement);
  return json;
}

}  // namespace assay
