// cells/CELL/evidence.json: the harness's record of how a cell ran, read by everything that judges
// the cell. docs/artifact-schema.md names the members.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/quality.h"
#include "base/process/placement.h"
#include "base/records/counter.h"
#include "base/records/enum_words.h"
#include "base/records/json.h"
#include "base/records/phase.h"
#include "base/result.h"

namespace assay {

// A worker's verdict on whether its mode's compiler was at work.
enum class CompilerReal { kNotApplicable, kYes, kFallback, kLabelOnly, kUnproven };
// not_applicable | yes | fallback | label_only | unproven
std::string_view compiler_real_name(CompilerReal real);
template <>
struct EnumWords<CompilerReal> {
  static constexpr std::array kAll = {CompilerReal::kNotApplicable, CompilerReal::kYes,
                                      CompilerReal::kFallback, CompilerReal::kLabelOnly,
                                      CompilerReal::kUnproven};
  static std::string_view name(CompilerReal real) { return compiler_real_name(real); }
};
// Any worker may have written `verdict`; one that isn't known is kUnproven.
CompilerReal compiler_real_of(const Json& verdict);
// Rank of a verdict, the higher the more it claims: label_only 0, fallback 1, unproven 2, any
// other 3. The lowest of several stands for all.
int claim_rank(CompilerReal real);

// A specialisation that a guard's failure caused.
struct Recompile {
  std::string guard;  // q_len, kv_len, ...
  std::string expected;
  std::string found;
  std::optional<double> seconds;
};

// One process's evidence; third parties' workers write it too. The members are those that this
// program judges by. A member that is missing or of another type is left out: a worker that says
// little proves little.
struct WorkerReport {
  Json whole = Json::object();       // as the worker sent it
  std::vector<std::string> reasons;  // of its verdict
  std::string fallback;              // the mode that it fell back to; empty: it didn't
  std::string fallback_error;        // whole; empty: none
  Counts counts;
  std::vector<Recompile> recompiles;
  // Sizes that the graph which ran last takes when it runs, because runs before it had other ones.
  std::vector<std::string> became_symbols;
  std::string first_graph_break;  // empty: none is described
  std::string device;             // that a torch arm computed on: "cuda:0"
  std::string code_generator;     // name and version; empty: not known
  std::string triton_version;
  std::optional<double> compile_seconds;
  std::optional<double> process_compile_seconds;  // of the whole process so far
  std::optional<double> read_bytes_per_s;         // of memory, measured by the worker
  std::optional<double> least_energy_ms;          // regions that long have their energy counted

  // It fell back to less than its mode promises, but not to eager.
  bool ran_as_other_mode() const { return !fallback.empty() && fallback != "eager"; }
};
WorkerReport worker_report(Json whole);

// The study's settings of the arm.
struct RequestedArm {
  std::string backend;
  std::string mode;
  std::string cache;
  std::string dynamic;
  std::string dtype;
  int64_t threads = 0;
  Json options = Json::object();
};

// The process that came last.
struct EvidenceWorker {
  std::string name;
  std::string version;
  int64_t protocol = 0;
  Json capabilities = Json::object();
  std::string dtype;  // in use
  std::string quantization;
  std::optional<double> load_seconds;
  std::optional<double> prepare_seconds;  // absent: it was never prepared for this cell
  Json prepare_evidence;                  // null likewise
  std::optional<int64_t> weight_bytes;
  std::optional<int64_t> threads;
};

// Page faults within timed regions of a process, by the kernel's count.
struct TimedFaults {
  int64_t rows = 0;   // that were timed
  int64_t minor = 0;  // the page was in memory
  int64_t major = 0;  // it was read from a disk
};

// The page faults of a worker's timed regions, as it last reported them.
struct EvidenceMemory {
  std::optional<TimedFaults> cold;
  std::optional<TimedFaults> warm;
};

// Reads an object that any worker may have sent: members of another type or below 0 are left out.
// Absent: it isn't an object.
std::optional<EvidenceMemory> memory_from_json(const Json& json);

// A process that was to be prepared for the cell.
struct EvidenceProcess {
  int64_t process = 0;
  std::optional<double> load_seconds = {};
  std::optional<double> prepare_seconds = {};  // absent: the preparation failed
  CompilerReal compiler_real = CompilerReal::kUnproven;
  std::optional<Counts> counters = {};        // as it last reported them; absent: it didn't
  std::optional<Placement> placement = {};    // absent: it was gone
  std::optional<EvidenceMemory> memory = {};  // absent: it says nothing of it
  bool lost = false;                          // the members are from its last message
};

// The verdict on an arm that isn't here what its name claims.
struct EvidenceGate {
  std::string verdict;  // fallback | impossible
  std::string reason;
  std::string fix;
  std::string fallback;
  std::string error_class;
};

// The memory's speed that rows were judged by.
struct EvidenceReadLimit {
  double bytes_per_s = 0;
  uint64_t cache_bytes = 0;
  std::optional<double> tolerance;
  friend bool operator==(const EvidenceReadLimit&, const EvidenceReadLimit&) = default;
};

struct EvidenceFailure {
  int64_t unit = 0;
  int64_t repetition = 0;
  std::string status;
  std::string error_class;
  std::string message;  // whole
};

// Another program that was on the arm's GPU during a unit of the cell.
struct EvidenceNeighbour {
  int64_t unit = 0;
  int64_t first_row = 0;  // order_index of the unit's first row
  int64_t rows = 0;       // of the unit
  int64_t pid = 0;
  std::string process;  // empty: unknown
  std::optional<uint64_t> memory_bytes;
  double share = 0;  // of the GPU's time
  friend bool operator==(const EvidenceNeighbour&, const EvidenceNeighbour&) = default;
};

struct EvidenceError {
  std::string error_class;
  std::string message;
};

// Exactly one of the three is there.
struct EvidenceProfile {
  std::optional<Json> summary = {};  // as the worker gave it
  std::string skipped = {};          // why there is none
  std::optional<EvidenceError> error = {};
};

// The leader of a stratum beside another arm.
struct StoppingPair {
  std::string arm;
  double ratio = 1;                          // leader / arm
  std::optional<EvidenceInterval> interval;  // absent: too few rounds
  std::string verdict;                       // faster | equivalent | open
  friend bool operator==(const StoppingPair&, const StoppingPair&) = default;
};

// State of a stratum when the run decided to stop it.
struct EvidenceStopping {
  int64_t rounds = 0;
  bool decided = false;
  std::optional<std::string> leader;  // absent: fewer than two arms could be compared
  std::optional<double> margin;       // of equivalence, as the study asked; absent: not recorded
  std::vector<StoppingPair> pairs;
  friend bool operator==(const EvidenceStopping&, const EvidenceStopping&) = default;
};

struct Evidence {
  std::string cell_id;
  std::optional<Phase> phase;
  RequestedArm requested;
  std::string model_hash;
  CompilerReal compiler_real = CompilerReal::kUnproven;  // of the weakest process
  std::optional<EvidenceWorker> worker;                  // absent: none started
  std::optional<WorkerReport> reported;                  // of the process that `reported_by` names
  std::optional<int64_t> reported_by;
  std::vector<EvidenceProcess> processes;
  std::optional<EvidenceReadLimit> read_limit;  // absent: not known
  std::vector<EvidenceNeighbour> gpu_neighbours;
  std::vector<std::string> throttle_reasons;  // that held the clock down during rows, each once
  std::vector<EvidenceFailure> failures;
  std::optional<EvidenceStopping> stopping;  // of studies that stop when they know
  std::optional<ModelQuality> quality;       // of weights that aren't the model's own
  std::optional<EvidenceGate> gate;
  std::map<int64_t, int64_t> read_bytes;     // least bytes of a repetition, by padded prompt length
  std::map<int64_t, int64_t> operations;     // of a prompt, likewise
  std::optional<double> matrix_limit;        // operations a second of its GPU, in its type
  std::optional<EvidenceProfile> profile;    // of runs that take profiles
  std::optional<int64_t> log_dropped_bytes;  // of the workers' output; absent: none

  std::optional<int64_t> count(Counter counter) const;  // as reported; absent: nobody counted
  // The highest count of any process of the cell. Bundles before schema version 3 know of one.
  std::optional<int64_t> most_counted(Counter counter) const;
  // The verdict of the process of that number; the cell's where it has no such process.
  CompilerReal verdict_of(std::optional<int64_t> process) const;
};

// The first line of a worker's error message, without the stack trace that torch puts on the same
// line.
std::string first_line(const std::string& message);

Json evidence_to_json(const Evidence& evidence);
// Members that aren't there are absent, since older versions had fewer; unknown members and unknown
// counters are skipped. bad_input that names `object`, member, expected and found: a member that
// the harness writes and that is of another type or out of its range. A worker's own members are
// read as WorkerReport says.
Result<Evidence> evidence_from_json(const Json& json, std::string_view object);

}  // namespace assay
