// The worker's side of the protocol: a backend in C++ implements Worker and calls serve_worker().
#pragma once

#include <expected>
#include <functional>
#include <string>

#include "backend/message.h"
#include "base/result.h"

namespace assay {

template <typename T>
using WorkerResult = std::expected<T, ErrorReply>;

// One loaded model behind the protocol. The loop calls it from one thread, in an order that it has
// checked: describe, load once, then anything. Exceptions that escape become error replies.
class Worker {
 public:
  virtual ~Worker() = default;
  // `protocol` is filled in by the loop.
  virtual HelloReply describe() = 0;
  virtual WorkerResult<LoadedReply> load(const LoadRequest& request) = 0;
  // Makes everything ready that the shapes need; nothing of it may be left to the first sample.
  virtual WorkerResult<PreparedReply> prepare(const PrepareRequest& request) = 0;
  // One repetition. The shape is the one that was prepared last.
  virtual WorkerResult<SampleReply> measure(const WireShape& shape, const WirePrompt& prompt,
                                            int64_t repetition) = 0;
  // One run under load; the shape is the one that was prepared last. Every request of it is told to
  // `take` when it has ended, whatever becomes of the run. Only of workers whose backend serves
  // load.
  using TakeRequest = std::function<void(SentRequest)>;
  virtual WorkerResult<OfferedReply> offer(const OfferRequest&, const TakeRequest&) {
    return std::unexpected(ErrorReply{"protocol_error", "this worker serves no load", false});
  }
  // Greedy tokens: the prefill's, then one a decode step, new_tokens in all.
  virtual WorkerResult<ParityReply> parity(const ParityRequest& request) = 0;
  // The prepared shape once, traced. Only of workers whose description announces `profile`.
  virtual WorkerResult<ProfileReply> profile(const ProfileRequest&) {
    return std::unexpected(ErrorReply{"protocol_error", "this worker has no profiler", false});
  }
  virtual WorkerResult<TokenizedReply> tokenize(const TokenizeRequest& request) = 0;
  virtual WorkerResult<EvidenceReply> evidence(const EvidenceRequest& request) = 0;
};

// Serves requests until shutdown or the end of the request stream (the harness is gone); both are
// success. Errors of the worker and requests out of order are answered and served past; a line
// that can't be read or a reply that can't be written ends with an environment error.
Status serve_worker(Worker& worker, int request_fd, int reply_fd);

}  // namespace assay
