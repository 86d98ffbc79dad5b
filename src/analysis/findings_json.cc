// Findings as JSON: analysis/findings.json of a bundle. Absent values are null.
#include "analysis/json_parts.h"
#include "base/folder.h"

namespace assay {
namespace {

Json options_json(const AnalysisOptions& o) {
  return {{"margin", o.margin},
          {"alpha", o.alpha},
          {"confidence", o.confidence},
          {"power", o.power},
          {"resamples", o.resamples},
          {"seed", o.seed},
          {"minimum_rows", o.minimum_rows},
          {"cold_factor", o.cold_factor},
          {"notable", o.notable}};
}

Json study_json(const StudySummary& s) {
  return {{"name", s.name},
          {"baseline", s.baseline},
          {"arms", s.arms},
          {"order", s.order.empty() ? Json(nullptr) : Json(s.order)},
          {"seed", optional_json(s.seed)},
          {"warmup", optional_json(s.warmup)},
          {"repetitions", optional_json(s.repetitions)},
          {"started_at", s.started_at.empty() ? Json(nullptr) : Json(s.started_at)},
          {"complete", s.complete},
          {"rows", s.rows}};
}

Json stratum_json(const Stratum& s) {
  return {{"phase", phase_name(s.phase)},
          {"model", s.model},
          {"scenario", s.scenario},
          {"new_tokens", s.new_tokens},
          {"batch", s.batch}};
}

// The stratum's members, or the phase alone, in front of what is said about it.
Json place_json(const Findings& f, std::optional<Phase> phase, std::optional<size_t> stratum) {
  if (stratum) return stratum_json(f.strata[*stratum]);
  return {{"phase", phase ? Json(phase_name(*phase)) : Json(nullptr)}};
}

Json outcome_json(const Findings& f, const OutcomeCounts& o) {
  Json json = place_json(f, o.phase, o.stratum);
  json.update({{"arm", o.arm},
               {"attempted", o.attempted},
               {"failed", o.failed},
               {"failed_rate_interval", interval_json(o.failed_interval)},
               {"by_status", o.by_status},
               {"by_error_class", o.by_error_class}});
  return json;
}

Json latency_json(const Findings& f, const Latency& l) {
  Json json = place_json(f, std::nullopt, l.stratum);
  json.update({{"arm", l.arm},
               {"parity_failed", l.parity_failed},
               {"n", l.n},
               {"mean_ms", optional_json(l.mean)},
               {"mean_interval_ms", interval_json(l.mean_interval)},
               {"median_ms", optional_json(l.median)},
               {"sd_ms", optional_json(l.sd)},
               {"mad_ms", optional_json(l.mad)},
               {"trimmed_mean_ms", optional_json(l.trimmed_mean)},
               {"min_ms", optional_json(l.min)},
               {"p90_ms", optional_json(l.p90)},
               {"p95_ms", optional_json(l.p95)},
               {"p99_ms", optional_json(l.p99)},
               {"max_ms", optional_json(l.max)},
               {"tokens_per_s", optional_json(l.tokens_per_s)},
               {"joules_per_token", optional_json(l.joules_per_token)},
               {"energy_n", l.energy_n},
               {"cold_n", l.cold_n},
               {"cold_median_ms", optional_json(l.cold_median)},
               {"cold_max_ms", optional_json(l.cold_max)},
               {"mean_with_cold_ms", optional_json(l.mean_with_cold)},
               {"mean_without_first_ms", optional_json(l.mean_without_first)},
               {"n_effective", optional_json(l.n_effective)},
               {"widening", l.widening}});
  return json;
}

Json rank_json(const std::optional<stats::RankTest>& rank) {
  if (!rank) return nullptr;
  return {{"u", rank->u},
          {"a", rank->a},
          {"p", rank->p},
          {"ln_p", rank->log_p},
          {"exact", rank->exact}};
}

Json contrast_json(const Findings& f, const Contrast& c) {
  Json verdicts = Json::object();
  for (const auto& [verdict, count] : c.stratum_verdicts) verdicts[verdict_name(verdict)] = count;
  Json json = place_json(f, c.phase, c.stratum);
  json.update({{"arm", c.arm},
               {"baseline", c.baseline},
               {"strata", c.strata},
               {"n_arm", c.n_arm},
               {"n_baseline", c.n_baseline},
               {"verdict", c.lost_strata > 0 ? Json(nullptr) : Json(verdict_name(c.verdict))},
               {"widening", c.widening.error},
               {"ratio", c.ratio},
               {"ratio_interval", interval_json(c.ratio_interval)},
               {"median_ratio", optional_json(c.median_ratio)},
               {"difference_ms", optional_json(c.difference_ms)},
               {"difference_interval_ms", interval_json(c.difference_interval_ms)},
               {"test", test_json(c.test, c.p_holm)},
               {"equivalence", test_json(c.tost, c.tost_p_holm)},
               {"cohen_d", optional_json(c.cohen_d)},
               {"hedges_g", optional_json(c.hedges_g)},
               {"mann_whitney", rank_json(c.rank)},
               {"minimum_detectable_share", optional_json(c.minimum_detectable)}});
  if (!c.stratum) {
    json["lost_strata"] = c.lost_strata;
    json["stratum_verdicts"] = std::move(verdicts);
  }
  return json;
}

Json not_comparable_json(const Findings& f, const NotComparable& n) {
  Json json = place_json(f, std::nullopt, n.stratum);
  json.update({{"arm", n.arm}, {"reasons", n.reasons}});
  return json;
}

Json finding_json(const Findings& f, const Finding& finding) {
  Json json = {{"kind", finding.kind},
               {"severity", finding.severity == Severity::kWarning ? "warning" : "note"}};
  json.update(place_json(f, finding.phase, finding.stratum));
  json.update({{"arm", finding.arm.empty() ? Json(nullptr) : Json(finding.arm)},
               {"text", finding.text},
               {"rows", Json::array()}});
  for (const auto& [cell, repetitions] : finding.rows) {
    json["rows"].push_back({{"cell_id", cell}, {"repetitions", repetitions}});
  }
  return json;
}

Json tail_json(const Findings& f, const Tail& t) {
  Json json = place_json(f, std::nullopt, t.stratum);
  json.update({{"arm", t.arm},
               {"execution", execution_name(t.execution)},
               {"n", t.n},
               {"p50_ms", t.p50},
               {"high_ms", t.high},
               {"high_is", t.high_is_max ? "max" : "p99"},
               {"slow", t.slow},
               {"slow_recompiled", t.slow_recompiled},
               {"recompiled", t.recompiled},
               {"ran_eager", t.ran_eager},
               {"fence_ms", optional_json(t.fence)},
               {"beyond_fence", t.beyond_fence},
               {"beyond_fence_recompiled", t.beyond_fence_recompiled},
               {"high_without_recompiled_ms", optional_json(t.high_without)},
               {"p50_ratio", optional_json(t.p50_ratio)},
               {"p50_ratio_interval", interval_json(t.ratio_interval)}});
  return json;
}

Json cost_json(const Findings& f, const CompileCost& cost) {
  Json json = place_json(f, std::nullopt, cost.stratum);
  json.update(compile_cost_json(cost));
  return json;
}

Json read_json(const Findings& f, const ReadShare& share) {
  Json json = place_json(f, std::nullopt, share.stratum);
  json.update(read_share_json(share));
  return json;
}

Json profile_json(const Findings& f, const CellProfile& profile) {
  Json json = place_json(f, std::nullopt, profile.stratum);
  json.update(cell_profile_json(profile));
  return json;
}

Json rival_json(const Rival& rival) {
  return {{"arm", rival.arm},
          {"ratio", rival.ratio},
          {"ratio_interval", interval_json(rival.ratio_interval)},
          {"minimum_detectable_share", optional_json(rival.minimum_detectable)}};
}

Json decision_json(const Findings& f, const Decision& d) {
  Json left_out = Json::array();
  for (const LeftOut& l : d.left_out) left_out.push_back({{"arm", l.arm}, {"reason", l.reason}});
  Json alternatives = Json::array();
  for (const Alternative& a : d.alternatives) {
    alternatives.push_back({{"by", a.figure},
                            {"arm", a.arm},
                            {"ratio", a.ratio},
                            {"ratio_interval", interval_json(a.interval)}});
  }
  Json tied = Json::array();
  for (const Rival& rival : d.tied) tied.push_back(rival_json(rival));
  Json json = place_json(f, std::nullopt, d.stratum);
  json.update({{"decision", decision_name(d.kind)},
               {"arm", d.arm.empty() ? Json(nullptr) : Json(d.arm)},
               {"void_because", d.void_because.empty() ? Json(nullptr) : Json(d.void_because)},
               {"tied", std::move(tied)},
               {"runner_up", d.runner_up ? rival_json(*d.runner_up) : Json(nullptr)},
               {"alternatives", std::move(alternatives)},
               {"left_out", std::move(left_out)}});
  return json;
}

template <typename T, typename Member>
Json list(const Findings& f, const std::vector<T>& items, const Member& member) {
  Json array = Json::array();
  for (const T& item : items) array.push_back(member(f, item));
  return array;
}

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  constexpr std::array<std::string_view, 4> kNames = {"faster", "slower", "equivalent",
                                                      "inconclusive"};
  return kNames[static_cast<size_t>(verdict)];
}

std::string_view decision_name(Decision::Kind kind) {
  constexpr std::array<std::string_view, 6> kNames = {"best",     "no_difference", "undecided",
                                                      "only_one", "none",          "void"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view execution_name(Execution execution) {
  constexpr std::array<std::string_view, 7> kNames = {
      "eager", "compiled", "partly eager", "fell back", "another mode", "label-only", "unproven"};
  return kNames[static_cast<size_t>(execution)];
}

Json findings_to_json(const Findings& f) {
  Json identity = Json::object();
  for (const auto& [key, value] : f.identity) identity[key] = value;
  Json families = Json::array();
  for (const TestFamily& family : f.families) families.push_back(family_json(family));
  return {{"schema_version", kFindingsSchemaVersion},
          {"identity", std::move(identity)},
          {"study", study_json(f.study)},
          {"sittings", sittings_json(f.sittings)},
          {"options", options_json(f.options)},
          {"requirements", f.requirements ? requirements_json(*f.requirements) : Json(nullptr)},
          {"families", std::move(families)},
          {"outcomes", list(f, f.outcomes, outcome_json)},
          {"latencies", list(f, f.latencies, latency_json)},
          {"tails", list(f, f.tails, tail_json)},
          {"compile_costs", list(f, f.compile_costs, cost_json)},
          {"read_shares", list(f, f.read_shares, read_json)},
          {"profiles", list(f, f.profiles, profile_json)},
          {"contrasts", list(f, f.contrasts, contrast_json)},
          {"combined", list(f, f.combined, contrast_json)},
          {"not_comparable", list(f, f.not_comparable, not_comparable_json)},
          {"findings", list(f, f.named, finding_json)},
          {"decisions", list(f, f.decisions, decision_json)},
          {"phase_splits", list(f, f.splits, split_json)},
          {"model_sizes", list(f, f.sizes, size_json)}};
}

Status write_findings(const Findings& findings, const std::filesystem::path& folder) {
  ASSAY_TRY(Folder bundle, Folder::open(folder));
  ASSAY_CHECK(bundle.make_folder("analysis"));
  return bundle.write_atomic("analysis/findings.json", to_json_text(findings_to_json(findings)));
}

}  // namespace assay
