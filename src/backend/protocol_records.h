// The members of every message of the worker protocol, described once for both directions, and the
// rules that hold between members; private to the protocol.
#pragma once

#include "backend/message.h"
#include "backend/protocol_fields.h"
#include "base/text/text.h"

namespace assay {

namespace wire {

// Far beyond any model, and small enough that sums and products of a few stay within int64.
inline constexpr int64_t kMaxCount = int64_t{1} << 31;
inline constexpr int64_t kMaxBatch = 4096;
inline constexpr int64_t kMaxPositions = int64_t{1} << 24;
inline constexpr int64_t kMaxRepetitions = 1'000'000;
inline constexpr int64_t kMaxThreads = 1 << 16;

// Parity's last token is chosen and not fed: the cache needs no place for it.
inline constexpr int64_t kUnfedInParity = 1;

}  // namespace wire

template <>
struct Record<WirePrompt> {
  static constexpr auto kMembers = std::tuple(
      wire::IdRows<WirePrompt>{"ids", &WirePrompt::ids, wire::kMaxBatch, wire::kMaxPositions},
      wire::wholes("pad", &WirePrompt::pad, 0, INT32_MAX, wire::kMaxBatch));
};

template <>
struct Record<WireShape> {
  static constexpr auto kMembers =
      std::tuple(field("phase", &WireShape::phase),
                 wire::whole("batch", &WireShape::batch, 1, wire::kMaxBatch),
                 wire::whole("new_tokens", &WireShape::new_tokens, 0,
                             wire::kMaxPositions + wire::kUnfedInParity),
                 wire::whole("capacity", &WireShape::capacity, 1, 2 * wire::kMaxPositions));
};

template <>
struct Record<WireRepetition> {
  static constexpr auto kMembers =
      std::tuple(wire::whole("repetition", &WireRepetition::repetition, -wire::kMaxRepetitions,
                             wire::kMaxRepetitions),
                 wire::whole("prompt", &WireRepetition::prompt, 0, wire::kMaxRepetitions));
};

// Requests.

template <>
struct Record<HelloRequest> {
  static constexpr const char* kType = "hello";
  static constexpr auto kMembers =
      std::tuple(wire::whole("protocol_min", &HelloRequest::protocol_min, 1, wire::kMaxCount),
                 wire::whole("protocol_max", &HelloRequest::protocol_max, 1, wire::kMaxCount),
                 field_may_lack("harness", &HelloRequest::harness));
};

template <>
struct Record<LoadRequest> {
  static constexpr const char* kType = "load";
  static constexpr auto kMembers =
      std::tuple(field("model", &LoadRequest::model), field_may_lack("dtype", &LoadRequest::dtype),
                 field("mode", &LoadRequest::mode), field("cache", &LoadRequest::cache),
                 field_may_lack("dynamic", &LoadRequest::dynamic),
                 wire::whole("threads", &LoadRequest::threads, 0, wire::kMaxThreads),
                 field_may_lack("want_model_hash", &LoadRequest::want_model_hash),
                 wire::Object<LoadRequest>{"options", &LoadRequest::options, true});
};

template <>
struct Record<PrepareRequest> {
  static constexpr const char* kType = "prepare";
  static constexpr auto kMembers =
      std::tuple(wire::Flattened<PrepareRequest, WireShape>{&PrepareRequest::shape},
                 wire::wholes("padded_lens", &PrepareRequest::padded_lens, 1,
                              2 * wire::kMaxPositions, wire::kMaxRepetitions),
                 field_if_known("padding", &PrepareRequest::padding));
};

template <>
struct Record<MeasureRequest> {
  static constexpr const char* kType = "measure";
  static constexpr auto kMembers =
      std::tuple(wire::Flattened<MeasureRequest, WireShape>{&MeasureRequest::shape},
                 wire::objects("prompts", &MeasureRequest::prompts, wire::kMaxRepetitions),
                 wire::objects("repetitions", &MeasureRequest::repetitions, wire::kMaxRepetitions));
};

template <>
struct Record<OfferRequest> {
  static constexpr const char* kType = "offer";
  static constexpr auto kMembers =
      std::tuple(wire::Flattened<OfferRequest, WireShape>{&OfferRequest::shape},
                 field("load", &OfferRequest::load));
};

template <>
struct Record<ParityRequest> {
  static constexpr const char* kType = "parity";
  static constexpr auto kMembers =
      std::tuple(wire::Flattened<ParityRequest, WireShape>{&ParityRequest::shape},
                 field("prompt", &ParityRequest::prompt));
};

template <>
struct Record<ProfileRequest> {
  static constexpr const char* kType = "profile";
  static constexpr auto kMembers = std::tuple(
      wire::Flattened<ProfileRequest, WireShape>{&ProfileRequest::shape},
      field("prompt", &ProfileRequest::prompt), field("trace_path", &ProfileRequest::trace_path));
};

template <>
struct Record<EvidenceRequest> {
  static constexpr const char* kType = "evidence";
  static constexpr auto kMembers = std::tuple(field("phase", &EvidenceRequest::phase));
};

template <>
struct Record<TokenizeRequest> {
  static constexpr const char* kType = "tokenize";
  static constexpr auto kMembers = std::tuple(field("text", &TokenizeRequest::text));
};

template <>
struct Record<ShutdownRequest> {
  static constexpr const char* kType = "shutdown";
  static constexpr auto kMembers = std::tuple();
};

// Replies.

template <>
struct Record<HelloReply> {
  static constexpr const char* kType = "hello";
  static constexpr auto kMembers = std::tuple(
      wire::whole("protocol", &HelloReply::protocol, 1, wire::kMaxCount),
      field("worker", &HelloReply::worker), field_may_lack("version", &HelloReply::version),
      wire::Object<HelloReply>{"capabilities", &HelloReply::capabilities, true});
};

template <>
struct Record<LoadedReply> {
  static constexpr const char* kType = "loaded";
  static constexpr auto kMembers = std::tuple(
      wire::whole("vocab_size", &LoadedReply::vocab_size, 0, INT32_MAX),
      wire::wholes("special_ids", &LoadedReply::special_ids, 0, INT32_MAX, size_t{1} << 20),
      wire::whole("max_positions", &LoadedReply::max_positions, 1, INT64_MAX),
      wire::whole("weight_bytes", &LoadedReply::weight_bytes, 0, INT64_MAX),
      field("dtype", &LoadedReply::dtype),
      field_may_lack("quantization", &LoadedReply::quantization),
      wire::whole("threads", &LoadedReply::threads, 1, wire::kMaxThreads),
      field_may_lack("model_hash", &LoadedReply::model_hash),
      wire::Seconds<LoadedReply>{"seconds", &LoadedReply::seconds});
};

template <>
struct Record<PreparedReply> {
  static constexpr const char* kType = "prepared";
  static constexpr auto kMembers =
      std::tuple(wire::Seconds<PreparedReply>{"seconds", &PreparedReply::seconds},
                 wire::Object<PreparedReply>{"evidence", &PreparedReply::evidence, true});
};

template <>
struct Record<SampleReply> {
  static constexpr const char* kType = "sample";
  static constexpr auto kMembers =
      std::tuple(wire::whole("repetition", &SampleReply::repetition, -wire::kMaxRepetitions,
                             wire::kMaxRepetitions),
                 wire::MeasuredMembers(), wire::whole("tokens", &SampleReply::tokens, 0, INT64_MAX),
                 field("output_hash", &SampleReply::output_hash),
                 wire::FlagIfSet<SampleReply>{"non_finite", &SampleReply::non_finite},
                 field_may_lack("cold", &SampleReply::cold),
                 wire::whole("started_at_ns", &SampleReply::started_at_ns, 0, INT64_MAX),
                 wire::whole("read_bytes", &SampleReply::read_bytes, 0, INT64_MAX),
                 wire::whole("operations", &SampleReply::operations, 0, INT64_MAX),
                 wire::whole("peak_rss_bytes", &SampleReply::peak_rss_bytes, 0, INT64_MAX),
                 wire::FlagIfSet<SampleReply>{"recalled", &SampleReply::recalled},
                 wire::CounterMembers<SampleReply>{"counters", &SampleReply::counters});
};

template <>
struct Record<DoneReply> {
  static constexpr const char* kType = "done";
  static constexpr auto kMembers =
      std::tuple(wire::whole("samples", &DoneReply::samples, 0, wire::kMaxRepetitions));
};

template <>
struct Record<RequestReply> {
  static constexpr const char* kType = "request";
  static constexpr auto kMembers = std::tuple(field("request", &RequestReply::request));
};

template <>
struct Record<OfferedReply> {
  static constexpr const char* kType = "offered";
  static constexpr auto kMembers =
      std::tuple(wire::whole("requests", &OfferedReply::requests, 0, kMostLoadRequests),
                 wire::whole("started_at_ns", &OfferedReply::started_at_ns, 0, INT64_MAX));
};

template <>
struct Record<ParityReply> {
  static constexpr const char* kType = "parity";
  static constexpr auto kMembers =
      std::tuple(wire::IdRows<ParityReply>{"tokens", &ParityReply::tokens, wire::kMaxBatch,
                                           wire::kMaxPositions},
                 wire::objects("logit_stats", &ParityReply::logit_stats, wire::kMaxBatch, true),
                 wire::wholes("ends", &ParityReply::ends, 0, INT32_MAX, wire::kMaxPositions, true));
};

template <>
struct Record<ProfileReply> {
  static constexpr const char* kType = "profile";
  static constexpr auto kMembers =
      std::tuple(wire::Object<ProfileReply>{"summary", &ProfileReply::summary, false});
};

template <>
struct Record<EvidenceReply> {
  static constexpr const char* kType = "evidence";
  static constexpr auto kMembers =
      std::tuple(wire::Object<EvidenceReply>{"evidence", &EvidenceReply::evidence, false});
};

template <>
struct Record<TokenizedReply> {
  static constexpr const char* kType = "tokenized";
  static constexpr auto kMembers =
      std::tuple(wire::wholes("ids", &TokenizedReply::ids, 0, INT32_MAX, wire::kMaxPositions));
};

template <>
struct Record<ByeReply> {
  static constexpr const char* kType = "bye";
  static constexpr auto kMembers = std::tuple();
};

template <>
struct Record<ErrorReply> {
  static constexpr const char* kType = "error";
  static constexpr auto kMembers = std::tuple(
      field("class", &ErrorReply::error_class), field_may_lack("message", &ErrorReply::message),
      field_may_lack("out_of_memory", &ErrorReply::out_of_memory),
      wire::FlagIfSet<ErrorReply>{"device_lost", &ErrorReply::device_lost},
      field_if_known("outcome", &ErrorReply::outcome));
};

namespace wire {

// Rules between the members of a message; a message without a rule of its own has none. Each
// answers the member that is wrong.
template <typename Message>
Fit broken_rule(const Message&) {
  return std::nullopt;
}
Fit broken_rule(const HelloRequest& hello);
Fit broken_rule(const PrepareRequest& prepare);
Fit broken_rule(const MeasureRequest& measure);
Fit broken_rule(const OfferRequest& offer);
Fit broken_rule(const ParityRequest& parity);
Fit broken_rule(const ProfileRequest& profile);
Fit broken_rule(const RequestReply& reply);
Fit broken_rule(const ParityReply& parity);
Fit broken_rule(const ErrorReply& error);

}  // namespace wire
}  // namespace assay
