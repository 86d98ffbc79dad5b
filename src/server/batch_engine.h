// The native engine's batch as slots of a scheduler.
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "engine/serving/batch.h"
#include "server/scheduler.h"

namespace assay::server {

// `ends`: ids that end a text. `reuses_prefixes`: a prompt that begins as a free slot's last text
// did gets that slot, and the common beginning isn't computed: in fp32 the same tokens.
std::unique_ptr<SlotEngine> make_batch_engine(engine::Batch batch, std::vector<int32_t> ends,
                                              bool reuses_prefixes = false);

}  // namespace assay::server
