// Two latency-like samples whose statistics SciPy 1.17.1 and NumPy 2.4.6 computed for the tests.
#pragma once

#include <array>

namespace assay::stats {

inline constexpr std::array kSampleA = {10.2, 11.7, 9.8, 10.9, 12.4, 10.1,
                                        13.3, 10.6, 9.9, 31.5, 10.4, 11.1};
inline constexpr std::array kSampleB = {9.1, 9.6, 10.2, 8.8, 9.3,  9.7, 10.1, 9.0,
                                        9.5, 9.2, 8.9,  9.9, 14.2, 9.4, 9.3};

}  // namespace assay::stats
