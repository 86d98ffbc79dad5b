// Members of findings.json that need more than a name (records.h has the others), the words of
// enums, and the records that judgements share with findings.
//
// An entry about a stratum opens with that stratum's members, so that whoever reads the file needs
// no index; an entry about a whole phase has the phase alone. A judgement's own context has
// `strata` too, and is written likewise.
#pragma once

#include <array>

#include "analysis/findings/findings.h"
#include "base/records/entries.h"
#include "base/records/lenient_json.h"
#include "base/records/record_text.h"

namespace assay {

// The findings' own strata, which are read before the entries that refer to them.
struct StrataContext {
  const std::vector<Stratum>& strata;
};

namespace findings_record {

// Finds the entry's stratum among the strata.
Fit find_stratum(const Json& object, const StrataContext& context, size_t& found);
void put_stratum(const Stratum& stratum, Json& object);
void append_stratum(const Stratum& stratum, JsonText& out);

// `stratum` of one that is always about a stratum.
template <typename T>
struct Place {
  static constexpr size_t kCovers = 1;

  void write(const T& of, Json& object, const auto& context) const {
    put_stratum(context.strata[of.stratum], object);
  }
  void append(const T& of, JsonText& out, const auto& context) const {
    append_stratum(context.strata[of.stratum], out);
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

  void write(const T& of, Json& object, const auto& context) const {
    if (of.stratum) return put_stratum(context.strata[*of.stratum], object);
    object["phase"] = record::write_value(of.phase, context);
  }
  void append(const T& of, JsonText& out, const auto& context) const {
    if (of.stratum) return append_stratum(context.strata[*of.stratum], out);
    record::append_entry(field("phase", &T::phase), of, out, context);
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

  void write(const T& of, Json& object, const auto& context) const {
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
struct EnumWords<Verdict> : WordsByName<Verdict, verdict_name, 4> {};
template <>
struct EnumWords<ContrastUnit> : WordsByName<ContrastUnit, contrast_unit_name, 3> {};
template <>
struct EnumWords<Execution> : WordsByName<Execution, execution_name, 7> {};
template <>
struct EnumWords<BlockState> : WordsByName<BlockState, block_state_name, 4> {};
template <>
struct EnumWords<Decision::Kind> : WordsByName<Decision::Kind, decision_name, 7> {};
template <>
struct EnumWords<Severity> {
  static constexpr std::array kAll = {Severity::kWarning, Severity::kNote};
  static std::string_view name(Severity one) { return one == Severity::kNote ? "note" : "warning"; }
};
template <>
struct EnumWords<Criterion::Status> : WordsByName<Criterion::Status, criterion_status_name, 3> {};
template <>
struct EnumWords<Requirements::Verdict>
    : WordsByName<Requirements::Verdict, requirements_verdict_name, 3> {};

template <>
struct Record<stats::Interval> {
  using T = stats::Interval;
  static constexpr bool kIsArray = true;
  static constexpr auto kMembers = std::tuple(field("low", &T::low), field("high", &T::high));
};
template <>
struct Record<stats::TestResult> {
  using T = stats::TestResult;
  static constexpr auto kMembers = std::tuple(field("t", &T::statistic), field("df", &T::df),
                                              field("p", &T::p), field("ln_p", &T::log_p));
};
template <>
struct Record<Stratum> {
  using T = Stratum;
  static constexpr auto kMembers = std::tuple(
      field("phase", &T::phase), field("model", &T::model), field("scenario", &T::scenario),
      field("new_tokens", &T::new_tokens), field("batch", &T::batch), unwritten(&T::prompt));
};
template <>
struct Record<PromptRange> {
  using T = PromptRange;
  static constexpr bool kIsArray = true;
  static constexpr auto kMembers =
      std::tuple(field("shortest", &T::shortest), field("longest", &T::longest));
};

}  // namespace assay
