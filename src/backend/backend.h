// A backend as the harness sees it: which arms it can run, and how to start their worker.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/worker_client.h"
#include "base/result.h"
#include "study/study.h"

namespace assay {

// Facts about a model that are known before any worker has loaded it. A fact that can't be known is
// absent.
struct ModelFacts {
  std::optional<int64_t> max_positions;
  std::optional<uint64_t> weight_bytes;
  std::optional<int64_t> layers;
  std::vector<int64_t> text_tokens;  // of each text asked about; empty: unknown
};

// The speed at which weights can come to the processor that a backend computes with.
struct ReadLimit {
  double bytes_per_s = 0;    // from memory, measured
  uint64_t cache_bytes = 0;  // that the last-level cache may serve instead, a pass
};

// The verdict, reached without running the arm, on its being what its name claims here.
struct ArmReadiness {
  enum class Verdict {
    kReady,
    kFallback,    // it runs, as something else: `fallback`
    kImpossible,  // it can't run at all: its rows get `error_class`, the other arms run
  };
  Verdict verdict = Verdict::kReady;
  std::string reason;       // why not ready, one line
  std::string fix;          // an action for the user; may be empty
  std::string fallback;     // the mode that would run
  std::string error_class;  // "no_interpreter", "no_torch", "no_cuda", ...
  std::string gpu_uuid;     // "GPU-..." that the arm computes on; empty: on the processor
  // Axes of the benchmark identity that differ from the program's own; empty: they don't.
  std::string device;
  std::string code_generator;
  std::string framework_build;
  std::string code_sha;  // of the commit that the arm runs, "-dirty" behind it if it was changed
  Json facts;    // the finding, for environment.json: of an interpreter, GPU or command; or null
  Json program;  // {"path", "sha256"} of the program that the arm names for its worker; or null
};
// kImpossible, for this reason.
ArmReadiness impossible_arm(std::string error_class, std::string reason, std::string fix);
std::string_view readiness_name(ArmReadiness::Verdict verdict);  // ready | fallback | impossible
// {"verdict", "reason", "fix", "fallback", "error_class"}, those that aren't empty.
Json readiness_to_json(const ArmReadiness& readiness);

// A file that an arm's worker is or runs, or a folder of such.
struct ArmInput {
  std::string of;    // its owner: "torch worker"; empty: the arm
  std::string name;  // the file's; for a folder the beginning of its files' names
  std::filesystem::path path;
  std::string sha256 = {};  // as the readiness has stated it; empty: it hasn't
};

class Backend {
 public:
  virtual ~Backend() = default;
  // bad_input that names the arm and the values that the backend supports.
  virtual Status check_arm(const StudyArm& arm) const = 0;
  virtual WorkerCommand worker_command(const StudyArm& arm) const = 0;
  // The program that a study or the environment names and that readiness() would start; absent: it
  // starts no such program for this arm.
  virtual std::optional<std::string> readiness_program(const StudyArm&) const {
    return std::nullopt;
  }
  // May start a program to look, once for each interpreter or compiler: takes seconds the first
  // time, and may be asked as often as one likes.
  virtual ArmReadiness readiness(const StudyArm&) { return {}; }
  // Files that must stay as they are while the arm is measured, other than the program itself, its
  // libraries and the model. Called after readiness().
  virtual std::vector<ArmInput> inputs(const StudyArm&) { return {}; }
  // Options that only the worker understands; they travel in `load`. `seed` is the study's.
  virtual Json load_options(const StudyArm& arm, const StudyModel& model, uint64_t seed) const = 0;
  // Takes a worker's report on its preparation or its evidence: later readiness and load options
  // may follow from it. Returns a note for the user, if there is one.
  virtual std::optional<std::string> hear(const StudyArm&, const Json&) { return std::nullopt; }
  // bad_input if no worker could load this model: missing, truncated, not supported.
  virtual Result<ModelFacts> inspect(const StudyModel& model,
                                     std::span<const std::string> texts) const = 0;
  // bad_input that names the arm: its weights, if it has its own, can't be loaded, or aren't those
  // of this model.
  virtual Status check_weights(const StudyArm&, const StudyModel&) const { return {}; }
  // A program that prints how far the arm's weights are from the model's own, as the JSON of `assay
  // model quality`. Absent: they are the model's own, or nobody measures it.
  virtual std::optional<WorkerCommand> quality_command(const StudyArm&, const StudyModel&,
                                                       const StudyQuality&, uint64_t) const {
    return std::nullopt;
  }
  // Measured with the threads that the arm computes with; takes about a second. Absent, so that no
  // row is judged: it isn't known, or weights of this size fit the cache and so aren't bound by it.
  virtual std::optional<ReadLimit> read_limit(const StudyArm& arm, uint64_t weight_bytes) = 0;
  // Operations a second that the arm's GPU reaches in products of that type, measured. Absent: it
  // computes on no GPU, or nobody measures it.
  virtual std::optional<double> matrix_limit(const StudyArm&, const std::string&) {
    return std::nullopt;
  }
};

// Backends by the name that arms give. Pointers are never null.
using BackendSet = std::map<std::string, std::unique_ptr<Backend>>;

}  // namespace assay
