// Members of findings.json that need more than a name (records.h has the others), and the words of
// enums.
//
// An entry about a stratum opens with that stratum's members, so that whoever reads the file needs
// no index; an entry about a whole phase has the phase alone.
#pragma once

#include <array>

#include "analysis/findings/findings.h"
#include "base/records/lenient_json.h"
#include "base/records/record.h"

namespace assay {

// The findings' own strata, which are read before the entries that refer to them.
struct StrataContext {
  const std::vector<Stratum>& strata;
};

namespace findings_record {

// Finds the entry's stratum among the strata.
Fit find_stratum(const Json& object, const StrataContext& context, size_t& found);
void put_stratum(const Stratum& stratum, Json& object);

// `stratum` of one that is always about a stratum.
template <typename T>
struct Place {
  static constexpr size_t kCovers = 1;

  void write(const T& of, Json& object, const StrataContext& context) const {
    put_stratum(context.strata[of.stratum], object);
  }
  Fit read(const Json& object, T& of, const StrataContext& context) const {
    return find_stratum(object, context, of.stratum);
  }
};

// `phase` and `stratum` of one that may be about a whole phase, or where `phase` is optional, about
// neither.
template <typename T>
struct PlaceOrPhase {
  static constexpr size_t kCovers = 2;
  static constexpr bool kMayLackPhase = record::kIs<decltype(T::phase), std::optional>;

  void write(const T& of, Json& object, const StrataContext& context) const {
    if (of.stratum) return put_stratum(context.strata[*of.stratum], object);
    object["phase"] = record::write_value(of.phase, context);
  }
  Fit read(const Json& object, T& of, const StrataContext& context) const {
    if (object.contains("model")) {
      if (Fit fit = find_stratum(object, context, of.stratum.emplace())) return fit;
      of.phase = context.strata[*of.stratum].phase;
      return std::nullopt;
    }
    return field("phase", &T::phase).read(object, of, context);
  }
};

// A test with the p that its family makes of it.
template <typename T>
struct AdjustedTest {
  static constexpr size_t kCovers = 2;
  const char* name;
  std::optional<stats::TestResult> T::*test;
  std::optional<double> T::*p_holm;

  void write(const T& of, Json& object, const StrataContext& context) const {
    object[name] = record::write_value(of.*test, context);
    if (of.*test) object[name]["p_holm"] = record::write_value(of.*p_holm, context);
  }
  Fit read(const Json& object, T& of, const StrataContext& context) const {
    if (Fit fit = field(name, test).read(object, of, context)) return fit;
    if (!(of.*test)) return std::nullopt;
    const Json& with = object[name];
    if (!with.contains("p_holm")) return within(name, Misfit{"p_holm", "a value", "nothing"});
    return within(name, within("p_holm", record::read_value(with["p_holm"], of.*p_holm, context)));
  }
};

// `verdict` is null where strata were lost; members that only a combined contrast has are left out
// of others.
struct Combined {
  static constexpr size_t kCovers = 2;

  void write(const Contrast& of, Json& object, const StrataContext& context) const {
    if (of.stratum) return;
    object["lost_strata"] = of.lost_strata;
    object["stratum_verdicts"] = record::write_value(of.stratum_verdicts, context);
  }
  Fit read(const Json& object, Contrast& of, const StrataContext& context) const {
    if (of.stratum) return std::nullopt;
    if (Fit fit = field("lost_strata", &Contrast::lost_strata).read(object, of, context)) {
      return fit;
    }
    return field("stratum_verdicts", &Contrast::stratum_verdicts).read(object, of, context);
  }
};
struct ContrastVerdict {
  static constexpr size_t kCovers = 1;

  void write(const Contrast& of, Json& object, const StrataContext& context) const {
    object["verdict"] = of.lost_strata > 0 ? Json() : record::write_value(of.verdict, context);
  }
  Fit read(const Json& object, Contrast& of, const StrataContext& context) const {
    if (member(object, "lost_strata").is_null() || !member(object, "verdict").is_null()) {
      return field("verdict", &Contrast::verdict).read(object, of, context);
    }
    return std::nullopt;
  }
};

// `prompt` follows from "prompt_tokens" (name_prompts()).
struct PromptWords {
  static constexpr size_t kCovers = 1;

  template <typename Context>
  void write(const Stratum&, Json&, const Context&) const {}
  template <typename Context>
  Fit read(const Json&, Stratum&, const Context&) const {
    return std::nullopt;
  }
};

// `paired` follows from `why`.
struct PairedWord {
  static constexpr size_t kCovers = 0;

  void write(const StratumBlocks& of, Json& object, const StrataContext&) const {
    object["paired"] = of.paired();
  }
  Fit read(const Json&, StratumBlocks&, const StrataContext&) const { return std::nullopt; }
};

// A number that is the same in every file, and that no struct carries.
struct Constant {
  static constexpr size_t kCovers = 0;
  const char* name;
  double value;

  template <typename T, typename Context>
  void write(const T&, Json& object, const Context&) const {
    object[name] = value;
  }
  template <typename T, typename Context>
  Fit read(const Json& object, T&, const Context&) const {
    const auto at = object.find(name);
    const Json found = at == object.end() ? Json() : *at;
    return found == value ? Fit() : within(name, misfit(fmt::format("{}", value), found));
  }
};

// A finding's rows: of each cell the repetitions.
struct FindingRows {
  static constexpr size_t kCovers = 1;

  void write(const Finding& of, Json& object, const StrataContext&) const;
  Fit read(const Json& object, Finding& of, const StrataContext& context) const;
};

// The name of the tail's high figure.
template <typename T>
struct HighIs {
  static constexpr size_t kCovers = 1;

  void write(const T& of, Json& object, const StrataContext&) const {
    object["high_is"] = of.high_is_max ? "max" : "p99";
  }
  Fit read(const Json& object, T& of, const StrataContext&) const {
    const Json& word = member(object, "high_is");
    if (word != "max" && word != "p99") return within("high_is", misfit("max or p99", word));
    of.high_is_max = word == "max";
    return std::nullopt;
  }
};

struct LimitShare {
  static constexpr size_t kCovers = 0;

  void write(const ReadShare& of, Json& object, const StrataContext&) const {
    object["share"] = of.share();
  }
  Fit read(const Json&, ReadShare&, const StrataContext&) const { return std::nullopt; }
};

// A place in the file's `strata`.
struct PrefillStratum {
  static constexpr size_t kCovers = 1;

  void write(const PhaseSplit& of, Json& object, const StrataContext&) const {
    object["prefill_stratum"] = of.prefill_stratum;
  }
  Fit read(const Json& object, PhaseSplit& of, const StrataContext& context) const;
};

// The findings' strata with the prompts of each.
struct StrataWithPrompts {
  static constexpr size_t kCovers = 2;

  void write(const Findings& of, Json& object, const StrataContext&) const;
  Fit read(const Json& object, Findings& of, const StrataContext& context) const;
};

// An object with a member for each pair, in their order.
struct IdentityMember {
  static constexpr size_t kCovers = 1;

  void write(const Findings& of, Json& object, const StrataContext&) const;
  Fit read(const Json& object, Findings& of, const StrataContext& context) const;
};

}  // namespace findings_record

template <>
struct EnumWords<Verdict> {
  static constexpr auto& kAll = kVerdicts;
  static std::string_view name(Verdict verdict) { return verdict_name(verdict); }
};
template <>
struct EnumWords<ContrastUnit> {
  static constexpr auto& kAll = kUnits;
  static std::string_view name(ContrastUnit unit) { return contrast_unit_name(unit); }
};
template <>
struct EnumWords<Execution> {
  static constexpr std::array kAll = {
      Execution::kEager,     Execution::kCompiled,  Execution::kPartly,  Execution::kFellBack,
      Execution::kOtherMode, Execution::kLabelOnly, Execution::kUnproven};
  static std::string_view name(Execution execution) { return execution_name(execution); }
};
template <>
struct EnumWords<BlockState> {
  static constexpr auto kAll = kBlockStates;
  static std::string_view name(BlockState state) { return block_state_name(state); }
};
template <>
struct EnumWords<Decision::Kind> {
  static constexpr std::array kAll = {Decision::Kind::kBest,    Decision::Kind::kNoDifference,
                                      Decision::Kind::kAhead,   Decision::Kind::kUndecided,
                                      Decision::Kind::kOnlyOne, Decision::Kind::kNone,
                                      Decision::Kind::kVoid};
  static std::string_view name(Decision::Kind kind) { return decision_name(kind); }
};
template <>
struct EnumWords<Severity> {
  static constexpr std::array kAll = {Severity::kWarning, Severity::kNote};
  static std::string_view name(Severity one) { return one == Severity::kNote ? "note" : "warning"; }
};
template <>
struct EnumWords<Criterion::Status> {
  static constexpr std::array kAll = {Criterion::Status::kMet, Criterion::Status::kNotMet,
                                      Criterion::Status::kNotApplicable};
  static std::string_view name(Criterion::Status status) { return criterion_status_name(status); }
};
template <>
struct EnumWords<Requirements::Verdict> {
  static constexpr std::array kAll = {Requirements::Verdict::kPassed,
                                      Requirements::Verdict::kFailed,
                                      Requirements::Verdict::kNotDecided};
  static std::string_view name(Requirements::Verdict verdict) {
    return requirements_verdict_name(verdict);
  }
};

}  // namespace assay
