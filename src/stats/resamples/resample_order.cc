// The shuffle of shared draws.
#include "stats/resamples/resample_order.h"

#include "base/random.h"

namespace assay::stats {
namespace {

bool is_prime(uint64_t n) {
  if (n < 2) return false;
  for (uint64_t d = 2; d * d <= n; ++d) {
    if (n % d == 0) return false;
  }
  return true;
}

}  // namespace

ResampleOrder::ResampleOrder(uint64_t seed, uint64_t stream, size_t slabs) : slabs_(slabs) {
  uint64_t mix = seed ^ stream;
  Random random(splitmix64(mix), 0);
  uint64_t prime = slabs;
  while (!is_prime(prime)) ++prime;
  const uint64_t step = 1 + random.below(prime - 1);
  uint64_t at = random.below(prime);
  rotation_ = random.below(kSlab);
  for (uint32_t& slab : slabs_) {
    while (at >= slabs) at = (at + step) % prime;
    slab = static_cast<uint32_t>(at);
    at = (at + step) % prime;
  }
}

}  // namespace assay::stats
