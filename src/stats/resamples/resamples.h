// Bootstrap resamples of samples of one size, sixteen at a time: how often each value was drawn.
//
// Which values a resample holds depends on the sample's size alone, not on its values, so every
// sample of one size is resampled with the same draws: drawing costs once, applying them is a
// product of counts and values. The draws depend on (seed, size, slab), never on the machine's
// vectors or the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::stats {

inline constexpr size_t kSlab = 16;  // resamples drawn together
inline constexpr size_t kTile = 8;   // samples summed together

// counts[i * kSlab + b]: how often resample b of this slab holds value i; each b sums to n.
// Sixteen xoshiro128++ generators (Blackman, Vigna 2021), one a resample, seeded by SplitMix64; the
// index is the high half of n times 32 random bits (bias below n / 2^32). A count never reaches
// 256: by Poisson(1), that has a chance of 1e-507.
void draw_slab(uint64_t seed, size_t n, uint64_t slab, uint8_t* counts);

// sums[s * kSlab + b] = sum over i, in order, of counts[i][b] * values[i * kTile + s]: each product
// and sum rounded by itself, so that every machine has the same bits.
void sum_slab(const uint8_t* counts, size_t n, const double* values, double* sums);

// Indices of the order statistics `place` and `place + 1` (from 0) of each resample of ascending
// samples; the second is n where there is none.
void places_in_slab(const uint8_t* counts, size_t n, size_t place, uint32_t* at, uint32_t* after);

}  // namespace assay::stats
