#include "analysis/plotted/plotted_rows.h"

#include <algorithm>
#include <span>

#include "base/add_once.h"

namespace assay {
namespace {

// A figure is 300 pixels wide: two rows to every two of them.
constexpr size_t kStretches = 150;
constexpr size_t kMostMarked = 150;
constexpr size_t kMostSteps = 300;

RowMark mark_of(const Row& row) {
  if (row.status != RowStatus::kOk) return RowMark::kLost;
  if (carries_compilation(row) && !row.cold) return RowMark::kRecompiled;
  if (row.throttled.value_or(false)) return RowMark::kThrottled;
  return row.cold ? RowMark::kCold : RowMark::kWarm;
}

class GroupThinner {
 public:
  GroupThinner(const Group& group, const std::string& arm) : group_(group) {
    plotted_.stratum = group.stratum;
    plotted_.arm = arm;
    plotted_.rows = static_cast<int64_t>(group.rows.size());
    plotted_.warm = static_cast<int64_t>(group.warm.size());
  }

  PlottedGroup thin() {
    for (const Row* row : group_.rows) {
      if (const RowMark mark = mark_of(*row); mark != RowMark::kWarm) ++plotted_.marked[mark];
    }
    for (const Row* row : rows_in_order()) plotted_.order.push_back(plotted(*row));
    const auto slowest =
        std::ranges::max_element(group_.warm, {}, [](const Row* row) { return *row->latency_ms; });
    if (slowest != group_.warm.end()) plotted_.slowest = plotted(**slowest);
    fill_ecdf();
    return std::move(plotted_);
  }

 private:
  PlottedRow plotted(const Row& row) {
    const size_t cell = place_once(plotted_.cells, row.cell_id.str());
    const RowMark mark = mark_of(row);
    PlottedRow out;
    out.cell = cell;
    out.repetition = row.repetition;
    out.place = row.order_index;
    out.mark = mark;
    if (mark != RowMark::kLost) out.latency_ms = row.latency_ms;
    out.error_class = row.error_class.str();
    return out;
  }

  std::vector<const Row*> rows_in_order() const {
    if (group_.rows.size() <= 2 * kStretches) return group_.rows;
    std::vector<const Row*> marked;
    std::vector<const Row*> kept;
    for (const Row* row : group_.rows) {
      (mark_of(*row) == RowMark::kWarm ? kept : marked).push_back(row);
    }
    kept = extremes(kept, kStretches);
    if (marked.size() > kMostMarked) marked = extremes(marked, kMostMarked / 2);
    kept.insert(kept.end(), marked.begin(), marked.end());
    std::ranges::stable_sort(kept, {}, &Row::order_index);
    return kept;
  }

  // The fastest and the slowest row of each of so many stretches of equal length.
  static std::vector<const Row*> extremes(const std::vector<const Row*>& rows, size_t stretches) {
    std::vector<const Row*> kept;
    for (size_t i = 0; i < stretches; ++i) {
      const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(rows.size() * i / stretches);
      const auto end =
          rows.begin() + static_cast<std::ptrdiff_t>(rows.size() * (i + 1) / stretches);
      if (begin == end) continue;
      const auto [fastest, slowest] = std::ranges::minmax_element(
          begin, end, {}, [](const Row* row) { return row->latency_ms.value_or(0); });
      kept.push_back(*fastest);
      if (fastest != slowest) kept.push_back(*slowest);
    }
    return kept;
  }

  void fill_ecdf() {
    const std::vector<double>& sorted = group_.sorted_ms;
    const size_t steps = std::min(sorted.size(), kMostSteps);
    for (size_t i = 1; i <= steps; ++i) {
      const size_t reached = sorted.size() * i / steps;  // rows
      plotted_.ecdf.push_back(
          {sorted[reached - 1], static_cast<double>(reached) / static_cast<double>(sorted.size())});
    }
  }

  const Group& group_;
  PlottedGroup plotted_;
};

std::ptrdiff_t to_offset(size_t index) {
  return static_cast<std::ptrdiff_t>(index);
}

// Places of all rows of the groups, ascending.
std::vector<int64_t> places_of(std::span<const Group> groups) {
  std::vector<int64_t> places;
  for (const Group& group : groups) {
    for (const Row* row : group.rows) places.push_back(row->order_index);
  }
  std::ranges::sort(places);
  return places;
}

}  // namespace

std::vector<PlottedGroup> plotted_groups(const Samples& samples) {
  std::vector<PlottedGroup> groups;
  groups.reserve(samples.groups.size());
  for (size_t stratum = 0; stratum < samples.strata.size(); ++stratum) {
    const std::span of_stratum(
        samples.groups.begin() + to_offset(samples.first_group[stratum]),
        samples.groups.begin() + to_offset(samples.first_group[stratum + 1]));
    const std::vector<int64_t> places = places_of(of_stratum);
    for (const Group& group : of_stratum) {
      groups.push_back(GroupThinner(group, samples.arms[group.arm]).thin());
      for (PlottedRow& row : groups.back().order) {
        row.rank = std::ranges::lower_bound(places, row.place) - places.begin();
      }
    }
  }
  return groups;
}

}  // namespace assay
