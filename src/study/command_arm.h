// Arms of backend `command`: any benchmark program, whose output says its figures.
//
// One invocation of the program is one worker process of a cell: what it prints of several runs are
// the repetitions of that process, and the study's `processes` are how often it is started.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "study/study.h"
#include "study/yaml_reader.h"

namespace assay {

inline constexpr std::string_view kCommandBackend = "command";
// The option that holds what `compare --run` was given for the arm's side.
inline constexpr const char* kSideOption = "side";
// And the one with the study's time-out.
inline constexpr const char* kTimeoutOption = "timeout_s";

// What a named group of a pattern may be. A sample's time is that of the first of these that it
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

// {"repo", "revision"}: `checkout` for one of its `revisions`; of a checkout without revisions,
// {"repo"}: `compare --run` names them.
Result<std::optional<YamlValue>> checkout_revisions(const YamlValue& checkout);
Result<Json> read_checkout(const YamlValue& checkout, const YamlValue* revision);

// Whether the arm of backend command has what it needs, and nothing that excludes one another.
Status check_command_arm(const StudyArm& arm, const YamlValue& value);

bool is_command(const StudyArm& arm);
bool has_command_arms(const Study& study);
// Of a command arm: whether a text of it has this placeholder.
bool has_placeholder(const StudyArm& arm, std::string_view name);
// How many figures an invocation prints; absent: as many as it is asked for ({samples}).
std::optional<int64_t> fixed_samples(const StudyArm& arm);

// The warm-ups of a study that doesn't say how many: `usual`, or as many fewer as leave each
// invocation of its command arms a sample.
int64_t default_warmup(const Study& study, int64_t usual);
// Whether the study asks its command arms for what invocations can give; the number of processes is
// looked at where the file has it. bad_input that names `object`, and the arm.
Status check_commands(const Study& study, std::string_view object);
// The fewest processes in which each invocation of every command arm has samples enough; 1 where
// none prints a fixed number.
int64_t processes_for_samples(const Study& study);
// Writes into the options of each command arm how many samples its invocations have to print, and
// in what time. The number of processes is known.
void settle_samples(Study& study);

}  // namespace assay
