// Replies, formatted and parsed.
#include "backend/protocol.h"
#include "backend/protocol_envelope.h"
#include "base/count_limits.h"
#include "base/text.h"

namespace assay {
namespace {

// Absent members are left out rather than written as null.
template <typename T>
void put(Json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}

struct ReplyFormatter {
  Json& json;

  void operator()(const HelloReply& hello) const {
    json["type"] = "hello";
    json["protocol"] = hello.protocol;
    json["worker"] = hello.worker;
    json["version"] = hello.version;
    json["capabilities"] = hello.capabilities;
  }
  void operator()(const LoadedReply& loaded) const {
    json["type"] = "loaded";
    json["vocab_size"] = loaded.vocab_size;
    json["special_ids"] = loaded.special_ids;
    put(json, "max_positions", loaded.max_positions);
    put(json, "weight_bytes", loaded.weight_bytes);
    json["dtype"] = loaded.dtype;
    json["quantization"] = loaded.quantization;
    put(json, "threads", loaded.threads);
    json["model_hash"] = loaded.model_hash;
    json["seconds"] = loaded.seconds;
  }
  void operator()(const PreparedReply& prepared) const {
    json["type"] = "prepared";
    json["seconds"] = prepared.seconds;
    json["evidence"] = prepared.evidence;
  }
  void operator()(const SampleReply& sample) const {
    json["type"] = "sample";
    json["repetition"] = sample.repetition;
    json["latency_ns"] = sample.latency_ns;
    put(json, "device_ns", sample.device_ns);
    put(json, "ttft_ns", sample.ttft_ns);
    json["tokens"] = sample.tokens;
    json["output_hash"] = sample.output_hash;
    if (sample.non_finite) json["non_finite"] = true;
    json["cold"] = sample.cold;
    json["started_at_ns"] = sample.started_at_ns;
    put(json, "read_bytes", sample.read_bytes);
    put(json, "peak_rss_bytes", sample.peak_rss_bytes);
    put(json, "energy_j", sample.energy_j);
    if (sample.yardstick) {
      json["yardstick"] = {{"lookups_ns", sample.yardstick->lookups_ns},
                           {"multiplies_ns", sample.yardstick->multiplies_ns}};
    }
    if (sample.recalled) json["recalled"] = true;
    json["counters"] = counts_to_json(sample.counters);
  }
  void operator()(const DoneReply& done) const {
    json["type"] = "done";
    json["samples"] = done.samples;
  }
  void operator()(const ParityReply& parity) const {
    json["type"] = "parity";
    json["tokens"] = parity.tokens;
    if (!parity.logit_stats.empty()) json["logit_stats"] = parity.logit_stats;
  }
  void operator()(const ProfileReply& profile) const {
    json["type"] = "profile";
    json["summary"] = profile.summary;
  }
  void operator()(const EvidenceReply& evidence) const {
    json["type"] = "evidence";
    json["evidence"] = evidence.evidence;
  }
  void operator()(const TokenizedReply& tokenized) const {
    json["type"] = "tokenized";
    json["ids"] = tokenized.ids;
  }
  void operator()(const ByeReply&) const { json["type"] = "bye"; }
  void operator()(const ErrorReply& error) const {
    json["type"] = "error";
    json["class"] = error.error_class;
    json["message"] = error.message;
    json["out_of_memory"] = error.out_of_memory;
    if (error.device_lost) json["device_lost"] = true;
    if (!error.outcome.empty()) json["outcome"] = error.outcome;
  }
};

Result<HelloReply> parse_greeting(const Members& members) {
  HelloReply hello;
  ASSAY_TRY(hello.protocol, members.integer("protocol", 1, kMaxCount));
  ASSAY_TRY(hello.worker, members.text("worker"));
  ASSAY_TRY(hello.version, members.text_or("version", ""));
  ASSAY_TRY(hello.capabilities, members.object_or_empty("capabilities"));
  return hello;
}

Result<LoadedReply> parse_loaded(const Members& members) {
  LoadedReply loaded;
  ASSAY_TRY(loaded.vocab_size, members.integer("vocab_size", 0, INT32_MAX));
  ASSAY_TRY(loaded.special_ids, members.integers("special_ids", 0, INT32_MAX, 1 << 20));
  ASSAY_TRY(loaded.max_positions, members.optional_integer("max_positions", 1, INT64_MAX));
  ASSAY_TRY(loaded.weight_bytes, members.optional_integer("weight_bytes", 0, INT64_MAX));
  ASSAY_TRY(loaded.dtype, members.text("dtype"));
  ASSAY_TRY(loaded.quantization, members.text_or("quantization", ""));
  ASSAY_TRY(loaded.threads, members.optional_integer("threads", 1, 1 << 16));
  ASSAY_TRY(loaded.model_hash, members.text_or("model_hash", ""));
  ASSAY_TRY(loaded.seconds, members.seconds("seconds"));
  return loaded;
}

Result<Yardstick> parse_yardstick(const Members& members) {
  Yardstick yardstick;
  ASSAY_TRY(yardstick.lookups_ns, members.integer("lookups_ns", 0, INT64_MAX));
  ASSAY_TRY(yardstick.multiplies_ns, members.integer("multiplies_ns", 0, INT64_MAX));
  return yardstick;
}

Result<SampleReply> parse_sample(const Members& members) {
  SampleReply sample;
  ASSAY_TRY(sample.repetition, members.integer("repetition", -kMaxRepetitions, kMaxRepetitions));
  ASSAY_TRY(sample.latency_ns, members.integer("latency_ns", 0, INT64_MAX));
  ASSAY_TRY(sample.device_ns, members.optional_integer("device_ns", 0, INT64_MAX));
  ASSAY_TRY(sample.ttft_ns, members.optional_integer("ttft_ns", 0, INT64_MAX));
  ASSAY_TRY(sample.tokens, members.integer("tokens", 0, INT64_MAX));
  ASSAY_TRY(sample.output_hash, members.text("output_hash"));
  ASSAY_TRY(sample.non_finite, members.boolean_or("non_finite", false));
  ASSAY_TRY(sample.cold, members.boolean_or("cold", false));
  ASSAY_TRY(sample.started_at_ns, members.integer("started_at_ns", 0, INT64_MAX));
  ASSAY_TRY(sample.read_bytes, members.optional_integer("read_bytes", 0, INT64_MAX));
  ASSAY_TRY(sample.peak_rss_bytes, members.optional_integer("peak_rss_bytes", 0, INT64_MAX));
  ASSAY_TRY(sample.energy_j, members.optional_amount("energy_j"));
  ASSAY_TRY(sample.recalled, members.boolean_or("recalled", false));
  ASSAY_TRY(const Json yardstick, members.object_or_empty("yardstick"));
  if (!yardstick.empty()) {
    ASSAY_TRY(sample.yardstick, parse_yardstick(Members(yardstick, "sample yardstick")));
  }
  ASSAY_TRY(const Json counters, members.object_or_empty("counters"));
  const Members counter_members(counters, "sample counters");
  for (const auto& [name, value] : counters.items()) {
    ASSAY_CHECK(counter_members.integer(name.c_str(), 0, kMostCounted));
  }
  sample.counters = counts_from_json(counters);
  return sample;
}

Result<ErrorReply> parse_error(const Members& members) {
  ErrorReply error;
  ASSAY_TRY(error.error_class, members.text("class"));
  ASSAY_TRY(error.message, members.text_or("message", ""));
  ASSAY_TRY(error.out_of_memory, members.boolean_or("out_of_memory", false));
  ASSAY_TRY(error.device_lost, members.boolean_or("device_lost", false));
  ASSAY_TRY(error.outcome, members.text_or("outcome", ""));
  if (!error.outcome.empty()) {
    ASSAY_CHECK(members.word("outcome", {"crash", "timeout", "false_success"}));
  }
  if (error.error_class.empty()) return bad_input("error: expected a class, found \"\"");
  return error;
}

Result<PreparedReply> parse_prepared(const Members& members) {
  PreparedReply prepared;
  ASSAY_TRY(prepared.seconds, members.seconds("seconds"));
  ASSAY_TRY(prepared.evidence, members.object_or_empty("evidence"));
  return prepared;
}

Result<ParityReply> parse_tokens(const Members& members, const Json& object) {
  ParityReply parity;
  ASSAY_TRY(parity.tokens, members.id_rows("tokens"));
  const auto stats = object.find("logit_stats");
  if (stats == object.end() || stats->is_null()) return parity;
  ASSAY_TRY(parity.logit_stats, members.objects("logit_stats", kMaxBatch));
  if (parity.logit_stats.size() != parity.tokens.size()) {
    return bad_input("parity: expected logit_stats of {}, found {}",
                     counted(std::ssize(parity.tokens), "row"), parity.logit_stats.size());
  }
  return parity;
}

}  // namespace

std::string format_reply(const Reply& reply) {
  Json json = {{"id", reply.id}};
  std::visit(ReplyFormatter{json}, reply.body);
  return to_json_line(json) + "\n";
}

Result<Reply> parse_reply(std::string_view line) {
  ASSAY_TRY(const Envelope envelope, parse_envelope(line, "reply"));
  const Members members(envelope.object, envelope.type.substr(0, 80));
  Reply reply{envelope.id, {}};
  if (envelope.type == "hello") {
    ASSAY_TRY(reply.body, parse_greeting(members));
  } else if (envelope.type == "loaded") {
    ASSAY_TRY(reply.body, parse_loaded(members));
  } else if (envelope.type == "prepared") {
    ASSAY_TRY(reply.body, parse_prepared(members));
  } else if (envelope.type == "sample") {
    ASSAY_TRY(reply.body, parse_sample(members));
  } else if (envelope.type == "done") {
    ASSAY_TRY(const int64_t samples, members.integer("samples", 0, kMaxRepetitions));
    reply.body = DoneReply{samples};
  } else if (envelope.type == "parity") {
    ASSAY_TRY(reply.body, parse_tokens(members, envelope.object));
  } else if (envelope.type == "profile") {
    ASSAY_TRY(Json summary, members.object("summary"));
    reply.body = ProfileReply{std::move(summary)};
  } else if (envelope.type == "evidence") {
    ASSAY_TRY(Json evidence, members.object("evidence"));
    reply.body = EvidenceReply{std::move(evidence)};
  } else if (envelope.type == "tokenized") {
    ASSAY_TRY(auto ids, members.ids("ids", kMaxPositions));
    reply.body = TokenizedReply{std::move(ids)};
  } else if (envelope.type == "bye") {
    reply.body = ByeReply{};
  } else if (envelope.type == "error") {
    ASSAY_TRY(reply.body, parse_error(members));
  } else {
    return bad_input("{}", unknown_type_text(envelope, "reply"));
  }
  return reply;
}

}  // namespace assay
