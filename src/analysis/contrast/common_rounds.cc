// Units to rounds.
#include "analysis/contrast/common_rounds.h"

#include <algorithm>
#include <map>

namespace assay {
namespace {

struct PlacedUnit {
  UnitSpan span;
  size_t series = 0;
  size_t unit = 0;
};

// The units by first repetition, of equal ones the longest first.
std::vector<PlacedUnit> by_first_repetition(std::span<const std::vector<UnitSpan>> series) {
  std::vector<PlacedUnit> all;
  for (size_t s = 0; s < series.size(); ++s) {
    for (size_t u = 0; u < series[s].size(); ++u) all.push_back({series[s][u], s, u});
  }
  std::ranges::stable_sort(all, {}, [](const PlacedUnit& placed) {
    return std::pair(placed.span.first_repetition, -placed.span.last_repetition);
  });
  return all;
}

// Numbers the rounds by repetitions. False: some overlap is partial.
bool number_by_repetitions(const std::vector<PlacedUnit>& all, CommonRounds& rounds) {
  int64_t end = -1;  // the last repetition of the round
  for (const PlacedUnit& placed : all) {
    const UnitSpan& span = placed.span;
    if (rounds.count == 0 || span.first_repetition > end) {
      ++rounds.count;
      end = span.last_repetition;
    } else if (span.last_repetition > end) {
      return false;
    }
    rounds.of[placed.series][placed.unit] = static_cast<int64_t>(rounds.count) - 1;
  }
  return true;
}

void number_by_processes(const std::vector<PlacedUnit>& all, CommonRounds& rounds) {
  std::map<int64_t, int64_t> numbers;
  for (const PlacedUnit& placed : all) numbers.try_emplace(placed.span.process, 0);
  rounds.count = 0;
  for (auto& [process, number] : numbers) number = static_cast<int64_t>(rounds.count++);
  for (const PlacedUnit& placed : all) {
    rounds.of[placed.series][placed.unit] = numbers.at(placed.span.process);
  }
}

}  // namespace

CommonRounds common_rounds(std::span<const std::vector<UnitSpan>> series) {
  CommonRounds rounds;
  for (const auto& units : series) rounds.of.emplace_back(units.size());
  const std::vector<PlacedUnit> all = by_first_repetition(series);
  if (!number_by_repetitions(all, rounds)) number_by_processes(all, rounds);
  rounds.whole = std::ranges::all_of(rounds.of, [&](const std::vector<int64_t>& units) {
    return units == rounds.of[0] && units.size() == rounds.count;
  });
  return rounds;
}

}  // namespace assay
