// A stratum beside the limits of its device: bytes that had to be read, over the time it took, and
// a prompt's operations over its.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace assay {

// One arm on one stratum: of kv_decode, and on a GPU of any phase. The limit is the best of many
// short reads, a lower bound of the memory's rate: where the memory is faster in the study, or
// caches hold part of a small model's weights, the share comes out above 1.
struct ReadShare {
  size_t stratum = 0;
  std::string arm;
  double bytes_per_s = 0;  // median of the warm rows: least bytes read / latency
  double limit_bytes_per_s = 0;
  double share() const { return bytes_per_s / limit_bytes_per_s; }
  // A prompt's on a GPU: median of operations / latency, and the rate of large products of the same
  // type through the library. Absent: nobody told the operations, or measured the rate.
  std::optional<double> operations_per_s = {};
  std::optional<double> limit_operations_per_s = {};
  std::optional<double> operations_share() const {
    if (!operations_per_s || !limit_operations_per_s) return std::nullopt;
    return *operations_per_s / *limit_operations_per_s;
  }
};

}  // namespace assay
