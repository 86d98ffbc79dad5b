// The messages of the worker protocol as values; docs/worker-protocol.md is their specification.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/records/counter.h"
#include "base/records/json.h"
#include "base/records/measured.h"
#include "base/records/phase.h"
#include "load/offered_load.h"
#include "load/sent_request.h"

namespace assay {

inline constexpr int64_t kProtocolVersion = 1;
inline constexpr size_t kMaxLineBytes = size_t{16} << 20;
// Descriptors that a worker inherits: it reads requests from the first, writes replies to the
// other.
inline constexpr int kRequestDescriptor = 3;
inline constexpr int kReplyDescriptor = 4;

// Prompts of one batch, left-padded to one length by the harness.
struct WirePrompt {
  std::vector<std::vector<int32_t>> ids;  // [batch] of [padded_len]
  std::vector<int32_t> pad;               // [batch]: padding ids at the start of each row

  int64_t padded_len() const { return ids.empty() ? 0 : static_cast<int64_t>(ids.front().size()); }
  friend bool operator==(const WirePrompt&, const WirePrompt&) = default;
};

// The shape of a unit's runs; prepare and measure carry it, so that a worker can check itself.
struct WireShape {
  Phase phase = Phase::kPrefill;
  int64_t batch = 1;
  int64_t new_tokens = 0;  // 0 in prefill
  int64_t capacity = 0;    // positions that the cache must hold: longest padded prompt + new tokens

  friend bool operator==(const WireShape&, const WireShape&) = default;
};

struct HelloRequest {
  int64_t protocol_min = kProtocolVersion;
  int64_t protocol_max = kProtocolVersion;
  std::string harness;  // name and version, for logs
};

struct LoadRequest {
  std::string model;    // a checkpoint folder, or a name that the backend understands
  std::string dtype;    // fp32 | fp16 | bf16; empty: as stored
  std::string mode;     // eager, compiled, ...
  std::string cache;    // dynamic | static
  std::string dynamic;  // true | false | auto, or empty
  int64_t threads = 0;  // 0: as many as the process may run on
  bool want_model_hash = false;
  Json options = Json::object();  // keys of the arm that only its backend knows
};

struct PrepareRequest {
  WireShape shape;
  std::vector<int64_t> padded_lens;  // of the prompts to come, each once
  std::optional<bool> padding = {};  // whether any of them has padding ids; absent: not said
};

struct WireRepetition {
  int64_t repetition = 0;  // negative: a warm-up
  int64_t prompt = 0;      // index into prompts
};

struct MeasureRequest {
  WireShape shape;
  std::vector<WirePrompt> prompts;
  std::vector<WireRepetition> repetitions;  // a sample each, in this order
};

// One run of phase load; of workers whose backend serves load.
struct OfferRequest {
  WireShape shape;  // batch 1
  OfferedLoad load;
};

struct ParityRequest {
  WireShape shape;  // phase kv_decode
  WirePrompt prompt;
};

// One repetition of the shape under a profiler; of a worker that announces the capability.
struct ProfileRequest {
  WireShape shape;
  WirePrompt prompt;
  std::string trace_path;  // where the worker writes a trace in Chrome's format
};

struct EvidenceRequest {
  Phase phase = Phase::kPrefill;
};

struct TokenizeRequest {
  std::string text;
};

struct ShutdownRequest {};

struct Request {
  int64_t id = 0;
  std::variant<HelloRequest, LoadRequest, PrepareRequest, MeasureRequest, OfferRequest,
               ParityRequest, ProfileRequest, EvidenceRequest, TokenizeRequest, ShutdownRequest>
      body;
};

struct HelloReply {
  int64_t protocol = kProtocolVersion;  // chosen by the worker from the offered range
  std::string worker;
  std::string version;
  Json capabilities = Json::object();  // what the worker supports; kept in the evidence
};

struct LoadedReply {
  int64_t vocab_size = 0;            // 0: it takes no ids, only the prompts' lengths count
  std::vector<int64_t> special_ids;  // ids that random prompts leave out
  std::optional<int64_t> max_positions;
  std::optional<int64_t> weight_bytes;
  std::string dtype;         // in use
  std::string quantization;  // empty: none
  std::optional<int64_t> threads;
  std::string model_hash;  // empty unless asked for and known
  double seconds = 0;
};

struct PreparedReply {
  double seconds = 0;
  Json evidence = Json::object();  // of this preparation: the code compiled and its cost
};

// One repetition, as the worker saw it.
struct SampleReply : Measured {
  int64_t repetition = 0;
  int64_t tokens = 0;                 // produced over the batch
  std::string output_hash;            // token_hash of them, row after row of the batch
  bool non_finite = false;            // a token was chosen by a logit that isn't finite
  bool cold = false;                  // first call of its shape in the process
  int64_t started_at_ns = 0;          // wall clock at the start of the timed region
  std::optional<int64_t> read_bytes;  // at least read from the weights and cache in the region
  std::optional<int64_t> operations;  // multiplications and additions of the prompt, in prefill
  std::optional<int64_t> peak_rss_bytes;
  // It was measured together with an earlier repetition of the process, so that the machine's
  // present state says nothing about it.
  bool recalled = false;
  Counts counters;  // increments by this repetition
};

struct DoneReply {
  int64_t samples = 0;
};

// A request of an offered run, told when it has ended.
struct RequestReply {
  SentRequest request;
};

// The end of an offered run, behind its requests.
struct OfferedReply {
  int64_t requests = 0;
  int64_t started_at_ns = 0;  // wall clock at the run's beginning
};

// The class of an error where tokens were chosen by logits that aren't finite, and of such a row.
inline constexpr const char* kNonFinite = "non_finite";

struct ParityReply {
  // [batch] of [new_tokens]; a row that an id of `ends` ends may be shorter.
  std::vector<std::vector<int32_t>> tokens;
  // [batch] objects, or none: statistics of the logits that the prefill leads to.
  std::vector<Json> logit_stats = {};
  std::vector<int32_t> ends = {};  // ids that end a text of the worker's program
};

struct ProfileReply {
  Json summary = Json::object();
};

struct EvidenceReply {
  Json evidence = Json::object();
};

struct TokenizedReply {
  std::vector<int32_t> ids;
};

struct ByeReply {};

// Error class of a worker whose program has no token ids to show: no failure of its parity.
inline constexpr const char* kNoIds = "no_ids";

struct ErrorReply {
  std::string error_class;     // exception class as the worker's language names it
  std::string message;         // whole, may have many lines
  bool out_of_memory = false;  // of the host or of the device
  bool device_lost = false;    // no call to the device succeeds any more: as if it had crashed
  // "crash", "timeout" or "false_success": the end of a program that the worker ran and that the
  // repetition stands for; empty: the error is the worker's own.
  std::string outcome = {};
};

// True if a worker answers `profile`.
bool announces_profile(const HelloReply& hello);

struct Reply {
  int64_t id = 0;
  std::variant<HelloReply, LoadedReply, PreparedReply, SampleReply, DoneReply, RequestReply,
               OfferedReply, ParityReply, ProfileReply, EvidenceReply, TokenizedReply, ByeReply,
               ErrorReply>
      body;
};

}  // namespace assay
