// The native engine's batch as slots of a scheduler.
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "engine/serving/batch.h"
#include "server/scheduler.h"

namespace assay::server {

// `ends`: ids that end a text.
std::unique_ptr<SlotEngine> make_batch_engine(engine::Batch batch, std::vector<int32_t> ends);

}  // namespace assay::server
