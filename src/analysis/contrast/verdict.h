// The one rule of verdicts on a ratio: what its tests say, as far as what stands beside it agrees.
//
// A reader sees the ratio with its interval, and takes a verdict that the interval contradicts for
// a mistake: a difference needs an interval without 1, equivalence one within the margin.
// Contrasts, comparisons and portability judge by it alike.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/findings/contrast.h"

namespace assay {

// A ratio as it is shown.
struct ShownRatio {
  double ratio = 1;
  std::optional<stats::Interval> interval = {};  // absent: its tests stand alone
  bool too_few = false;  // processes: `range` has to bear the verdict out too
  std::optional<stats::Interval> range = {};
  bool one_process = false;  // of an arm: nothing shows what differs between processes
};

// p of a ratio of 1, and of one beyond the margin, after Holm; absent: not tested.
struct AdjustedTests {
  std::optional<double> difference;
  std::optional<double> equivalence;
};

// True if no test can decide it: an arm ran in one process, and the ratio isn't beyond
// kMostBetweenProcesses.
bool withheld(const ShownRatio& shown);

// Equivalent before faster or slower, where both hold. A range of too few processes beyond
// kMostBetweenProcesses decides by itself, and one process decides nothing else.
Verdict verdict_of(const ShownRatio& shown, const AdjustedTests& p, double alpha, double margin);

// Holm's adjustment of those values that are there, in their places. `lost`: members of the family
// that can't be tested, because rows were lost. They count, so that a loss makes no other member's
// p smaller.
std::vector<std::optional<double>> holm_of(std::span<const std::optional<double>> p_values,
                                           size_t lost = 0);

// The same of one test of each member of a family. Returns the number of members that have it.
template <typename Member>
int64_t adjust_by_holm(const std::vector<Member*>& family,
                       std::optional<stats::TestResult> Member::*test,
                       std::optional<double> Member::*adjusted, size_t lost = 0) {
  std::vector<std::optional<double>> p_values;
  int64_t tested = 0;
  for (const Member* member : family) {
    p_values.push_back(member->*test ? std::optional((member->*test)->p) : std::nullopt);
    tested += (member->*test).has_value();
  }
  p_values = holm_of(p_values, lost);
  for (size_t i = 0; i < family.size(); ++i) family[i]->*adjusted = p_values[i];
  return tested;
}

}  // namespace assay
