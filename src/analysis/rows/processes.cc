// Rows of a cell by worker process.
#include "analysis/rows/processes.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "stats/samples/summary.h"

namespace assay {

int64_t process_of(const Row& row) {
  return row.process.value_or(0);
}

bool is_of_one_process(const Group& group) {
  const auto is_told = [](const Row* row) { return row->process.has_value(); };
  return !group.warm.empty() && std::ranges::all_of(group.warm, is_told) &&
         !several_processes(group);
}

bool several_processes(const Group& group) {
  return std::ranges::any_of(group.warm, [&](const Row* row) {
    return process_of(*row) != process_of(*group.warm.front());
  });
}

namespace {

std::vector<std::array<double, kYardsticks>> log_yardsticks(const Group& group) {
  std::map<int64_t, std::array<std::vector<double>, kYardsticks>> logs;
  for (const Row* row : group.warm) {
    const std::array<std::optional<double>, kYardsticks> each = {row->yardstick_lookups_us,
                                                                 row->yardstick_multiplies_us};
    for (size_t k = 0; k < kYardsticks; ++k) {
      if (!each[k] || !(*each[k] > 0)) return {};
      logs[process_of(*row)][k].push_back(std::log(*each[k]));
    }
  }
  std::vector<std::array<double, kYardsticks>> medians;
  for (auto& [number, of_process] : logs) {
    auto& median = medians.emplace_back();
    for (size_t k = 0; k < kYardsticks; ++k) {
      median[k] = *stats::quantile_in_place(of_process[k], 0.5);
    }
  }
  return medians;
}

}  // namespace

ProcessFigures process_figures(const Group& group, ProcessFigure figure) {
  std::map<int64_t, std::vector<double>> latencies;
  for (const Row* row : group.warm) latencies[process_of(*row)].push_back(*row->latency_ms);
  ProcessFigures result;
  for (auto& [number, ms] : latencies) {
    const auto value =
        figure == ProcessFigure::kMean ? stats::mean(ms) : stats::quantile_in_place(ms, 0.5);
    result.numbers.push_back(number);
    result.values_ms.push_back(*value);
  }
  result.log_yardsticks = log_yardsticks(group);
  return result;
}

}  // namespace assay
