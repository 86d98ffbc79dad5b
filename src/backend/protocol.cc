// Lines to messages and back.
#include "backend/protocol.h"

#include "backend/protocol_records.h"

namespace assay {
namespace {

constexpr size_t kShown = 80;  // bytes of a type that isn't known

template <typename Body>
std::string format_message(int64_t id, const Body& body) {
  Json json = {{"id", id}};
  std::visit(
      [&](const auto& message) {
        using Message = std::remove_cvref_t<decltype(message)>;
        json["type"] = Record<Message>::kType;
        json.update(record_to_json(message));
      },
      body);
  return to_json_line(json) + "\n";
}

// "sample: expected an integer >= 0 at "latency_ns", found -5"
std::unexpected<Error> protocol_error(std::string_view type, const Misfit& misfit) {
  return bad_input("{}: expected {} at \"{}\", found {}", type, misfit.expected, misfit.path,
                   misfit.found);
}

// Reads the alternative of `body` that `type` names, from the I-th on.
template <typename Body, size_t I = 0>
Status read_body(const Json& object, const std::string& type, std::string_view direction,
                 Body& body) {
  if constexpr (I == std::variant_size_v<Body>) {
    return bad_input("{}: expected a known type, found \"{}\"", direction, type.substr(0, kShown));
  } else {
    using Message = std::variant_alternative_t<I, Body>;
    if (type != Record<Message>::kType) {
      return read_body<Body, I + 1>(object, type, direction, body);
    }
    Message message{};
    Fit fit = record::read_object(object, message, NoContext());
    if (!fit) fit = wire::broken_rule(message);
    if (fit) return protocol_error(type, *fit);
    body = std::move(message);
    return {};
  }
}

// `Message` is Request or Reply; `direction` is its name in errors.
template <typename Message>
Result<Message> parse_line(std::string_view line, std::string_view direction) {
  if (line.size() > kMaxLineBytes) {
    return bad_input("{}: expected at most {} bytes in a line, found {}", direction, kMaxLineBytes,
                     line.size());
  }
  ASSAY_TRY(const Json json, parse_json(line, direction));
  if (!json.is_object()) return bad_input("{}: expected a JSON object", direction);
  const Json* const id = wire::find_member(json, "id");
  const auto number = id ? wire::whole_within(*id, 0, INT64_MAX) : std::nullopt;
  if (!number) {
    return protocol_error(direction, *wire::wrong_member("id", wire::range_text(0, INT64_MAX), id));
  }
  ASSAY_TRY(const std::string type, json_string(json, "type", direction));
  Message message;
  message.id = *number;
  ASSAY_CHECK(read_body(json, type, direction, message.body));
  return message;
}

}  // namespace

std::string request_type(const Request& request) {
  return std::visit(
      [](const auto& message) { return Record<std::remove_cvref_t<decltype(message)>>::kType; },
      request.body);
}

std::string format_request(const Request& request) {
  return format_message(request.id, request.body);
}

std::string format_reply(const Reply& reply) {
  return format_message(reply.id, reply.body);
}

Result<Request> parse_request(std::string_view line) {
  return parse_line<Request>(line, "request");
}

Result<Reply> parse_reply(std::string_view line) {
  return parse_line<Reply>(line, "reply");
}

}  // namespace assay
