// The order of a unit: worker, preparation, warm-ups, repetitions, evidence, log, commit.
#include "harness/unit_runner.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "artifact/row_rule.h"
#include "base/add_once.h"
#include "harness/stopping.h"
#include "load/load_run.h"
#include "study/load_study.h"
#include "study/prompt_index.h"

namespace assay {
namespace {

// The GPU that an arm computes on, by its identity; empty where its number isn't known.
std::optional<std::string> gpu_of(const ArmReadiness& readiness) {
  if (readiness.gpu_uuid.empty() && readiness.device.empty()) return std::nullopt;
  return readiness.gpu_uuid;
}

// Most seconds that a worker that failed may take for its last report.
constexpr double kLastWords_s = 30;

// The share of a round of optional stopping: the repetitions it may add are shared like the others,
// and the mean of so many processes' rows is as much more certain than one's.
Stopping stopping_of_round(const Study& study, const Unit& unit) {
  const int64_t extra = study.stopping->max_repetitions - study.repetitions;
  const auto begin = [&](int64_t total, int64_t round) {
    return part_begin(total, study.processes, round);
  };
  const auto share = [&](int64_t total) {
    return begin(total, unit.round + 1) - begin(total, unit.round);
  };
  return {share(study.repetitions) + share(extra),
          study.stopping->relative_ci * std::sqrt(static_cast<double>(study.processes))};
}

}  // namespace

// One unit under way.
struct UnitRunner::Job {
  const Unit& unit;
  const Cell& cell;
  const ModelSetup& setup;
  const std::vector<PromptLength>& lengths;  // of the cell's prompts
  std::vector<int64_t> repetitions;          // to do, in order; warm-ups first
  WireShape shape;
  LiveWorker* worker = nullptr;  // null: not started, or lost
  OptionalCount process;         // its number within the cell
  int64_t rows = 0;              // written so far
  std::optional<double> worst_load_1min;
  std::optional<double> worst_steal_share;
  std::optional<WorkerFailure> failure;
  bool given_up = false;           // here: the evidence says so
  bool first_of_process = false;   // its worker hasn't served the cell before
  std::optional<std::string> gpu;  // that the arm computes on
  std::set<std::string> throttle_reasons;
  std::vector<SentRequest> sent;           // of the run under load that was offered last
  std::optional<double> gpu_others_share;  // of the GPU's time; absent: no other program
};

UnitRunner::UnitRunner(const Study& study, const Plan& plan, BundleWriter& bundle,
                       RunContext& context, RunState& state)
    : study_(study),
      plan_(plan),
      bundle_(bundle),
      context_(context),
      state_(state),
      workers_(study, context, study.order == RunOrder::kSequential),
      row_judge_(study, context) {
  if (context.gpus) gpu_watch_.emplace(*context.gpus, MachineFiles(), ::getpid());
}

Result<UnitEnd> UnitRunner::run(const Unit& unit, const ModelSetup& setup,
                                const std::vector<std::vector<PromptLength>>& planned_lengths) {
  const Cell& cell = plan_.cells[unit.cell];
  const auto& lengths =
      setup.prompts ? setup.prompts->lengths(cell.scenario) : planned_lengths[cell.scenario];
  Job job{.unit = unit,
          .cell = cell,
          .setup = setup,
          .lengths = lengths,
          .repetitions = {},
          .shape = {},
          .worker = nullptr,
          .process = {},
          .rows = 0,
          .worst_load_1min = {},
          .worst_steal_share = {},
          .failure = {},
          .gpu = {},
          .throttle_reasons = {},
          .sent = {},
          .gpu_others_share = {}};
  job.shape = {cell.phase, cell.batch, cell.new_tokens, cache_capacity(lengths, cell.new_tokens)};
  for (int64_t i = 0; i < unit.warmups; ++i) job.repetitions.push_back(unit.first_warmup + i);
  const int64_t first = unit.first_repetition + state_.extra_repetitions[unit.cell];
  for (int64_t i = 0; i < unit.repetitions; ++i) job.repetitions.push_back(first + i);
  const StudyArm& arm = study_.arms[cell.arm];
  job.gpu = gpu_of(context_.backends.at(arm.backend)->readiness(arm));
  context_.observer.on_unit(cell, unit);
  row_judge_.begin_unit();
  if (gpu_watch_ && job.gpu) gpu_watch_->begin(*job.gpu, context_.clock.wall_ns());
  if (const auto& failed = state_.failed_in_a_row[{unit.cell, unit.round}];
      failed.repetitions >= kTriesInARow) {
    ASSAY_CHECK(skip_all(job, failed));
  } else if (const auto ready = make_ready(job); !ready) {
    if (ready.error().kind == FailureKind::kInterrupted) return UnitEnd::kInterrupted;
    ASSAY_CHECK(fail_rest(job, 0, ready.error()));
  } else {
    ASSAY_TRY(const UnitEnd end, run_repetitions(job));
    if (end == UnitEnd::kInterrupted) return end;
  }
  ASSAY_CHECK(close(job));
  return UnitEnd::kCommitted;
}

ClientResult<void> UnitRunner::make_ready(Job& job) {
  if (!job.setup.prompts) {
    return std::unexpected(
        WorkerFailure{FailureKind::kError, "no_prompts",
                      "no arm's worker could load the model and make prompts; the last one said: " +
                          job.setup.last_failure});
  }
  auto worker = workers_.get(job.cell.arm, job.cell.model);
  if (!worker) return std::unexpected(std::move(worker).error());
  job.worker = *worker;
  job.process = state_.process_of(job.unit.cell, job.worker->serial);
  const LoadedReply& loaded = job.worker->loaded;
  // A server doesn't tell all of its special ids.
  const bool tells_all =
      backend_traits(study_.arms[job.cell.arm].backend).worker != WorkerKind::kServer;
  const Vocabulary& expected = job.setup.prompts->vocabulary();
  if (loaded.vocab_size > 0 &&
      (loaded.vocab_size != expected.size ||
       (tells_all && Vocabulary{loaded.vocab_size, loaded.special_ids} != expected))) {
    return std::unexpected(WorkerFailure{
        FailureKind::kError, "vocabulary_mismatch",
        fmt::format("expected the vocabulary of the other arms ({} ids), found {} ids",
                    expected.size, loaded.vocab_size)});
  }
  if (job.worker->prepared_cell != job.unit.cell) {
    const PrepareRequest request = prepare_request(job.shape, job.lengths);
    // Noted before anything can go wrong: a cell that is lost here still names its worker.
    if (!state_.evidence.of(job.unit.cell).worker) {
      state_.evidence.add_worker(job.unit.cell, *job.worker);
    }
    state_.evidence.add_process(job.unit.cell, *job.process, *job.worker);
    const auto prepared = prepare_worker(*job.worker, request, job.unit.cell, study_, context_);
    if (!prepared) return prepared;
    state_.evidence.add_worker(job.unit.cell, *job.worker);
    state_.evidence.add_process(job.unit.cell, *job.process, *job.worker);
  }
  return warm_up_again(job);
}

// A cell's warm-ups are rows of its first unit in each round. A worker that comes later in the
// round warms up without rows: a resumed or crashed run has as many rows as one that went through.
ClientResult<void> UnitRunner::warm_up_again(Job& job) {
  job.first_of_process = job.worker->warmed_cells.insert(job.unit.cell).second;
  if (!job.first_of_process || job.unit.first_of_round) return {};
  for (int64_t repetition = -study_.warmup; repetition < 0; ++repetition) {
    const auto row = study_.load ? offer(job, repetition) : sampled(job, repetition);
    if (!row) return std::unexpected(row.error());
  }
  job.sent.clear();
  return {};
}

// The longest that a run may take: every request its limit, and the schedule.
double run_limit_s(const Study& study, const OfferedLoad& load) {
  constexpr double kGrace_s = 30;
  constexpr double kPoissonRoom = 20;  // times the mean schedule
  const auto at_once = static_cast<double>(load.point.concurrency.value_or(1));
  const double one_by_one_s =
      study.timeout_s * std::ceil(static_cast<double>(load.requests.value_or(0)) / at_once);
  const auto schedule_s = schedule_seconds(load);
  const bool drawn = load.point.rate && !load.duration_s;
  // A session's later turns are due when those before them have ended.
  const double last_s = study.timeout_s * static_cast<double>(load.turns);
  return schedule_s.value_or(one_by_one_s) * (drawn ? kPoissonRoom : 1) + last_s + kGrace_s;
}

// The row's figures of a run. A run that tells nothing of the server isn't ok.
void put_run(const OfferedLoad& load, const ServiceBounds& bounds,
             std::span<const SentRequest> sent, Row& row) {
  const auto lose = [&](RowStatus status, std::string error_class) {
    row.status = status;
    row.error_class = std::move(error_class);
  };
  const auto figures = load_run_figures(load, bounds, sent);
  if (!figures) return lose(RowStatus::kFalseSuccess, "run_too_short");
  if (!figures->latency_ms) {
    const auto most = std::ranges::max_element(figures->failed, {},
                                               [](const auto& failed) { return failed.second; });
    const auto of_class = std::ranges::find(sent, most->first, &SentRequest::error_class);
    return lose(parse_row_status(of_class->status).value_or(RowStatus::kError), most->first);
  }
  row.latency_ms = figures->latency_ms->mean;
  row.ttft_ms = figures->ttft_ms->mean;
  row.client_ms = row.latency_ms;
  row.tokens = std::llround(figures->tokens_per_s * figures->window.seconds());
  row.tokens_per_s = figures->tokens_per_s;
  const LoadSpread& late = *figures->late_ms;
  if (late.p99.value_or(late.most) > lateness_bound_ms(*figures)) {
    lose(RowStatus::kFalseSuccess, "sent_late");
  }
}

// One request a repetition, so that the row is on disk before the next one starts, and nothing of
// that work runs beside a timed region.
ClientResult<SampleReply> UnitRunner::measure(Job& job, int64_t repetition) {
  MeasureRequest request;
  request.shape = job.shape;
  const size_t prompt = prompt_index(repetition, job.lengths.size());
  request.prompts = {job.setup.prompts->prompt(job.cell.scenario, prompt, job.cell.batch)};
  request.repetitions = {{repetition, 0}};
  SampleReply sample;
  const auto done = job.worker->client->measure(request, study_.timeout_s,
                                                [&](const SampleReply& reply) { sample = reply; });
  if (!done) return std::unexpected(done.error());
  return sample;
}

// A run under load as a row, and its requests beside it.
ClientResult<Row> UnitRunner::offer(Job& job, int64_t repetition) {
  const OfferedLoad load = offered_load(study_, job.cell, repetition);
  job.sent.clear();
  const auto offered =
      job.worker->client->offer({job.shape, load}, run_limit_s(study_, load),
                                [&](SentRequest sent) { job.sent.push_back(std::move(sent)); });
  std::ranges::sort(job.sent, {}, &SentRequest::number);
  if (!offered) return std::unexpected(offered.error());
  Row row = blank_row(job, repetition);
  row.started_at_ns = offered->started_at_ns;
  row.status = RowStatus::kOk;
  put_run(load, study_.load->slo, job.sent, row);
  if (context_.monitor) note_conditions(job, row);
  mark_false_success(row, {});
  return row;
}

Row UnitRunner::blank_row(const Job& job, int64_t repetition) const {
  const StudyArm& arm = study_.arms[job.cell.arm];
  const StudyModel& model = study_.models[job.cell.model];
  const size_t prompt = prompt_index(repetition, job.lengths.size());
  Row row;
  row.cell_id = job.cell.id;
  row.backend = arm.backend;
  row.arm = arm.name;
  row.model = model.name;
  row.dtype = job.worker ? job.worker->loaded.dtype : model.dtype;
  row.quantization = job.worker ? job.worker->loaded.quantization : "";
  row.cache = arm.cache;
  row.compile_mode = arm.mode;
  row.dynamic = arm.dynamic;
  row.padding = padding_scope_name(study_.padding_scope);
  row.phase = job.cell.phase;
  row.scenario = study_.scenarios[job.cell.scenario].name;
  row.prompt_id = std::to_string(study_.load ? 0 : prompt);
  row.batch = job.cell.batch;
  row.prompt_tokens = job.lengths[prompt].tokens;
  row.padded_tokens = job.lengths[prompt].padded;
  if (study_.load) {
    row.prompt_tokens = row.padded_tokens =
        mean_length(offered_load(study_, job.cell, repetition).prompt_tokens);
  }
  row.new_tokens = job.cell.new_tokens;
  row.repetition = repetition;
  row.block = job.unit.block;
  row.order_index = state_.committed_rows + job.rows;
  row.cold = repetition < 0;
  row.process = job.process;
  return row;
}

ClientResult<Row> UnitRunner::sampled(Job& job, int64_t repetition) {
  const auto sample = measure(job, repetition);
  if (!sample) return std::unexpected(sample.error());
  Row row = sample_row(job, repetition, *sample);
  if (row.status == RowStatus::kOk) note_work(job, row, *sample);
  if (context_.monitor && !sample->recalled) note_conditions(job, row);
  return row;
}

Row UnitRunner::sample_row(const Job& job, int64_t repetition, const SampleReply& sample) {
  Row row = blank_row(job, repetition);
  row.cold = row.cold || sample.cold;
  static_cast<Measured&>(row) = sample;
  row.tokens = sample.tokens;
  // A prefill's one token a row says nothing of its speed.
  if (decodes(job.shape.phase) && sample.latency_ms.value_or(0) > 0) {
    row.tokens_per_s = static_cast<double>(sample.tokens) * 1e3 / *sample.latency_ms;
  }
  for (const auto& [counter, count] : sample.counters) put_count(row, counter, count);
  row.output_hash = sample.output_hash;
  row.started_at_ns = sample.started_at_ns;
  row_judge_.judge(job.cell.arm, job.worker->loaded, sample, row);
  return row;
}

Status UnitRunner::append(Job& job, Row row) {
  if (row.started_at_ns == 0) row.started_at_ns = context_.clock.wall_ns();
  ASSAY_CHECK(bundle_.append(row));
  ++job.rows;
  state_.note(job.unit.cell, job.unit.round, row);
  context_.observer.on_row(row);
  return {};
}

// Records the machine's state in the row, and its other guests in the unit's note.
void UnitRunner::note_conditions(Job& job, Row& row) {
  const MachineSample sample = context_.monitor->sample();
  if (job.gpu) {
    const GpuState gpu = context_.gpus ? context_.gpus->read(*job.gpu) : GpuState{};
    if (gpu_watch_) gpu_watch_->look();
    row.sm_clock_mhz = gpu.sm_clock_mhz;
    row.temperature_c = gpu.temperature_c;
    row.power_w = gpu.power_w;
    row.throttled = gpu.throttled;
    job.throttle_reasons.insert(gpu.throttle_reasons.begin(), gpu.throttle_reasons.end());
  } else {
    row.sm_clock_mhz = sample.cpu_mhz;
    row.temperature_c = sample.temperature_c;
    row.power_w = sample.power_w;
    row.throttled = sample.throttled;
  }
  job.worst_load_1min = std::max(job.worst_load_1min, sample.load_1min);
  job.worst_steal_share = std::max(job.worst_steal_share, sample.steal_share);
}

// Puts others on the unit's GPU, and what held clocks down, into the evidence; true if any was.
bool UnitRunner::note_disturbance(Job& job) {
  Evidence& evidence = state_.evidence.of(job.unit.cell);
  add_each_once(evidence.throttle_reasons, job.throttle_reasons);
  if (gpu_watch_ && job.gpu) {
    for (const GpuNeighbour& one : gpu_watch_->end()) {
      evidence.gpu_neighbours.push_back({job.unit.index, state_.committed_rows, job.rows, one.pid,
                                         one.process, one.memory_bytes, one.share});
      job.gpu_others_share = job.gpu_others_share.value_or(0) + one.share;
    }
  }
  return job.gpu_others_share || !job.throttle_reasons.empty();
}

Result<UnitEnd> UnitRunner::run_repetitions(Job& job) {
  const bool may_add = job.unit.last_of_round && study_.stopping && !study_.stopping->decide;
  const int64_t begin =
      round_begin(study_, job.unit.round) + state_.extra_repetitions[job.unit.cell];
  for (size_t i = 0; i < job.repetitions.size(); ++i) {
    const int64_t repetition = job.repetitions[i];
    // Figures "since the last sample" are then this repetition's.
    if (context_.monitor) context_.monitor->sample();
    if (context_.gpus && job.gpu) context_.gpus->read(*job.gpu);
    auto measured = study_.load ? offer(job, repetition) : sampled(job, repetition);
    if (!measured && measured.error().kind == FailureKind::kInterrupted)
      return UnitEnd::kInterrupted;
    for (const SentRequest& sent : job.sent)
      ASSAY_CHECK(bundle_.append_request(job.cell.id, repetition, sent));
    job.sent.clear();
    if (!measured) {
      ASSAY_CHECK(fail_rest(job, i, measured.error()));
      return UnitEnd::kCommitted;
    }
    Row row = *std::move(measured);
    ASSAY_CHECK(append(job, std::move(row)));
    const bool more =
        may_add && i + 1 == job.repetitions.size() &&
        wants_more(stopping_of_round(study_, job.unit),
                   state_.ok_latencies_ms[{job.unit.cell, job.unit.round}], repetition + 1 - begin);
    if (more) job.repetitions.push_back(repetition + 1);
  }
  return UnitEnd::kCommitted;
}

// A cell whose workers are lost again and again would cost a start, or a timeout, a repetition.
Status UnitRunner::skip_all(Job& job, const RunState::FailedInARow& failed) {
  const RowOutcome outcome = failed.last;  // `failed` changes with each row
  if (failed.repetitions == kTriesInARow) {
    job.given_up = true;
    state_.evidence.add_failure(
        job.unit.cell, job.unit.index, job.repetitions.front(), outcome,
        fmt::format("not tried again in this round of processes: {} repetitions in a row failed",
                    kTriesInARow));
  }
  return lose(job, 0, outcome);
}

// The worker is lost to this unit: the repetitions left become rows, and the next unit gets a fresh
// process.
Status UnitRunner::fail_rest(Job& job, size_t from, const WorkerFailure& failure) {
  const RowOutcome outcome = outcome_of(failure);
  job.failure = failure;
  state_.evidence.add_failure(job.unit.cell, job.unit.index, job.repetitions[from], outcome,
                              failure.message);
  return lose(job, from, outcome);
}

Status UnitRunner::lose(Job& job, size_t from, const RowOutcome& outcome) {
  for (size_t i = from; i < job.repetitions.size(); ++i) {
    Row row = blank_row(job, job.repetitions[i]);
    row.status = outcome.status;
    row.error_class = outcome.error_class;
    ASSAY_CHECK(append(job, std::move(row)));
  }
  return {};
}

// Keeps the operations of a prompt, and the least bytes that a row of each length states: a later
// judgement by the evidence must not ask more of a row than this one did.
void UnitRunner::note_work(const Job& job, const Row& row, const SampleReply& sample) {
  if (sample.operations) {
    Evidence& evidence = state_.evidence.of(job.unit.cell);
    evidence.operations[row.padded_tokens] = *sample.operations;
    // Products of quantised weights have another limit, which nobody has measured.
    const LoadedReply& loaded = job.worker->loaded;
    const auto limit = loaded.quantization.empty()
                           ? matrix_limits_.find({job.cell.arm, loaded.dtype})
                           : matrix_limits_.end();
    if (limit != matrix_limits_.end()) evidence.matrix_limit = limit->second;
  }
  if (!sample.read_bytes) return;
  auto& of_lengths = state_.evidence.of(job.unit.cell).read_bytes;
  int64_t& least = of_lengths.try_emplace(row.padded_tokens, *sample.read_bytes).first->second;
  least = std::min(least, *sample.read_bytes);
}

ClientResult<Json> UnitRunner::ask_evidence(Job& job, double timeout_s, bool last_words) {
  auto said = state_.evidence.add_report(job.unit.cell, *job.process, *job.worker->client,
                                         job.shape.phase, timeout_s, last_words);
  if (said) tell_backend(study_.arms[job.cell.arm], *said, context_);
  return said;
}

// A worker that answered with an error is still there to report on its work until then; it is
// replaced in any case.
void UnitRunner::add_last_words(Job& job) {
  const FailureKind kind = job.failure->kind;
  // A crash may be its device's alone, or, as a time-out, a program's that it ran.
  if (kind == FailureKind::kInterrupted || !job.worker->client->running()) return;
  // Whatever went wrong with that, the failure stays the one that is told.
  // NOLINTNEXTLINE(bugprone-unused-return-value)
  static_cast<void>(ask_evidence(job, std::min(study_.timeout_s, kLastWords_s), true));
}

Status UnitRunner::close(Job& job) {
  // A process that begins within a round is told of at once: rows name it if the run is killed.
  const bool report =
      job.unit.first_of_round || job.unit.last_of_round || job.first_of_process || job.failure;
  Evidence& evidence = state_.evidence.of(job.unit.cell);
  // A reader would find committed rows false if a lower limit stood beside them.
  const bool raised = row_judge_.add_read_limit(job.cell.arm, evidence);
  const bool disturbed = note_disturbance(job);
  if (report || raised || disturbed || job.given_up) {
    evidence.model_hash = job.setup.model_hash;
    if (job.worker && job.process && job.worker->client->running()) {
      state_.evidence.add_placement(job.unit.cell, *job.process, job.worker->client->pid());
    }
    if (job.worker && job.failure) add_last_words(job);
    if (job.worker && !job.failure && report) {
      const auto reported = ask_evidence(job, study_.timeout_s, false);
      if (!reported) job.failure = reported.error();
    }
    ASSAY_CHECK(state_.evidence.write(job.unit.cell, bundle_));
  }
  if (job.failure) workers_.discard(job.cell.arm);
  if (WorkerLog* log = workers_.log_of(job.cell.arm)) {
    ASSAY_CHECK(state_.evidence.keep_log(job.unit.cell, *log, bundle_));
  }
  const int64_t extra = job.rows - job.unit.rows();
  Json note = {{"extra_rows", extra}, {"model_hash", job.setup.model_hash}};
  if (job.worst_load_1min) note["worst_load_1min"] = *job.worst_load_1min;
  if (!job.throttle_reasons.empty()) note["throttle_reasons"] = job.throttle_reasons;
  if (job.gpu_others_share) note["gpu_others_share"] = *job.gpu_others_share;
  if (job.worst_steal_share) note["worst_steal_share"] = *job.worst_steal_share;
  ASSAY_CHECK(bundle_.commit_unit(job.unit.index, note));
  state_.committed_rows += job.rows;
  state_.extra_repetitions[job.unit.cell] += extra;
  return {};
}

}  // namespace assay
