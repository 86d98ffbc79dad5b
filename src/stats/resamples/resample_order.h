// Order of a sample's resamples among its replicates: a shuffle of the shared draws that differs
// from stream to stream.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "stats/resamples/resamples.h"

namespace assay::stats {

// Slabs are permuted by j -> c + a j modulo a prime (values past the last slab left out), and the
// resamples within them rotated. Two streams put the same draw at the same place in one slab at
// most, on average in one replicate of all, unless all of a, c and rotation agree by chance.
class ResampleOrder {
 public:
  ResampleOrder(uint64_t seed, uint64_t stream, size_t slabs);

  size_t slab_of(size_t drawn) const { return slabs_[drawn]; }
  // The slab's replicates, as drawn, rotated into `out`.
  void place(const double* replicates, double* out) const {
    const size_t head = kSlab - rotation_;
    std::copy_n(replicates, head, out + rotation_);
    std::copy_n(replicates + head, rotation_, out);
  }

 private:
  std::vector<uint32_t> slabs_;
  size_t rotation_ = 0;
};

// The number of slabs that hold so many resamples.
inline size_t slabs_for(int64_t resamples) {
  return (static_cast<size_t>(resamples) + kSlab - 1) / kSlab;
}

}  // namespace assay::stats
