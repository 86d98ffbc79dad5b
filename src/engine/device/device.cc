// The parts of a device that are optional.
#include "engine/device/device.h"

#include <cassert>

namespace assay::engine {

Status LoadedStep::run_greedy(const RunInputs&, int64_t, KvCache&, const TokenSink&) {
  assert(false && "feeds_itself() is asked first");
  return {};
}

}  // namespace assay::engine
