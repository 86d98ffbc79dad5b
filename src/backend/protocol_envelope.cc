// The line, its id and its type.
#include "backend/protocol_envelope.h"

namespace assay {

Result<Envelope> parse_envelope(std::string_view line, std::string_view what) {
  if (line.size() > kMaxLineBytes) {
    return bad_input("{}: expected at most {} bytes in a line, found {}", what, kMaxLineBytes,
                     line.size());
  }
  ASSAY_TRY(Json json, parse_json(line, what));
  if (!json.is_object()) return bad_input("{}: expected a JSON object", what);
  const Members members(json, std::string(what));
  Envelope envelope;
  ASSAY_TRY(envelope.id, members.integer("id", 0, INT64_MAX));
  ASSAY_TRY(envelope.type, members.text("type"));
  envelope.object = std::move(json);
  return envelope;
}

std::string unknown_type_text(const Envelope& envelope, std::string_view what) {
  return fmt::format("{}: expected a known type, found \"{}\"", what, envelope.type.substr(0, 80));
}

Result<Phase> parse_phase_member(const Members& members) {
  ASSAY_TRY(const std::string name, members.word("phase", phase_names()));
  return *parse_phase(name);
}

Result<WireShape> parse_shape(const Members& members, int64_t unfed) {
  WireShape shape;
  ASSAY_TRY(shape.phase, parse_phase_member(members));
  ASSAY_TRY(shape.batch, members.integer("batch", 1, kMaxBatch));
  const bool any_new = decodes(shape.phase);
  ASSAY_TRY(shape.new_tokens,
            members.integer("new_tokens", any_new ? 1 : 0, any_new ? kMaxPositions + unfed : 0));
  ASSAY_TRY(shape.capacity,
            members.integer("capacity", shape.new_tokens - unfed + 1, 2 * kMaxPositions));
  return shape;
}

void put_shape(Json& json, const WireShape& shape) {
  json["phase"] = phase_name(shape.phase);
  json["batch"] = shape.batch;
  json["new_tokens"] = shape.new_tokens;
  json["capacity"] = shape.capacity;
}

}  // namespace assay
