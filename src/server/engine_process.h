// An engine in processes of its own: a call that crashes one, or doesn't return, is that call's
// error and nobody's end, and nobody waits until what is compiled is there again.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/process/subprocess.h"
#include "base/records/json.h"
#include "base/result.h"
#include "engine/serving/batch.h"
#include "server/engine_counts.h"
#include "server/scheduler.h"

namespace assay::server {

// The child's numbers of its ends of the pipes.
inline constexpr int kEngineRequests = 3, kEngineReplies = 4;

struct EngineProcess {
  // Starts a process that runs serve_batch(), or says tell_no_engine(). Its batch has both ways, or
  // it is one of operators alone, which starts soon and takes little memory. Their slots are alike.
  std::function<Result<std::unique_ptr<Child>>(bool compiles)> start;
  // A process that can't start beside another one may start alone: on a GPU.
  bool may_lack_room = false;
  double call_s = 60;    // from a call to its end, or to its next token
  double start_s = 600;  // until a process with both ways is ready; one of operators has call_s
  double pause_s = 1;    // behind a start that failed; twice as long behind each further one
  // Is told of each process that ended, and of each that is ready in its place.
  std::function<void(const std::string& line)> tell = [](const std::string&) {};
  std::shared_ptr<EngineCounts> counts = std::make_shared<EngineCounts>();
};

struct StartedEngine {
  std::unique_ptr<SlotEngine> engine;
  Json facts;  // as serve_batch() was given them
};

// One process with both ways computes as long as it lives. Where a call ends it, or takes too long
// (it is killed then), the call is an error, and all slots that it had are lost: restore() puts
// what they had (prompts, and tokens that were told of) into a process that stands in, operator by
// operator, which takes new slots too. Meanwhile one with both ways starts beside it, and nobody
// waits for that; once it is ready, slots are begun there, and the one that stands in ends with its
// last slot. Where one of the two ends, the other gets its slots.
//
// Where a process with both ways says that it can't be beside the other one (may_lack_room), it
// starts alone, and so again at each later end: all calls wait for it then. So they do where no
// process of operators can be started.
//
// Errors: those of start(), and of a first process that isn't ready.
Result<StartedEngine> start_engine(EngineProcess process);

// The process's side: answers calls until the pipe's end. `facts` are for its starter; an engine's
// `ends` end texts.
Status serve_batch(engine::Batch& batch, const std::vector<int32_t>& ends, const Json& facts,
                   int requests, int replies);
// The same where there is no engine.
void tell_no_engine(const Error& error, int replies);

}  // namespace assay::server
