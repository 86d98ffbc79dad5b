// A server's facts as JSON, for evidence and environment.json.
#pragma once

#include "backend/http/dialect.h"
#include "base/records/json.h"

namespace assay {

// Members that it says; `unknown` lists the others by name.
Json server_facts_json(const ServerFacts& facts);

}  // namespace assay
