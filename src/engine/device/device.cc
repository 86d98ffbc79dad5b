// The parts of a device that are optional.
#include "engine/device/device.h"

#include <algorithm>
#include <cassert>

namespace assay::engine {

Status LoadedStep::run_greedy(const RunInputs&, int64_t, int64_t, KvCache&, const TokenSink&) {
  assert(false && "feeds_itself() is asked first");
  return {};
}

bool rows_fit(const RunInputs& inputs) {
  return std::ranges::all_of(inputs.lengths, [&](int32_t length) {
    return length + inputs.dims.q_len <= inputs.dims.kv_len;
  });
}

}  // namespace assay::engine
