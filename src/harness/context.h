// A run's seams to files, processes, devices and the terminal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "artifact/row.h"
#include "backend/backend.h"
#include "base/clock.h"
#include "base/files/folder.h"
#include "base/process/subprocess.h"
#include "base/records/backend_traits.h"
#include "identity/bound_files.h"
#include "identity/gpu_sensors.h"
#include "identity/monitor.h"
#include "study/arm_options.h"
#include "study/plan.h"

namespace assay {

// Hears of the run's progress; called between timed regions, from the thread of the run.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void on_start(int64_t rows_done, int64_t rows_planned,
                        const std::vector<const Unit*>& units_left) = 0;
  virtual void on_unit(const Cell& cell, const Unit& unit) = 0;
  virtual void on_row(const Row& row) = 0;
  // A unit that isn't run, because its stratum was decided before.
  virtual void on_dropped(const Cell& cell, const Unit& unit) = 0;
  // A reason to doubt this run's figures, from the environment; before anything starts.
  virtual void on_warning(const std::string& text) = 0;
  // Anything that the user should know while it runs: an arm that fails parity, a model that no
  // worker loads.
  virtual void on_note(const std::string& text) = 0;
};

// References outlive the run.
struct RunContext {
  FileSystem& files;
  Spawner& spawner;
  Clock& clock;
  BackendSet& backends;
  RunObserver& observer;
  Monitor* monitor = nullptr;  // read between repetitions; null: nothing is known of the machine
  int interrupt_fd = -1;       // readable once the user wants the run to stop; -1: never
  std::string harness;         // name and version, told to workers
  GpuSensors* gpus = nullptr;  // read for arms that compute on a GPU; null: nothing is known of it
  bool profile = false;        // trace one repetition a cell, once its timing is over
  BoundFiles* inputs = nullptr;  // that must stay as they are; null: they aren't checked
  // Seconds that the run has spent so far on work in which it timed nothing, that of parity
  // included: on starting and loading processes, and on preparing cells, which compiles.
  double starting_s = 0;
  double preparing_s = 0;
};

// True if two arms compute on the same processor with the same threads, or on the same GPU.
inline bool share_processor(const StudyArm& one, const StudyArm& other) {
  return one.backend == other.backend && one.threads == other.threads &&
         device_option(one) == device_option(other);
}

// True unless the backend's readiness says that the arm can't run here at all.
inline bool possible(const StudyArm& arm, RunContext& context) {
  return context.backends.at(arm.backend)->readiness(arm).verdict !=
         ArmReadiness::Verdict::kImpossible;
}

// True if its worker can be asked for the tokens that parity compares.
inline bool shows_tokens(const StudyArm& arm, RunContext& context) {
  return backend_traits(arm.backend).shows_tokens && possible(arm, context);
}

}  // namespace assay
