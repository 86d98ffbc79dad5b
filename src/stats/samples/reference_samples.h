// Two latency-like samples whose statistics SciPy 1.17.1 and NumPy 2.4.6 computed for the tests.
#pragma once

#include <array>

namespace assay::stats {

inline constexpr std::array kSampleA = {10.2, 11.7, 9.8, 10.9, 12.4, 10.1,
                                        13.3, 10.6, 9.9, 31.5, 10.4, 11.1};
inline constexpr std::array kSampleB = {9.1, 9.6, 10.2, 8.8, 9.3,  9.7, 10.1, 9.0,
                                        9.5, 9.2, 8.9,  9.9, 14.2, 9.4, 9.3};

// Eager decode of ten repetitions, ms, on an H200 whose host was busy: moods of several rows.
inline constexpr std::array kMoodyMs = {1676.5, 1463.7, 1161.3, 1125.9, 1098.5,
                                        1136.3, 1114.5, 1602.3, 2166.4, 2129.7};

}  // namespace assay::stats
