// Deals the rows of a product out to a kernel that holds a few rows' sums in registers.
#pragma once

#include <cstdint>
#include <utility>

namespace assay::engine::cpu {

// Calls group(std::integral_constant<int64_t, n>, first row) for groups of at most `most` rows that
// cover `rows` and differ by one row at most: a small rest would run at a fraction of the speed.
template <int64_t most, typename Group>
void for_row_groups(int64_t rows, const Group& group) {
  const int64_t groups = (rows + most - 1) / most;
  for (int64_t g = 0, row = 0; g < groups; ++g) {
    const int64_t count = rows * (g + 1) / groups - row;
    [&]<int64_t... n>(std::integer_sequence<int64_t, n...>) {
      ((count == n + 1 ? group(std::integral_constant<int64_t, n + 1>(), row) : void()), ...);
    }
    (std::make_integer_sequence<int64_t, most>());
    row += count;
  }
}

}  // namespace assay::engine::cpu
