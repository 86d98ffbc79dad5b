// Runs one unit of the plan: warm-ups, repetitions, and a row for each, whatever happens.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "artifact/bundle.h"
#include "harness/cell_evidence.h"
#include "harness/context.h"
#include "harness/decisions.h"
#include "harness/model_setup.h"
#include "harness/outcome.h"
#include "harness/workers.h"
#include "study/plan.h"

namespace assay {

// State that later units need from earlier ones; restored from the bundle on resume.
struct RunState {
  RunState(const Study& study, const Plan& plan) : evidence(study, plan) {
    if (stops_when_decided(study)) decisions.emplace(study, plan);
  }

  // Of measured repetitions alone.
  bool has_ok_rows(size_t cell) const { return cells_with_ok_rows.contains(cell); }
  // The worker's number among those that have served the cell; a new one has the next.
  int64_t process_of(size_t cell, int64_t serial);

  std::set<size_t> cells_with_ok_rows;
  std::map<std::pair<size_t, int64_t>, std::vector<double>> ok_latencies_ms;  // by cell and round
  int64_t committed_rows = 0;  // the next row's order_index, but for those of the unit under way
  // Of optional stopping so far: they shift the repetitions of their own cell behind them.
  std::map<size_t, int64_t> extra_repetitions;
  std::optional<Decisions> decisions;  // where stopping decides
  std::set<int64_t> dropped_units;     // of strata that were decided before
  struct Processes {
    int64_t count = 0;
    int64_t last_serial = -1;
  };
  std::map<size_t, Processes> processes;  // by cell
  CellEvidence evidence;
  std::set<size_t> cells_with_parity;  // those that have a parity.json
};

enum class UnitEnd { kCommitted, kInterrupted };

class UnitRunner {
 public:
  UnitRunner(const Study& study, const Plan& plan, BundleWriter& bundle, RunContext& context,
             RunState& state);

  // Ends with the unit committed, or interrupted with its rows uncommitted. Errors are the
  // bundle's: a worker's failures become rows. `setup` is of the unit's model.
  Result<UnitEnd> run(const Unit& unit, const ModelSetup& setup,
                      const std::vector<std::vector<PromptLength>>& planned_lengths);
  Workers& workers() { return workers_; }
  // Arms without one aren't judged by it.
  void set_read_limits(std::map<size_t, ReadLimit> by_arm) { read_limits_ = std::move(by_arm); }

 private:
  struct Job;
  ClientResult<void> make_ready(Job& job);
  ClientResult<void> warm_up_again(Job& job);
  ClientResult<SampleReply> measure(Job& job, int64_t repetition);
  Row blank_row(const Job& job, int64_t repetition) const;
  void judge(const Job& job, const SampleReply& sample, Row& row);
  Row sample_row(const Job& job, int64_t repetition, const SampleReply& sample);
  Status append(Job& job, Row row);
  void note_conditions(Job& job, Row& row);
  void note_read_bytes(const Job& job, const Row& row, const SampleReply& sample);
  Result<UnitEnd> run_repetitions(Job& job);
  Status fail_rest(Job& job, size_t from, const WorkerFailure& failure);
  Status close(Job& job);
  void add_last_words(Job& job);
  bool add_read_limit(const Job& job, Evidence& evidence) const;

  const Study& study_;
  const Plan& plan_;
  BundleWriter& bundle_;
  RunContext& context_;
  RunState& state_;
  Workers workers_;
  std::map<size_t, ReadLimit> read_limits_;  // by arm
  int limit_checks_left_ = 0;                // of this unit
};

}  // namespace assay
