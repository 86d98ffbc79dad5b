// Rows of a cell by worker process.
#include "analysis/processes.h"

#include <algorithm>
#include <map>

namespace assay {

int64_t process_of(const Row& row) {
  return row.process.value_or(0);
}

bool several_processes(const Group& group) {
  return std::ranges::any_of(group.warm, [&](const Row* row) {
    return process_of(*row) != process_of(*group.warm.front());
  });
}

ProcessMeans process_means(const Group& group) {
  struct Sum {
    double ms = 0;
    double rows = 0;
  };
  std::map<int64_t, Sum> sums;
  for (const Row* row : group.warm) {
    Sum& sum = sums[process_of(*row)];
    sum.ms += *row->latency_ms;
    sum.rows += 1;
  }
  ProcessMeans result;
  for (const auto& [number, sum] : sums) {
    result.numbers.push_back(number);
    result.means_ms.push_back(sum.ms / sum.rows);
  }
  return result;
}

}  // namespace assay
