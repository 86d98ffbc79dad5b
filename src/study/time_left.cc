// Two sums: the cost of rows, and the time of starts.
#include "study/time_left.h"

#include <algorithm>

namespace assay {

void TimeLeft::plan(size_t cell, bool starts, int64_t rows, double cost) {
  cost_left_ += static_cast<double>(rows) * cost;
  if (starts) ++starts_[cell].left;
}

void TimeLeft::drop(size_t cell, bool starts, int64_t rows, double cost) {
  cost_left_ = std::max(cost_left_ - static_cast<double>(rows) * cost, 0.0);
  if (starts) starts_[cell].left = std::max<int64_t>(starts_[cell].left - 1, 0);
}

void TimeLeft::row(size_t cell, bool starts, double cost, double seconds) {
  drop(cell, starts, 1, cost);
  if (starts) {
    starts_[cell].last_s = seconds;
  } else {
    cost_done_ += cost;
    seconds_done_ += seconds;
  }
}

std::optional<double> TimeLeft::seconds() const {
  double known_s = 0;
  int64_t known = 0;
  for (const auto& [cell, starts] : starts_) {
    if (!starts.last_s) continue;
    known_s += *starts.last_s;
    ++known;
  }
  if (known == 0 && !(cost_done_ > 0)) return std::nullopt;
  double left = cost_done_ > 0 ? seconds_done_ / cost_done_ * cost_left_ : 0;
  if (known == 0) return left;
  const double typical_s = known_s / static_cast<double>(known);
  for (const auto& [cell, starts] : starts_) {
    left += static_cast<double>(starts.left) * starts.last_s.value_or(typical_s);
  }
  return left;
}

}  // namespace assay
