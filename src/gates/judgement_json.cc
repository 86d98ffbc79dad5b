// A judgement as JSON.
#include "analysis/findings/record_entries.h"
#include "gates/judge.h"

namespace assay {

template <>
struct EnumWords<GateVerdict> : WordsByName<GateVerdict, gate_word, 3> {};
template <>
struct EnumWords<GateKind> : WordsByName<GateKind, gate_name, kGateKinds.size()> {};

template <>
struct Record<GateCheck> {
  using T = GateCheck;
  static constexpr auto kMembers = std::tuple(
      field("name", &T::name), field("verdict", &T::verdict),
      text_or_null("looked_at", &T::looked_at), field("found", &T::found),
      field("decided_by", &T::decided_by), field("decided_by_more", &T::decided_by_more));
};
template <>
struct Record<JudgedGate> {
  using T = JudgedGate;
  static constexpr auto kMembers =
      std::tuple(field("gate", &T::kind), derived("verdict", &T::verdict),
                 field("looked_at", &T::looked_at), field("checks", &T::checks));
};
template <>
struct Record<SpeedClaim> {
  using T = SpeedClaim;
  static constexpr auto kMembers =
      std::tuple(derived("claim", claim_text), field("arm", &T::arm),
                 field_as("relation", &T::relation, claim_relation_name),
                 text_or_null("other", &T::other), field("phase", &T::phase),
                 text_or_null("model", &T::model), text_or_null("scenario", &T::scenario),
                 field("batch", &T::batch), field("new_tokens", &T::new_tokens));
};
template <>
struct Record<ClaimAnswer> {
  using T = ClaimAnswer;
  static constexpr auto kMembers =
      std::tuple(field("holds", &T::verdict), field("because", &T::because),
                 field("decided_by", &T::decided_by), field("decided_by_more", &T::decided_by_more),
                 unwritten(&T::strata));
};
template <>
struct Record<GatedClaim> {
  using T = GatedClaim;
  static constexpr auto kByKind = [](const std::array<GateVerdict, 4>& gates) {
    std::map<GateKind, GateVerdict> by_kind;
    for (size_t i = 0; i < gates.size(); ++i) by_kind[kGateKinds[i]] = gates[i];
    return by_kind;
  };
  static constexpr auto kMembers =
      std::tuple(part(&T::claim), part(&T::answer), field_as("gates", &T::gates, kByKind));
};
template <>
struct Record<JudgedBundle> {
  using T = JudgedBundle;
  static constexpr auto kFrom = [](bool file) { return file ? "analysis/findings.json" : "rows"; };
  static constexpr auto kMembers =
      std::tuple(field("bundle", &T::name),
                 part(&T::study, text_or_null("study", &StudySummary::name),
                      text_or_null("started_at", &StudySummary::started_at),
                      field("rows", &StudySummary::rows)),
                 nested("findings", field_as("from", &T::findings_from_file, kFrom),
                        text_or_null("why", &T::why_anew),
                        part(&T::options, field("margin", &AnalysisOptions::margin),
                             field("alpha", &AnalysisOptions::alpha))),
                 field("gates", &T::gates), field("claims", &T::claims),
                 field("decisions_without_claim", &T::silent));
};
template <>
struct Record<AxisPair> {
  using T = AxisPair;
  static constexpr auto kName = [](size_t bundle, const Judgement& in) -> const std::string& {
    return in.bundles[bundle].name;
  };
  static constexpr auto kMembers = std::tuple(
      field_as("first", &T::first, kName), field_as("second", &T::second, kName),
      field("axes", &T::axes), text_or_null("axis", &T::axis), text_or_null("why_not", &T::why_not),
      list_of("differences", &T::differences, field("axis", &AxisDifference::axis),
              text_or_null("about", &AxisDifference::about),
              text_or_null("first", &AxisDifference::base),
              text_or_null("second", &AxisDifference::cand)));
};
template <>
struct Record<ReproducedClaim> {
  using T = ReproducedClaim;
  static constexpr auto kMembers =
      std::tuple(part(&T::claim), field("verdict", &T::verdict), field("because", &T::because),
                 field("holds", &T::holds));
};
template <>
struct Record<JudgedRegimes> {
  using T = JudgedRegimes;
  static constexpr auto kMembers =
      std::tuple(part(&T::gate), field("pairs", &T::pairs), field("claims", &T::claims));
};
template <>
struct Record<Judgement> {
  using T = Judgement;
  static constexpr auto kGates = [](const Judgement& judgement) {
    std::map<GateKind, GateVerdict> by_kind;
    for (const GateKind kind : kGateKinds) by_kind[kind] = judgement.gate_verdict(kind);
    return by_kind;
  };
  static constexpr auto kMembers = std::tuple(
      constant("schema_version", kJudgementSchemaVersion), derived("verdict", &T::verdict),
      field("claim", &T::claim), derived("claim_holds", &T::claim_verdict),
      text_or_null("declared_axis", &T::axis), derived("gates", kGates),
      field("bundles", &T::bundles), field("cross_regime", &T::regimes));
};

Json judgement_to_json(const Judgement& judgement) {
  return record_to_json(judgement, judgement);
}

}  // namespace assay
