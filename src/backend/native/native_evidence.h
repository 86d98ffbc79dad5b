// The native worker's proof about a phase: the executor that ran, the compiled code, its compiler.
#pragma once

#include <filesystem>

#include "backend/message.h"
#include "base/records/counter.h"
#include "base/records/json.h"
#include "engine/session/session.h"

namespace assay {

// Runs of the frames that a phase's timed region consists of, since the session's start.
engine::FrameRuns timed_runs(const engine::Session& session, Phase phase);

// The counters of `after`, less those of `before`; for a GPU with those of launches.
Counts counter_deltas(const engine::CompileCounters& before, const engine::CompileCounters& after,
                      bool gpu);

// The evidence object of the protocol. `runs` are those of this phase's samples.
Json native_evidence(const engine::Session& session, const LoadRequest& load, Phase phase,
                     const engine::FrameRuns& runs);

// Types that a session in fp8 computed in: the library's products in e4m3 and in 16 bits, by their
// shapes since the session's start, and the work that never runs in e4m3.
Json fp8_evidence(const engine::Session& session);

// The weights in other formats than a plain type: where they are from, and how many bits a weight
// has over all tensors in memory.
Json weights_evidence(const engine::Model& model, const std::filesystem::path& path);

// For `prepared`: everything that has been compiled so far.
Json compile_summary(const engine::Session& session);

}  // namespace assay
