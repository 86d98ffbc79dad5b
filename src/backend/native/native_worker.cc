// Serves each request with the session. Timed regions are in native_phases.cc.
#include "backend/native/native_worker.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "backend/native/gpu_energy.h"
#include "backend/native/native_evidence.h"
#include "backend/native/native_facts.h"
#include "backend/native/native_load.h"
#include "backend/native/native_options.h"
#include "backend/native/native_phases.h"
#include "backend/native/native_profile.h"
#include "backend/native/region_faults.h"
#include "backend/native/timed_phase.h"
#include "backend/native/yardstick.h"
#include "base/clock.h"
#include "base/files/files.h"
#include "base/files/gzip.h"
#include "base/files/hash.h"
#include "engine/device/cuda/cupti.h"
#include "engine/device/device.h"
#include "engine/model/checkpoint.h"
#include "engine/session/session.h"
#include "engine/tokenizer/tokenizer.h"

namespace assay {
namespace {

using engine::Session;

double seconds_since(int64_t start_ns) {
  return static_cast<double>(monotonic_now_ns() - start_ns) * 1e-9;
}

std::unexpected<ErrorReply> as_reply(const Error& error) {
  return std::unexpected(ErrorReply{
      error.kind == ErrorKind::kBadInput ? "BadInput" : "EnvironmentError", error.message, false});
}

int64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

engine::PromptBatch to_batch(const WirePrompt& prompt) {
  engine::PromptBatch batch;
  batch.batch = static_cast<int64_t>(prompt.ids.size());
  batch.padded_len = prompt.padded_len();
  for (const auto& row : prompt.ids) batch.ids.insert(batch.ids.end(), row.begin(), row.end());
  batch.pad = prompt.pad;
  return batch;
}

class NativeWorker final : public Worker {
 public:
  explicit NativeWorker(std::string version) : version_(std::move(version)) {}

  HelloReply describe() override {
    HelloReply hello;
    hello.worker = "assay-native";
    hello.version = version_;
    hello.capabilities = native_capabilities();
    if (engine::cuda::Cupti::open()) hello.capabilities["profile"] = true;
    return hello;
  }

  WorkerResult<LoadedReply> load(const LoadRequest& request) override {
    const int64_t start_ns = monotonic_now_ns();
    const auto options = native_session_options(request);
    if (!options) return std::unexpected(ErrorReply{"Unsupported", options.error().message, false});
    auto slots = native_slots(request.options);
    if (!slots) return std::unexpected(ErrorReply{"Unsupported", slots.error().message, false});
    slots_ = *slots;
    auto device = engine::open_device(options->model());
    if (!device) return as_reply(device.error());
    device_ = std::move(device).value();
    auto session = open_session(weights_of(request), *options);
    if (!session) return failed(session.error());
    session_ = std::make_unique<Session>(std::move(session).value());
    load_ = request;
    if (on_gpu()) open_energy();
    return loaded(start_ns);
  }

  WorkerResult<PreparedReply> prepare(const PrepareRequest& request) override {
    device_->forget_fault();
    const int64_t start_ns = monotonic_now_ns();
    if (request.shape.phase == Phase::kLoad) return prepare_load(request.shape, start_ns);
    if (const auto status = session_->prepare(request.shape.batch, request.shape.capacity);
        !status) {
      return failed(status.error());
    }
    // The first length alone: lengths met later are shape churn, and belong to the samples that
    // meet them.
    if (compiled() && !request.padded_lens.empty()) {
      const auto status =
          session_->make_ready(request.padded_lens.front(), decodes(request.shape.phase));
      if (!status) return failed(status.error());
    }
    return PreparedReply{seconds_since(start_ns),
                         compiled() ? compile_summary(*session_) : Json::object()};
  }

  WorkerResult<SampleReply> measure(const WireShape& shape, const WirePrompt& prompt,
                                    int64_t repetition) override {
    device_->forget_fault();
    if (const auto status = session_->prepare(shape.batch, shape.capacity); !status) {
      return failed(status.error());
    }
    const engine::PromptBatch batch = to_batch(prompt);
    TimedPhase<Session> timed(*session_, shape, batch);
    if (const auto status = timed.feed(); !status) return failed(status.error());
    const engine::CompileCounters before = session_->counters();
    const engine::FrameRuns runs_before = timed_runs(*session_, shape.phase);
    const int64_t started_at_ns = system_clock().wall_ns();
    SampleReply sample;
    faults_[shape.phase].begin();
    const std::tuple of_shape(shape.phase, shape.batch, shape.new_tokens, shape.capacity);
    int64_t& region_ns = regions_ns_[{of_shape, prompt.padded_len()}];
    const Status ran = run_timed(timed, region_ns, sample);
    faults_[shape.phase].end();
    if (!ran) return failed(ran.error());
    if (!on_gpu()) run_yardstick(sample);
    sample.latency_ms = ns_to_ms(timed.latency_ns());
    if (const auto first_ns = timed.ttft_ns()) sample.ttft_ms = ns_to_ms(*first_ns);
    sample.tokens = static_cast<int64_t>(timed.output().size());
    sample.output_hash = token_hash(timed.output());
    sample.non_finite = !session_->logits_finite();
    region_ns = timed.latency_ns();
    sample.cold = seen_.insert(of_shape).second;
    faults_[shape.phase].count(sample.cold || repetition < 0);
    sample.started_at_ns = started_at_ns;
    sample.read_bytes =
        static_cast<int64_t>(phase_read_bytes(*session_, shape, prompt.padded_len()));
    if (shape.phase == Phase::kPrefill) {
      const int64_t length = prompt.padded_len();
      sample.operations = static_cast<int64_t>(engine::prompt_operations(
          session_->config(), shape.batch, length, session_->model().logits_of_prompt(length)));
    }
    sample.peak_rss_bytes = peak_rss_bytes();
    const engine::FrameRuns runs = timed_runs(*session_, shape.phase);
    if (compiled() || on_gpu()) {
      sample.counters = counter_deltas(before, session_->counters(), on_gpu());
    }
    runs_[shape.phase].compiled += runs.compiled - runs_before.compiled;
    runs_[shape.phase].fallbacks += runs.fallbacks - runs_before.fallbacks;
    if (prompt_.batch == 0) prompt_ = batch;
    return sample;
  }

  WorkerResult<OfferedReply> offer(const OfferRequest& request, const TakeRequest& take) override {
    device_->forget_fault();
    OfferedReply offered;
    offered.started_at_ns = system_clock().wall_ns();
    under_load_->offer(request.load, take);
    if (device_->fault().kind == engine::DeviceFault::Kind::kLost)
      return failed(Error{ErrorKind::kEnvironment, "the device was lost under load"});
    ++(compiled() ? runs_[Phase::kLoad].compiled : runs_[Phase::kLoad].fallbacks);
    return offered;
  }

  WorkerResult<ParityReply> parity(const ParityRequest& request) override {
    device_->forget_fault();
    if (const auto status = session_->prepare(request.shape.batch, request.shape.capacity);
        !status) {
      return failed(status.error());
    }
    auto tokens = greedy_tokens(*session_, to_batch(request.prompt), request.shape.new_tokens);
    if (!tokens) return failed(tokens.error());
    if (!session_->logits_finite()) {
      return std::unexpected(
          ErrorReply{kNonFinite, "logits: expected finite values, found NaN or infinity", false});
    }
    return std::move(tokens).value();
  }

  WorkerResult<ProfileReply> profile(const ProfileRequest& request) override {
    device_->forget_fault();
    auto profiled = on_gpu() ? record(request) : nothing_to_record(request.trace_path);
    if (!profiled) return failed(profiled.error());
    return ProfileReply{std::move(profiled).value()};
  }

  WorkerResult<TokenizedReply> tokenize(const TokenizeRequest& request) override {
    const auto tokenizer = engine::Tokenizer::open(load_.model);
    if (!tokenizer) return as_reply(tokenizer.error());
    auto ids = tokenizer->encode(request.text, true);
    if (!ids) return as_reply(ids.error());
    return TokenizedReply{std::move(ids).value()};
  }

  WorkerResult<EvidenceReply> evidence(const EvidenceRequest& request) override {
    Json said = native_evidence(*session_, load_, request.phase, runs_[request.phase]);
    said["memory"] = faults_[request.phase].to_json();
    if (has_own_weights(load_) || !session_->model().block_formats().empty()) {
      said["weights"] = weights_evidence(session_->model(), weights_of(load_));
    }
    if (energy_) said["energy_counter"] = energy_->to_json();
    if (session_->model().options().fp8 != engine::Fp8::kNone) {
      const auto is_e4m3 = [](const engine::LibraryShape& one) { return one.type == "e4m3"; };
      const bool ran = std::ranges::any_of(session_->device().library_products(), is_e4m3);
      if (ran && fp8_error_.is_null()) {
        auto error = measure_fp8_error(*session_, prompt_);
        if (!error) return failed(error.error());
        fp8_error_ = std::move(error).value();
      }
      said["fp8"] = fp8_evidence(*session_);
      said["fp8"]["error"] =
          ran ? fp8_error_ : Json{{"problem", "nothing was multiplied in e4m3 so far"}};
    }
    return EvidenceReply{std::move(said)};
  }

 private:
  bool compiled() const { return load_.mode != "eager"; }
  bool on_gpu() const { return device_->launches().has_value(); }

  // Requests in slots need a model that names rows.
  Result<Session> open_session(const std::filesystem::path& folder,
                               const engine::SessionOptions& options) const {
    if (!slots_) return Session::open(folder, options, device_);
    engine::ModelOptions with = options.model();
    with.rows = engine::CacheRows::kNamed;
    ASSAY_TRY(engine::Checkpoint checkpoint, engine::Checkpoint::open(folder));
    ASSAY_TRY(auto model, engine::Model::load(std::move(checkpoint), with, device_));
    return Session::on(std::move(model), options.cache, options.compile);
  }

  WorkerResult<PreparedReply> prepare_load(const WireShape& shape, int64_t start_ns) {
    if (!slots_) {
      return std::unexpected(
          ErrorReply{"Unsupported", "options.slots: expected it under load, found none", false});
    }
    if (!under_load_) {
      auto made = NativeLoad::create(session_->shared_model(), *slots_, compiled());
      if (!made) return failed(made.error());
      under_load_ = std::move(made).value();
    }
    if (shape.capacity > under_load_->context()) {
      return std::unexpected(ErrorReply{
          "Unsupported",
          fmt::format("options.context: expected room for {} tokens of a request, found {}",
                      shape.capacity, under_load_->context()),
          false});
    }
    return PreparedReply{seconds_since(start_ns), Json::object()};
  }

  // The device decides on the meaning of an error.
  std::unexpected<ErrorReply> failed(const Error& error) const {
    const engine::DeviceFault fault = device_->fault();
    switch (fault.kind) {
      case engine::DeviceFault::Kind::kOutOfMemory:
        return std::unexpected(ErrorReply{fault.name, error.message, true});
      case engine::DeviceFault::Kind::kLost:
        return std::unexpected(ErrorReply{fault.name, error.message, false, true});
      case engine::DeviceFault::Kind::kNone:
        break;
    }
    return as_reply(error);
  }

  // The answer on a processor: CUPTI sees nothing of its kernels.
  static Result<Json> nothing_to_record(const std::string& trace_path) {
    ASSAY_CHECK(write_file(trace_path, gzip_stored("{\"traceEvents\": []}\n")));
    return Json{{"device", "cpu"}, {"problem", "the native engine is profiled on a GPU alone"}};
  }

  // Two repetitions that nobody watches, and one that CUPTI does.
  Result<Json> record(const ProfileRequest& request) {
    ASSAY_TRY(auto cupti, engine::cuda::Cupti::open());
    ASSAY_CHECK(session_->prepare(request.shape.batch, request.shape.capacity));
    const engine::PromptBatch batch = to_batch(request.prompt);
    for (int warm = 0; warm < 2; ++warm) {
      TimedPhase<Session> timed(*session_, request.shape, batch);
      ASSAY_CHECK(timed.feed());
      ASSAY_CHECK(timed.run());
    }
    TimedPhase<Session> timed(*session_, request.shape, batch);
    ASSAY_CHECK(timed.feed());
    ASSAY_CHECK(device_->start_timer());
    ASSAY_CHECK(cupti.start());
    const auto begin_ns = cupti.now_ns();
    const Status ran = timed.run();
    const auto end_ns = cupti.now_ns();
    const auto ended = device_->stop_timer_ms();  // tokens are there before their kernel's end
    const auto activities = cupti.stop();         // after a failure too
    ASSAY_CHECK(ran);
    ASSAY_CHECK(begin_ns);
    ASSAY_CHECK(end_ns);
    ASSAY_CHECK(ended);
    ASSAY_CHECK(activities);
    ASSAY_CHECK(
        write_file(request.trace_path, gzip_stored(chrome_trace(*activities, *begin_ns, *end_ns))));
    Json summary = profile_summary(*activities, *begin_ns, *end_ns);
    summary["wall_ns"] = timed.latency_ns();
    return summary;
  }

  void open_energy() {
    auto nvml = open_nvml();
    if (nvml) energy_ = GpuEnergy::open(std::move(nvml).value(), device_->info().uuid);
  }

  // The region, between the events and the energy readings around it.
  Status run_timed(TimedPhase<Session>& timed, int64_t like_ns, SampleReply& sample) {
    if (energy_) energy_->begin(like_ns);
    ASSAY_CHECK(device_->start_timer());
    ASSAY_CHECK(timed.run());
    ASSAY_TRY(sample.device_ms, device_->stop_timer_ms());
    if (energy_) sample.energy_j = energy_->end(timed.latency_ns());
    return {};
  }

  WorkerResult<LoadedReply> loaded(int64_t start_ns) const {
    const engine::ModelConfig& config = session_->config();
    LoadedReply reply;
    reply.vocab_size = config.vocab_size;
    reply.special_ids = native_special_ids(config);
    reply.max_positions = config.max_positions;
    reply.weight_bytes = static_cast<int64_t>(session_->model().weight_bytes());
    reply.dtype = engine::dtype_name(session_->model().dtype());
    reply.quantization = session_->model().options().fp8 == engine::Fp8::kNone
                             ? session_->model().quantization()
                             : "fp8";
    reply.threads = static_cast<int64_t>(session_->device().threads());
    reply.seconds = seconds_since(start_ns);
    if (load_.want_model_hash) {
      const auto checkpoint = engine::Checkpoint::open(load_.model);
      if (!checkpoint) return as_reply(checkpoint.error());
      auto hash = checkpoint->content_hash();
      if (!hash) return as_reply(hash.error());
      reply.model_hash = std::move(hash).value();
    }
    return reply;
  }

  std::string version_;
  LoadRequest load_;
  std::shared_ptr<engine::Device> device_;  // since load()
  std::unique_ptr<Session> session_;
  std::optional<NativeSlots> slots_;         // of an arm under load
  std::unique_ptr<NativeLoad> under_load_;   // since it was prepared
  engine::PromptBatch prompt_;               // the first that was measured
  Json fp8_error_;                           // measured once; null: not yet
  std::unique_ptr<GpuEnergy> energy_;        // absent: nobody counts it
  std::map<Phase, engine::FrameRuns> runs_;  // of the timed regions
  std::map<Phase, RegionFaults> faults_;     // likewise
  using Shape = std::tuple<Phase, int64_t, int64_t, int64_t>;
  std::set<Shape> seen_;                                     // that were measured
  std::map<std::pair<Shape, int64_t>, int64_t> regions_ns_;  // the latest of each, and of a length
};

}  // namespace

std::unique_ptr<Worker> make_native_worker(std::string version) {
  return std::make_unique<NativeWorker>(std::move(version));
}

}  // namespace assay
