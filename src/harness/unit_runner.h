// Runs one unit of the plan: warm-ups, repetitions, and a row for each, of whatever outcome.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "artifact/bundle.h"
#include "harness/context.h"
#include "harness/device_limits.h"
#include "harness/gpu_watch.h"
#include "harness/model_setup.h"
#include "harness/row_judge.h"
#include "harness/run_state.h"
#include "harness/workers.h"
#include "study/plan.h"

namespace assay {

enum class UnitEnd { kCommitted, kInterrupted };

// Not for several threads. All references outlive it.
class UnitRunner {
 public:
  UnitRunner(const Study& study, const Plan& plan, BundleWriter& bundle, RunContext& context,
             RunState& state);

  // Ends with the unit committed, or interrupted with its rows uncommitted. Errors are the
  // bundle's: a worker's failures become rows. `setup` is of the unit's model; `planned_lengths`,
  // by scenario, are the prompt lengths for rows of a model for which no worker could make prompts.
  Result<UnitEnd> run(const Unit& unit, const ModelSetup& setup,
                      const std::vector<std::vector<PromptLength>>& planned_lengths);
  Workers& workers() { return workers_; }
  RowJudge& row_judge() { return row_judge_; }
  void set_matrix_limits(MatrixLimits limits) { matrix_limits_ = std::move(limits); }

 private:
  struct Job;
  ClientResult<void> make_ready(Job& job);
  ClientResult<void> warm_up_again(Job& job);
  ClientResult<SampleReply> measure(Job& job, int64_t repetition);
  ClientResult<Row> sampled(Job& job, int64_t repetition);
  ClientResult<Row> offer(Job& job, int64_t repetition);
  Row blank_row(const Job& job, int64_t repetition) const;
  Row sample_row(const Job& job, int64_t repetition, const SampleReply& sample);
  Status append(Job& job, Row row);
  void note_conditions(Job& job, Row& row);
  bool note_disturbance(Job& job);
  void note_work(const Job& job, const Row& row, const SampleReply& sample);
  Result<UnitEnd> run_repetitions(Job& job);
  Status fail_rest(Job& job, size_t from, const WorkerFailure& failure);
  Status skip_all(Job& job, const RunState::FailedInARow& failed);
  Status lose(Job& job, size_t from, const RowOutcome& outcome);
  Status close(Job& job);
  void add_last_words(Job& job);
  ClientResult<Json> ask_evidence(Job& job, double timeout_s, bool last_words);

  const Study& study_;
  const Plan& plan_;
  BundleWriter& bundle_;
  RunContext& context_;
  RunState& state_;
  Workers workers_;
  RowJudge row_judge_;
  MatrixLimits matrix_limits_;
  std::optional<GpuWatch> gpu_watch_;  // absent: nothing is known of GPUs
};

}  // namespace assay
