// Powers and logarithms of many replicates at once.
#pragma once

#include <span>

namespace assay::stats {

// values[i] becomes center (values[i] / center)^exponent: replicates spread further from their
// center on the scale of logarithms. `center` and the values are positive and finite. The result is
// within a few units in the last place of std::pow.
void spread_on_logs(std::span<double> values, double center, double exponent);

// logs[i] = ln(above[i] / below[i]), all of one length, positive and finite; within a few units in
// the last place of std::log.
void log_ratios(std::span<const double> above, std::span<const double> below,
                std::span<double> logs);

}  // namespace assay::stats
