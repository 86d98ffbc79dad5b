// The judgement as data.
#include "analysis/findings/record_entries.h"
#include "portability/portability.h"

namespace assay {
namespace {

constexpr auto kRegimeName = [](size_t regime, const Portability& in) -> const std::string& {
  return in.regimes[regime].name;
};

// Place of an element of the document's own list.
template <typename T>
size_t place_in(const std::vector<T>& list, const T& element) {
  return static_cast<size_t>(&element - list.data());
}

const PortedCondition& condition_of(const ConditionVerdict& verdict, const Portability& in) {
  return in.conditions[verdict.condition];
}

// Members of a verdict that one of its regimes' cells has, each with that regime's letter.
struct SideOfVerdict {
  static constexpr size_t kCovers = 0;
  char letter;
  size_t ConditionVerdict::*regime;

  void write(const ConditionVerdict& of, Json& object, const auto& in) const {
    const RegimeCell* cell = condition_of(of, in).cells[of.*regime];
    if (cell == nullptr) return;
    const auto put = [&](std::string_view name, const auto& value) {
      object[fmt::format("{}_{}", name, letter)] = record::write_value(value, in);
    };
    put("crashes", cell->crashes);
    put("execution", cell->execution);
    put("direction", in.directions[of.condition][of.*regime]);
  }
};

}  // namespace

template <>
struct EnumWords<PortabilityVerdict>
    : WordsByName<PortabilityVerdict, portability_verdict_name, kPortabilityVerdicts.size()> {};

template <>
struct Record<ArmConfig> {
  using T = ArmConfig;
  static constexpr auto kMembers =
      std::tuple(text_or_null("name", &T::arm), text_or_null("mode", &T::mode),
                 text_or_null("cache", &T::cache), text_or_null("dynamic", &T::dynamic),
                 text_or_null("quantization", &T::quantization));
};
template <>
struct Record<CrashRate> {
  using T = CrashRate;
  static constexpr auto kMembers =
      std::tuple(field("lost", &T::lost), field("attempted", &T::attempted),
                 field("interval", &T::interval), unwritten(&T::losses));
};
template <>
struct Record<Regime> {
  using T = Regime;
  static constexpr auto kPair = [](const T& of, const Portability& in) {
    const size_t regime = place_in(in.regimes, of);
    return regime > 0 ? std::optional(pair_of(in.pairs, 0, regime)) : std::nullopt;
  };
  static constexpr auto kCounts = [](const RegimePair& pair, const Portability& in) {
    std::map<PortabilityVerdict, int64_t> counts = in.counts(pair.b);
    for (const PortabilityVerdict verdict : kPortabilityVerdicts) counts.try_emplace(verdict, 0);
    return counts;
  };
  static constexpr auto kMembers = std::tuple(
      field("name", &T::name), field("folder", &T::folder),
      part(kPair,
           list_of("differences", &RegimePair::differences, field("axis", &AxisDifference::axis),
                   text_or_null("about", &AxisDifference::about),
                   text_or_null("a", &AxisDifference::base),
                   text_or_null("b", &AxisDifference::cand)),
           derived("perturbations",
                   [](const RegimePair& pair) { return perturbations_of(axes_of(pair)); }),
           derived("counts", kCounts)),
      unwritten(&T::baseline, &T::who, &T::cells));
};
template <>
struct Record<ArmDirection> {
  using T = ArmDirection;
  static constexpr auto kVerdict = [](const T& of) {
    return of.shown ? std::optional(of.decided) : std::nullopt;
  };
  static constexpr auto kMembers = std::tuple(
      derived("verdict", kVerdict),
      where(std::not_fn(&T::shown), text_or_null("reason", &T::reason)),
      where(&T::shown, base_part<JudgedRatio>(part(&T::shown, field("ratio", &SpreadRatio::ratio)),
                                              field("p_holm", &T::p_holm),
                                              field("tost_p_holm", &T::tost_p_holm))));
};
template <>
struct Record<Attribution> {
  using T = Attribution;
  static constexpr auto kResponsible = [](const T& of) {
    const bool known = of.is_responsible && !of.suspect.empty();
    return known ? std::optional(of.suspect) : std::nullopt;
  };
  static constexpr auto kClean = [](const T& of, const Portability& in) {
    return std::array{kRegimeName(of.clean_a, in), kRegimeName(of.clean_b, in)};
  };
  static constexpr auto kMembers =
      std::tuple(field_as("basis", &T::basis, attribution_basis_name), field("axes", &T::axes),
                 field("unstated", &T::unstated), text_or_null("suspect", &T::suspect),
                 derived("responsible", kResponsible), array_of("runs", &T::runs_a, &T::runs_b),
                 field_as("control", &T::control, control_state_name),
                 text_or_null("control_arm", &T::control_arm),
                 field("about_compiler", &T::about_compiler), field("text", &T::text),
                 where([](const T& of) { return of.basis == AttributionBasis::kCleanPair; },
                       derived("clean_pair", kClean)),
                 unwritten(&T::is_responsible, &T::clean_a, &T::clean_b));
};
template <>
struct Record<ConditionVerdict> {
  using T = ConditionVerdict;
  static constexpr auto kAttribution = [](const T& of, const Portability& in) -> const auto& {
    return in.attributions[place_in(in.verdicts, of)];
  };
  static constexpr auto kMembers = std::tuple(
      part(condition_of, field("condition", &PortedCondition::stratum),
           derived("arm", &PortedCondition::arm), field("config", &PortedCondition::config)),
      field_as("a", &T::a, kRegimeName), field_as("b", &T::b, kRegimeName),
      field("verdict", &T::verdict), text_or_null("reason", &T::reason),
      where(&T::shown, base_part<JudgedRatio>(
                           part(&T::shown, field("ratio", &SpreadRatio::ratio),
                                field("ratio_interval", &SpreadRatio::interval),
                                field("ratio_range", &SpreadRatio::process_range)),
                           field("p_holm", &T::p_holm), field("tost_p_holm", &T::tost_p_holm))),
      SideOfVerdict{'a', &T::a}, SideOfVerdict{'b', &T::b},
      where([](const T& of) { return is_change(of.verdict); },
            derived("attribution", kAttribution)),
      unwritten(&T::condition));
};
template <>
struct Record<RetainedShare> {
  using T = RetainedShare;
  static constexpr auto kMembers =
      std::tuple(field("name", &T::name), field("log_ratio", &T::log_ratio),
                 field("share", &T::share), field("interval", &T::interval),
                 text_or_null("lost", &T::lost), text_or_null("gone", &T::gone));
};
template <>
struct Record<RobustnessIndex> {
  using T = RobustnessIndex;
  static constexpr auto kMembers =
      std::tuple(field("axis", &T::axis), field("index", &T::index),
                 field("interval", &T::interval), field_as("band", &T::band, robustness_band_name),
                 field_as("best_band", &T::best, robustness_band_name),
                 field_as("worst_band", &T::worst, robustness_band_name),
                 text_or_null("reason", &T::reason), field("points", &T::points));
};
template <>
struct Record<ClaimInRegime> {
  using T = ClaimInRegime;
  static constexpr auto kShown = [](const JudgedRatio& of) {
    return of.shown.value_or(SpreadRatio{std::numeric_limits<double>::quiet_NaN(), std::nullopt});
  };
  static constexpr auto kMembers = std::tuple(
      field_as("name", &T::regime, kRegimeName), field_as("state", &T::state, claim_state_name),
      base_part<JudgedRatio>(part(kShown, field("ratio", &SpreadRatio::ratio),
                                  field("ratio_interval", &SpreadRatio::interval),
                                  field("ratio_range", &SpreadRatio::process_range)),
                             field("p_holm", &T::p_holm)),
      field("differs_on", &T::axes), field("unstated", &T::unstated),
      text_or_null("reason", &T::reason));
};
template <>
struct Record<JudgedClaim> {
  using T = JudgedClaim;
  static constexpr auto kMembers = std::tuple(
      part(&T::claim, field_as("claim", &ConfiguredClaim::words, claim_text),
           field("arm", &ConfiguredClaim::arm), field("than", &ConfiguredClaim::than)),
      field_as("verdict", &T::verdict, claim_verdict_name), field("reason", &T::reason),
      field("strata", &T::strata), field("regimes", &T::regimes), field("robustness", &T::indexes));
};
template <>
struct Record<HeadlineCell> {
  using T = HeadlineCell;
  static constexpr auto kMembers = std::tuple(
      field_as("regime", &T::regime, kRegimeName), field("arm", &T::arm),
      field("config", &T::config), field("model_class", &T::model_class),
      field("prefill_gain", &T::prefill_gain), field("prefill_gain_interval", &T::gain_interval),
      field("prefill_gain_range", &T::gain_range), field("prefill_strata", &T::prefill_strata),
      field("prefill_left_out", &T::prefill_left_out), field("decode_crashes", &T::decode_crashes));
};
template <>
struct Record<PortabilityOptions> {
  using T = PortabilityOptions;
  static constexpr auto kMembers =
      std::tuple(base_part<JudgeOptions>(field("margin", &T::margin), field("alpha", &T::alpha)),
                 constant("confidence", kConfidence), field("crash_share", &T::crash_share),
                 field("minimum_rows", &T::minimum_rows));
};
template <>
struct Record<Portability> {
  using T = Portability;
  static constexpr auto kMembers = std::tuple(
      constant("schema_version", kPortabilitySchemaVersion), field("options", &T::options),
      field("baseline", &T::baseline_arm), field("regimes", &T::regimes),
      field("claims", &T::claims), field("headline", &T::matrix), field("verdicts", &T::verdicts),
      derived("failures", &T::failures),
      unwritten(&T::pairs, &T::conditions, &T::baseline, &T::directions, &T::attributions,
                &T::claim_named));
};

Json portability_to_json(const Portability& of) {
  return record_to_json(of, of);
}

}  // namespace assay
