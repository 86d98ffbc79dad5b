// Decoding beside the limit of its memory: bytes that had to be read, over the time it took.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace assay {

struct Samples;
struct Bundle;

// One arm on one stratum of kv_decode. The limit is the best of many short reads, a lower
// bound of what the memory can do: where the memory is faster in the study, or caches hold part of
// a small model's weights, the share comes out above 1.
struct ReadShare {
  size_t stratum = 0;
  std::string arm;
  double bytes_per_s = 0;  // median of the warm rows: least bytes read / latency
  double limit_bytes_per_s = 0;
  double share() const { return bytes_per_s / limit_bytes_per_s; }
};

// By stratum, then arm. Left out: arms whose worker tells no bytes, and those of which nobody
// measured the limit.
std::vector<ReadShare> read_shares(const Bundle& bundle, const Samples& samples);

Json read_share_json(const ReadShare& share);  // without stratum

}  // namespace assay
