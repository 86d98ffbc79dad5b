// Decoding beside the limit of its memory: bytes that had to be read, over the time it took.
#pragma once

#include <cstddef>
#include <string>

namespace assay {

// One arm on one stratum of kv_decode. The limit is the best of many short reads, a lower bound of
// the memory's rate: where the memory is faster in the study, or caches hold part of a small
// model's weights, the share comes out above 1.
struct ReadShare {
  size_t stratum = 0;
  std::string arm;
  double bytes_per_s = 0;  // median of the warm rows: least bytes read / latency
  double limit_bytes_per_s = 0;
  double share() const { return bytes_per_s / limit_bytes_per_s; }
};

}  // namespace assay
