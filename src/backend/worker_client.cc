// One request at a time; everything unexpected becomes a failure with its class.
#include "backend/worker_client.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <set>

#include "backend/protocol.h"
#include "base/clock.h"
#include "base/text/text.h"

namespace assay {
namespace {

// A process that closed its channel is usually dying: so long is waited to learn how.
constexpr double kDyingGrace_s = 5;
// The time between two looks at a worker's log while its reply is waited for: long beside timed
// regions, short beside the time that a flood of output takes.
constexpr int64_t kLogLooks_ms = 250;

std::unexpected<WorkerFailure> failure(FailureKind kind, std::string error_class,
                                       std::string message) {
  return std::unexpected(WorkerFailure{kind, std::move(error_class), std::move(message)});
}

}  // namespace

struct WorkerClient::Impl {
  WorkerLog* log = nullptr;
  int64_t log_looked_at_ns = 0;
  std::unique_ptr<Child> child;
  int interrupt_fd = -1;
  int64_t next_id = 1;
  HelloReply hello;
  std::string asked;  // type of the request under way

  std::unexpected<WorkerFailure> killed(FailureKind kind, std::string error_class,
                                        std::string message);
  std::unexpected<WorkerFailure> ended();
  void bound_log();
  ClientResult<std::string> read_line(int64_t deadline_ns, double timeout_s);
  ClientResult<Reply> read_reply(int64_t id, double timeout_s);
  template <typename Body>
  ClientResult<int64_t> send(Body body, double timeout_s);
  template <typename Expected, typename Body>
  ClientResult<Expected> ask(Body body, double timeout_s);
};

namespace {

FailureKind kind_of(const ErrorReply& error) {
  if (error.device_lost || error.outcome == "crash") return FailureKind::kCrash;
  if (error.out_of_memory) return FailureKind::kOutOfMemory;
  if (error.outcome == "timeout") return FailureKind::kTimeout;
  if (error.outcome == "false_success") return FailureKind::kFalseSuccess;
  return FailureKind::kError;
}

}  // namespace

std::unexpected<WorkerFailure> WorkerClient::Impl::killed(FailureKind kind, std::string error_class,
                                                          std::string message) {
  child->kill();
  child->wait(kNoDeadline);
  return failure(kind, std::move(error_class), std::move(message));
}

// The channel is closed: how the process ended, if it did.
std::unexpected<WorkerFailure> WorkerClient::Impl::ended() {
  const auto end = child->wait(deadline_after(kDyingGrace_s));
  if (!end) {
    return killed(FailureKind::kError, "closed_channel",
                  "the worker closed its channel and went on running");
  }
  if (end->oom_likely) {
    return failure(FailureKind::kOutOfMemory, end->text(), "killed by the kernel: out of memory");
  }
  return failure(FailureKind::kCrash, end->text(), "the worker ended: " + end->text());
}

void WorkerClient::Impl::bound_log() {
  const int64_t now_ns = monotonic_now_ns();
  if (now_ns - log_looked_at_ns < kLogLooks_ms * 1'000'000) return;
  log_looked_at_ns = now_ns;
  log->bound();
}

ClientResult<std::string> WorkerClient::Impl::read_line(int64_t deadline_ns, double timeout_s) {
  while (true) {
    bound_log();
    // Before any line: a quick worker's reply must not put an interruption off by a repetition.
    pollfd interrupt{interrupt_fd, POLLIN, 0};
    if (::poll(&interrupt, 1, 0) > 0) {
      return killed(FailureKind::kInterrupted, "interrupted", "the run was interrupted");
    }
    // Before the read: output that a worker wrote before its end is still taken. A process that it
    // started may hold the channel open, so that the channel's end never comes.
    pollfd end{child->end_descriptor(), POLLIN, 0};
    const bool dead = ::poll(&end, 1, 0) > 0;
    LineRead read = child->read_line(0);
    if (read.kind == LineRead::Kind::kLine) return std::move(read.line);
    if (read.kind == LineRead::Kind::kEnd) return ended();
    if (read.kind == LineRead::Kind::kTooLong) {
      return killed(FailureKind::kError, "protocol_error",
                    fmt::format("expected lines of at most {} bytes", kMaxLineBytes));
    }
    if (dead) return ended();
    const int64_t left_ns = deadline_ns - monotonic_now_ns();
    if (left_ns <= 0) {
      return killed(FailureKind::kTimeout, "timeout",
                    fmt::format("no reply to {} within {} s", asked, timeout_s));
    }
    std::array<pollfd, 3> waits{{{child->reply_descriptor(), POLLIN, 0},
                                 {interrupt_fd, POLLIN, 0},
                                 {child->end_descriptor(), POLLIN, 0}}};
    const int64_t wait_ms = std::min(left_ns / 1'000'000 + 1, kLogLooks_ms);
    ::poll(waits.data(), waits.size(), static_cast<int>(wait_ms));
  }
}

// The next reply to `id`, error replies included. An id of 0 is an error about a line that the
// worker could not read.
ClientResult<Reply> WorkerClient::Impl::read_reply(int64_t id, double timeout_s) {
  const auto line = read_line(deadline_after(timeout_s), timeout_s);
  if (!line) return std::unexpected(line.error());
  auto reply = parse_reply(*line);
  if (!reply) {
    return killed(FailureKind::kError, "protocol_error",
                  reply.error().message + ": " + line->substr(0, 200));
  }
  const bool is_error = std::holds_alternative<ErrorReply>(reply->body);
  if (reply->id != id && !(is_error && reply->id == 0)) {
    return killed(FailureKind::kError, "protocol_error",
                  fmt::format("expected a reply to request {}, found one to {}", id, reply->id));
  }
  if (is_error) {
    const auto& error = std::get<ErrorReply>(reply->body);
    return failure(kind_of(error), error.error_class, error.message);
  }
  return std::move(reply).value();
}

template <typename Body>
ClientResult<int64_t> WorkerClient::Impl::send(Body body, double timeout_s) {
  const int64_t id = next_id++;
  const Request request{id, std::move(body)};
  asked = request_type(request);
  const std::string text = format_request(request);
  if (!child->send(text, deadline_after(timeout_s))) {
    // Dead, or alive and not reading.
    if (const auto end = child->wait(deadline_after(0.1)); end) return ended();
    return killed(FailureKind::kTimeout, "timeout",
                  fmt::format("the worker took no {} request within {} s", asked, timeout_s));
  }
  return id;
}

template <typename Expected, typename Body>
ClientResult<Expected> WorkerClient::Impl::ask(Body body, double timeout_s) {
  const auto id = send(std::move(body), timeout_s);
  if (!id) return std::unexpected(id.error());
  auto reply = read_reply(*id, timeout_s);
  if (!reply) return std::unexpected(std::move(reply).error());
  if (auto* expected = std::get_if<Expected>(&reply->body)) return std::move(*expected);
  return killed(FailureKind::kError, "protocol_error", "the reply is of an unexpected type");
}

WorkerClient::WorkerClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
WorkerClient::WorkerClient(WorkerClient&&) noexcept = default;
WorkerClient& WorkerClient::operator=(WorkerClient&&) noexcept = default;
WorkerClient::~WorkerClient() = default;

ClientResult<WorkerClient> WorkerClient::start(Spawner& spawner, const WorkerCommand& command,
                                               WorkerLog& log, int interrupt_fd,
                                               const std::string& harness, double timeout_s) {
  ChildSpec spec;
  spec.argv = command.argv;
  spec.image = command.image;
  spec.environment = command.environment;
  spec.cpus = command.cpus;
  spec.output_file = log.path();
  spec.request_fd = kRequestDescriptor;
  spec.reply_fd = kReplyDescriptor;
  spec.max_line_bytes = kMaxLineBytes;
  auto child = spawner.spawn(spec);
  if (!child) return failure(FailureKind::kError, kSpawnError, child.error().message);
  auto impl = std::make_unique<Impl>();
  impl->child = std::move(child).value();
  impl->log = &log;
  impl->interrupt_fd = interrupt_fd;
  HelloRequest request;
  request.harness = harness;
  auto hello = impl->ask<HelloReply>(std::move(request), timeout_s);
  if (!hello) return std::unexpected(std::move(hello).error());
  if (hello->protocol != kProtocolVersion) {
    return impl->killed(
        FailureKind::kError, "protocol_error",
        fmt::format("expected protocol version {}, found {}", kProtocolVersion, hello->protocol));
  }
  impl->hello = std::move(hello).value();
  return WorkerClient(std::move(impl));
}

const HelloReply& WorkerClient::hello() const {
  return impl_->hello;
}
int64_t WorkerClient::pid() const {
  return impl_->child->pid();
}

bool WorkerClient::running() const {
  return !impl_->child->wait(0);
}

ClientResult<LoadedReply> WorkerClient::load(const LoadRequest& request, double timeout_s) {
  return impl_->ask<LoadedReply>(request, timeout_s);
}

ClientResult<PreparedReply> WorkerClient::prepare(const PrepareRequest& request, double timeout_s) {
  return impl_->ask<PreparedReply>(request, timeout_s);
}

ClientResult<void> WorkerClient::measure(const MeasureRequest& request, double timeout_s,
                                         const std::function<void(const SampleReply&)>& on_sample) {
  const auto id = impl_->send(request, timeout_s);
  if (!id) return std::unexpected(id.error());
  for (const WireRepetition& expected : request.repetitions) {
    const auto reply = impl_->read_reply(*id, timeout_s);
    if (!reply) return std::unexpected(reply.error());
    const auto* sample = std::get_if<SampleReply>(&reply->body);
    if (!sample || sample->repetition != expected.repetition) {
      return impl_->killed(FailureKind::kError, "protocol_error",
                           fmt::format("expected a sample of repetition {}", expected.repetition));
    }
    on_sample(*sample);
  }
  const auto reply = impl_->read_reply(*id, timeout_s);
  if (!reply) return std::unexpected(reply.error());
  const auto* done = std::get_if<DoneReply>(&reply->body);
  if (!done || done->samples != static_cast<int64_t>(request.repetitions.size())) {
    return impl_->killed(
        FailureKind::kError, "protocol_error",
        fmt::format("expected done with {}", counted(std::ssize(request.repetitions), "sample")));
  }
  return {};
}

ClientResult<OfferedReply> WorkerClient::offer(const OfferRequest& request, double timeout_s,
                                               const std::function<void(SentRequest)>& on_request) {
  const auto id = impl_->send(request, timeout_s);
  if (!id) return std::unexpected(id.error());
  std::set<int64_t> numbers;
  for (int64_t told = 0; told <= kMostLoadRequests; ++told) {
    auto reply = impl_->read_reply(*id, timeout_s);
    if (!reply) return std::unexpected(reply.error());
    if (auto* const one = std::get_if<RequestReply>(&reply->body);
        one && numbers.insert(one->request.number).second) {
      on_request(std::move(one->request));
      continue;
    }
    const auto* const offered = std::get_if<OfferedReply>(&reply->body);
    if (offered && offered->requests == told) return *offered;
    break;
  }
  return impl_->killed(FailureKind::kError, "protocol_error",
                       "expected each of the run's requests once, and their count behind them");
}

ClientResult<ParityReply> WorkerClient::parity(const ParityRequest& request, double timeout_s) {
  auto reply = impl_->ask<ParityReply>(request, timeout_s);
  if (!reply) return reply;
  const bool shaped = reply->tokens.size() == static_cast<size_t>(request.shape.batch);
  if (!shaped) {
    return impl_->killed(FailureKind::kError, "protocol_error",
                         fmt::format("parity: expected {} of tokens, found {}",
                                     counted(request.shape.batch, "row"), reply->tokens.size()));
  }
  return reply;
}

ClientResult<EvidenceReply> WorkerClient::evidence(const EvidenceRequest& request,
                                                   double timeout_s) {
  return impl_->ask<EvidenceReply>(request, timeout_s);
}

ClientResult<ProfileReply> WorkerClient::profile(const ProfileRequest& request, double timeout_s) {
  return impl_->ask<ProfileReply>(request, timeout_s);
}

ClientResult<TokenizedReply> WorkerClient::tokenize(const TokenizeRequest& request,
                                                    double timeout_s) {
  return impl_->ask<TokenizedReply>(request, timeout_s);
}

void WorkerClient::shutdown(double grace_s) {
  if (const auto bye = impl_->ask<ByeReply>(ShutdownRequest{}, grace_s); !bye) {
    impl_->child->kill();
  }
  if (!impl_->child->wait(deadline_after(grace_s))) {
    impl_->child->kill();
    impl_->child->wait(kNoDeadline);
  }
}

}  // namespace assay
