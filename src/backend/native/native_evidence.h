// What the native worker can prove about a phase: which executor ran, what was compiled, by whom.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "backend/message.h"
#include "base/json.h"
#include "engine/session/session.h"

namespace assay {

// Runs of the frames that a phase's timed region consists of, since the session's start.
engine::FrameRuns timed_runs(const engine::Session& session, WirePhase phase);

// The counters of `after`, less those of `before`, by the protocol's names; of a GPU with those of
// launches.
std::vector<std::pair<std::string, int64_t>> counter_deltas(const engine::CompileCounters& before,
                                                            const engine::CompileCounters& after,
                                                            bool gpu);

// The evidence object of the protocol. `runs` are those of this phase's samples.
Json native_evidence(const engine::Session& session, const LoadRequest& load, WirePhase phase,
                     const engine::FrameRuns& runs);

// For `prepared`: what has been compiled so far.
Json compile_summary(const engine::Session& session);

}  // namespace assay
