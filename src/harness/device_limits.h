// Speeds of the devices that a study's arms compute on, measured before any of its workers starts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "backend/backend.h"
#include "harness/context.h"
#include "study/study.h"

namespace assay {

// Limits by arm, without those that have none. `largest`: bytes of the study's largest weights.
std::map<size_t, ReadLimit> measure_read_limits(const Study& study, uint64_t largest,
                                                RunContext& context);

// Operations a second of an arm's GPU in products of a type, by the arm's place and the type.
using MatrixLimits = std::map<std::pair<size_t, std::string>, double>;

// Rates for studies with prompts, in the types that their models name; in all where one names none.
// Such products heat a GPU, and its driver tells of that late: never measured beside timed regions.
MatrixLimits measure_matrix_limits(const Study& study, RunContext& context);

}  // namespace assay
