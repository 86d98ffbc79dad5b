// An engine in a process of its own: a call that crashes there, or doesn't return, is that call's
// error and nobody's end.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/process/subprocess.h"
#include "base/records/json.h"
#include "base/result.h"
#include "engine/serving/batch.h"
#include "server/scheduler.h"

namespace assay::server {

// The child's numbers of its ends of the pipes.
inline constexpr int kEngineRequests = 3, kEngineReplies = 4;

struct EngineProcess {
  // Starts a process that runs serve_batch(), or says tell_no_engine().
  std::function<Result<std::unique_ptr<Child>>()> start;
  double call_s = 60;    // from a call to its end, or to its next token
  double start_s = 600;  // until it is ready
  // Is told of each process that ended, and of each that runs in its place.
  std::function<void(const std::string& line, bool runs)> tell = [](const std::string&, bool) {};
};

struct StartedEngine {
  std::unique_ptr<SlotEngine> engine;
  Json facts;  // as serve_batch() was given them
};

// Where a call ends the process, or takes too long (it is killed then), a new one gets what the
// slots had: prompts, and tokens that were told of, which it is fed whatever it would choose. Then
// the call is an error, and may be made again; one of a single slot, operator by operator, is made
// again here, once. Errors: those of start(), and of a process that isn't ready.
Result<StartedEngine> start_engine(EngineProcess process);

// The process's side: answers calls until the pipe's end. `facts` are for its starter; an engine's
// `ends` end texts.
Status serve_batch(engine::Batch& batch, const std::vector<int32_t>& ends, const Json& facts,
                   int requests, int replies);
// The same where there is no engine.
void tell_no_engine(const Error& error, int replies);

}  // namespace assay::server
