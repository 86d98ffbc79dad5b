// The harness's side of the protocol: one worker process, asked one thing at a time under a
// deadline.
#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/message.h"
#include "backend/worker_log.h"
#include "base/process/subprocess.h"

namespace assay {

enum class FailureKind {
  kError,         // the worker said so, or broke the protocol
  kCrash,         // the process ended by a signal or exited, or its device is lost to it
  kTimeout,       // no reply in time
  kOutOfMemory,   // the worker said so, or the kernel killed it for memory
  kFalseSuccess,  // a program that the worker ran ended well and showed no result
  kInterrupted,   // the user wants the run to stop
};

// Why a worker is of no more use. `error_class` is short and fit for a row: the exception class,
// "SIGSEGV", "exit 3", "timeout", "protocol_error", "spawn_error", "closed_channel".
struct WorkerFailure {
  FailureKind kind = FailureKind::kError;
  std::string error_class;
  std::string message;  // whole, may have many lines
};

// The class where no process came to be.
inline constexpr const char* kSpawnError = "spawn_error";

template <typename T>
using ClientResult = std::expected<T, WorkerFailure>;

struct WorkerCommand {
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> environment;  // added to this process's own
  std::vector<int> cpus = {};        // that it may run on; empty: this process's
  std::filesystem::path image = {};  // that is executed under the name argv[0]; empty: that file
};

// After any failure but an error reply the process is killed; after an error reply the caller
// decides. Not thread-safe; start it in a thread that outlives it.
class WorkerClient {
 public:
  // Starts the process and greets it. Its stdout and stderr are appended to `log`, which outlives
  // this object and is kept within its bound whenever a reply is waited for. When
  // `interrupt_fd` (-1: none) becomes readable, any wait ends with kInterrupted.
  static ClientResult<WorkerClient> start(Spawner& spawner, const WorkerCommand& command,
                                          WorkerLog& log, int interrupt_fd,
                                          const std::string& harness, double timeout_s);
  WorkerClient(WorkerClient&&) noexcept;
  WorkerClient& operator=(WorkerClient&&) noexcept;
  ~WorkerClient();  // kills the process if it still runs

  const HelloReply& hello() const;
  int64_t pid() const;
  bool running() const;  // true if it may still be asked

  ClientResult<LoadedReply> load(const LoadRequest& request, double timeout_s);
  ClientResult<PreparedReply> prepare(const PrepareRequest& request, double timeout_s);
  // Calls `on_sample` in the order of request.repetitions; `timeout_s` is for each.
  ClientResult<void> measure(const MeasureRequest& request, double timeout_s,
                             const std::function<void(const SampleReply&)>& on_sample);
  // Calls `on_request` with every request that is told, also where the run then fails.
  ClientResult<OfferedReply> offer(const OfferRequest& request, double timeout_s,
                                   const std::function<void(SentRequest)>& on_request);
  ClientResult<ParityReply> parity(const ParityRequest& request, double timeout_s);
  ClientResult<EvidenceReply> evidence(const EvidenceRequest& request, double timeout_s);
  // For workers whose hello announces it (announces_profile()).
  ClientResult<ProfileReply> profile(const ProfileRequest& request, double timeout_s);
  ClientResult<TokenizedReply> tokenize(const TokenizeRequest& request, double timeout_s);
  // Asks the worker to end, and kills it if it hasn't after `grace_s`.
  void shutdown(double grace_s);

 private:
  struct Impl;
  explicit WorkerClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay
