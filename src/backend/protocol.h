// The worker protocol's text: one JSON object a line, both directions, strictly validated.
#pragma once

#include <string>
#include <string_view>

#include "backend/message.h"
#include "base/result.h"

namespace assay {

// A line with its line end. A message that breaks the rules below can be formatted, not parsed.
std::string format_request(const Request& request);
// "measure": the request's type as its line has it.
std::string request_type(const Request& request);
std::string format_reply(const Reply& reply);

// Lines come without their line end. bad_input, naming message type, member, expected and found, if
// the text isn't one JSON object; `id` isn't a non-negative integer or `type` isn't known; a
// member is missing, of the wrong type or outside its range. Members that aren't known are ignored,
// so that a minor addition needs no new version.
Result<Request> parse_request(std::string_view line);
Result<Reply> parse_reply(std::string_view line);

}  // namespace assay
