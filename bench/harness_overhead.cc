// Measures the cost of measuring: calls of a known duration, timed by the native worker's own
// regions, in a worker process that the harness's client talks to.
//
// The stand-in session spins in each call and notes how long the call truly took; a region's
// overhead is its latency less the sum of its calls.
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "backend/native/timed_phase.h"
#include "backend/worker.h"
#include "backend/worker_client.h"
#include "base/files/hash.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

constexpr int64_t kCall_ns = 50'000;
constexpr int64_t kNewTokens = 64;
constexpr int64_t kRepetitions = 500;
constexpr double kBar_us = 20;  // added to a region, median

// Spins instead of computing.
class KnownSession {
 public:
  Status prefill(const engine::PromptBatch&) {
    prefill_ns = spin();
    decode_ns = 0;
    return {};
  }
  template <typename Sink>
  Status decode_greedy(int64_t steps, const Sink& sink) {
    for (; steps > 0; --steps) {
      decode_ns += spin();
      sink(next_tokens());
    }
    return {};
  }
  std::span<const int32_t> next_tokens() const { return {&token_, 1}; }

  int64_t prefill_ns = 0;  // of the last prefill
  int64_t decode_ns = 0;   // of all steps since

 private:
  static int64_t spin() {
    const int64_t start_ns = monotonic_now_ns();
    int64_t now_ns = start_ns;
    while (now_ns < start_ns + kCall_ns) now_ns = monotonic_now_ns();
    return now_ns - start_ns;
  }
  int32_t token_ = 7;
};

class KnownWorker final : public Worker {
 public:
  HelloReply describe() override { return {1, "known", "1", Json::object()}; }
  WorkerResult<LoadedReply> load(const LoadRequest&) override {
    LoadedReply loaded;
    loaded.vocab_size = 8;
    return loaded;
  }
  WorkerResult<PreparedReply> prepare(const PrepareRequest&) override { return PreparedReply{}; }
  WorkerResult<SampleReply> measure(const WireShape& shape, const WirePrompt&, int64_t) override {
    const engine::PromptBatch prompts;
    TimedPhase<KnownSession> timed(session_, shape, prompts);
    if (!timed.feed() || !timed.run())
      return std::unexpected(ErrorReply{"Error", "the stand-in failed", false});
    int64_t true_ns = 0;
    if (shape.phase != Phase::kKvDecode) true_ns += session_.prefill_ns;
    if (decodes(shape.phase)) true_ns += session_.decode_ns;
    SampleReply sample;
    sample.latency_ms = ns_to_ms(timed.latency_ns());
    sample.tokens = static_cast<int64_t>(timed.output().size());
    sample.output_hash = token_hash(timed.output());
    sample.device_ms = ns_to_ms(true_ns);  // as if by its own clock
    return sample;
  }
  WorkerResult<ParityReply> parity(const ParityRequest&) override { return ParityReply{{{7}}}; }
  WorkerResult<TokenizedReply> tokenize(const TokenizeRequest&) override {
    return TokenizedReply{};
  }
  WorkerResult<EvidenceReply> evidence(const EvidenceRequest&) override { return EvidenceReply{}; }

 private:
  KnownSession session_;
};

struct Overheads {
  std::vector<double> region_us;      // latency less the calls' own time
  std::vector<double> round_trip_us;  // request to reply, less the latency: never in a row
};

ClientResult<Overheads> measure_phase(WorkerClient& client, Phase phase) {
  constexpr double kTimeout_s = 60;
  const int64_t new_tokens = phase == Phase::kPrefill ? 0 : kNewTokens;
  const WireShape shape{phase, 1, new_tokens, 4 + new_tokens};
  if (const auto prepared = client.prepare({shape, {4}}, kTimeout_s); !prepared) {
    return std::unexpected(prepared.error());
  }
  Overheads overheads;
  for (int64_t i = 0; i < kRepetitions; ++i) {
    SampleReply sample;
    const int64_t start_ns = monotonic_now_ns();
    const auto done = client.measure({shape, {{{{1, 2, 3, 4}}, {0}}}, {{i, 0}}}, kTimeout_s,
                                     [&](const SampleReply& reply) { sample = reply; });
    const int64_t end_ns = monotonic_now_ns();
    if (!done) return std::unexpected(done.error());
    const int64_t untimed_prefill_ns = phase == Phase::kKvDecode ? kCall_ns : 0;
    const double latency_us = *sample.latency_ms * 1e3;
    overheads.region_us.push_back(latency_us - sample.device_ms.value_or(0) * 1e3);
    overheads.round_trip_us.push_back(
        static_cast<double>(end_ns - start_ns - untimed_prefill_ns) * 1e-3 - latency_us);
  }
  return overheads;
}

// The phase's line; whether it meets the bar.
bool print_phase(Phase phase, const Overheads& overheads) {
  const auto region = stats::sorted(overheads.region_us);
  const auto round_trip = stats::sorted(overheads.round_trip_us);
  const double median = stats::median(region).value_or(0);
  const bool passed = median < kBar_us;
  fmt::print("{:<10} {:>10.3f} {:>10.3f} {:>10.3f} {:>12.0f} {:>12.1f} {:>12.1f}  {}\n",
             phase_name(phase), median, stats::percentile(region, 0.99).value_or(0), region.back(),
             kBar_us, stats::median(round_trip).value_or(0),
             stats::percentile(round_trip, 0.99).value_or(0), passed ? "PASS" : "BELOW");
  return passed;
}

int bench_main() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  auto log = WorkerLog::create();
  if (!log) {
    fmt::print(stderr, "bench_harness: {}\n", log.error().message);
    return 1;
  }
  auto client = WorkerClient::start(system_spawner(), {{program.string(), "--worker"}, {}}, *log,
                                    -1, "bench", 60);
  if (!client || !client->load({"known", "", "eager", "static", "", 1, false, {}}, 60)) {
    fmt::print(stderr, "bench_harness: the worker doesn't start\n");
    return 1;
  }
  fmt::print("{} repetitions, calls of {} us, {} decode steps; microseconds a repetition\n",
             kRepetitions, kCall_ns / 1000, kNewTokens);
  fmt::print("{:<10} {:>32} {:>12} {:>25}\n", "", "added to the timed region", "expected",
             "outside it (round trip)");
  fmt::print("{:<10} {:>10} {:>10} {:>10} {:>12} {:>12} {:>12}\n", "phase", "p50", "p99", "max",
             "p50 below", "p50", "p99");
  bool passed = true;
  for (const Phase phase : kRequestPhases) {
    const auto overheads = measure_phase(*client, phase);
    if (!overheads) {
      fmt::print(stderr, "bench_harness: {}\n", overheads.error().message);
      return 1;
    }
    passed &= print_phase(phase, *overheads);
  }
  client->shutdown(2);
  fmt::print("{}\n", passed ? "PASS" : "BELOW");
  return passed ? 0 : 1;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--worker") {
    assay::KnownWorker worker;
    const auto served =
        assay::serve_worker(worker, assay::kRequestDescriptor, assay::kReplyDescriptor);
    return served ? 0 : 1;
  }
  return assay::bench_main();
}
