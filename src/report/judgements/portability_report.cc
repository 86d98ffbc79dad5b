// A judgement across bundles as a screen, Markdown, CSV and JSON.
#include "report/judgements/portability_report.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/compare/compare.h"
#include "base/add_once.h"
#include "base/text/text.h"
#include "report/answers.h"
#include "report/judgements/portability_tables.h"
#include "report/screen/document_screen.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

constexpr size_t kTableLines = 9;
constexpr size_t kMovedLines = 5;

// Changes that differ by their prompt lengths and models alone; of undecided ones also by the arm.
struct AlikeChanges {
  size_t first = 0;  // of the verdicts
  std::vector<std::string> strata;
  std::vector<double> ratios;
};

std::vector<AlikeChanges> alike_changes(const Portability& of) {
  std::vector<AlikeChanges> all;
  std::map<std::vector<std::string>, size_t> places;
  for (size_t i = 0; i < of.verdicts.size(); ++i) {
    const ConditionVerdict& verdict = of.verdicts[i];
    if (!is_change(verdict.verdict) && !is_open_difference(verdict)) continue;
    const PortedCondition& condition = of.conditions[verdict.condition];
    const bool lost = verdict.verdict == PortabilityVerdict::kOutcomeFlip;
    const bool open =
        verdict.verdict == PortabilityVerdict::kUndecided;  // of any arm, in any phase
    const auto [at, fresh] = places.try_emplace(
        {std::string(portability_verdict_name(verdict.verdict)), open ? "" : condition.arm(),
         open ? "" : std::string(phase_name(condition.stratum.phase)), of.regimes[verdict.b].name,
         of.attributions[i].text, lost ? "" : verdict.reason},
        all.size());
    if (fresh) all.push_back({i, {}, {}});
    AlikeChanges& alike = all[at->second];
    alike.strata.push_back(stratum_text(condition.stratum));
    if (verdict.shown) alike.ratios.push_back(verdict.shown->ratio);
  }
  std::ranges::stable_sort(all, {}, [&](const AlikeChanges& alike) {
    const PortabilityVerdict verdict = of.verdicts[alike.first].verdict;
    return is_flip(verdict) ? 0 : is_change(verdict) ? 1 : 2;
  });
  return all;
}

std::string more_text(int64_t more, PortabilityVerdict verdict) {
  if (verdict == PortabilityVerdict::kUndecided) return counted(more, "more condition");
  return counted(more, "more stratum", "more strata");
}

std::string ratios_text(const std::vector<double>& ratios) {
  if (ratios.empty()) return "";
  const auto [low, high] = std::ranges::minmax(ratios);
  const std::string least = format_significant(low, 3);
  const std::string most = format_significant(high, 3);
  return fmt::format(" ({}x the time)", least == most ? least : fmt::format("{}-{}", least, most));
}

bool has_ranges(const Portability& of) {
  return std::ranges::any_of(of.claims, [](const JudgedClaim& claim) {
    return std::ranges::any_of(
        claim.regimes, [](const ClaimInRegime& in) { return in.shown && in.shown->process_range; });
  });
}

// Claims that are decided first, then those that have an index.
void told_first(Table& claims) {
  const auto rank = [](const std::vector<TableCell>& row) {
    const std::string verdict = cell_text(row[1]);
    if (verdict != claim_verdict_name(ClaimVerdict::kNotDecided)) return 0;
    return cell_text(row.back()) == robustness_band_name(RobustnessBand::kInvalid) ? 2 : 1;
  };
  std::ranges::stable_sort(claims.rows, {}, rank);
}

// Claims of arms against the baseline name it in the head, so that the arms' names are whole.
void leave_out_baseline(const Portability& of, Table& table) {
  const std::string than = fmt::format(" than {}", of.baseline_arm);
  table.columns[0].name = fmt::format("claim ({})", than.substr(1));
  for (auto& row : table.rows) {
    std::string claim = cell_text(row[0]);
    if (const size_t at = claim.find(than + " in "); at != std::string::npos) {
      row[0] = TableCell(claim.erase(at, than.size()));
    }
  }
}

// "not_portable" as people write it.
std::string in_words(std::string_view name) {
  std::string words(name);
  std::ranges::replace(words, '_', ' ');
  return words;
}

// One row a claim; of a named one, a row an axis.
Table claim_verdicts(const Portability& of) {
  Table claims = claim_table(of, of.claim_named);
  if (of.claim_named) {
    claims = with_columns(claims, {"axis", "verdict", "points", "index", "95% interval", "band"});
  } else {
    claims = with_columns(claims, {"claim", "verdict", "index", "band"});
    leave_out_baseline(of, claims);
    told_first(claims);
  }
  for (auto& row : claims.rows) row[1] = TableCell(in_words(cell_text(row[1])));
  return claims;
}

std::string index_legend(const Portability& of) {
  return fmt::format(
      "index: the smallest share of the claim's log ratio that remains {}. band: the one that the "
      "index's interval allows; undecided: it allows several, in brackets.",
      of.claim_named ? "at any point of the axis" : "in any bundle");
}

ReportSection claims_section(const Portability& of) {
  ReportSection section{.title = "Claims",
                        .tables = {claim_table(of, true), claim_regime_table(of)},
                        .figures = {"claims", "robustness"},
                        .id = "claims",
                        .folded = true};
  for (const JudgedClaim& claim : of.claims) {
    if (claim.reason.empty()) continue;
    section.lines.push_back(fmt::format("- {} ({}): {}.", claim_text(claim.claim.words),
                                        in_words(claim_verdict_name(claim.verdict)), claim.reason));
  }
  section.lines.emplace_back(
      "index: the smallest share of the claim's log ratio in the first bundle that is left at any "
      "point of the axis. robust: 0.8 or more; sensitive: 0.5; fragile: 0; catastrophic: below, or "
      "rows were lost; undecided: the interval allows several bands, in brackets. ratio: the "
      "geometric mean over strata of the ratios of means.");
  if (has_ranges(of)) section.lines.push_back(range_meaning() + ".");
  return section;
}

ReportSection named_claim_section(const Portability& of) {
  ReportSection section{
      .title = "The claim in each bundle",
      .tables = {with_columns(claim_regime_table(of),
                              {"bundle", "differs_on", "state", "ratio", "95% interval"})},
      .id = "claim",
      .screen_lines = kTableLines};
  if (has_ranges(of)) section.lines.push_back(range_meaning() + ".");
  return section;
}

ReportSection headline_section(const Portability& of) {
  ReportSection section{.title = "Prefill gain and rows lost in decode",
                        .figures = {"headline"},
                        .id = "matrix",
                        .screen_lines = of.claim_named ? 0 : kTableLines};
  if (of.matrix.empty()) {
    section.lines = {"No arm beside the baseline was measured in prefill or kv_decode."};
    return section;
  }
  section.tables = {headline_matrix_table(of)};
  return section;
}

ReportSection headline_figures_section(const Portability& of) {
  return {
      .title = "Its intervals",
      .lines = {"prefill_gain: 1 less the geometric mean over strata of the arm's time over the "
                "baseline's. decode_lost: rows lost in kv_decode out of attempted ones, with "
                "Wilson's interval of the rate."},
      .tables = {headline_table(of)},
      .id = "matrix-intervals",
      .folded = true};
}

ReportSection changes_section(const Portability& of) {
  ReportSection section{.title = "What changed, and what is responsible",
                        .lines = control_lines(of),
                        .id = "responsible",
                        .screen_lines = kMovedLines};
  for (std::string& line : change_sentences(of)) section.lines.push_back(std::move(line));
  if (section.lines.empty()) section.lines = {"No condition is shown to have changed."};
  return section;
}

ReportSection conditions_section(const Portability& of) {
  return {.title = "Every condition",
          .lines = {fmt::format(
              "ratio: b's mean time over a's. Holm's adjustment goes over all rows of the table. "
              "Similar: within {:.3g} %. responsible and control are of changes alone.",
              of.options.margin * 100)},
          .tables = {verdict_table(of)},
          .id = "conditions",
          .folded = true};
}

ReportSection identity_differences(const Portability& of) {
  ReportSection section{
      .title = "How the bundles differ", .lines = difference_lines(of), .id = "identity"};
  if (section.lines.empty()) {
    section.lines = {"The bundles differ on no axis of their identity."};
  } else {
    section.lines.insert(section.lines.begin(), fmt::format("From {}:", of.regimes[0].name));
  }
  return section;
}

}  // namespace

std::string measured_text(const Portability& of) {
  return fmt::format("{} beside {}; {}; the baseline is {}",
                     counted(std::ssize(of.regimes) - 1, "bundle"), of.regimes[0].name,
                     counted(std::ssize(of.conditions), "condition"), of.baseline_arm);
}

std::vector<std::string> control_lines(const Portability& of) {
  std::vector<std::string> lines;
  for (size_t r = 1; r < of.regimes.size(); ++r) {
    int64_t moved = 0;
    int64_t changed = 0;
    for (size_t i = 0; i < of.verdicts.size(); ++i) {
      if (of.verdicts[i].b != r || !is_change(of.verdicts[i].verdict)) continue;
      if (of.attributions[i].control == ControlState::kNone) continue;
      ++changed;
      moved += of.attributions[i].control == ControlState::kMoved;
    }
    if (moved == 0) continue;
    lines.push_back(fmt::format(
        "- {}: beside {} of {} of compiled arms the eager arm moved too: they are no evidence "
        "about the compiler.",
        of.regimes[r].name, moved, counted(changed, "change")));
  }
  return lines;
}

std::vector<std::string> change_sentences(const Portability& of) {
  std::vector<std::string> lines;
  for (const AlikeChanges& alike : alike_changes(of)) {
    const ConditionVerdict& verdict = of.verdicts[alike.first];
    const auto more = std::ssize(alike.strata) - 1;
    const std::string& cause = of.attributions[alike.first].text;
    lines.push_back(fmt::format(
        "- {}{}: {} on {}{}, {} beside {}{}{}", portability_verdict_name(verdict.verdict),
        ratios_text(alike.ratios), of.conditions[verdict.condition].arm(), alike.strata.front(),
        more > 0 ? " and " + more_text(more, verdict.verdict) : "", of.regimes[verdict.b].name,
        of.regimes[verdict.a].name,
        verdict.reason.empty() ? "." : fmt::format(": {}.", verdict.reason),
        cause.empty() ? "" : " " + cause));
  }
  return lines;
}

std::vector<std::string> difference_lines(const Portability& of) {
  struct Line {
    std::string axis;
    std::string change;
    std::vector<std::string> about;
  };
  std::vector<std::string> texts;
  for (size_t r = 1; r < of.regimes.size(); ++r) {
    std::vector<Line> lines;
    for (const AxisDifference& d : pair_of(of.pairs, 0, r).differences) {
      const std::string change = fmt::format("{} -> {}", d.base.empty() ? "nothing" : d.base,
                                             d.cand.empty() ? "nothing" : d.cand);
      auto line = std::ranges::find_if(lines, [&](const Line& one) {
        return one.axis == d.axis && one.change == change && d.about.empty() == one.about.empty();
      });
      if (line == lines.end()) line = lines.insert(lines.end(), {d.axis, change, {}});
      if (!d.about.empty()) line->about.push_back(d.about);
    }
    for (const Line& line : lines) {
      const std::string about =
          line.about.empty() ? std::string() : " of " + join(line.about, "; ");
      texts.push_back(
          fmt::format("- {}: {}{}: {}", of.regimes[r].name, line.axis, about, line.change));
    }
    std::vector<std::string> unstated;
    for (const UnstatedAxis& each : pair_of(of.pairs, 0, r).unstated) {
      add_once(unstated, each.axis);
    }
    if (unstated.empty()) continue;
    texts.push_back(fmt::format("- {}: not stated here, or not in {}: {}", of.regimes[r].name,
                                of.regimes[0].name, join(unstated, ", ")));
  }
  return texts;
}

std::string portability_outcome(const Portability& of) {
  int64_t portable = 0;
  int64_t failed = 0;
  for (const JudgedClaim& claim : of.claims) {
    portable += claim.verdict == ClaimVerdict::kPortable;
    failed += claim.verdict == ClaimVerdict::kNotPortable;
  }
  const auto all = std::ssize(of.claims);
  if (of.claim_named) {
    const JudgedClaim& claim = of.claims.front();
    return fmt::format("{}: {}: {}.",
                       claim.verdict == ClaimVerdict::kPortable      ? "PORTABLE"
                       : claim.verdict == ClaimVerdict::kNotPortable ? "NOT PORTABLE"
                                                                     : "NOT DECIDED, which fails",
                       claim_text(claim.claim.words), claim.reason);
  }
  int64_t flips = 0;
  for (const ConditionVerdict& verdict : of.verdicts) flips += is_flip(verdict.verdict);
  const auto open = all - portable - failed;
  const char* word = failed + flips > 0        ? "FAILS"
                     : open == all && open > 0 ? "passes, but decides no claim"
                                               : "passes";
  return fmt::format("{}: {} of {} portable, {} not portable, {} not decided; {}.", word, portable,
                     counted(all, "claim"), failed, open, counted(flips, "flip"));
}

Document portability_document(const Portability& of) {
  Document document{
      .title = fmt::format("Portability: {} beside {}",
                           counted(std::ssize(of.regimes) - 1, "bundle"), of.regimes[0].name),
      .failed = !of.failures().empty(),
      .outcome = {portability_outcome(of), measured_text(of) + "."},
      .verdicts = claim_verdicts(of),
      .legend = index_legend(of)};
  ReportSection bundles{.title = "Bundles beside the first",
                        .tables = {regime_table(of)},
                        .id = "verdicts",
                        .screen_lines = kTableLines};
  for (size_t r = 1; r < std::min(of.regimes.size(), kDrawnBundles + 1); ++r) {
    bundles.figures.push_back(fmt::format("moves-{}", r));
  }
  if (of.regimes.size() > kDrawnBundles + 1) {
    bundles.lines.push_back(
        fmt::format("The figures are of the first {} bundles; the table has all.", kDrawnBundles));
  }
  document.sections = {std::move(bundles)};
  if (of.claim_named) document.sections.push_back(named_claim_section(of));
  document.sections.push_back(headline_section(of));
  document.sections.push_back(changes_section(of));
  document.sections.push_back(claims_section(of));
  if (!of.matrix.empty()) document.sections.push_back(headline_figures_section(of));
  document.sections.push_back(conditions_section(of));
  document.sections.push_back(identity_differences(of));
  return document;
}

std::string render_portability(const Portability& of, OutputFormat format, size_t columns) {
  return render_document(
      {[&] { return portability_document(of); }, [&] { return verdict_table(of); },
       [&] { return portability_to_json(of); }},
      format, columns);
}

}  // namespace assay
