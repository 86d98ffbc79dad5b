#include "report/phase_answers.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "analysis/findings/record_entries.h"
#include "base/records/enum_words.h"
#include "base/text/listed.h"
#include "base/text/text.h"
#include "report/growth.h"
#include "report/load_report.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

constexpr size_t kMostClauses = 3;    // of a sentence, one for arms that stand alike
constexpr size_t kMostNames = 3;      // of arms that stand alike
constexpr size_t kMostStretches = 3;  // of an arm's lengths
constexpr double kMostRepeats = 20;   // of the study's repetitions, that a hint asks for

void widen_to(double value, std::optional<stats::Interval>& range) {
  if (!range) range = stats::Interval{value, value};
  range = stats::Interval{std::min(range->low, value), std::max(range->high, value)};
}

std::string range_text(const stats::Interval& range, std::string_view between) {
  const std::string low = format_significant(range.low, 3);
  const std::string high = format_significant(range.high, 3);
  return low == high ? low : fmt::format("{}{}{}", low, between, high);
}

// An arm beside the baseline on a stratum.
enum class Standing { kFaster, kSlower, kEquivalent, kOpen, kNotCompared };

Standing standing_of(const Contrast* contrast) {
  if (contrast == nullptr) return Standing::kNotCompared;
  switch (contrast->verdict) {
    case Verdict::kFaster:
      return Standing::kFaster;
    case Verdict::kSlower:
      return Standing::kSlower;
    case Verdict::kEquivalent:
      return Standing::kEquivalent;
    case Verdict::kInconclusive:
      break;
  }
  return Standing::kOpen;
}

// Strata of one standing: neighbours by length, or any of them.
struct Stretch {
  Standing standing = Standing::kOpen;
  std::vector<const Contrast*> contrasts = {};
  std::string reason = {};  // why they aren't compared
  int64_t shortest = 0;
  int64_t longest = 0;
  size_t strata = 0;
};

// A phase's strata, by length where that alone tells them apart.
struct PhaseStrata {
  std::vector<size_t> strata;
  bool by_length = true;
};

PhaseStrata strata_of(const Findings& findings, Phase phase) {
  PhaseStrata of;
  for (size_t s = 0; s < findings.strata.size(); ++s) {
    if (findings.strata[s].phase == phase) of.strata.push_back(s);
  }
  std::ranges::stable_sort(of.strata, {}, [&](size_t s) { return findings.prompts[s].shortest; });
  for (size_t i = 1; i < of.strata.size(); ++i) {
    const Stratum& a = findings.strata[of.strata[i - 1]];
    const Stratum& b = findings.strata[of.strata[i]];
    of.by_length =
        of.by_length && a.model == b.model && a.new_tokens == b.new_tokens && a.batch == b.batch &&
        findings.prompts[of.strata[i - 1]].longest < findings.prompts[of.strata[i]].shortest;
  }
  return of;
}

std::string reason_against(const Findings& findings, const std::string& arm, size_t stratum) {
  for (const std::string& one : {arm, findings.study.baseline}) {
    const NotComparable* at = entry_of(findings.not_comparable, stratum, one);
    if (at != nullptr) return join(at->reasons, ", ");
  }
  return "";
}

bool was_measured(const Findings& findings, const std::string& arm, size_t stratum) {
  return entry_of(findings.outcomes, stratum, arm) != nullptr;
}

void add_to(const Findings& findings, size_t stratum, const Contrast* contrast, Stretch& stretch) {
  const PromptRange& prompts = findings.prompts[stratum];
  if (stretch.strata++ == 0) stretch.shortest = prompts.shortest;
  stretch.longest = prompts.longest;
  if (contrast != nullptr) stretch.contrasts.push_back(contrast);
}

std::vector<Stretch> stretches_of(const Findings& findings, const std::string& arm,
                                  const PhaseStrata& phase) {
  const auto collect = [&](bool neighbours) {
    std::vector<Stretch> all;
    for (const size_t stratum : phase.strata) {
      if (!was_measured(findings, arm, stratum)) continue;
      const Contrast* contrast = entry_of(findings.contrasts, stratum, arm);
      const Standing standing = standing_of(contrast);
      auto at = std::ranges::find(all, standing, &Stretch::standing);
      if (neighbours && at != all.end()) at = all.end() - (all.back().standing == standing ? 1 : 0);
      if (at == all.end()) {
        at = all.insert(at, {.standing = standing});
        if (contrast == nullptr) at->reason = reason_against(findings, arm, stratum);
      }
      add_to(findings, stratum, contrast, *at);
    }
    return all;
  };
  std::vector<Stretch> all = collect(phase.by_length);
  if (phase.by_length && all.size() <= kMostStretches) return all;
  all = collect(false);
  std::ranges::stable_sort(all, {}, &Stretch::standing);  // decided ones first
  return all;
}

// Arms that stand alike on the same strata.
struct AlikeArms {
  std::vector<std::string> arms;
  std::vector<Stretch> stretches;  // contrasts of all of them
};

// True if the arm seems to take longer than the baseline on the stretch.
bool seems_slower(const Stretch& of) {
  double logs = 0;
  for (const Contrast* contrast : of.contrasts) logs += std::log(contrast->ratio);
  return logs > 0;
}

bool are_alike(const std::vector<Stretch>& a, const std::vector<Stretch>& b) {
  return std::ranges::equal(a, b, [](const Stretch& x, const Stretch& y) {
    if (x.standing == Standing::kOpen && seems_slower(x) != seems_slower(y)) return false;
    return std::tie(x.standing, x.shortest, x.longest, x.strata, x.reason) ==
           std::tie(y.standing, y.shortest, y.longest, y.strata, y.reason);
  });
}

std::vector<AlikeArms> alike_arms(const Findings& findings, Phase phase_of,
                                  const PhaseStrata& phase) {
  std::vector<AlikeArms> all;
  for (const std::string& arm : findings.study.arms) {
    if (arm == findings.study.baseline) continue;
    std::vector<Stretch> stretches = stretches_of(findings, arm, phase);
    if (stretches.empty()) continue;
    const auto at = std::ranges::find_if(
        all, [&](const AlikeArms& one) { return are_alike(one.stretches, stretches); });
    if (at == all.end()) {
      all.push_back({{arm_label(findings, arm, phase_of)}, std::move(stretches)});
      continue;
    }
    at->arms.push_back(arm_label(findings, arm, phase_of));
    for (size_t i = 0; i < stretches.size(); ++i) {
      auto& to = at->stretches[i].contrasts;
      to.insert(to.end(), stretches[i].contrasts.begin(), stretches[i].contrasts.end());
    }
  }
  // Those that are decided first.
  std::ranges::stable_sort(all, {}, [](const AlikeArms& one) {
    return std::ranges::any_of(one.stretches,
                               [](const Stretch& of) { return of.standing < Standing::kOpen; })
               ? 0
               : 1;
  });
  return all;
}

// Two digits, and of small shares one decimal: "4.1", "12".
std::string percent_number(double share) {
  return fmt::format("{:.{}f}", share * 100 + 0.0, std::abs(share) < 0.0995 ? 1 : 0);
}

// "4.1 to 6.0 % more time [2.2, 7.1]", "2.1 to 5.0 times as fast [2.0, 5.3]"; with a sign where the
// direction is open: "-1.2 to +2.0 % [-4.1, +6.3]".
std::string difference_text(const RatioRange& range, Standing standing) {
  if (!range.values) return "";
  const auto text = [&](const auto& number, bool turned, std::string_view unit) {
    const auto ends = [&](const stats::Interval& of, std::string_view between) {
      const std::string low = number(turned ? of.high : of.low);
      const std::string high = number(turned ? of.low : of.high);
      return low == high ? low : fmt::format("{}{}{}", low, between, high);
    };
    std::string out = ends(*range.values, " to ") + std::string(unit);
    if (range.too_few) return fmt::format("{} {}", out, kTooFew);
    if (range.intervals) out += fmt::format(" [{}]", ends(*range.intervals, ", "));
    if (range.ranges) out += fmt::format(", processes {}", ends(*range.ranges, " to "));
    return out;
  };
  constexpr double kTimes = 2;
  if (standing == Standing::kFaster && range.values->low < 1 / kTimes) {
    return text([](double r) { return format_significant(1 / r, 3); }, true, " times as fast");
  }
  if (standing == Standing::kSlower && range.values->high > kTimes) {
    return text([](double r) { return format_significant(r, 3); }, false, " times the time");
  }
  if (standing == Standing::kFaster) {
    return text([](double r) { return percent_number(1 - r); }, true, " % less time");
  }
  if (standing == Standing::kSlower) {
    return text([](double r) { return percent_number(r - 1); }, false, " % more time");
  }
  return text([](double r) { return (r < 1 ? "" : "+") + percent_number(r - 1); }, false,
              " % of time");
}

// Which strata: " at every length", " from 80 tokens on", " on 3 of 8 conditions".
std::string place_text(const AlikeArms& of, size_t i, const PhaseStrata& phase) {
  const Stretch& stretch = of.stretches[i];
  size_t all = 0;
  for (const Stretch& one : of.stretches) all += one.strata;
  if (of.stretches.size() == 1) {
    return all == 1 ? "" : phase.by_length ? " at every length" : " on every condition";
  }
  // Those collected from anywhere overlap.
  const bool neighbours =
      phase.by_length && std::ranges::is_sorted(of.stretches, {}, &Stretch::longest) &&
      std::ranges::adjacent_find(of.stretches, [](const Stretch& a, const Stretch& b) {
        return a.longest >= b.shortest;
      }) == of.stretches.end();
  if (!neighbours) return fmt::format(" on {} of {} conditions", stretch.strata, all);
  if (i + 1 == of.stretches.size())
    return fmt::format(" from {} on", counted(stretch.shortest, "token"));
  if (i == 0) return fmt::format(" up to {}", counted(stretch.longest, "token"));
  if (stretch.shortest == stretch.longest) return fmt::format(" at {} tokens", stretch.shortest);
  return fmt::format(" at {} to {} tokens", stretch.shortest, stretch.longest);
}

std::string standing_text(Standing standing) {
  return std::string(
      word_of(standing, {"faster", "slower", "as fast", "undecided", "not compared"}));
}

std::string beside_text(Standing standing, const std::string& baseline) {
  const bool differs = standing == Standing::kFaster || standing == Standing::kSlower;
  return fmt::format("{} {}",
                     differs                             ? " than"
                     : standing == Standing::kEquivalent ? " as"
                                                         : " against",
                     baseline);
}

// The nearest contrast of an open stretch lacks this to be decided: more processes, so many more
// repetitions, or a difference that its rows could show.
std::string hint_text(const Findings& findings, const Stretch& stretch) {
  const Contrast* nearest = nullptr;
  double least_times = 0;  // as many repetitions as it has
  for (const Contrast* contrast : stretch.contrasts) {
    if (contrast->one_process && !findings.options.allow_single_process) {
      return "one process can't show it";
    }
    if (contrast->ratio_process_range) {
      return fmt::format("an interval takes {} processes an arm, and {} ran",
                         kLeastProcessesOfInterval,
                         std::min(contrast->units_arm, contrast->units_baseline));
    }
    const double seen = std::abs(contrast->ratio - 1);
    if (!contrast->minimum_detectable || !(seen > 0)) continue;
    const double shortfall = *contrast->minimum_detectable / seen;
    if (nearest != nullptr && shortfall * shortfall >= least_times) continue;
    nearest = contrast;
    least_times = shortfall * shortfall;
  }
  if (nearest == nullptr) return "";
  // A difference that is found in four of five such studies wasn't found in this one.
  constexpr double kLeastTimes = 1.25;
  const double times = std::max(least_times, kLeastTimes);
  if (findings.study.repetitions && times <= kMostRepeats) {
    const double more = std::ceil(static_cast<double>(*findings.study.repetitions) * (times - 1));
    return fmt::format("about {:.0f} repetitions more would show {} %", more,
                       percent_number(std::abs(nearest->ratio - 1)));
  }
  return fmt::format("these rows show {} % or more", percent_number(*nearest->minimum_detectable));
}

bool is_sequential(const Findings& findings) {
  return findings.study.order == "sequential";
}

std::string clause_of(const Findings& findings, const AlikeArms& of, const PhaseStrata& phase) {
  // A difference in time and one between arms look alike where each arm had its own time.
  const bool one_arm = of.arms.size() == 1;
  const char* verb = is_sequential(findings) ? (one_arm ? "was" : "were") : one_arm ? "is" : "are";
  std::string text = fmt::format("{} {}", listed(of.arms, kMostNames), verb);
  std::vector<std::string> parts;
  for (size_t i = 0; i < of.stretches.size(); ++i) {
    const Stretch& stretch = of.stretches[i];
    RatioRange range;
    for (const Contrast* contrast : stretch.contrasts) range.add(*contrast);
    std::vector<std::string> notes;
    const std::string difference = difference_text(range, stretch.standing);
    if (!difference.empty()) notes.push_back(difference);
    if (stretch.standing == Standing::kOpen) {
      const std::string hint = hint_text(findings, stretch);
      if (!hint.empty()) notes.push_back(hint);
    }
    if (!stretch.reason.empty()) notes.push_back(stretch.reason);
    parts.push_back(fmt::format(
        "{}{}{}{}", standing_text(stretch.standing),
        parts.empty() ? beside_text(stretch.standing, findings.study.baseline) : "",
        place_text(of, i, phase), notes.empty() ? "" : fmt::format(" ({})", join(notes, "; "))));
  }
  return text + " " + join(parts, ", ");
}

// "eager takes 12.3 to 13.0 ms, 76.9 to 81.3 tokens/s".
std::string absolute_text(const ArmFigures& of) {
  std::string text = fmt::format("{} takes {} ms", of.label, range_text(*of.mean_ms, " to "));
  if (of.interval_ms) {
    text += fmt::format(" [{}]", range_text(*of.interval_ms, ", "));
  }
  if (of.tokens_per_s) text += fmt::format(", {} tokens/s", range_text(*of.tokens_per_s, " to "));
  return text;
}

std::string sentence_of(const Findings& findings, const PhaseStrata& phase,
                        const PhaseAnswer& answer) {
  std::vector<std::string> clauses;
  std::vector<AlikeArms> alike = alike_arms(findings, answer.phase, phase);
  for (const AlikeArms& arms : alike) {
    if (clauses.size() == kMostClauses) {
      clauses.push_back(fmt::format("{} more below", alike.size() - kMostClauses));
      break;
    }
    clauses.push_back(clause_of(findings, arms, phase));
  }
  const auto compared = [](const ArmFigures& of) { return of.ratio.values.has_value(); };
  if (is_sequential(findings) && std::ranges::any_of(answer.arms, compared)) {
    clauses.emplace_back(
        "measured one after the other: what changed on the machine between is in this ratio");
  }
  const auto baseline = std::ranges::find(answer.arms, findings.study.baseline, &ArmFigures::arm);
  const auto told = baseline != answer.arms.end() ? baseline : answer.arms.begin();
  if (told != answer.arms.end() && told->mean_ms) clauses.push_back(absolute_text(*told));
  if (clauses.empty()) clauses.emplace_back("no row was measured to its end");
  return fmt::format("{}: {}.", phase_title(answer.phase), join(clauses, "; "));
}

void add_latency(const Findings& findings, const Latency& latency, ArmFigures& of) {
  if (!latency.mean) return;
  const bool first = !of.mean_ms;
  widen_to(*latency.mean, of.mean_ms);
  of.interval_ms = first ? latency.mean_interval : std::nullopt;
  of.process_range_ms = first ? latency.mean_process_range : std::nullopt;
  if (latency.mean_interval) {
    const double half = (latency.mean_interval->high - latency.mean_interval->low) / 2;
    of.half_width = std::max(of.half_width.value_or(0), half / *latency.mean);
  }
  if (const auto rate = tokens_per_second(findings, latency)) widen_to(*rate, of.tokens_per_s);
  if (latency.p99) widen_to(*latency.p99, of.p99_ms);
}

ArmFigures figures_of(const Findings& findings, Phase phase_of, const std::string& arm,
                      const PhaseStrata& phase) {
  ArmFigures of{.arm = arm,
                .label = arm_label(findings, arm, phase_of),
                .is_baseline = arm == findings.study.baseline};
  for (const Latency& latency : findings.latencies) {
    const bool in_phase = std::ranges::find(phase.strata, latency.stratum) != phase.strata.end();
    if (in_phase && latency.arm == arm) add_latency(findings, latency, of);
  }
  for (const OutcomeCounts& outcome : findings.outcomes) {
    const bool in_phase =
        outcome.stratum && std::ranges::find(phase.strata, *outcome.stratum) != phase.strata.end();
    if (in_phase && outcome.arm == arm) of.lost += outcome.failed;
  }
  for (const size_t stratum : phase.strata) {
    const Contrast* contrast = entry_of(findings.contrasts, stratum, arm);
    if (contrast == nullptr) continue;
    of.ratio.add(*contrast);
    ++of.verdicts[contrast->verdict];
  }
  return of;
}

TableCell ms_cell(const ArmFigures& of) {
  if (!of.mean_ms) return TableCell::absent();
  std::string text = range_text(*of.mean_ms, "-");
  if (of.interval_ms || of.process_range_ms) {
    text += spread_text(of.interval_ms, of.process_range_ms, 3);
  } else if (of.half_width) {
    text += fmt::format(" \u00b1{} %", percent_number(*of.half_width));
  }
  return TableCell(std::move(text));
}

TableCell range_cell(const std::optional<stats::Interval>& range) {
  return range ? TableCell(range_text(*range, "-")) : TableCell::absent();
}

TableCell ratio_cell(const ArmFigures& of) {
  if (of.is_baseline) return TableCell("1 (baseline)");
  return of.ratio.values ? TableCell(of.ratio.short_text()) : TableCell::absent();
}

// "slower"; of several strata "4 slower, 1 undecided".
TableCell verdict_cell(const ArmFigures& of) {
  int64_t all = 0;
  for (const auto& [verdict, count] : of.verdicts) all += count;
  std::vector<std::string> parts;
  for (const Verdict verdict : kVerdicts) {
    const auto at = of.verdicts.find(verdict);
    if (at == of.verdicts.end()) continue;
    const std::string word(verdict == Verdict::kInconclusive ? "undecided" : verdict_name(verdict));
    parts.push_back(all == 1 ? word : fmt::format("{} {}", at->second, word));
  }
  return parts.empty() ? TableCell::absent() : TableCell(join(parts, ", "));
}

template <typename Has>
bool any_arm(const std::vector<PhaseAnswer>& answers, const Has& has) {
  return std::ranges::any_of(
      answers, [&](const PhaseAnswer& answer) { return std::ranges::any_of(answer.arms, has); });
}

bool any_contrast(const std::vector<PhaseAnswer>& answers) {
  return any_arm(answers, [](const ArmFigures& of) { return !of.verdicts.empty(); });
}

}  // namespace

std::optional<double> tokens_per_second(const Findings& findings, const Latency& latency) {
  const Stratum& stratum = findings.strata[latency.stratum];
  const PromptRange& prompts = findings.prompts[latency.stratum];
  if (stratum.phase != Phase::kPrefill) return latency.tokens_per_s;
  const bool is_known = prompts.shortest == prompts.longest && latency.mean && *latency.mean > 0;
  if (!is_known) return std::nullopt;
  return static_cast<double>(prompts.longest * stratum.batch) / *latency.mean * 1e3;
}

std::string_view phase_title(Phase phase) {
  return word_of(phase, {"Prefill", "Decode", "Prefill and decode together", "Under load"});
}

namespace {

// The load that each arm serves; where there are several, then how their mean latencies compare.
std::string load_sentence(const Findings& findings, const PhaseStrata& strata,
                          const PhaseAnswer& answer) {
  std::string text = join(load_sentences(findings), " ");
  if (answer.arms.size() > 1) text += " " + sentence_of(findings, strata, answer);
  return text;
}

}  // namespace

std::vector<PhaseAnswer> phase_answers(const Findings& findings) {
  std::vector<PhaseAnswer> all;
  for (const Phase phase : kPhases) {
    const PhaseStrata strata = strata_of(findings, phase);
    if (strata.strata.empty()) continue;
    PhaseAnswer answer{.phase = phase};
    for (const std::string& arm : findings.study.arms) {
      const auto measured = [&](size_t stratum) { return was_measured(findings, arm, stratum); };
      if (std::ranges::any_of(strata.strata, measured)) {
        answer.arms.push_back(figures_of(findings, phase, arm, strata));
      }
    }
    answer.sentence = phase == Phase::kLoad && !findings.load.points.empty()
                          ? load_sentence(findings, strata, answer)
                          : sentence_of(findings, strata, answer);
    answer.growth = growth_sentence(findings, phase);
    all.push_back(std::move(answer));
  }
  return all;
}

std::vector<std::string> answer_sentences(const std::vector<PhaseAnswer>& answers) {
  std::vector<std::string> sentences;
  for (const PhaseAnswer& answer : answers) {
    sentences.push_back(answer.sentence);
    if (!answer.growth.empty()) sentences.push_back(answer.growth);
  }
  return sentences;
}

Table arm_table(const std::vector<PhaseAnswer>& answers) {
  struct ArmColumn {
    Column column;
    TableCell (*cell)(const ArmFigures&);
  };
  std::vector<ArmColumn> columns = {
      {{"arm", Align::kLeft}, [](const ArmFigures& of) { return TableCell(of.label); }},
      {{"ms", Align::kLeft, true}, ms_cell}};
  if (any_arm(answers, [](const ArmFigures& of) { return of.tokens_per_s.has_value(); })) {
    columns.push_back(
        {{"tokens/s"}, [](const ArmFigures& of) { return range_cell(of.tokens_per_s); }});
  }
  if (any_contrast(answers)) {
    columns.push_back({{"ratio", Align::kLeft, true}, ratio_cell});
    columns.push_back({{"verdict", Align::kLeft}, verdict_cell});
  }
  if (any_arm(answers, [](const ArmFigures& of) { return of.p99_ms.has_value(); })) {
    columns.push_back({{"p99 ms"}, [](const ArmFigures& of) { return range_cell(of.p99_ms); }});
  }
  if (any_arm(answers, [](const ArmFigures& of) { return of.lost > 0; })) {
    columns.push_back({{"lost"}, [](const ArmFigures& of) { return TableCell(of.lost); }});
  }
  Table table{.columns = columns_of("<phase")};
  for (const ArmColumn& one : columns) table.columns.push_back(one.column);
  for (const PhaseAnswer& answer : answers) {
    for (const ArmFigures& of : answer.arms) {
      auto& row = table.rows.emplace_back();
      row.push_back(phase_name(answer.phase));
      for (const ArmColumn& one : columns) row.push_back(one.cell(of));
    }
  }
  return table;
}

std::string arm_legend(const std::vector<PhaseAnswer>& answers, const std::string& baseline) {
  const bool several =
      any_arm(answers, [](const ArmFigures& of) { return of.half_width && !of.interval_ms; });
  const bool ranges = any_arm(answers, [](const ArmFigures& of) {
    return of.process_range_ms.has_value() || of.ratio.ranges.has_value();
  });
  std::string text = "ms: mean, 95 % interval";
  if (several) text += " (several conditions: least to largest, \u00b1 half the widest interval)";
  if (any_contrast(answers)) text += fmt::format("; ratio: to {}'s time", baseline);
  if (ranges)
    text += fmt::format("; range: of processes, fewer than {}", kLeastProcessesOfInterval);
  return text + ".";
}

template <>
struct Record<ArmFigures> {
  using T = ArmFigures;
  static constexpr auto kMembers =
      std::tuple(field("arm", &T::arm), field("mean_ms", &T::mean_ms),
                 field("mean_interval_ms", &T::interval_ms), field("half_width", &T::half_width),
                 field("tokens_per_s", &T::tokens_per_s), field("p99_ms", &T::p99_ms),
                 part(&T::ratio, field("ratio", &RatioRange::values),
                      field("ratio_interval", &RatioRange::intervals),
                      field("ratio_process_range", &RatioRange::ranges)),
                 field("verdicts", &T::verdicts), field("lost", &T::lost),
                 unwritten(&T::label, &T::is_baseline, &T::process_range_ms));
};
template <>
struct Record<PhaseAnswer> {
  using T = PhaseAnswer;
  static constexpr auto kMembers =
      std::tuple(field("phase", &T::phase), field("sentence", &T::sentence),
                 field("growth", &T::growth), field("arms", &T::arms));
};

Json phase_answers_json(const std::vector<PhaseAnswer>& answers) {
  return record_to_json(answers);
}

}  // namespace assay
