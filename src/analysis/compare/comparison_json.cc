// A comparison as JSON. Absent values are null.
#include "analysis/compare/compare.h"
#include "analysis/findings/record_entries.h"

namespace assay {
namespace {

// Word for the cell's independent unit.
std::string_view unit_of_cell(const ComparedCell& cell, const Comparison& in) {
  if (!cell.verdict) return "nothing";
  if (in.in_one_run) return cell.by_processes ? "pairs of processes" : "pairs of rows";
  if (in.base_runs + in.cand_runs > 2) return "runs";
  return cell.by_processes ? "processes" : "rows";
}

}  // namespace

template <>
struct Record<MachineLoad> {
  using T = MachineLoad;
  static constexpr auto kMembers =
      std::tuple(field("usable_cpus", &T::cpus), field("load_at_start", &T::start_load),
                 field("mean_load", &T::mean_load), field("worst_load", &T::worst_load),
                 field("steal_since_boot", &T::boot_steal), field("mean_steal", &T::mean_steal),
                 field("worst_steal", &T::worst_steal));
};
template <>
struct Record<TestFamily> {
  using T = TestFamily;
  static constexpr auto kMembers =
      std::tuple(field("name", &T::name), constant("method", "holm"), field("alpha", &T::alpha),
                 field("members", &T::members));
};
template <>
struct Record<CompareOptions> {
  using T = CompareOptions;
  static constexpr auto kMembers = std::tuple(
      field("margin", &T::margin), field("alpha", &T::alpha), constant("confidence", kConfidence),
      field("power", &T::power), field("minimum_rows", &T::minimum_rows),
      field("allow_single_process", &T::allow_single_process),
      field("machine_off", &T::machine_off));
};
template <>
struct Record<ComparedSide> {
  using T = ComparedSide;
  static constexpr auto kEffective = [](const std::optional<SeriesMean>& series) {
    return series ? std::optional(series->n_effective) : std::nullopt;
  };
  static constexpr auto kDrift = [](const T& of) { return of.series.and_then(&SeriesMean::drift); };
  static constexpr auto kMembers = std::tuple(
      field("mean_ms", &T::mean_ms), field("noise", &T::noise), field("processes", &T::processes),
      field("process_noise", &T::process_noise), field_as("n_effective", &T::series, kEffective),
      derived("drift_ms", kDrift), unwritten(&T::figures, &T::freedom));
};
template <>
struct Record<MachineShare> {
  using T = MachineShare;
  static constexpr auto kLookups = [](const T& of) { return of.yardsticks[0]; };
  static constexpr auto kMultiplies = [](const T& of) { return of.yardsticks[1]; };
  static constexpr auto kMembers =
      std::tuple(field("ratio", &T::ratio), derived("lookups_ratio", kLookups),
                 derived("multiplies_ratio", kMultiplies), field("explained", &T::explained),
                 unwritten(&T::yardsticks, &T::error, &T::widening));
};
template <>
struct Record<TypicalCall> {
  using T = TypicalCall;
  static constexpr auto kMembers =
      std::tuple(field("ratio", &T::ratio), field("machine", &T::machine),
                 field("ratio_interval", &T::ratio_interval), field("ratio_range", &T::ratio_range),
                 findings_record::AdjustedTest<T>{"test", &T::test, &T::p_holm},
                 findings_record::AdjustedTest<T>{"regression_test", &T::regression_test,
                                                  &T::regression_p_holm},
                 field("regression", &T::regression));
};
template <>
struct Record<ComparedCell> {
  using T = ComparedCell;
  static constexpr auto kStatus = [](const std::optional<Verdict>& verdict) {
    return verdict ? verdict_name(*verdict) : "not_decided";
  };
  static constexpr auto kMembers = std::tuple(
      findings_record::PlaceOrPhase<T>{}, field("arm", &T::arm), field("strata", &T::strata),
      field("n_ref", &T::n_base), field("n_cmp", &T::n_cand), derived("judged_by", unit_of_cell),
      field("ref", &T::base), field("cmp", &T::cand), field("difference_ms", &T::difference_ms),
      field("ratio", &T::ratio), field("machine", &T::machine),
      field("ratio_interval", &T::ratio_interval), field("ratio_range", &T::ratio_range),
      field("lost_factor", &T::lost_factor),
      findings_record::AdjustedTest<T>{"test", &T::test, &T::p_holm},
      findings_record::AdjustedTest<T>{"regression_test", &T::regression_test,
                                       &T::regression_p_holm},
      findings_record::AdjustedTest<T>{"equivalence", &T::tost, &T::tost_p_holm},
      field("between_runs", &T::between_runs),
      field("minimum_detectable_share", &T::minimum_detectable),
      field_as("status", &T::verdict, kStatus), field("typical_call", &T::typical),
      derived("regression", &T::alarm),
      unwritten(&T::by_processes, &T::error, &T::too_few, &T::alarm_error, &T::regression));
};
template <>
struct Record<ComparedCrashes> {
  using T = ComparedCrashes;
  static constexpr auto kUnit = [](bool processes) { return processes ? "processes" : "rows"; };
  static constexpr auto kBase = [](const T& of) -> const Losses& { return of.base; };
  static constexpr auto kCand = [](const T& of) -> const Losses& { return of.cand; };
  static constexpr auto kCount = [](const Losses& of) { return of.processes.size(); };
  static constexpr auto kMembers = std::tuple(
      findings_record::PlaceOrPhase<T>{}, field("arm", &T::arm),
      part(&T::base, field("ref_lost", &Losses::lost), field("ref_attempted", &Losses::attempted)),
      field("ref_rate_interval", &T::base_interval),
      nested("ref_processes",
             part(kBase, derived("processes", kCount), field("died", &Losses::died))),
      part(&T::cand, field("cmp_lost", &Losses::lost), field("cmp_attempted", &Losses::attempted)),
      field("cmp_rate_interval", &T::cand_interval),
      nested("cmp_processes",
             part(kCand, derived("processes", kCount), field("died", &Losses::died))),
      field_as("judged_by", &T::by_processes, kUnit), field("p", &T::p),
      field("p_holm", &T::p_holm), field("rise", &T::rise));
};
template <>
struct Record<CellReason> {
  using T = CellReason;
  static constexpr auto kMembers =
      std::tuple(findings_record::Place<T>{}, field("arm", &T::arm), field("reason", &T::reason));
};
template <>
struct Record<Comparison> {
  using T = Comparison;
  static constexpr auto kFailures = [](const T& of) { return of.failures(true); };
  static constexpr auto kMembers =
      std::tuple(constant("schema_version", kComparisonSchemaVersion), field("ref", &T::base_name),
                 field("cmp", &T::cand_name),
                 nested("machines", field("ref", &T::base_load), field("cmp", &T::cand_load),
                        field("differences", &T::load_differences)),
                 field("between_cells", &T::between_cells),
                 nested("runs", field("ref", &T::base_runs), field("cmp", &T::cand_runs)),
                 field("in_one_run", &T::in_one_run), field("history_runs", &T::history_runs),
                 text_or_null("caveat", &T::caveat), field("options", &T::options),
                 list_of("varied", &T::varied, field("axis", &AxisDifference::axis),
                         field("about", &AxisDifference::about),
                         field("ref", &AxisDifference::base), field("cmp", &AxisDifference::cand)),
                 field("families", &T::families), field("crashes", &T::crashes),
                 field("combined", &T::combined), field("cells", &T::cells),
                 field("not_comparable", &T::not_comparable), field("missing", &T::missing),
                 field("lost", &T::lost), field("added", &T::added),
                 field("output_broken", &T::broken), field("notes", &T::notes),
                 derived("failures", kFailures), unwritten(&T::unstated, &T::strata));
};

Json comparison_to_json(const Comparison& c) {
  return record_to_json(c, c);
}

}  // namespace assay
