// Rows of a cell by worker process.
#include "analysis/rows/processes.h"

#include <algorithm>
#include <map>

#include "stats/summary.h"

namespace assay {

int64_t process_of(const Row& row) {
  return row.process.value_or(0);
}

bool several_processes(const Group& group) {
  return std::ranges::any_of(group.warm, [&](const Row* row) {
    return process_of(*row) != process_of(*group.warm.front());
  });
}

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
  return result;
}

}  // namespace assay
