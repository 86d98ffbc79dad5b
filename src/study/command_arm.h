// Arms of backend `command`: any benchmark program, whose output says its figures.
//
// One invocation of the program is one worker process of a cell: the runs that it prints are the
// repetitions of that process, and it is started as often as the study's `processes` say.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/records/json.h"
#include "base/result.h"
#include "study/study.h"
#include "study/yaml_reader.h"

namespace assay {

// The option that holds the text given to `compare --run` for the arm's side.
inline constexpr const char* kSideOption = "side";
// And the one with the study's time-out.
inline constexpr const char* kTimeoutOption = "timeout_s";

// Names that a group of a pattern may have. A sample's time is that of the first of these that it
// has; rates are over the tokens that the cell asks for (in prefill the prompt's).
inline constexpr std::array<std::string_view, 9> kFigureNames = {
    "latency_ns",   "latency_us", "latency_ms", "latency_s", "tokens_per_s",
    "ms_per_token", "ttft_ms",    "ttft_s",     "tokens"};

// Readers of the keys. `command`: a list of arguments, or with `shell` one text. Each argument,
// `workdir` and the values of `env` may have placeholders (placeholders.h); one that isn't known is
// refused. `patterns`: regular expressions that compile, with named groups of kFigureNames and no
// others.
Result<Json> read_command(const YamlValue& value);
Result<Json> read_workdir(const YamlValue& value);
Result<Json> read_command_environment(const YamlValue& value);
Result<Json> read_patterns(const YamlValue& value);
Result<Json> read_samples(const YamlValue& value);

// {"repo", "revision"}: `checkout` for one of its `revisions`. A checkout without revisions gives
// {"repo"}: `compare --run` names them.
Result<std::optional<YamlValue>> checkout_revisions(const YamlValue& checkout);
Result<Json> read_checkout(const YamlValue& checkout, const YamlValue* revision);

// Checks that the arm of backend command has the keys it needs, and none that exclude one another.
Status check_command_arm(const StudyArm& arm, const YamlValue& value);

bool is_command(const StudyArm& arm);
// True if the arm runs or asks a program of others, of which this one knows nothing beforehand.
bool is_foreign(const StudyArm& arm);
bool has_command_arms(const Study& study);
// True if a text of this command arm has the placeholder.
bool has_placeholder(const StudyArm& arm, std::string_view name);
// The number of figures that an invocation prints; absent: as many as it is asked for ({samples}).
std::optional<int64_t> fixed_samples(const StudyArm& arm);

// The warm-ups of a study that doesn't say how many: `usual`, or as many fewer as leave each
// invocation of its command arms a sample.
int64_t default_warmup(const Study& study, int64_t usual);
// Checks that invocations can give the samples that the study asks of its command arms; the number
// of processes is checked if the file has it. bad_input that names `object`, and the arm.
Status check_commands(const Study& study, std::string_view object);
// The fewest processes in which each invocation of every command arm has samples enough; 1 if none
// prints a fixed number.
int64_t processes_for_samples(const Study& study);
// Writes into the options of each command arm the number of samples that its invocations have to
// print, and into those of arms that run or ask programs of others their time limit. The number of
// processes is known.
void settle_samples(Study& study);

}  // namespace assay
