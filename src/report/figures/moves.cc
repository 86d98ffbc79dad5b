// Moves of conditions from one bundle to another: compiled arms beside their eager control.
#include <algorithm>
#include <cmath>

#include "base/add_once.h"
#include "base/text/text.h"
#include "report/figures/judgement_figures.h"
#include "report/figures/parts.h"
#include "report/fitting.h"
#include "report/judgements/portability_tables.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

// Strata that a figure has room for; its table has all of them.
constexpr size_t kMostMoves = 60;

using Moves = std::vector<const ConditionVerdict*>;

// Arms and strata of all regimes, so that an arm looks alike in every figure.
Findings arms_and_strata(const Portability& of) {
  Findings all;
  for (const PortedCondition& condition : of.conditions) {
    const std::string& arm = condition.arm();
    add_once(all.study.arms, arm);
    add_once(all.strata, condition.stratum);
  }
  return all;
}

bool is_eager(const Portability& of, const ConditionVerdict& verdict) {
  return of.conditions[verdict.condition].config.mode == "eager";
}

bool is_missing(const ConditionVerdict& verdict) {
  return verdict.verdict == PortabilityVerdict::kMissingA ||
         verdict.verdict == PortabilityVerdict::kMissingB;
}

double size_of(const ConditionVerdict& verdict) {
  return verdict.ratio ? std::abs(verdict.ratio->log_ratio) : 0;
}

// "1.50 [1.48, 1.52] of its time in a".
std::string moved_text(const ConditionVerdict& verdict) {
  return ratio_text(verdict.shown->ratio, verdict.shown->interval, verdict.shown->process_range);
}

// The difference that is the largest, flips before all others; null: none is shown.
const ConditionVerdict* largest_change(const Moves& moves) {
  const ConditionVerdict* largest = nullptr;
  const auto rank = [](const ConditionVerdict& v) {
    return std::pair(is_flip(v.verdict), size_of(v));
  };
  for (const ConditionVerdict* move : moves) {
    if (!is_change(move->verdict) && !is_open_difference(*move)) continue;
    if (largest == nullptr || rank(*move) > rank(*largest)) largest = move;
  }
  return largest;
}

int64_t count_of(const Moves& moves, PortabilityVerdict verdict) {
  return std::ranges::count(moves, verdict, [](const auto* move) { return move->verdict; });
}

std::string is_or_are(int64_t count) {
  return fmt::format("{} {}", count, count == 1 ? "is" : "are");
}

// "the eager control changed in 1 of 2 conditions".
std::string eager_text(const Portability& of, const Moves& moves) {
  Moves eager;
  std::ranges::copy_if(moves, std::back_inserter(eager),
                       [&](const auto* move) { return is_eager(of, *move); });
  if (eager.empty()) return "no eager arm is there as a control";
  const auto all = std::ssize(eager);
  const auto changed =
      std::ranges::count_if(eager, [](const auto* move) { return is_change(move->verdict); });
  if (changed > 0)
    return fmt::format("the eager control changed in {} of {}", changed, counted(all, "condition"));
  const auto similar = count_of(eager, PortabilityVerdict::kSimilar);
  if (similar == all) {
    return fmt::format("the eager control stayed within {:.3g} %", of.options.margin * 100);
  }
  return fmt::format("whether the eager control changed is undecided in {} of {}", all - similar,
                     counted(all, "condition"));
}

std::string place_text(const Findings& all, const PortedCondition& condition) {
  const auto at = std::ranges::find(all.strata, condition.stratum);
  return fmt::format("{} of {}", stratum_label(all, static_cast<size_t>(at - all.strata.begin())),
                     phase_name(condition.stratum.phase));
}

std::string moves_finding(const Portability& of, const Findings& all, const Moves& moves,
                          size_t regime) {
  const std::string& name = of.regimes[regime].name;
  const ConditionVerdict* most = largest_change(moves);
  if (most == nullptr) {
    const auto missing = count_of(moves, PortabilityVerdict::kMissingA) +
                         count_of(moves, PortabilityVerdict::kMissingB);
    return fmt::format(
        "{}: no condition is shown to have changed; {} shown to be similar, {} undecided{}", name,
        is_or_are(count_of(moves, PortabilityVerdict::kSimilar)),
        is_or_are(count_of(moves, PortabilityVerdict::kUndecided)),
        missing == 0 ? "" : fmt::format(", {} not measured in one bundle", is_or_are(missing)));
  }
  const PortedCondition& condition = of.conditions[most->condition];
  const std::string where = place_text(all, condition);
  if (most->verdict == PortabilityVerdict::kOutcomeFlip) {
    return fmt::format("{}: {} lost {} rows at {}, and {} in {}; {}", name, condition.arm(),
                       lost_of_text(condition.cells[most->b]->crashes), where,
                       lost_of_text(condition.cells[most->a]->crashes), of.regimes[most->a].name,
                       eager_text(of, moves));
  }
  return fmt::format(
      "{}: {} takes {} of its time in {} at {}{}; {}", name, condition.arm(), moved_text(*most),
      of.regimes[most->a].name, where,
      most->verdict == PortabilityVerdict::kDirectionFlip ? ", which turns its direction round"
      : is_change(most->verdict)
          ? ", the largest change"
          : ", the largest change, though its direction against the baseline is undecided",
      eager_text(of, moves));
}

std::string absent_text(const PortedCondition& condition, const ConditionVerdict& verdict) {
  switch (verdict.verdict) {
    case PortabilityVerdict::kOutcomeFlip:
    case PortabilityVerdict::kCrashBoth:
      return fmt::format("lost {}, {}", lost_of_text(condition.cells[verdict.a]->crashes),
                         lost_of_text(condition.cells[verdict.b]->crashes));
    default:
      return "undecided";
  }
}

plot::RowLine line_of_move(const Portability& of, const Findings& all,
                           const ConditionVerdict& verdict) {
  const PortedCondition& condition = of.conditions[verdict.condition];
  plot::RowLine line;
  line.style = arm_style(all, condition.arm());
  line.tip = fmt::format("{}, {}: {}{}{}", place_text(all, condition), condition.arm(),
                         portability_verdict_name(verdict.verdict),
                         verdict.reason.empty() ? "" : ": ", verdict.reason);
  if (!verdict.ratio) {
    line.text = line_text(absent_text(condition, verdict));
    return line;
  }
  line.value = verdict.shown->ratio;
  line.interval = ratio_span(verdict.shown->interval);
  line.text = line_text(moved_text(verdict) + (is_flip(verdict.verdict) ? " flip" : ""));
  return line;
}

// The rows by phase, then in the conditions' order; only the strata that moved most, if there are
// many.
std::vector<StratumRow> rows_of_moves(const Portability& of, const Findings& all,
                                      const Moves& moves) {
  std::vector<StratumRow> rows;
  std::vector<double> sizes;
  for (size_t s = 0; s < all.strata.size(); ++s) {
    StratumRow row{
        s,
        {row_label(fmt::format("{} {}", phase_name(all.strata[s].phase), stratum_label(all, s))),
         {}}};
    double size = 0;
    for (const ConditionVerdict* move : moves) {
      if (of.conditions[move->condition].stratum != all.strata[s] || is_missing(*move)) continue;
      row.row.lines.push_back(line_of_move(of, all, *move));
      size = std::max(size, size_of(*move) + (is_flip(move->verdict) ? 1e6 : 0));
    }
    if (row.row.lines.empty()) continue;
    rows.push_back(std::move(row));
    sizes.push_back(size);
  }
  if (rows.size() <= kMostMoves) return rows;
  std::vector<double> sorted = sizes;
  std::ranges::sort(sorted, std::greater());
  const double least = sorted[kMostMoves - 1];
  std::vector<StratumRow> most;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (sizes[i] >= least && most.size() < kMostMoves) most.push_back(std::move(rows[i]));
  }
  return most;
}

}  // namespace

std::optional<Figure> moves_figure(const Portability& of, size_t regime) {
  Moves moves;
  for (const ConditionVerdict& verdict : of.verdicts) {
    if (verdict.b == regime) moves.push_back(&verdict);
  }
  if (std::ranges::none_of(moves, [](const auto* move) { return move->ratio.has_value(); })) {
    return std::nullopt;
  }
  const Findings all = arms_and_strata(of);
  const std::string& first = of.regimes[0].name;
  const std::string& name = of.regimes[regime].name;
  RowsFigure rows;
  rows.x_label = shortened(fmt::format("ratio to its time in {}", first), plot::kLabelColumns);
  rows.rule = plot::RuleAt{1, fmt::format("as long as in {}", first)};
  rows.rows = rows_of_moves(of, all, moves);
  Figure figure;
  figure.id = fmt::format("moves-{}", regime);
  figure.finding = moves_finding(of, all, moves, regime);
  figure.caption = fmt::format(
      "Each mark is the mean time of an arm in {} over its mean time in {}, with the 95 % "
      "interval. Left of 1 it got faster. A flip: the arm was faster than the baseline in one "
      "bundle and slower in the other, or rows were lost in one alone. If "
      "the eager arm moved too, a compiled arm's move is no evidence about its compiler.{}",
      name, first,
      rows.rows.size() == kMostMoves
          ? fmt::format(" The figure has the {} strata that moved most; the table has all.",
                        kMostMoves)
          : "");
  std::vector<std::string> arms;
  for (const ConditionVerdict* move : moves) {
    if (!is_missing(*move)) arms.push_back(of.conditions[move->condition].arm());
  }
  figure.legend = arm_legend(all, arms, false);
  draw_rows(all, rows, fmt::format("Times in {} over those in {}", name, first), figure);
  figure.tables.push_back(moves_table(of, regime));
  return figure;
}

}  // namespace assay
