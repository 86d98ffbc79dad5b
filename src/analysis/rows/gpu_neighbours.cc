// Joins the units that the evidence names with their rows.
#include "analysis/rows/gpu_neighbours.h"

#include <algorithm>
#include <functional>

namespace assay {

std::vector<RowsBeside> rows_beside(const Group& group) {
  std::vector<RowsBeside> all;
  if (group.evidence == nullptr) return all;
  for (const EvidenceNeighbour& one : group.evidence->gpu_neighbours) {
    auto at = std::ranges::find(all, one.pid, &RowsBeside::pid);
    if (at == all.end()) {
      all.emplace_back().pid = one.pid;
      at = std::prev(all.end());
    }
    at->process = one.process;
    at->memory_bytes = std::max(at->memory_bytes, one.memory_bytes);
    for (const Row* row : group.warm) {
      if (row->order_index < one.first_row || row->order_index - one.first_row >= one.rows)
        continue;
      at->rows.push_back(row);
      at->share += one.share;
    }
  }
  std::erase_if(all, [](const RowsBeside& one) { return one.rows.empty(); });
  for (RowsBeside& one : all) one.share /= static_cast<double>(one.rows.size());
  std::ranges::stable_sort(all, std::greater(), &RowsBeside::share);
  return all;
}

bool shared_gpu(const Group& group) {
  return std::ranges::any_of(rows_beside(group), &RowsBeside::computed);
}

}  // namespace assay
