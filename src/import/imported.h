// The result of every reader of a foreign file: runs of samples under the conditions that the file
// states. One writer (import_bundle.h) makes a bundle of any of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "artifact/evidence.h"
#include "artifact/row.h"
#include "base/files/hash.h"
#include "base/records/json.h"
#include "base/tables/shared_text.h"
#include "import/run_facts.h"
#include "load/offered_load.h"
#include "load/sent_request.h"

namespace assay {

// One call, or in a run of means the mean of several.
struct ImportedSample : Measured {
  RowStatus status = RowStatus::kOk;
  SharedText error_class = {};
  SharedText message = {};           // whole
  OptionalCount tokens = {};         // produced, over the batch
  OptionalCount prompt_tokens = {};  // where the calls of a run differ; absent: the run's
  OptionalCount new_tokens = {};     // likewise: only where the calls of a run differ
  SharedText prompt_id = {};
  bool cold = false;  // the file calls it a warm-up
  std::optional<int64_t> started_at_ns = {};
};

// A file's or a mapping's statement about a compiler, beside the mode's name. Never `yes`: no file
// that is imported proves it.
struct CompilerWord {
  CompilerReal verdict = CompilerReal::kUnproven;
  std::string reason;
};

enum class SettingOf {
  kArm,
  kCondition,  // the load that the calls were made under
  kModel,
};

// A statement of a file that no field is made for, under the file's own name.
struct StatedSetting {
  std::string name;
  std::string value;
  std::string mark = {};  // stands before the value in an arm's name; empty: "NAME="
  SettingOf of = SettingOf::kArm;
};

// Samples in their order, of one array, one invocation or one file: the first may be cold.
struct ImportedRun {
  std::string source;  // the file, for messages
  RunFacts facts;
  // If runs of one name differ in one, its value is put behind the name of the thing that it sets.
  std::vector<StatedSetting> settings = {};
  std::vector<std::string> unstated = {};  // settings that change a time and that the file lacks
  // The file says that calls were made before the first sample, to warm up; or its tool does so by
  // default and writes nothing of it.
  bool warmed_up = false;
  bool own_processes = false;  // the tool starts a process for each sample
  // Each sample is the mean of several, which the file doesn't have.
  bool means = false;
  std::optional<CompilerWord> compiler = {};
  std::optional<int64_t> weight_bytes = {};  // of the model
  std::vector<ImportedSample> samples = {};
  // A run under load, whose one sample sums it up: what was offered, and its requests.
  std::optional<OfferedLoad> offered = {};
  std::vector<SentRequest> sent = {};
};

struct ImportedFile {
  std::string name;  // without its folders
  FileDigest digest;
};

// Settings of all runs of one import.
inline constexpr size_t kMostImportSettings = 4'000'000;

// Everything that was read of the files of one import.
struct Imported {
  std::string format;
  std::string tool;  // name and version, as far as the files say
  std::vector<ImportedFile> files = {};
  std::vector<ImportedRun> runs = {};
  size_t settings = 0;        // of all runs (count_settings(), formats/settings.h)
  std::string name = {};      // of the study; empty: the format's
  std::string baseline = {};  // an arm's name; empty: the first arm
  std::string order = {};     // of the arms, as the tool runs them: sequential; empty: unknown
  // Arms are called as commands, tests or functions are: a word in such a name, as in "make
  // compile", tells nothing of a compiler under the model.
  bool arms_are_code = false;
  Json machine = Json::object();  // the files' statements on the machine and the configuration
  std::string mapping = {};       // the mapping file's text
  std::vector<std::string> notes = {};               // sentences for the reader of a report
  std::map<std::string, std::string> asserted = {};  // fields that the user stated
};

}  // namespace assay
