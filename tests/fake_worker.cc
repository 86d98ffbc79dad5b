// A worker that misbehaves on request: speaks the protocol, and breaks it where a test wants.
//   fake_worker [FAULT:STAGE[:REPETITION]] [--once FILE] [--profiler] [--diary FILE]
// STAGE: hello, load, prepare, measure, generate (a measure or a parity that decodes), parity,
// profile, evidence, tokenize, shutdown. A fault of `measure` with a repetition strikes at that
// repetition alone, without one at every one; one of `parity`, `differ`, from that token on
// (without: from the first); of `prepare` a phase stands in its place, of `generate` a number of
// decode steps. --once: strikes only if FILE can be made, so that the worker's successor behaves.
// --profiler: it answers `profile`. --diary: adds a line "load MODEL", "prepare PHASE NEW_TOKENS",
// "parity" or "profile" to FILE whenever it is asked that. `jitter`, `slow` and `noisy`, faults of
// `measure`, change latencies and aren't failures. `label:evidence`: it says that it never reached
// a compiler.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "backend/protocol.h"
#include "backend/worker.h"
#include "base/files/hash.h"
#include "base/random.h"
#include "base/text/text.h"

namespace assay {
namespace {

constexpr int64_t kVocabulary = 1000;
constexpr double kLatency_ms = 1;

struct Fault {
  std::string kind;
  std::string stage;
  std::string repetition;  // empty: every one
  std::string once_file;
  bool profiler = false;
  std::string diary;  // empty: none
};

void write_raw(const std::string& text) {
  size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t wrote = ::write(kReplyDescriptor, text.data() + sent, text.size() - sent);
    if (wrote <= 0) return;
    sent += static_cast<size_t>(wrote);
  }
}

[[noreturn]] void hang() {
  while (true) pause();
}

// Dies up to two milliseconds from now, whatever it is doing then.
void die_soon() {
  std::thread([] {
    std::random_device entropy;
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::microseconds(entropy() % 2000);
    while (std::chrono::steady_clock::now() < until) {
    }
    raise(SIGKILL);
  }).detach();
}

// Leaves a process behind that holds the channel open.
void leave_orphan() {
  if (fork() == 0) hang();
}

// Faults that end the process, or its part in the conversation.
void strike(const std::string& kind) {
  if (kind == "segv") {
    signal(SIGSEGV, SIG_DFL);  // a sanitizer's handler would exit instead
    raise(SIGSEGV);
  }
  if (kind == "orphan") {
    leave_orphan();
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
  }
  if (kind == "kill") raise(SIGKILL);
  if (kind == "late") die_soon();
  if (kind == "abort") std::abort();
  if (kind == "exit3") std::_Exit(3);
  if (kind == "flood") {
    for (int line = 0; line < 40'000; ++line) std::fprintf(stderr, "%0100d\n", line);
    std::fputs("FloodError: the last words\n", stderr);
    std::_Exit(3);
  }
  if (kind == "exit0") std::_Exit(0);
  if (kind == "hang") hang();
  if (kind == "garbage") write_raw("this is not JSON\n");
  if (kind == "binary") write_raw(std::string("\0\xff\x80{{{\n", 7));
  if (kind == "array") write_raw("[1, 2]\n");
  if (kind == "wrong_id") write_raw("{\"id\": 4711, \"type\": \"bye\"}\n");
  if (kind == "negative")
    write_raw("{\"id\": 1, \"type\": \"sample\", \"repetition\": 0, \"latency_ns\": -5}\n");
  if (kind == "deep") write_raw(std::string(100000, '[') + "\n");
  if (kind == "huge") write_raw(std::string(kMaxLineBytes + 4096, 'x') + "\n");
  if (kind == "half") {
    write_raw("{\"id\": 1, \"type\":");
    std::_Exit(3);
  }
  if (kind == "close") {
    close(kReplyDescriptor);
    hang();
  }
}

// Answers whatever it is asked from the prompt alone, so that every arm agrees.
class FakeWorker final : public Worker {
 public:
  explicit FakeWorker(Fault fault) : fault_(std::move(fault)) {}

  HelloReply describe() override {
    struck("hello", "");
    HelloReply hello;
    hello.worker = "fake";
    hello.version = "1";
    if (fault_.profiler) hello.capabilities["profile"] = true;
    return hello;
  }
  WorkerResult<LoadedReply> load(const LoadRequest& request) override {
    note("load " + request.model);
    if (struck("load", "") && fault_.kind != "late") return std::unexpected(error());
    LoadedReply loaded;
    loaded.vocab_size = kVocabulary;
    loaded.special_ids = {0, 1};
    loaded.dtype = request.dtype.empty() ? "fp32" : request.dtype;
    loaded.model_hash = request.want_model_hash ? sha256_hex(request.model) : "";
    return loaded;
  }
  WorkerResult<PreparedReply> prepare(const PrepareRequest& request) override {
    const std::string phase(phase_name(request.shape.phase));
    note(fmt::format("prepare {} {}", phase, request.shape.new_tokens));
    if ((struck("prepare", phase) && fault_.kind != "late") || poisoned_)
      return std::unexpected(error());
    return PreparedReply{.seconds = 0.25};
  }
  WorkerResult<SampleReply> measure(const WireShape& shape, const WirePrompt& prompt,
                                    int64_t repetition) override {
    const bool struck_now =
        struck("measure", std::to_string(repetition)) || struck_generating(shape.new_tokens);
    if (struck_now && fault_.kind == "poison") poisoned_ = true;
    if (poisoned_) return std::unexpected(error());
    if (struck_now && (fault_.kind == "throw" || fault_.kind == "oom")) {
      return std::unexpected(error());
    }
    SampleReply sample;
    sample.cold = measured_.insert({phase_name(shape.phase), shape.new_tokens}).second;
    sample.latency_ms = kLatency_ms;
    sample.started_at_ns = 1;
    sample.tokens = shape.batch * std::max<int64_t>(shape.new_tokens, 1);
    sample.output_hash = token_hash(prompt.ids.front());
    sample.read_bytes = 1'000'000;
    sample.counters = {{Counter::kRecompiles, 2},        {Counter::kGraphReplays, 7},
                       {Counter::kGraphBreaks, 3},       {Counter::kRecompileLimitHits, 4},
                       {Counter::kCudagraphCaptures, 5}, {Counter::kCudagraphSkips, 6},
                       {Counter::kFxCacheHits, 8},       {Counter::kCompileNs, 1'500'000},
                       {Counter::kKernelLaunches, 9},    {Counter::kFreshCache, 0}};
    if (struck_now && fault_.kind == "jitter")
      *sample.latency_ms += 0.1 * static_cast<double>(repetition % 3);
    if (struck_now && fault_.kind == "slow") *sample.latency_ms += kLatency_ms / 2;
    if (struck_now && fault_.kind == "noisy") {  // by up to 20 %, the same of every process
      Random random(static_cast<uint64_t>(repetition));
      *sample.latency_ms += ns_to_ms(static_cast<int64_t>(random.below(400'001)) - 200'000);
    }
    if (struck_now && fault_.kind == "few_tokens") sample.tokens -= 1;
    if (struck_now && fault_.kind == "too_fast") sample.read_bytes = int64_t{1} << 40;
    return sample;
  }
  WorkerResult<ParityReply> parity(const ParityRequest& request) override {
    note("parity");
    ++answered_;
    const bool off = struck("parity", fault_.repetition);
    const bool struck_now = off || struck_generating(request.shape.new_tokens - 1);
    if (struck_now && fault_.kind == "throw") return std::unexpected(error());
    ParityReply parity;
    for (const auto& row : request.prompt.ids) {
      Random random(static_cast<uint64_t>(row.back()));
      auto& tokens = parity.tokens.emplace_back();
      for (int64_t i = 0; i < request.shape.new_tokens; ++i) {
        tokens.push_back(static_cast<int32_t>(random.below(kVocabulary)));
      }
      if (!off || fault_.kind != "differ") continue;
      for (size_t i = std::strtoul(fault_.repetition.c_str(), nullptr, 10); i < tokens.size();
           ++i) {
        tokens[i] += 1;
      }
    }
    return parity;
  }
  WorkerResult<ProfileReply> profile(const ProfileRequest& request) override {
    note("profile");
    if (struck("profile", "") && fault_.kind != "late") return std::unexpected(error());
    std::ofstream(request.trace_path) << "{}";
    return ProfileReply{Json{{"kernels_launched", 7}}};
  }
  WorkerResult<TokenizedReply> tokenize(const TokenizeRequest& request) override {
    struck("tokenize", "");
    TokenizedReply reply;
    for (const char c : request.text) reply.ids.push_back(static_cast<unsigned char>(c));
    return reply;
  }
  WorkerResult<EvidenceReply> evidence(const EvidenceRequest&) override {
    const bool struck_now = struck("evidence", "");
    if (poisoned_) return std::unexpected(error());
    const bool label = struck_now && fault_.kind == "label";
    Json said = {{"compiler_real", label ? "label_only" : "not_applicable"}};
    said["kernels"]["compile_seconds"] = 0.25 * answered_;
    return EvidenceReply{std::move(said)};
  }

 public:
  void shut_down() { struck("shutdown", ""); }

 private:
  // True if the fault strikes here; some faults don't come back from it.
  bool struck(const std::string& stage, const std::string& repetition) {
    if (fault_.stage != stage) return false;
    if (!fault_.repetition.empty() && fault_.repetition != repetition) return false;
    if (!fault_.once_file.empty()) {
      const int fd = open(fault_.once_file.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600);
      if (fd < 0) return false;
      close(fd);
    }
    std::fprintf(stderr, "fake worker: about to %s in %s\n", fault_.kind.c_str(), stage.c_str());
    strike(fault_.kind);
    return true;
  }
  bool struck_generating(int64_t steps) {
    return steps > 0 && struck("generate", std::to_string(steps));
  }
  void note(const std::string& line) const {
    if (!fault_.diary.empty()) std::ofstream(fault_.diary, std::ios::app) << line << "\n";
  }
  ErrorReply error() const {
    if (poisoned_) {
      return {"AcceleratorError", "CUDA error: an illegal memory access was encountered", false};
    }
    return {fault_.kind == "oom" ? "FakeOutOfMemory" : "FakeError", "first line\nsecond line",
            fault_.kind == "oom"};
  }

  Fault fault_;
  bool poisoned_ = false;
  int answered_ = 0;  // parity requests, each of which compiled for a quarter of a second
  std::set<std::pair<std::string_view, int64_t>> measured_;  // phases and new tokens
};

int fake_worker_main(int argc, char** argv) {
  Fault fault;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--once" && i + 1 < argc) {
      fault.once_file = argv[++i];
    } else if (std::string(argv[i]) == "--diary" && i + 1 < argc) {
      fault.diary = argv[++i];
    } else if (std::string(argv[i]) == "--profiler") {
      fault.profiler = true;
    } else {
      auto parts = split(argv[i], ':');
      parts.resize(3);
      fault.kind = parts[0];
      fault.stage = parts[1];
      fault.repetition = parts[2];
    }
  }
  std::fprintf(stderr, "fake worker: started\n");
  FakeWorker worker(fault);
  const bool served = serve_worker(worker, kRequestDescriptor, kReplyDescriptor).has_value();
  worker.shut_down();
  return served ? 0 : 1;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  return assay::fake_worker_main(argc, argv);
}
