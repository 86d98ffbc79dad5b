// Measures a study file into a bundle, for `assay run` and `assay compare --run`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "artifact/row.h"
#include "base/result.h"
#include "study/study.h"

namespace assay::cli {

inline constexpr int kExitInterrupted = 130;  // a shell's status for a program that SIGINT ended

struct MeasureOptions {
  std::string study;                           // file
  std::optional<std::string> study_text = {};  // in its place; `study` names it in errors
  std::string bundle;
  bool resume = false;
  bool profile = false;
  std::vector<std::string> only;
  std::optional<StudySides> sides{};  // measures every arm under both programs (study/sides.h)
  bool every_arm_runs = false;        // an arm that can't is an error of the environment
};

// The committed part of a study, earlier sittings' rows included.
struct Measured {
  bool interrupted = false;  // resume continues it
  int64_t rows = 0;
  std::map<RowStatus, int64_t> rows_by_status;
  int64_t processes = 0;          // of each arm and model
  std::string processes_because;  // empty: the study says how many
  // Seconds of this sitting, as RunContext has them.
  double starting_s = 0;
  double preparing_s = 0;
};

// Shows progress on stderr meanwhile.
Result<Measured> measure_study(const MeasureOptions& options);

}  // namespace assay::cli
