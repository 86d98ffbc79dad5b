// The worker's loop: order of requests, errors as replies, samples streamed.
#include <new>

#include "backend/line_stream.h"
#include "backend/protocol.h"
#include "backend/worker.h"

namespace assay {
namespace {

ErrorReply out_of_order(const std::string& message) {
  return {"protocol_error", message, false};
}

// Runs a call of the worker; an exception becomes an error reply.
template <typename Call>
auto guarded(Call&& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return std::unexpected(ErrorReply{"std::bad_alloc", "out of memory", true});
  } catch (const std::exception& error) {
    return std::unexpected(ErrorReply{"std::exception", error.what(), false});
  }
}

class Loop {
 public:
  Loop(Worker& worker, int request_fd, int reply_fd)
      : worker_(worker), stream_(request_fd, reply_fd, kMaxLineBytes) {}

  Status run() {
    while (!finished_) {
      ASSAY_TRY(const auto line, stream_.read_line());
      if (!line) return {};
      const auto request = parse_request(*line);
      if (!request) {
        // Ids start at 1, so 0 says: the request whose id could not be read.
        ASSAY_CHECK(reply(0, out_of_order(request.error().message)));
        continue;
      }
      ASSAY_CHECK(serve(*request));
    }
    return {};
  }

 private:
  template <typename Body>
  Status reply(int64_t id, Body body) {
    return stream_.write(format_reply(Reply{id, std::move(body)}));
  }

  template <typename T>
  Status answer(int64_t id, WorkerResult<T> result) {
    if (!result) return reply(id, std::move(result).error());
    return reply(id, std::move(result).value());
  }

  // The message that must come before this request; empty: it may be served.
  std::string order_problem(const Request& request) const {
    const bool hello = std::holds_alternative<HelloRequest>(request.body);
    const bool load = std::holds_alternative<LoadRequest>(request.body);
    const bool shutdown = std::holds_alternative<ShutdownRequest>(request.body);
    if (hello) return greeted_ ? "expected one hello, found another" : "";
    if (shutdown) return "";
    if (!greeted_) return "expected hello first";
    if (load) return loaded_ ? "expected one load, found another" : "";
    return loaded_ ? "" : "expected load first";
  }

  Status serve(const Request& request) {
    if (const std::string problem = order_problem(request); !problem.empty()) {
      return reply(request.id, out_of_order(problem));
    }
    return std::visit([&](const auto& body) { return handle(request.id, body); }, request.body);
  }

  Status handle(int64_t id, const HelloRequest& hello) {
    if (hello.protocol_min > kProtocolVersion || hello.protocol_max < kProtocolVersion) {
      return reply(
          id, out_of_order(fmt::format("expected protocol version {}, found {} to {}",
                                       kProtocolVersion, hello.protocol_min, hello.protocol_max)));
    }
    greeted_ = true;
    HelloReply answer = worker_.describe();
    answer.protocol = kProtocolVersion;
    return reply(id, std::move(answer));
  }

  Status handle(int64_t id, const LoadRequest& load) {
    auto loaded = guarded([&] { return worker_.load(load); });
    loaded_ = loaded.has_value();
    return answer(id, std::move(loaded));
  }

  Status handle(int64_t id, const PrepareRequest& prepare) {
    auto prepared = guarded([&] { return worker_.prepare(prepare); });
    if (prepared) shape_ = prepare.shape;
    return answer(id, std::move(prepared));
  }

  Status handle(int64_t id, const MeasureRequest& measure) {
    if (shape_ != measure.shape) {
      return reply(id, out_of_order("expected prepare with this shape before measure"));
    }
    for (const WireRepetition& repetition : measure.repetitions) {
      const WirePrompt& prompt = measure.prompts[static_cast<size_t>(repetition.prompt)];
      auto sample =
          guarded([&] { return worker_.measure(measure.shape, prompt, repetition.repetition); });
      if (!sample) return reply(id, std::move(sample).error());
      sample->repetition = repetition.repetition;
      ASSAY_CHECK(reply(id, std::move(sample).value()));
    }
    return reply(id, DoneReply{static_cast<int64_t>(measure.repetitions.size())});
  }

  Status handle(int64_t id, const OfferRequest& offer) {
    if (shape_ != offer.shape) {
      return reply(id, out_of_order("expected prepare with this shape before offer"));
    }
    Status told;
    int64_t requests = 0;
    const auto take = [&](SentRequest request) {
      ++requests;
      if (told) told = reply(id, RequestReply{std::move(request)});
    };
    auto offered = guarded([&] { return worker_.offer(offer, take); });
    ASSAY_CHECK(std::move(told));
    if (offered) offered->requests = requests;
    return answer(id, std::move(offered));
  }

  Status handle(int64_t id, const ParityRequest& parity) {
    shape_.reset();  // parity may have used the cache for its own shape
    return answer(id, guarded([&] { return worker_.parity(parity); }));
  }

  Status handle(int64_t id, const ProfileRequest& profile) {
    if (shape_ != profile.shape) {
      return reply(id, out_of_order("expected prepare with this shape before profile"));
    }
    return answer(id, guarded([&] { return worker_.profile(profile); }));
  }

  Status handle(int64_t id, const EvidenceRequest& evidence) {
    return answer(id, guarded([&] { return worker_.evidence(evidence); }));
  }

  Status handle(int64_t id, const TokenizeRequest& tokenize) {
    return answer(id, guarded([&] { return worker_.tokenize(tokenize); }));
  }

  Status handle(int64_t id, const ShutdownRequest&) {
    finished_ = true;
    return reply(id, ByeReply{});
  }

  Worker& worker_;
  LineStream stream_;
  bool greeted_ = false;
  bool loaded_ = false;
  bool finished_ = false;
  std::optional<WireShape> shape_;  // prepared last
};

}  // namespace

Status serve_worker(Worker& worker, int request_fd, int reply_fd) {
  return Loop(worker, request_fd, reply_fd).run();
}

}  // namespace assay
