// A judgement across bundles as a screen, Markdown, CSV and JSON.
#include "report/judgements/portability_report.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/add_once.h"
#include "base/text/shown_text.h"
#include "base/text/text.h"
#include "report/answers.h"
#include "report/fitting.h"
#include "report/judgements/portability_tables.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

constexpr size_t kScreenRegimes = 5;
constexpr size_t kScreenClaims = 6;
constexpr size_t kScreenHeadlines = 6;

void add_lines(const std::string& text, std::vector<std::string>& lines) {
  std::vector<std::string> more = split(text, '\n');
  if (!more.empty() && more.back().empty()) more.pop_back();
  std::ranges::move(more, std::back_inserter(lines));
}

void add_table(const CappedTable& table, const char* what, std::vector<std::string>& lines) {
  if (table.table.rows.empty()) return;
  lines.emplace_back();
  add_lines(table.table.render(OutputFormat::kTable, kPortabilityScreenColumns), lines);
  if (table.left_out == 0) return;
  lines.push_back(fmt::format("({}: -o md)", counted(static_cast<int64_t>(table.left_out), what)));
}

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
    if (!is_change(verdict.verdict) && !is_open_difference(verdict, of.options)) continue;
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
    if (verdict.ratio) alike.ratios.push_back(std::exp(verdict.ratio->log_ratio));
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

// Adds as many of the sentences as fit into `room` lines, with a count of the others.
void add_sentences(const std::vector<std::string>& sentences, size_t room,
                   std::vector<std::string>& lines) {
  size_t shown = 0;
  for (const std::string& sentence : sentences) {
    const auto wrapped = wrapped_lines(shown_line(sentence), kPortabilityScreenColumns, 2, 4);
    const bool last = &sentence == &sentences.back();
    if (wrapped.size() + (last ? 0 : 1) > room) break;
    room -= wrapped.size();
    std::ranges::copy(wrapped, std::back_inserter(lines));
    ++shown;
  }
  if (shown < sentences.size() && room > 0) {
    lines.push_back(fmt::format("({} more changes: -o md)", sentences.size() - shown));
  }
}

bool has_ranges(const Portability& of) {
  return std::ranges::any_of(of.claims, [](const JudgedClaim& claim) {
    return std::ranges::any_of(claim.regimes,
                               [](const ClaimInRegime& in) { return in.ratio_range.has_value(); });
  });
}

ReportSection claims_part(const Portability& of) {
  ReportSection section{
      "Claims",
      {},
      {claim_table(of, true, kEveryRow).table, claim_regime_table(of, kEveryRow).table}};
  section.lines.emplace_back(
      "index: the smallest share of the claim's log ratio in the first bundle that is left at any "
      "point of the axis. robust: 0.8 or more; sensitive: 0.5; fragile: 0; catastrophic: below, or "
      "rows were lost; in brackets the bands that the interval allows. ratio: the geometric mean "
      "over strata of the ratios of means.");
  if (has_ranges(of)) section.lines.push_back(range_meaning() + ".");
  return section;
}

}  // namespace

std::string measured_text(const Portability& of) {
  return fmt::format("portability: {} beside {}; {} (baseline {})",
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
                     : open == all && open > 0 ? "passes, with no claim decided"
                                               : "passes";
  return fmt::format("{}: {} of {} portable, {} not portable, {} not decided; {}.", word, portable,
                     counted(all, "claim"), failed, open, counted(flips, "flip"));
}

std::vector<ReportSection> portability_sections(const Portability& of) {
  std::vector<ReportSection> sections;
  sections.push_back({"Verdict", {portability_outcome(of)}, {}});
  ReportSection bundles{"Bundles", {measured_text(of) + "."}, {regime_table(of, kEveryRow).table}};
  std::ranges::move(difference_lines(of), std::back_inserter(bundles.lines));
  sections.push_back(std::move(bundles));
  sections.push_back(claims_part(of));
  ReportSection headline{
      "Prefill gain and rows lost in decode",
      {"prefill_gain: 1 less the geometric mean over strata of the arm's time over "
       "the baseline's. decode_lost: rows lost in kv_decode out of attempted "
       "ones, with Wilson's interval of the rate."},
      {headline_matrix_table(of, kEveryRow).table, headline_table(of, kEveryRow).table}};
  if (of.matrix.empty()) {
    headline.lines = {"No arm beside the baseline was measured in prefill or kv_decode."};
    headline.tables.clear();
  }
  sections.push_back(std::move(headline));
  ReportSection changes{"What changed, and what is responsible", control_lines(of), {}};
  for (std::string& line : change_sentences(of)) changes.lines.push_back(std::move(line));
  if (changes.lines.empty()) changes.lines.emplace_back("Nothing that is shown.");
  sections.push_back(std::move(changes));
  ReportSection verdicts{
      "Verdicts by condition",
      {fmt::format("ratio: b's mean time over a's. Holm's adjustment goes over all "
                   "rows of the table. Similar: within {:.3g} %.",
                   of.options.margin * 100)},
      {with_columns(verdict_table(of, false, kEveryRow).table,
                    {"phase", "model", "scenario", "new_tokens", "batch", "arm", "b", "verdict",
                     "ratio", "lost_a", "lost_b", "reason"})}};
  sections.push_back(std::move(verdicts));
  return sections;
}

namespace {

// Claims of arms against the baseline name it in the head, so that the arms' names are whole.
void leave_out_baseline(const Portability& of, Table& table) {
  const std::string than = fmt::format(" than {}", of.baseline_arm);
  table.columns[0].name = fmt::format("claim ({})", than.substr(1));
  for (auto& row : table.rows) {
    std::string claim = cell_text(row[0]);
    if (const size_t at = claim.find(than + " in "); at != std::string::npos) {
      row[0] = TableCell::of(claim.erase(at, than.size()));
    }
  }
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

void add_index_legend(const Portability& of, std::vector<std::string>& lines) {
  const std::string text = fmt::format(
      "index: the smallest share of the claim's log ratio that remains {}. band: of the index; in "
      "brackets what the index's interval allows.",
      of.claim_named ? "at any point of the axis" : "in any bundle (by axis: -o md)");
  std::ranges::move(wrapped_lines(text, kPortabilityScreenColumns, 0, 2),
                    std::back_inserter(lines));
}

std::string screen(const Portability& of) {
  std::vector<std::string> lines;
  for (const std::string& text : {measured_text(of), portability_outcome(of)}) {
    std::ranges::move(wrapped_lines(shown_line(text), kPortabilityScreenColumns, 2, 2),
                      std::back_inserter(lines));
  }
  add_table(regime_table(of, kScreenRegimes), "more bundle", lines);
  Table claims = claim_table(of, of.claim_named, kEveryRow).table;
  if (of.claim_named) {
    claims = with_columns(claims, {"axis", "verdict", "points", "index", "95% interval", "band"});
  } else {
    claims = with_columns(claims, {"claim", "verdict", "index", "band"});
    leave_out_baseline(of, claims);
    told_first(claims);
  }
  add_table(capped(std::move(claims), kScreenClaims), "more claim", lines);
  add_index_legend(of, lines);
  if (of.claim_named) {
    CappedTable regimes = claim_regime_table(of, kScreenClaims);
    regimes.table =
        with_columns(regimes.table, {"bundle", "differs_on", "state", "ratio", "95% interval"});
    add_table(regimes, "more bundle", lines);
    if (has_ranges(of)) {
      std::ranges::move(wrapped_lines(range_meaning() + ".", kPortabilityScreenColumns, 0, 2),
                        std::back_inserter(lines));
    }
  } else {
    const CappedTable headline = headline_matrix_table(of, kScreenHeadlines);
    add_table(headline, "more row", lines);
  }
  std::vector<std::string> sentences = control_lines(of);
  std::ranges::move(change_sentences(of), std::back_inserter(sentences));
  if (!sentences.empty() && lines.size() + 3 <= kPortabilityScreenLines) {
    lines.emplace_back();
    add_sentences(sentences, kPortabilityScreenLines - lines.size(), lines);
  }
  return join(lines, "\n") + "\n";
}

}  // namespace

std::string render_portability(const Portability& of, OutputFormat format) {
  switch (format) {
    case OutputFormat::kJson:
      return to_json_text(portability_to_json(of));
    case OutputFormat::kCsv:
      return verdict_table(of, false, kEveryRow).table.render(OutputFormat::kCsv);
    case OutputFormat::kMarkdown:
      return render_markdown(
          fmt::format("assay portability: {} beside {}",
                      counted(std::ssize(of.regimes) - 1, "bundle"), of.regimes[0].name),
          portability_sections(of));
    case OutputFormat::kTable:
      break;
  }
  return screen(of);
}

}  // namespace assay
