// Claims from bundle to bundle: their ratios, and how much of their effect is left.
#include <algorithm>
#include <cmath>

#include "base/add_once.h"
#include "base/records/enum_words.h"
#include "base/text/listed.h"
#include "base/text/text.h"
#include "report/figures/judgement_figures.h"
#include "report/figures/parts.h"
#include "report/judgements/portability_tables.h"

namespace assay {
namespace {

constexpr double kRobust = 0.8;

// Findings for the functions that figures share: `names` in place of arms, `rows` claims in place
// of strata.
Findings named_lines(std::vector<std::string> names, size_t rows) {
  Findings of;
  of.study.arms = std::move(names);
  of.strata.resize(rows);
  return of;
}

std::vector<std::string> regime_names(const Portability& of) {
  std::vector<std::string> names;
  for (const Regime& regime : of.regimes) names.push_back(regime.name);
  return names;
}

int64_t times_held(const JudgedClaim& claim) {
  return std::ranges::count(claim.regimes, ClaimState::kHolds, &ClaimInRegime::state);
}

// "it is turned round in b and undecided in c".
std::string state_text(ClaimState state) {
  return std::string(word_of(
      state, {"holds", "is turned round", "lost its rows", "can't be judged", "is undecided"}));
}

std::string elsewhere_text(const Portability& of, const JudgedClaim& claim) {
  std::vector<std::string> parts;
  for (const ClaimState state :
       {ClaimState::kTurned, ClaimState::kLost, ClaimState::kUndecided, ClaimState::kGone}) {
    std::vector<std::string> names;
    for (const ClaimInRegime& in : claim.regimes) {
      if (in.state == state) names.push_back(of.regimes[in.regime].name);
    }
    if (names.empty()) continue;
    parts.push_back(fmt::format("{} in {}", state_text(state), listed(names, kMostListed)));
  }
  return parts.empty() ? "" : fmt::format("; it {}", listed(parts, 4));
}

std::string claims_finding(const Portability& of) {
  const JudgedClaim& weakest = *std::ranges::min_element(of.claims, {}, times_held);
  const std::string words = fmt::format(
      "\"{}\" holds in {} of {}{}", claim_text(weakest.claim.words), times_held(weakest),
      counted(std::ssize(weakest.regimes), "bundle"), elsewhere_text(of, weakest));
  if (of.claims.size() == 1) return words;
  const auto everywhere = std::ranges::count_if(of.claims, [](const JudgedClaim& claim) {
    return times_held(claim) == std::ssize(claim.regimes);
  });
  if (everywhere == std::ssize(of.claims)) {
    return fmt::format("Each of {} claims holds in each of {} bundles", everywhere,
                       of.regimes.size());
  }
  return fmt::format("{} of {} claims {} in every bundle. {}", everywhere, of.claims.size(),
                     everywhere == 1 ? "holds" : "hold", words);
}

plot::RowLine line_in_regime(const Portability& of, const ClaimInRegime& in) {
  plot::RowLine line;
  line.style = {in.regime};
  line.tip = fmt::format("{}: the claim {}{}{}", of.regimes[in.regime].name, state_text(in.state),
                         in.reason.empty() ? "" : ": ", in.reason);
  if (!in.shown) {
    line.text = line_text(std::string(claim_state_name(in.state)));
    return line;
  }
  line.value = in.shown->ratio;
  line.interval = ratio_span(in.shown->interval);
  line.text = line_text(ratio_text(*line.value, in.shown->interval, in.shown->process_range) +
                        (in.state == ClaimState::kTurned ? " turned" : ""));
  return line;
}

// "0.62 [0.55, 0.70]"; without a minus before 0.
std::string index_text(const RobustnessIndex& index) {
  std::string text = format_significant(*index.index + 0.0, 2);
  if (index.interval) {
    text += fmt::format(" [{}, {}]", format_significant(index.interval->low, 2),
                        format_significant(index.interval->high, 2));
  }
  return text;
}

// The point that decides the index: the smallest share of the effect is left there.
const RetainedShare* weakest_point(const RobustnessIndex& index) {
  const RetainedShare* weakest = nullptr;
  for (const RetainedShare& point : index.points) {
    if (!point.share || &point == &index.points.front()) continue;
    if (weakest == nullptr || *point.share < *weakest->share) weakest = &point;
  }
  return weakest;
}

struct IndexOfClaim {
  const JudgedClaim* claim = nullptr;
  const RobustnessIndex* index = nullptr;
};

// Those that have a value.
std::vector<IndexOfClaim> indexes_of(const Portability& of) {
  std::vector<IndexOfClaim> all;
  for (const JudgedClaim& claim : of.claims) {
    for (const RobustnessIndex& index : claim.indexes) {
      if (index.axis != "all" && index.index && index.points.size() > 1) {
        all.push_back({&claim, &index});
      }
    }
  }
  return all;
}

std::string robustness_finding(const Portability& of, const std::vector<IndexOfClaim>& indexes) {
  const IndexOfClaim* worst = nullptr;
  int64_t robust = 0;
  for (const IndexOfClaim& one : indexes) {
    robust += one.index->band == RobustnessBand::kRobust;
    if (worst == nullptr || *one.index->index < *worst->index->index) worst = &one;
  }
  const RetainedShare* point = weakest_point(*worst->index);
  const std::string least = fmt::format(
      "\"{}\" keeps {} of its effect{} ({} on the axis {})", claim_text(worst->claim->claim.words),
      index_text(*worst->index), point == nullptr ? "" : fmt::format(" in {}", point->name),
      robustness_band_name(worst->index->band), axis_behind(of, *worst->index));
  if (indexes.size() == 1) return least;
  return fmt::format("{} of {} indexes {} robust. The lowest: {}", robust, indexes.size(),
                     robust == 1 ? "is" : "are", least);
}

plot::RowLine line_of_index(const Findings& axes, const RobustnessIndex& index) {
  plot::RowLine line;
  line.style = arm_style(axes, index.axis);
  line.value = index.index;
  if (index.interval) line.interval = span_of(*index.interval);
  line.text = line_text(fmt::format("{} {}", format_significant(*index.index + 0.0, 2),
                                    robustness_band_name(index.band)));
  line.tip = fmt::format("{}: {}", index.axis, index_text(index));
  for (const RetainedShare& point : index.points) {
    if (!point.share || &point == &index.points.front()) continue;
    line.small.push_back(
        {*point.share, fmt::format("{}: {}", point.name, format_significant(*point.share, 2))});
  }
  return line;
}

}  // namespace

std::optional<Figure> claims_figure(const Portability& of) {
  const bool any = std::ranges::any_of(of.claims, [](const JudgedClaim& claim) {
    return std::ranges::any_of(claim.regimes, [](const auto& in) { return in.shown.has_value(); });
  });
  if (!any) return std::nullopt;
  const Findings all = named_lines(regime_names(of), of.claims.size());
  RowsFigure rows;
  rows.x_label = "ratio of the claim's arms (below 1: the first is faster)";
  rows.rule = plot::RuleAt{1, "as long as the other arm"};
  for (size_t c = 0; c < of.claims.size(); ++c) {
    StratumRow row{c, {whole_label(claim_text(of.claims[c].claim.words)), {}}};
    for (const ClaimInRegime& in : of.claims[c].regimes) {
      row.row.lines.push_back(line_in_regime(of, in));
    }
    rows.rows.push_back(std::move(row));
  }
  Figure figure;
  figure.id = "claims";
  figure.finding = claims_finding(of);
  figure.caption =
      "Each mark is a bundle's geometric mean over strata of the first arm's time over the second "
      "arm's, with the 95 % interval. A claim is portable if every bundle's interval lies on "
      "its side of 1 after Holm's adjustment, and two bundles differ on one axis alone. "
      "\"turned\": the "
      "opposite of the claim holds.";
  figure.legend = arm_legend(all, all.study.arms, false);
  draw_rows(all, rows, "Ratios of claims in each bundle", figure);
  figure.tables.push_back(claim_regime_table(of));
  return figure;
}

std::optional<Figure> robustness_figure(const Portability& of) {
  const std::vector<IndexOfClaim> indexes = indexes_of(of);
  if (indexes.empty()) return std::nullopt;
  std::vector<std::string> axes;
  for (const IndexOfClaim& one : indexes) {
    add_once(axes, one.index->axis);
  }
  const Findings all = named_lines(axes, of.claims.size());
  RowsFigure rows;
  rows.x_label = "share of the claim's log ratio that is left";
  rows.rule = plot::RuleAt{kRobust, "robust from here on"};
  for (size_t c = 0; c < of.claims.size(); ++c) {
    StratumRow row{c, {whole_label(claim_text(of.claims[c].claim.words)), {}}};
    for (const IndexOfClaim& one : indexes) {
      if (one.claim == &of.claims[c]) row.row.lines.push_back(line_of_index(all, *one.index));
    }
    if (!row.row.lines.empty()) rows.rows.push_back(std::move(row));
  }
  Figure figure;
  figure.id = "robustness";
  figure.finding = robustness_finding(of, indexes);
  figure.caption =
      "Each mark is a claim's robustness index on one axis: the smallest share of its log ratio "
      "that is left at any point of the axis, with its interval. Small marks are the "
      "points. Right of 0.8 the claim is robust, from 0.5 on sensitive, from 0 on fragile. Below "
      "0 the claim is turned round, which is catastrophic, as are lost rows. Where the interval "
      "allows several of these, the band is undecided. Claims without an index are in the table.";
  figure.legend = arm_legend(all, axes, false);
  figure.legend.push_back({"one point of the axis", {}, plot::Sample::kSmallMark});
  draw_rows(all, rows, "Robustness indexes of claims", figure);
  figure.tables.push_back(claim_table(of, true));
  return figure;
}

}  // namespace assay
