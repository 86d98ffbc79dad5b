// The study that `assay probe --save` measures, as the text of a study file: one arm of backend
// command, one cell, an invocation a process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/records/phase.h"
#include "base/result.h"

namespace assay {

// A cell's properties, for a command that doesn't state them itself.
struct ProbedCell {
  std::string model = "unstated";
  Phase phase = Phase::kE2eKv;
  int64_t prompt_tokens = 1;
  int64_t new_tokens = 1;  // of no meaning in prefill
};

struct ProbedCommand {
  std::vector<std::string> argv;  // taken as it stands: braces are no placeholders
  std::string workdir = {};       // likewise; empty: assay's own
  std::string pattern;            // with one group, named after a figure (command_arm.h)
  int64_t samples = 1;            // that each invocation prints
  int64_t skip = 0;               // of them; fewer than `samples`
  int64_t invocations = 5;
  double timeout_s = 600;  // of an invocation
  ProbedCell cell = {};
};

// Name of the arm in the study.
inline constexpr const char* kProbedArm = "command";

// bad_input of arguments that a study file, which is UTF-8, can't hold.
Result<std::string> probe_study(const ProbedCommand& command);

// The figure that a number in front of the unit is: "ms", "tok/s", "ms/token"; absent: none that a
// row can hold.
std::optional<std::string_view> figure_of_unit(std::string_view unit);
// The units that it knows, for an error's line.
std::vector<std::string> figure_units();

// The pattern with its one named group renamed. bad_input if the name stands elsewhere than in the
// group's own brackets too, so that a person has to rename it.
Result<std::string> with_group_named(const std::string& pattern, const std::string& group,
                                     std::string_view figure);

}  // namespace assay
