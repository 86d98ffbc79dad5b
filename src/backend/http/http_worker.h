// A server of others behind the worker protocol: one request a repetition.
#pragma once

#include <memory>
#include <string>

#include "backend/worker.h"
#include "base/process/subprocess.h"

namespace assay {

// Prefill is the server's own time for the prompt where it tells it, else the time to the first
// token; kv_decode its own time from the first token to the last, else the client's; e2e_kv the
// client's wall clock. `client_ms` and `server_ms` are both sides' times of the same phase in every
// case; the latter is absent where the server tells none.
std::unique_ptr<Worker> make_http_worker(std::string version, Spawner& spawner);

}  // namespace assay
