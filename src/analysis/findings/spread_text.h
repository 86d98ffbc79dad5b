// The text behind a figure: its interval, or the range of processes that are too few for one.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "stats/samples/intervals.h"

namespace assay {

// " [0.60, 0.65]", " range 0.60-0.65", both where some of several strata have the one and some the
// other, or nothing.
std::string spread_text(const std::optional<stats::Interval>& interval,
                        const std::optional<stats::Interval>& process_range,
                        const std::function<std::string(double)>& number);
// The same with so many significant digits.
std::string spread_text(const std::optional<stats::Interval>& interval,
                        const std::optional<stats::Interval>& process_range, int digits);

// 1 / both ends: of a ratio that is seen from its other side.
std::optional<stats::Interval> inverted(const std::optional<stats::Interval>& of_ratio);

}  // namespace assay
