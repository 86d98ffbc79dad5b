// Intervals and ranges in words.
#include "analysis/findings/spread_text.h"

#include <fmt/format.h>

#include "base/text/text.h"

namespace assay {

std::string spread_text(const std::optional<stats::Interval>& interval,
                        const std::optional<stats::Interval>& process_range,
                        const std::function<std::string(double)>& number) {
  std::string text;
  if (interval) text += fmt::format(" [{}, {}]", number(interval->low), number(interval->high));
  if (process_range) {
    text += fmt::format(" range {}-{}", number(process_range->low), number(process_range->high));
  }
  return text;
}

std::string spread_text(const std::optional<stats::Interval>& interval,
                        const std::optional<stats::Interval>& process_range, int digits) {
  return spread_text(interval, process_range,
                     [=](double value) { return format_significant(value, digits); });
}

std::optional<stats::Interval> inverted(const std::optional<stats::Interval>& of_ratio) {
  if (!of_ratio) return std::nullopt;
  return stats::Interval{1 / of_ratio->high, 1 / of_ratio->low};
}

}  // namespace assay
