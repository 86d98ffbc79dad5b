// Studies of servers under load: the key `load`, and what each run of one offers.
#pragma once

#include "base/records/json.h"
#include "base/result.h"
#include "load/offered_load.h"
#include "study/plan.h"
#include "study/study.h"
#include "study/yaml_reader.h"

namespace assay {

// Runs of each point without the key `repetitions`: as many as give an interval.
inline constexpr int64_t kDefaultLoadRuns = 5;

// Reads the key `load` and the study's scenarios and lengths. The study has phase load alone, and a
// scenario for each of its scenarios at each point of the load curve: "prompt_128, 4 at once". A
// trace has a scenario a speed. Every arm has to be of a backend that serves load. Also sets the
// defaults of repetitions and warm-up, of which a run has its own.
//   concurrency: [1, 4]    closed loop; or, or beside it
//   rate: [0.5, 2]         open loop, requests a second
//   arrivals: poisson      of an open loop: poisson (default) or constant
//   duration_s: 30         of a run; or
//   requests: 200          of a run; with both the first that is reached
//   turns: 4               requests of a session, each of which asks with all before it
//   prompt_tokens, new_tokens: a number, a list, {least, most} or {mean, deviation, least, most};
//                          default: the scenario's, and token_lengths
//   trace: FILE            times and lengths of requests in the place of all of these
//   speed: [1, 2]          divides the trace's times (default: 1)
//   slo: {ttft_ms, itl_ms, latency_ms}  bounds that a request has to keep
Status parse_load_study(const YamlMap& study_keys, const YamlValue& load, Study& study);

// The load of one run of a cell. Every arm gets the same requests in a run.
OfferedLoad offered_load(const Study& study, const Cell& cell, int64_t repetition);

// For the plan's hash: all that decides what is offered.
Json load_to_json(const StudyLoad& load);

}  // namespace assay
