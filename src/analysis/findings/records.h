// The members of findings.json, each named once for writing and reading; private to
// findings_json.cc. A member that a type of the findings has and its record lacks doesn't compile.
#pragma once

#include "analysis/findings/record_entries.h"
#include "artifact/quality_record.h"

namespace assay {

template <>
struct Record<Reach> {
  using T = Reach;
  static constexpr bool kIsArray = true;
  static constexpr auto kMembers = std::tuple(field("low", &T::low), field("high", &T::high));
};
template <>
struct Record<stats::Widening> {
  using T = stats::Widening;
  static constexpr auto kMembers = std::tuple(field("error", &T::error), field("df", &T::df),
                                              field("log_variance", &T::log_variance));
};
template <>
struct Record<stats::AnovaTerm> {
  using T = stats::AnovaTerm;
  static constexpr auto kMembers = std::tuple(
      field("sum_of_squares", &T::sum_of_squares), field("df", &T::df), field("f", &T::f),
      field("p", &T::p), field("ln_p", &T::log_p), field("eta_squared", &T::eta_squared),
      field("partial_eta_squared", &T::partial_eta_squared));
};
template <>
struct Record<stats::TwoWayAnova> {
  using T = stats::TwoWayAnova;
  static constexpr auto kMembers =
      std::tuple(field("arm", &T::a), field("model", &T::b), field("interaction", &T::interaction),
                 field("residual_sum_of_squares", &T::residual_sum_of_squares),
                 field("residual_df", &T::residual_df),
                 field("total_sum_of_squares", &T::total_sum_of_squares));
};

template <>
struct Record<AnalysisOptions> {
  using T = AnalysisOptions;
  static constexpr auto kMembers = std::tuple(
      field("margin", &T::margin), field("margin_asked", &T::margin_asked),
      field("alpha", &T::alpha), constant("confidence", kConfidence), field("power", &T::power),
      field("resamples", &T::resamples), field("seed", &T::seed),
      field("minimum_rows", &T::minimum_rows), field("cold_factor", &T::cold_factor),
      field("notable", &T::notable), field("allow_single_process", &T::allow_single_process));
};
template <>
struct Record<StudySummary> {
  using T = StudySummary;
  static constexpr auto kMembers = std::tuple(
      field("name", &T::name), field("baseline", &T::baseline), field("arms", &T::arms),
      text_or_null("order", &T::order), field("seed", &T::seed), field("warmup", &T::warmup),
      field("repetitions", &T::repetitions), text_or_null("started_at", &T::started_at),
      field("complete", &T::complete), field("rows", &T::rows));
};
template <>
struct Record<EnvironmentDifference> {
  using T = EnvironmentDifference;
  static constexpr auto kMembers = std::tuple(
      field("field", &T::field), text_or_null("first", &T::before), text_or_null("here", &T::now));
};
template <>
struct Record<SittingSummary> {
  using T = SittingSummary;
  static constexpr auto kMembers =
      std::tuple(text_or_null("started_at", &T::started_at), field("first_row", &T::first_row),
                 field("rows", &T::rows), field("differs_from_first", &T::differs));
};
template <>
struct Record<Criterion> {
  using T = Criterion;
  static constexpr auto kMembers =
      std::tuple(field("name", &T::name), field("expected", &T::expected),
                 field("status", &T::status), field("reason", &T::reason));
};
template <>
struct Record<Requirements> {
  using T = Requirements;
  static constexpr auto kMembers =
      std::tuple(field("verdict", &T::verdict), field("criteria", &T::criteria));
};

template <>
struct Record<OutcomeCounts> {
  using T = OutcomeCounts;
  static constexpr auto kMembers = std::tuple(
      findings_record::PlaceOrPhase<T>{}, field("arm", &T::arm), field("attempted", &T::attempted),
      field("failed", &T::failed), field("failed_rate_interval", &T::failed_interval),
      field("processes", &T::processes), field("processes_died", &T::died),
      field("died_rate_interval", &T::died_interval), field("by_status", &T::by_status),
      field("by_error_class", &T::by_error_class));
};
template <>
struct Record<Latency> {
  using T = Latency;
  static constexpr auto kMembers = std::tuple(
      findings_record::Place<T>{}, field("arm", &T::arm), field("parity_failed", &T::parity_failed),
      field("n", &T::n), field("mean_ms", &T::mean), field("mean_interval_ms", &T::mean_interval),
      field("mean_process_range_ms", &T::mean_process_range), field("median_ms", &T::median),
      field("sd_ms", &T::sd), field("min_ms", &T::min), field("p90_ms", &T::p90),
      field("p95_ms", &T::p95), field("p99_ms", &T::p99), field("max_ms", &T::max),
      field("tokens_per_s", &T::tokens_per_s), field("joules_per_token", &T::joules_per_token),
      field("joules_per_token_interval", &T::joules_interval), field("energy_n", &T::energy_n),
      field("cold_n", &T::cold_n), field("cold_median_ms", &T::cold_median),
      field("cold_max_ms", &T::cold_max), field("mean_with_cold_ms", &T::mean_with_cold),
      field("n_effective", &T::n_effective), field("widening", &T::widening),
      field("processes", &T::processes), field("intraclass_correlation", &T::intraclass),
      field("processes_p_holm", &T::processes_p_holm));
};
template <>
struct Record<Tail> {
  using T = Tail;
  static constexpr auto kMembers =
      std::tuple(findings_record::Place<T>{}, field("arm", &T::arm),
                 field("execution", &T::execution), field("n", &T::n), field("p50_ms", &T::p50),
                 field("high_ms", &T::high), findings_record::HighIs<T>{}, field("slow", &T::slow),
                 field("slow_recompiled", &T::slow_recompiled), field("recompiled", &T::recompiled),
                 field("ran_eager", &T::ran_eager), field("fence_ms", &T::fence),
                 field("beyond_fence", &T::beyond_fence),
                 field("beyond_fence_recompiled", &T::beyond_fence_recompiled),
                 field("high_without_recompiled_ms", &T::high_without),
                 field("p50_ratio", &T::p50_ratio), field("p50_ratio_interval", &T::ratio_interval),
                 field("p50_ratio_process_range", &T::ratio_process_range));
};
template <>
struct Record<SlowCause> {
  using T = SlowCause;
  static constexpr auto kMembers =
      std::tuple(field("kind", &T::kind), field("slow", &T::slow), field("others", &T::others));
};
template <>
struct Record<ArmSlowCalls> {
  using T = ArmSlowCalls;
  static constexpr auto kMembers =
      std::tuple(findings_record::Place<T>{}, field("arm", &T::arm), field("n", &T::n),
                 field("p50_ms", &T::p50), field("high_ms", &T::high), findings_record::HighIs<T>{},
                 field("limit_ms", &T::limit), field("slow", &T::slow), field("causes", &T::causes),
                 field("high_without_ms", &T::high_without));
};
template <>
struct Record<CompileCost> {
  using T = CompileCost;
  static constexpr auto kMembers = std::tuple(
      findings_record::Place<T>{}, field("arm", &T::arm), field("compiler_real", &T::compiler_real),
      field("prepare_s", &T::prepare_s), field("first_loaded", &T::first_loaded),
      field("later_prepare_s", &T::later_prepare_s), field("later_processes", &T::later_processes),
      field("compile_s", &T::compile_s), field("parity_compile_s", &T::parity_compile_s),
      field("counters", &T::counts), text_or_null("problem", &T::problem));
};
template <>
struct Record<ReadShare> {
  using T = ReadShare;
  static constexpr auto kMembers = std::tuple(
      findings_record::Place<T>{}, field("arm", &T::arm), field("bytes_per_s", &T::bytes_per_s),
      field("limit_bytes_per_s", &T::limit_bytes_per_s), derived("share", &T::share),
      field("operations_per_s", &T::operations_per_s),
      field("limit_operations_per_s", &T::limit_operations_per_s));
};
template <>
struct Record<ArmQuality> {
  using T = ArmQuality;
  static constexpr auto kMembers = std::tuple(field("model", &T::model), field("arm", &T::arm),
                                              field("beside_model", &T::beside_model));
};
template <>
struct Record<ProfiledOperation> {
  using T = ProfiledOperation;
  static constexpr auto kMembers = std::tuple(field("name", &T::name), field("calls", &T::calls),
                                              field("total_ns", &T::total_ns));
};
template <>
struct Record<CellProfile> {
  using T = CellProfile;
  static constexpr auto kMembers = std::tuple(
      findings_record::Place<T>{}, field("arm", &T::arm), text_or_null("missing", &T::missing),
      text_or_null("device", &T::device), text_or_null("counts", &T::counts),
      field("wall_ns", &T::wall_ns), field("kernels_launched", &T::kernels),
      field("distinct_kernels", &T::distinct_kernels), field("launch_calls", &T::launch_calls),
      field("gpu_busy_ns", &T::gpu_busy_ns), field("gpu_gap_ns", &T::gpu_gap_ns),
      field("copies", &T::copies), field("synchronizations", &T::synchronizations),
      field("top", &T::top));
};
template <>
struct Record<SpreadRatio> {
  using T = SpreadRatio;
  static constexpr auto kMembers =
      std::tuple(field("ratio", &T::ratio), field("ratio_interval", &T::interval),
                 field("ratio_process_range", &T::process_range));
};
template <>
struct Record<TypicalChoice> {
  using T = TypicalChoice;
  static constexpr auto kMembers =
      std::tuple(field("arm", &T::arm), field("rival", &T::rival), field("ratio", &T::ratio),
                 text_or_null("slow_arm", &T::slow_arm), field("slow", &T::slow));
};
template <>
struct Record<StratumBlocks> {
  using T = StratumBlocks;
  static constexpr auto kMembers = std::tuple(
      findings_record::Place<T>{}, derived("paired", &T::paired), field("why", &T::state),
      field("blocks", &T::blocks), field("whole_blocks", &T::whole));
};
template <>
struct Record<Contrast> {
  using T = Contrast;
  static constexpr auto kMembers = std::tuple(
      findings_record::PlaceOrPhase<T>{}, field("arm", &T::arm), field("baseline", &T::baseline),
      field("strata", &T::strata), field("n_arm", &T::n_arm), field("n_baseline", &T::n_baseline),
      field("unit", &T::unit), field("paired", &T::paired), field("units_arm", &T::units_arm),
      field("units_baseline", &T::units_baseline), field("left_out", &T::left_out),
      field("any_look", &T::any_look), field("one_process", &T::one_process),
      field("shared_df", &T::shared_df), findings_record::ContrastVerdict{},
      field("widening", &T::widening), field("ratio", &T::ratio),
      field("ratio_interval", &T::ratio_interval),
      field("ratio_process_range", &T::ratio_process_range),
      field("unseen_slow_factor", &T::unseen_slow_factor), text_or_null("slow_arm", &T::slow_arm),
      field("median_ratio", &T::median_ratio), field("typical", &T::typical),
      field("difference_ms", &T::difference_ms),
      field("difference_interval_ms", &T::difference_interval_ms),
      field("difference_process_range_ms", &T::difference_process_range_ms),
      findings_record::AdjustedTest<T>{"test", &T::test, &T::p_holm},
      findings_record::AdjustedTest<T>{"equivalence", &T::tost, &T::tost_p_holm},
      field("cohen_d", &T::cohen_d), field("hedges_g", &T::hedges_g),
      field("mann_whitney_u", &T::mann_whitney_u), field("vargha_delaney_a", &T::vargha_delaney_a),
      field("minimum_detectable_share", &T::minimum_detectable), findings_record::Combined{});
};
template <>
struct Record<NotComparable> {
  using T = NotComparable;
  static constexpr auto kMembers =
      std::tuple(findings_record::Place<T>{}, field("arm", &T::arm), field("reasons", &T::reasons));
};
template <>
struct Record<Finding> {
  using T = Finding;
  static constexpr auto kMembers =
      std::tuple(field("kind", &T::kind), field("severity", &T::severity),
                 findings_record::PlaceOrPhase<T>{}, text_or_null("arm", &T::arm),
                 field("text", &T::text), field("size", &T::size), findings_record::FindingRows{});
};
template <>
struct Record<Rival> {
  using T = Rival;
  static constexpr auto kMembers = std::tuple(
      field("arm", &T::arm), field("ratio", &T::ratio), field("ratio_interval", &T::ratio_interval),
      field("ratio_process_range", &T::ratio_process_range),
      field("minimum_detectable_share", &T::minimum_detectable));
};
template <>
struct Record<Alternative> {
  using T = Alternative;
  static constexpr auto kMembers =
      std::tuple(field("by", &T::figure), field("arm", &T::arm), field("ratio", &T::ratio),
                 field("ratio_interval", &T::interval));
};
template <>
struct Record<LeftOut> {
  using T = LeftOut;
  static constexpr auto kMembers = std::tuple(field("arm", &T::arm), field("reason", &T::reason));
};
template <>
struct Record<Decision> {
  using T = Decision;
  static constexpr auto kMembers = std::tuple(
      findings_record::Place<T>{}, field("decision", &T::kind), text_or_null("arm", &T::arm),
      text_or_null("void_because", &T::void_because), field("typical", &T::typical),
      field("tied", &T::tied), field("ahead", &T::ahead), field("runner_up", &T::runner_up),
      field("alternatives", &T::alternatives), field("left_out", &T::left_out));
};
template <>
struct Record<SplitAt> {
  using T = SplitAt;
  static constexpr auto kMembers =
      std::tuple(field("new_tokens", &T::new_tokens), field("extrapolated", &T::extrapolated),
                 field("prefill_share", &T::prefill_share), field("ratio", &T::ratio),
                 field("ratio_interval", &T::ratio_interval));
};
template <>
struct Record<PhaseSplit> {
  using T = PhaseSplit;
  static constexpr auto kMembers = std::tuple(
      field("model", &T::model), field("scenario", &T::scenario), field("batch", &T::batch),
      field("arm", &T::arm), findings_record::PrefillStratum{},
      field("prefill_gain_ms", &T::gain_ms), field("prefill_gain_interval_ms", &T::gain_interval),
      field("prefill_gain_process_range_ms", &T::gain_process_range),
      field("by_new_tokens", &T::at), field("stops_mattering_at_tokens", &T::stops_mattering),
      field("stops_mattering_interval", &T::stops_interval),
      field("breaks_even_at_tokens", &T::breaks_even),
      field("breaks_even_interval", &T::even_interval));
};
template <>
struct Record<SizeRatio> {
  using T = SizeRatio;
  static constexpr auto kMembers = std::tuple(
      field("model", &T::model), field("size", &T::size), field("ratio", &T::ratio),
      field("ratio_interval", &T::interval), field("ratio_process_range", &T::process_range));
};
template <>
struct Record<SizeCrossover> {
  using T = SizeCrossover;
  static constexpr auto kMembers =
      std::tuple(field("arm", &T::arm), field("ratios", &T::ratios),
                 field("crossover_size", &T::crossover), field("crossover_interval", &T::interval));
};
template <>
struct Record<SizeAnalysis> {
  using T = SizeAnalysis;
  static constexpr auto kMembers = std::tuple(
      field("phase", &T::phase), field("scenario", &T::scenario),
      field("new_tokens", &T::new_tokens), field("batch", &T::batch), field("arms", &T::arms),
      field("models", &T::models), field("anova_type_ii", &T::type2),
      field("interaction_p_holm", &T::interaction_p_holm), field("crossovers", &T::crossovers));
};
template <>
struct Record<OverRuns> {
  using T = OverRuns;
  static constexpr auto kMembers =
      std::tuple(field("mean", &T::mean), field("interval", &T::interval),
                 field("least", &T::least), field("most", &T::most));
};
template <>
struct Record<LatencyOverRuns> {
  using T = LatencyOverRuns;
  static constexpr auto kMembers = std::tuple(field("mean", &T::mean), field("p50", &T::p50),
                                              field("p95", &T::p95), field("p99", &T::p99));
};
template <>
struct Record<LoadFigures> {
  using T = LoadFigures;
  static constexpr auto kMembers = std::tuple(
      findings_record::Place<T>{}, field("arm", &T::arm), field("point", &T::point),
      field("runs", &T::runs), field("lost_runs", &T::lost_runs), field("window_s", &T::window_s),
      field("requests", &T::requests), field("failed", &T::failed),
      field("offered_per_s", &T::offered_per_s), field("requests_per_s", &T::requests_per_s),
      field("tokens_per_s", &T::tokens_per_s), field("latency_ms", &T::latency_ms),
      field("ttft_ms", &T::ttft_ms), field("tpot_ms", &T::tpot_ms), field("itl_ms", &T::itl_ms),
      field("within_bounds", &T::within_bounds), field("good_per_s", &T::good_per_s),
      field("kept", &T::kept), field_if_known("cached", &T::cached),
      field("in_flight", &T::in_flight), field("most_in_flight", &T::most_in_flight),
      field("late_p99_ms", &T::late_p99_ms), field("growing_runs", &T::growing_runs));
};
template <>
struct Record<LostLoadPoint> {
  using T = LostLoadPoint;
  static constexpr auto kMembers =
      std::tuple(findings_record::Place<T>{}, field("arm", &T::arm), field("runs", &T::runs));
};
template <>
struct Record<LoadSummary> {
  using T = LoadSummary;
  static constexpr auto kMembers = std::tuple(field("slo", &T::slo), field("points", &T::points),
                                              field_if_known("lost", &T::lost));
};
template <>
struct Record<Findings> {
  using T = Findings;
  static constexpr auto kMembers = std::tuple(
      findings_record::IdentityMember{}, field("study", &T::study), field("sittings", &T::sittings),
      field("options", &T::options), field("requirements", &T::requirements),
      findings_record::StrataWithPrompts{}, field("outcomes", &T::outcomes),
      field("latencies", &T::latencies), field("tails", &T::tails),
      field("slow_calls", &T::slow_calls), field("compile_costs", &T::compile_costs),
      field("read_shares", &T::read_shares), field_if_known("qualities", &T::qualities),
      field("load", &T::load), field("profiles", &T::profiles), field("pairing", &T::blocks),
      field("contrasts", &T::contrasts), field("combined", &T::combined),
      field("not_comparable", &T::not_comparable), field("findings", &T::named),
      field("decisions", &T::decisions), field("phase_splits", &T::splits),
      text_or_null("model_size_unit", &T::size_unit), field("model_sizes", &T::sizes));
};

}  // namespace assay
