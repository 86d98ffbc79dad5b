// What a load request asks of the native engine.
#pragma once

#include "backend/message.h"
#include "base/result.h"
#include "engine/session/session.h"

namespace assay {

// bad_input names the member, what was expected and found.
Result<engine::SessionOptions> native_session_options(const LoadRequest& request);

}  // namespace assay
