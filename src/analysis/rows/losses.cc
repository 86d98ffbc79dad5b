// Lost rows, process by process.
#include "analysis/rows/losses.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/findings/options.h"
#include "stats/hypotheses/proportions.h"

namespace assay {

void Losses::add(const Losses& cell) {
  lost += cell.lost;
  attempted += cell.attempted;
  died += cell.died;
  processes.insert(processes.end(), cell.processes.begin(), cell.processes.end());
  weighted_effects =
      weighted_effects.value_or(0) + static_cast<double>(cell.lost) * cell.design_effect();
}

double Losses::design_effect() const {
  if (weighted_effects) return lost > 0 ? *weighted_effects / static_cast<double>(lost) : 1;
  if (const auto effect = stats::design_effect(processes)) return *effect;
  if (lost == 0 || lost < attempted || died == 0 || processes.size() < 2) return 1;
  return static_cast<double>(attempted) / static_cast<double>(processes.size());
}

std::optional<stats::Interval> Losses::interval(double least_effect) const {
  double effect = std::max(design_effect(), least_effect);
  if (!processes.empty()) {
    const auto of_processes =
        static_cast<double>(attempted) / static_cast<double>(processes.size());
    effect = std::max(1.0, std::min(effect, of_processes));
  }
  return stats::clustered_wilson_interval(lost, attempted, effect, kConfidence);
}

std::optional<stats::Interval> Losses::died_interval() const {
  return stats::wilson_interval(died, std::ssize(processes), kConfidence);
}

Losses losses_of(const Group& group) {
  using Process = std::pair<bool, int64_t>;  // named: its number; else the block, or -1 for all
  const bool told = std::ranges::none_of(
      group.rows, [](const Row* row) { return !row->process && row->status == RowStatus::kOk; });
  const auto process_of_row = [told](const Row& row) -> Process {
    if (row.process) return {true, *row.process};
    return {false, told ? row.block : -1};
  };
  Losses losses;
  std::map<Process, stats::ClusterCount> processes;
  std::set<Process> dead;
  for (const Row* row : group.rows) {
    stats::ClusterCount& process = processes[process_of_row(*row)];
    ++losses.attempted;
    ++process.n;
    if (row->status == RowStatus::kOk) continue;
    ++losses.lost;
    ++process.successes;
    if (row->status == RowStatus::kCrash || row->status == RowStatus::kTimeout) {
      dead.insert(process_of_row(*row));
    }
  }
  losses.died = std::ssize(dead);
  for (const auto& [process, count] : processes) losses.processes.push_back(count);
  return losses;
}

}  // namespace assay
