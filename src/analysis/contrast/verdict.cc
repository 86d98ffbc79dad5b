// Verdicts on ratios.
#include "analysis/contrast/verdict.h"

#include "analysis/contrast/process_range.h"
#include "stats/hypotheses/multiple.h"

namespace assay {
namespace {

// True if all of it lies farther from 1 than two processes of one arm ever did.
bool is_beyond_processes(const std::optional<stats::Interval>& of) {
  return of && (of->low > kMostBetweenProcesses || of->high < 1 / kMostBetweenProcesses);
}

}  // namespace

bool withheld(const ShownRatio& shown) {
  return shown.one_process && !is_beyond_processes(shown.interval);
}

namespace {

bool agrees(const ShownRatio& shown, Verdict verdict, double margin) {
  if (withheld(shown)) return false;
  if (shown.too_few && !bears_out(shown.range, verdict, margin)) return false;
  if (!shown.interval) return true;
  if (verdict != Verdict::kEquivalent) return !shown.interval->contains(1);
  return shown.interval->low > 1 / (1 + margin) && shown.interval->high < 1 + margin;
}

}  // namespace

Verdict verdict_of(const ShownRatio& shown, const AdjustedTests& p, double alpha, double margin) {
  const auto holds = [&](const std::optional<double>& tested, Verdict verdict) {
    return tested && *tested < alpha && agrees(shown, verdict, margin);
  };
  if (holds(p.equivalence, Verdict::kEquivalent)) return Verdict::kEquivalent;
  const Verdict direction = shown.ratio < 1 ? Verdict::kFaster : Verdict::kSlower;
  const bool decided =
      holds(p.difference, direction) || (shown.too_few && is_beyond_processes(shown.range));
  return decided ? direction : Verdict::kInconclusive;
}

std::vector<std::optional<double>> holm_of(std::span<const std::optional<double>> p_values,
                                           size_t lost) {
  std::vector<double> known;
  for (const auto& p : p_values) {
    if (p) known.push_back(*p);
  }
  known.insert(known.end(), lost, 1.0);
  const std::vector<double> adjusted = stats::holm(known);
  std::vector<std::optional<double>> all(p_values.size());
  size_t next = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (p_values[i]) all[i] = adjusted[next++];
  }
  return all;
}

}  // namespace assay
