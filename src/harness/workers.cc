// Starting, loading, replacing and ending workers.
#include "harness/workers.h"

#include "base/records/backend_traits.h"

namespace assay {
namespace {

// A worker that has been asked to end, and hasn't, is killed after this.
constexpr double kShutdownGrace_s = 2;
constexpr double kServerGrace_s =
    15;  // a server has five seconds, and what it started is looked for

// Adds its own life to a sum of seconds.
class SpentTime {
 public:
  SpentTime(Clock& clock, double& seconds)
      : clock_(clock), seconds_(seconds), begin_ns_(clock.monotonic_ns()) {}
  SpentTime(const SpentTime&) = delete;
  SpentTime& operator=(const SpentTime&) = delete;
  ~SpentTime() { seconds_ += static_cast<double>(clock_.monotonic_ns() - begin_ns_) * 1e-9; }

 private:
  Clock& clock_;
  double& seconds_;
  int64_t begin_ns_;
};

}  // namespace

ClientResult<WorkerClient> start_worker(const Study& study, size_t arm, size_t model,
                                        bool want_model_hash, WorkerLog& log, RunContext& context,
                                        LoadedReply& loaded, const std::vector<int>& cpus) {
  const StudyArm& study_arm = study.arms[arm];
  const StudyModel& study_model = study.models[model];
  Backend& backend = *context.backends.at(study_arm.backend);
  if (const ArmReadiness readiness = backend.readiness(study_arm);
      readiness.verdict == ArmReadiness::Verdict::kImpossible) {
    return std::unexpected(
        WorkerFailure{FailureKind::kError, readiness.error_class, readiness.reason});
  }
  if (const auto change = context.inputs ? context.inputs->changed() : std::nullopt) {
    return std::unexpected(WorkerFailure{FailureKind::kError, "changed_input", change->message});
  }
  const SpentTime spent(context.clock, context.starting_s);
  WorkerCommand command = backend.worker_command(study_arm);
  command.cpus = cpus;
  auto client = WorkerClient::start(context.spawner, command, log, context.interrupt_fd,
                                    context.harness, study.timeout_s);
  if (!client) return client;
  LoadRequest request;
  request.model = study_model.arch.empty() ? study_model.path.string() : study_model.arch;
  request.dtype = study_model.dtype;
  request.mode = study_arm.mode;
  request.cache = study_arm.cache;
  request.dynamic = study_arm.dynamic;
  request.threads = study_arm.threads;
  request.want_model_hash = want_model_hash;
  request.options = backend.load_options(study_arm, study_model, study.seed);
  auto reply = client->load(request, study.timeout_s);
  if (!reply) return std::unexpected(std::move(reply).error());
  loaded = std::move(reply).value();
  return client;
}

ClientResult<void> prepare_worker(LiveWorker& worker, const PrepareRequest& request, size_t cell,
                                  const Study& study, RunContext& context) {
  if (worker.prepared_cell == cell) return {};
  const SpentTime spent(context.clock, context.preparing_s);
  auto prepared = worker.client->prepare(request, study.compile_timeout_s);
  if (!prepared) {
    WorkerFailure failure = std::move(prepared).error();
    if (failure.kind == FailureKind::kTimeout) failure.error_class = "compile_timeout";
    return std::unexpected(std::move(failure));
  }
  worker.prepared = std::move(prepared).value();
  worker.prepared_cell = cell;
  tell_backend(study.arms[worker.arm], worker.prepared.evidence, context);
  return {};
}

void tell_backend(const StudyArm& arm, const Json& evidence, RunContext& context) {
  const auto note = context.backends.at(arm.backend)->hear(arm, evidence);
  if (note) context.observer.on_note(*note);
}

std::vector<int> cpus_of_round(const Study& study, int64_t round, std::span<const int> allowed) {
  const auto shared = static_cast<size_t>(shared_cpus(study));
  if (shared == 0 || shared >= allowed.size()) return {};
  const size_t places = allowed.size() / shared;
  const auto first = allowed.subspan(static_cast<size_t>(round) % places * shared, shared);
  return {first.begin(), first.end()};
}

void Workers::begin_round(int64_t round) {
  retire_all();
  cpus_ = cpus_of_round(study_, round, allowed_);
}

ClientResult<LiveWorker*> Workers::get(size_t arm, size_t model, bool want_model_hash) {
  // A process may also print while another arm's is measured.
  for (auto& [other, worker] : by_arm_) worker.log.bound();
  const auto living = by_arm_.find(arm);
  if (living != by_arm_.end() && living->second.client && living->second.model == model) {
    return &living->second;
  }
  LoadFailure& failure = load_failures_[{arm, model}];
  if (failure.in_a_row >= kLoadAttempts) return std::unexpected(failure.last);
  if (living != by_arm_.end()) retire(living->second);
  if (exclusive_) retire_all();
  auto log = WorkerLog::create();
  if (!log) {
    return std::unexpected(WorkerFailure{FailureKind::kError, kSpawnError, log.error().message});
  }
  LiveWorker& worker = by_arm_
                           .insert_or_assign(arm, LiveWorker{.arm = arm,
                                                             .model = model,
                                                             .serial = started_++,
                                                             .log = std::move(log).value(),
                                                             .client = {},
                                                             .loaded = {},
                                                             .prepared_cell = {},
                                                             .prepared = {},
                                                             .warmed_cells = {}})
                           .first->second;
  auto client =
      start_worker(study_, arm, model, want_model_hash, worker.log, context_, worker.loaded, cpus_);
  if (!client) {
    if (client.error().kind != FailureKind::kInterrupted) {
      failure = {failure.in_a_row + 1, client.error()};
    }
    return std::unexpected(std::move(client).error());
  }
  failure = {};
  worker.client = std::move(client).value();
  return &worker;
}

void Workers::discard(size_t arm) {
  const auto it = by_arm_.find(arm);
  if (it == by_arm_.end()) return;
  // A worker that has started a server ends it and all that descends from it, if it still can.
  if (starts_server(arm)) return retire(it->second);
  it->second.client.reset();
}

bool Workers::starts_server(size_t arm) const {
  return backend_traits(study_.arms[arm].backend).worker == WorkerKind::kServer;
}

WorkerLog* Workers::log_of(size_t arm) {
  const auto it = by_arm_.find(arm);
  return it == by_arm_.end() ? nullptr : &it->second.log;
}

void Workers::retire(LiveWorker& worker) {
  if (worker.client)
    worker.client->shutdown(starts_server(worker.arm) ? kServerGrace_s : kShutdownGrace_s);
  worker.client.reset();
}

void Workers::retire_all() {
  for (auto& [arm, worker] : by_arm_) retire(worker);
}

}  // namespace assay
