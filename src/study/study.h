// A study file, validated, with every list expanded and every default filled in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/records/json.h"
#include "base/records/phase.h"
#include "base/result.h"
#include "load/offered_load.h"

namespace assay {

// One model of the study.
struct StudyModel {
  std::string name;            // the folder's last part, or the architecture's name, unless given
  std::filesystem::path path;  // as written; relative to the working directory; empty: `arch`
  std::string dtype;           // fp32 | fp16 | bf16; empty: as stored, of an `arch` as published
  std::string arch{};          // "llama3.2-1b": random weights that the worker builds; no file
};

// One arm after expansion of its lists.
struct StudyArm {
  std::string name;     // unique; an expanded arm gets "-VALUE" of each of its lists appended, in
                        // the order of the file, where the last list varies fastest
  std::string backend;  // native | torch | command | http
  // native: eager | compiled; torch: eager | default | reduce-overhead | ...; command: the study's
  // word for it, or empty
  std::string mode;
  std::string cache;    // dynamic | static; of command and http arms also empty
  std::string dynamic;  // true | false | auto (default); empty, and not to be given, if the mode
                        // calls no compiler
  int64_t threads = 0;  // 0: as many as the process may run on
  Json options = Json::object();  // keys that the backend alone understands (arm_options.h)
};

struct StudyScenario {
  std::string name;
  // Prompt lengths in tokens, one prompt each (prompt_id 0, 1, ...); repetitions cycle through
  // them.
  std::vector<int64_t> prompt_tokens;
  std::string text;                 // a prompt of the user's instead; empty: prompt_tokens has them
  std::vector<Phase> phases{};      // of the study's; empty: all of them
  std::optional<LoadPoint> load{};  // phase load: the point of the load curve that it is
};

// True if the scenario is measured in this phase of its study.
bool runs_in(const StudyScenario& scenario, Phase phase);

// The time at which the arms' tokens are compared: in processes of their own before timing starts,
// or in the processes that were timed, once the timing of their model is over.
enum class ParityTime { kBefore, kAfter };
std::string_view parity_time_name(ParityTime time);  // before | after

// CPUs of a round's processes: the same few, or whichever the kernel gives them. Absent in the
// file: the same few if every arm is native, computes on the processor, and has the same number of
// `threads`.
enum class CpuChoice { kByArms, kTogether, kFree };

enum class PaddingScope { kNone, kScenario, kGlobal };
std::string_view padding_scope_name(PaddingScope scope);  // none | scenario | global

enum class RunOrder { kSequential, kShuffled, kInterleaved };
std::string_view run_order_name(RunOrder order);

// Optional stopping: of each cell by itself, or of strata once their arms are told apart.
struct Stopping {
  int64_t max_repetitions = 0;  // at least `repetitions`
  double relative_ci = 0;       // stop once the 95 % interval of the mean is within +- this share
  // In the place of relative_ci: a stratum ends with the round after which every pair with its
  // fastest arm is decided, or equivalent within the margin.
  bool decide = false;
  double margin = 0.03;
};

// The requests that phase load offers at each of its points (load_study.h).
struct StudyLoad {
  OfferedLoad offered;       // but for its point and seed; lengths that it lacks are the scenario's
  bool own_prompts = false;  // true if `offered` has the prompts' lengths
  bool own_new_tokens = false;
  std::string trace_file = {};  // as written; empty: no trace
  ServiceBounds slo = {};
};

// The distance of arms with weights of their own from the model, which is measured once their
// timing is over (study_quality.h).
struct StudyQuality {
  int64_t windows = 8;
  int64_t window = 256;        // tokens, the second half of which is predicted
  std::string text_file = {};  // as written; empty: the model draws the text
};

// The programs of a study that measures two side by side (sides.h).
struct StudySides {
  std::string base;
  std::string cand;
};

struct Study {
  std::string name;
  std::vector<StudyModel> models;
  std::vector<StudyArm> arms;
  std::vector<Phase> phases;  // in the order of kPhases
  std::vector<StudyScenario> scenarios;
  std::vector<int64_t> token_lengths;  // new tokens in kv_decode and e2e_kv
  std::vector<int64_t> batch;
  PaddingScope padding_scope = PaddingScope::kNone;
  int64_t padding_multiple_of = 8;
  int64_t repetitions = 30;
  int64_t warmup = 3;     // of each process; the default is less with command arms (command_arm.h)
  int64_t processes = 1;  // worker processes that share a cell's repetitions; at most so many
  bool processes_given = false;        // by the file; else settle_processes() sets them,
  std::string processes_because = {};  // and says why so many
  std::optional<Stopping> stopping;
  RunOrder order = RunOrder::kInterleaved;
  std::string baseline;  // an arm's name; default: the first arm
  CpuChoice cpus = CpuChoice::kByArms;
  ParityTime parity = ParityTime::kBefore;
  double timeout_s = 120;          // of one repetition, and of load each
  double compile_timeout_s = 120;  // of prepare; default: timeout_s
  uint64_t seed = 42;
  Json require = Json::object();    // demands on the stack (require.h); empty: none
  std::optional<StudyLoad> load{};  // present in a study whose only phase is load
  // Present if arms have weights of their own, unless the file says `quality: false`.
  std::optional<StudyQuality> quality{};
  // Present: arms 2i and 2i + 1 are one arm under the base's program and under the candidate's.
  std::optional<StudySides> sides{};
};

// The number of CPUs that the processes of a round share; 0: the kernel's choice.
int64_t shared_cpus(const Study& study);

// No study is longer than this, whatever its file says: plans stay in memory and in int64.
inline constexpr int64_t kMaxPlanCells = 20'000;
inline constexpr int64_t kMaxPlanRows = 2'000'000;

// Errors carry `object` and the line: "study.yaml line 12: unknown key "repetitons" (did you mean
// "repetitions"?)". The first problem of the file is reported, not all of them. Doesn't check that
// the models exist. Safe on any bytes: size, depth, aliases and list expansion are bounded.
Result<Study> parse_study(std::string_view yaml, std::string_view object);
Result<Study> read_study(const std::filesystem::path& path);

// The commented file that `assay init` writes; it parses.
std::string_view study_template();

// The built-in scenarios: single_micro 10, single_short 30, single_medium 80, single_long 200,
// stress_single 400 prompt tokens; and prompt_N, which has N. The names leave out prompt_N.
std::optional<StudyScenario> builtin_scenario(std::string_view name);
std::vector<std::string> builtin_scenario_names();

// Rounds of the plan, each with a fresh process of every arm: the study's `processes`, or with
// stopping.decide as many as fit max_repetitions, each with as many repetitions as those would
// have.
int64_t rounds(const Study& study);
// The first of a cell's repetitions in this round; for round rounds(), their number.
int64_t round_begin(const Study& study, int64_t round);
bool stops_when_decided(const Study& study);

// The most new tokens that a cell of the scenario makes; 0: it never decodes. Absent: no phase of
// the study measures it.
std::optional<int64_t> longest_generation(const Study& study, const StudyScenario& scenario);

// Cells and rows (warm-ups included) of the plan that the study stands for.
int64_t count_cells(const Study& study);
int64_t count_rows(const Study& study);

}  // namespace assay
