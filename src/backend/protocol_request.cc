// Requests, formatted and parsed.
#include <array>

#include "backend/protocol.h"
#include "backend/protocol_envelope.h"
#include "base/text.h"

namespace assay {
namespace {

Json prompt_to_json(const WirePrompt& prompt) {
  return {{"ids", prompt.ids}, {"pad", prompt.pad}};
}

struct RequestFormatter {
  Json& json;

  void operator()(const HelloRequest& hello) const {
    json["type"] = "hello";
    json["protocol_min"] = hello.protocol_min;
    json["protocol_max"] = hello.protocol_max;
    json["harness"] = hello.harness;
  }
  void operator()(const LoadRequest& load) const {
    json["type"] = "load";
    json["model"] = load.model;
    json["dtype"] = load.dtype;
    json["mode"] = load.mode;
    json["cache"] = load.cache;
    json["dynamic"] = load.dynamic;
    json["threads"] = load.threads;
    json["want_model_hash"] = load.want_model_hash;
    json["options"] = load.options;
  }
  void operator()(const PrepareRequest& prepare) const {
    json["type"] = "prepare";
    put_shape(json, prepare.shape);
    json["padded_lens"] = prepare.padded_lens;
    if (prepare.padding) json["padding"] = *prepare.padding;
  }
  void operator()(const MeasureRequest& measure) const {
    json["type"] = "measure";
    put_shape(json, measure.shape);
    Json prompts = Json::array();
    for (const WirePrompt& prompt : measure.prompts) prompts.push_back(prompt_to_json(prompt));
    json["prompts"] = std::move(prompts);
    Json repetitions = Json::array();
    for (const WireRepetition& repetition : measure.repetitions) {
      repetitions.push_back(
          Json{{"repetition", repetition.repetition}, {"prompt", repetition.prompt}});
    }
    json["repetitions"] = std::move(repetitions);
  }
  void operator()(const ParityRequest& parity) const {
    json["type"] = "parity";
    put_shape(json, parity.shape);
    json["prompt"] = prompt_to_json(parity.prompt);
  }
  void operator()(const ProfileRequest& profile) const {
    json["type"] = "profile";
    put_shape(json, profile.shape);
    json["prompt"] = prompt_to_json(profile.prompt);
    json["trace_path"] = profile.trace_path;
  }
  void operator()(const EvidenceRequest& evidence) const {
    json["type"] = "evidence";
    json["phase"] = phase_name(evidence.phase);
  }
  void operator()(const TokenizeRequest& tokenize) const {
    json["type"] = "tokenize";
    json["text"] = tokenize.text;
  }
  void operator()(const ShutdownRequest&) const { json["type"] = "shutdown"; }
};

// Parity's last token is chosen and not fed: the cache needs no place for it.
constexpr int64_t kUnfedInParity = 1;

// The prompt must fit the shape that it comes with: its batch, and the cache beside the new tokens,
// of which `unfed` take no place.
Result<WirePrompt> parse_prompt(const Json& object, const std::string& name, const WireShape& shape,
                                int64_t unfed = 0) {
  const Members members(object, name);
  WirePrompt prompt;
  ASSAY_TRY(prompt.ids, members.id_rows("ids"));
  ASSAY_TRY(prompt.pad, members.ids("pad", kMaxBatch));
  const size_t batch = static_cast<size_t>(shape.batch);
  if (prompt.ids.size() != batch || prompt.pad.size() != batch) {
    return bad_input("{}: expected {} of ids and pads, found {} and {}", name,
                     counted(shape.batch, "row"), prompt.ids.size(), prompt.pad.size());
  }
  for (const int32_t pad : prompt.pad) {
    if (pad >= prompt.padded_len()) {
      return bad_input("{}: expected fewer than {} padding ids, found {}", name,
                       prompt.padded_len(), pad);
    }
  }
  const int64_t room = shape.capacity - shape.new_tokens + unfed;
  if (prompt.padded_len() > room) {
    return bad_input("{}: expected a prompt of at most {} ids, found {}", name, room,
                     prompt.padded_len());
  }
  return prompt;
}

Result<HelloRequest> parse_hello(const Members& members) {
  HelloRequest hello;
  ASSAY_TRY(hello.protocol_min, members.integer("protocol_min", 1, kMaxCount));
  ASSAY_TRY(hello.protocol_max, members.integer("protocol_max", hello.protocol_min, kMaxCount));
  ASSAY_TRY(hello.harness, members.text_or("harness", ""));
  return hello;
}

Result<LoadRequest> parse_load(const Members& members) {
  LoadRequest load;
  ASSAY_TRY(load.model, members.text("model"));
  ASSAY_TRY(load.dtype, members.text_or("dtype", ""));
  ASSAY_TRY(load.mode, members.text("mode"));
  ASSAY_TRY(load.cache, members.text("cache"));
  ASSAY_TRY(load.dynamic, members.text_or("dynamic", ""));
  ASSAY_TRY(load.threads, members.integer("threads", 0, 1 << 16));
  ASSAY_TRY(load.want_model_hash, members.boolean_or("want_model_hash", false));
  ASSAY_TRY(load.options, members.object_or_empty("options"));
  return load;
}

Result<PrepareRequest> parse_prepare(const Members& members, const Json& object) {
  PrepareRequest prepare;
  ASSAY_TRY(prepare.shape, parse_shape(members));
  ASSAY_TRY(prepare.padded_lens,
            members.integers("padded_lens", 1, prepare.shape.capacity - prepare.shape.new_tokens,
                             kMaxRepetitions));
  if (object.contains("padding") && !object["padding"].is_null()) {
    ASSAY_TRY(prepare.padding, members.boolean_or("padding", false));
  }
  return prepare;
}

Result<MeasureRequest> parse_measure(const Members& members) {
  MeasureRequest measure;
  ASSAY_TRY(measure.shape, parse_shape(members));
  ASSAY_TRY(const auto prompts, members.objects("prompts", kMaxRepetitions));
  for (const Json& prompt : prompts) {
    ASSAY_TRY(auto parsed, parse_prompt(prompt, "measure prompt", measure.shape));
    measure.prompts.push_back(std::move(parsed));
  }
  ASSAY_TRY(const auto repetitions, members.objects("repetitions", kMaxRepetitions));
  for (const Json& object : repetitions) {
    const Members repetition(object, "measure repetition");
    WireRepetition parsed;
    ASSAY_TRY(parsed.repetition,
              repetition.integer("repetition", -kMaxRepetitions, kMaxRepetitions));
    ASSAY_TRY(parsed.prompt,
              repetition.integer("prompt", 0, static_cast<int64_t>(measure.prompts.size()) - 1));
    measure.repetitions.push_back(parsed);
  }
  if (measure.repetitions.empty()) return bad_input("measure: expected at least one repetition");
  return measure;
}

Result<ParityRequest> parse_parity(const Members& members, const Json& object) {
  ParityRequest parity;
  ASSAY_TRY(parity.shape, parse_shape(members, kUnfedInParity));
  if (parity.shape.phase != Phase::kKvDecode) {
    return bad_input("parity: expected phase kv_decode, found {}", phase_name(parity.shape.phase));
  }
  ASSAY_CHECK(members.object("prompt"));
  ASSAY_TRY(parity.prompt,
            parse_prompt(object["prompt"], "parity prompt", parity.shape, kUnfedInParity));
  return parity;
}

Result<ProfileRequest> parse_profile(const Members& members, const Json& object) {
  ProfileRequest profile;
  ASSAY_TRY(profile.shape, parse_shape(members));
  ASSAY_CHECK(members.object("prompt"));
  ASSAY_TRY(profile.prompt, parse_prompt(object["prompt"], "profile prompt", profile.shape));
  ASSAY_TRY(profile.trace_path, members.text("trace_path"));
  return profile;
}

}  // namespace

std::string request_type(const Request& request) {
  static constexpr std::array<const char*, std::variant_size_v<decltype(Request::body)>> kTypes = {
      "hello",   "load",     "prepare",  "measure", "parity",
      "profile", "evidence", "tokenize", "shutdown"};
  return kTypes[request.body.index()];
}

std::string format_request(const Request& request) {
  Json json = {{"id", request.id}};
  std::visit(RequestFormatter{json}, request.body);
  return to_json_line(json) + "\n";
}

Result<Request> parse_request(std::string_view line) {
  ASSAY_TRY(const Envelope envelope, parse_envelope(line, "request"));
  const Members members(envelope.object, envelope.type.substr(0, 80));
  Request request{envelope.id, {}};
  if (envelope.type == "hello") {
    ASSAY_TRY(request.body, parse_hello(members));
  } else if (envelope.type == "load") {
    ASSAY_TRY(request.body, parse_load(members));
  } else if (envelope.type == "prepare") {
    ASSAY_TRY(request.body, parse_prepare(members, envelope.object));
  } else if (envelope.type == "measure") {
    ASSAY_TRY(request.body, parse_measure(members));
  } else if (envelope.type == "parity") {
    ASSAY_TRY(request.body, parse_parity(members, envelope.object));
  } else if (envelope.type == "profile") {
    ASSAY_TRY(request.body, parse_profile(members, envelope.object));
  } else if (envelope.type == "evidence") {
    ASSAY_TRY(const Phase phase, parse_phase_member(members));
    request.body = EvidenceRequest{phase};
  } else if (envelope.type == "tokenize") {
    ASSAY_TRY(std::string text, members.text("text"));
    request.body = TokenizeRequest{std::move(text)};
  } else if (envelope.type == "shutdown") {
    request.body = ShutdownRequest{};
  } else {
    return bad_input("{}", unknown_type_text(envelope, "request"));
  }
  return request;
}

}  // namespace assay
