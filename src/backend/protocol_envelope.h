// The parts that requests and replies share: the line, its id, its type, the phase and the shape;
// private to the protocol's parser.
#pragma once

#include <string>
#include <string_view>

#include "backend/members.h"
#include "backend/message.h"

namespace assay {

struct Envelope {
  int64_t id = 0;
  std::string type;
  Json object;
};

// `what` is "request" or "reply", for errors.
Result<Envelope> parse_envelope(std::string_view line, std::string_view what);
std::string unknown_type_text(const Envelope& envelope, std::string_view what);

Result<Phase> parse_phase_member(const Members& members);
// `unfed`: number of the new tokens that are chosen and take no place in the cache.
Result<WireShape> parse_shape(const Members& members, int64_t unfed = 0);
void put_shape(Json& json, const WireShape& shape);

}  // namespace assay
