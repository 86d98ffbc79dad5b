// A comparison as JSON. Absent values are null.
#include "analysis/compare/compare.h"
#include "analysis/findings/json_parts.h"

namespace assay {
namespace {

Json place_json(const Comparison& c, Phase phase, std::optional<size_t> stratum,
                const std::string& arm) {
  if (!stratum) return {{"phase", phase_name(phase)}, {"arm", arm}};
  Json json = stratum_json(c.strata[*stratum]);
  json["arm"] = arm;
  return json;
}

Json side_json(const std::optional<ComparedSide>& s) {
  if (!s) return nullptr;
  return {{"mean_ms", s->mean_ms},
          {"noise", optional_json(s->noise)},
          {"processes", s->processes},
          {"process_noise", optional_json(s->process_noise)},
          {"n_effective", s->series ? Json(s->series->n_effective) : Json(nullptr)},
          {"drift_ms", s->series ? optional_json(s->series->drift) : Json(nullptr)}};
}

Json machine_json(const std::optional<MachineShare>& machine) {
  if (!machine) return nullptr;
  return {{"ratio", machine->ratio},
          {"lookups_ratio", machine->yardsticks[0]},
          {"multiplies_ratio", machine->yardsticks[1]},
          {"explained", machine->explained}};
}

Json typical_json(const std::optional<TypicalCall>& typical) {
  if (!typical) return nullptr;
  return {{"ratio", typical->ratio},
          {"machine", machine_json(typical->machine)},
          {"ratio_interval", interval_json(typical->ratio_interval)},
          {"ratio_range", interval_json(typical->ratio_range)},
          {"test", test_json(typical->test, typical->p_holm)},
          {"regression_test", test_json(typical->regression_test, typical->regression_p_holm)},
          {"regression", typical->regression}};
}

// Word for the cell's independent unit.
std::string_view contrast_unit_name(const Comparison& c, const ComparedCell& cell) {
  if (!cell.verdict) return "nothing";
  if (c.in_one_run) return cell.by_processes ? "pairs of processes" : "pairs of rows";
  if (c.base_runs + c.cand_runs > 2) return "runs";
  return cell.by_processes ? "processes" : "rows";
}

Json cell_json(const Comparison& c, const ComparedCell& cell) {
  Json json = place_json(c, cell.phase, cell.stratum, cell.arm);
  json.update({{"strata", cell.strata},
               {"n_ref", cell.n_base},
               {"n_cmp", cell.n_cand},
               {"judged_by", contrast_unit_name(c, cell)},
               {"ref", side_json(cell.base)},
               {"cmp", side_json(cell.cand)},
               {"difference_ms", optional_json(cell.difference_ms)},
               {"ratio", cell.ratio},
               {"machine", machine_json(cell.machine)},
               {"ratio_interval", interval_json(cell.ratio_interval)},
               {"ratio_range", interval_json(cell.ratio_range)},
               {"lost_factor", interval_json(cell.lost_factor)},
               {"test", test_json(cell.test, cell.p_holm)},
               {"regression_test", test_json(cell.regression_test, cell.regression_p_holm)},
               {"equivalence", test_json(cell.tost, cell.tost_p_holm)},
               {"between_runs", optional_json(cell.between_runs)},
               {"minimum_detectable_share", optional_json(cell.minimum_detectable)},
               {"status", cell.verdict ? verdict_name(*cell.verdict) : "not_decided"},
               {"typical_call", typical_json(cell.typical)},
               {"regression", cell.alarm()}});
  return json;
}

Json crashes_json(const Comparison& c, const ComparedCrashes& x) {
  Json json = place_json(c, x.phase, x.stratum, x.arm);
  const auto died = [](const Losses& of) {
    return Json{{"processes", of.processes.size()}, {"died", of.died}};
  };
  json.update({{"ref_lost", x.base.lost},
               {"ref_attempted", x.base.attempted},
               {"ref_rate_interval", interval_json(x.base_interval)},
               {"ref_processes", died(x.base)},
               {"cmp_lost", x.cand.lost},
               {"cmp_attempted", x.cand.attempted},
               {"cmp_rate_interval", interval_json(x.cand_interval)},
               {"cmp_processes", died(x.cand)},
               {"judged_by", x.by_processes ? "processes" : "rows"},
               {"p", optional_json(x.p)},
               {"p_holm", optional_json(x.p_holm)},
               {"rise", x.rise}});
  return json;
}

Json reason_json(const Comparison& c, const CellReason& r) {
  Json json = place_json(c, {}, r.stratum, r.arm);
  json["reason"] = r.reason;
  return json;
}

template <typename T, typename Member>
Json list(const Comparison& c, const std::vector<T>& items, const Member& member) {
  Json array = Json::array();
  for (const T& item : items) array.push_back(member(c, item));
  return array;
}

Json options_json(const CompareOptions& o) {
  return {{"margin", o.margin},
          {"alpha", o.alpha},
          {"confidence", kConfidence},
          {"power", o.power},
          {"minimum_rows", o.minimum_rows},
          {"allow_single_process", o.allow_single_process},
          {"machine_off", o.machine_off}};
}

}  // namespace

Json comparison_to_json(const Comparison& c) {
  Json varied = Json::array();
  for (const AxisDifference& d : c.varied) {
    varied.push_back({{"axis", d.axis}, {"about", d.about}, {"ref", d.base}, {"cmp", d.cand}});
  }
  Json families = Json::array();
  for (const TestFamily& f : c.families) families.push_back(family_json(f));
  return {{"schema_version", kComparisonSchemaVersion},
          {"ref", c.base_name},
          {"cmp", c.cand_name},
          {"machines",
           {{"ref", load_json(c.base_load)},
            {"cmp", load_json(c.cand_load)},
            {"differences", c.load_differences}}},
          {"between_cells", optional_json(c.between_cells)},
          {"runs", {{"ref", c.base_runs}, {"cmp", c.cand_runs}}},
          {"in_one_run", c.in_one_run},
          {"history_runs", c.history_runs},
          {"caveat", c.caveat.empty() ? Json() : Json(c.caveat)},
          {"options", options_json(c.options)},
          {"varied", std::move(varied)},
          {"families", std::move(families)},
          {"crashes", list(c, c.crashes, crashes_json)},
          {"combined", list(c, c.combined, cell_json)},
          {"cells", list(c, c.cells, cell_json)},
          {"not_comparable", list(c, c.not_comparable, reason_json)},
          {"missing", list(c, c.missing, reason_json)},
          {"lost", list(c, c.lost, reason_json)},
          {"added", list(c, c.added, reason_json)},
          {"output_broken", list(c, c.broken, reason_json)},
          {"notes", list(c, c.notes, reason_json)},
          {"failures", c.failures(true)}};
}

}  // namespace assay
