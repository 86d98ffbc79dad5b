// The workers that are alive: one process an arm, started when first needed, replaced after a
// failure and for each of the study's rounds.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "artifact/bundle.h"
#include "backend/worker_client.h"
#include "backend/worker_log.h"
#include "base/process/thread_pool.h"
#include "harness/context.h"
#include "study/study.h"

namespace assay {

// One arm's process and its history.
struct LiveWorker {
  size_t arm = 0;
  size_t model = 0;
  int64_t serial = 0;  // of the run's processes; no two have the same
  WorkerLog log;
  std::optional<WorkerClient> client;  // absent if it failed
  LoadedReply loaded;
  std::optional<size_t> prepared_cell;
  PreparedReply prepared;
  std::set<size_t> warmed_cells;
};

// Starts the arm's worker and loads the model; `log` gets its output. An input of the run that has
// changed is a failure before anything is started, and no later commit takes its rows.
ClientResult<WorkerClient> start_worker(const Study& study, size_t arm, size_t model,
                                        bool want_model_hash, WorkerLog& log, RunContext& context,
                                        LoadedReply& loaded, const std::vector<int>& cpus = {});

// Prepares the worker for a cell, unless it is. A time-out has the class compile_timeout.
ClientResult<void> prepare_worker(LiveWorker& worker, const PrepareRequest& request, size_t cell,
                                  const Study& study, RunContext& context);

// Hands a worker's report on the arm to its backend, and the backend's note on it to the user.
void tell_backend(const StudyArm& arm, const Json& evidence, RunContext& context);

// The CPUs of a round's processes, out of the allowed ones: as many as the study's arms share, the
// next round the next ones. Empty: all.
std::vector<int> cpus_of_round(const Study& study, int64_t round, std::span<const int> allowed);

class Workers {
 public:
  // `exclusive`: starting one ends the others (order sequential).
  Workers(const Study& study, RunContext& context, bool exclusive)
      : study_(study), context_(context), exclusive_(exclusive) {}

  // The arm's worker with this model loaded: the living one, or a fresh one. An arm and model that
  // failed to load kLoadAttempts times in a row isn't tried again: the last failure is the answer.
  ClientResult<LiveWorker*> get(size_t arm, size_t model, bool want_model_hash = false);
  // Ends all in good order; those that are started from here on are the round's.
  void begin_round(int64_t round);
  // True if starting one ends the others.
  bool exclusive() const { return exclusive_; }
  // Ends it, whatever it does; its log stays to be moved.
  void discard(size_t arm);
  // The log of the arm's worker; null if none was started.
  WorkerLog* log_of(size_t arm);
  // Ends all in good order.
  void retire_all();

  static constexpr int kLoadAttempts = 2;

 private:
  struct LoadFailure {
    int in_a_row = 0;
    WorkerFailure last;
  };
  bool starts_server(size_t arm) const;
  void retire(LiveWorker& worker);

  const Study& study_;
  RunContext& context_;
  bool exclusive_;
  const std::vector<int> allowed_ = allowed_cpus();
  std::vector<int> cpus_;  // of the round
  int64_t started_ = 0;
  std::map<size_t, LiveWorker> by_arm_;
  std::map<std::pair<size_t, size_t>, LoadFailure> load_failures_;  // by arm and model
};

}  // namespace assay
