// A repetition on a GPU as CUPTI saw it: a trace, and the protocol's summary of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/records/json.h"
#include "engine/device/cuda/cupti.h"

namespace assay {

// Summary of the work between `begin_ns` and `end_ns`, in the form of the torch worker's profiles.
Json profile_summary(const std::vector<engine::cuda::Activity>& activities, int64_t begin_ns,
                     int64_t end_ns);

// The same work in Chrome's trace format, times in us from `begin_ns`.
std::string chrome_trace(const std::vector<engine::cuda::Activity>& activities, int64_t begin_ns,
                         int64_t end_ns);

}  // namespace assay
