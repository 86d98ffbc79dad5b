// Thresholds of a rule's triggers, from the rows that were measured of its arm.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/rows/samples.h"
#include "routing/policy.h"

namespace assay {

// Requests over which events are counted before counting begins anew.
inline constexpr int64_t kTriggerWindow = 100;
// Chance at most that a window of requests that are like the measured rows fires a trigger.
inline constexpr double kFalseAlarm = 0.001;

// A stratum of fewer rows has no row above its p99, so that no threshold of it means p99.
inline constexpr int64_t kLeastRowsOfP99 = 100;

// The smallest k so that more than k of `window` further requests do something with probability
// kFalseAlarm at most, if `events` of `rows` measured ones did so: the number of further values
// above the (events + 1)-th largest of `rows` exchangeable ones is beta-binomial with a = events +
// 1 and b = rows - events (the exceedances of Gumbel and von Schelling 1950), which also bounds an
// event that happens by chance. rows >= 1, 0 <= events < rows; with nothing measured, `window`.
int64_t allowed_events(int64_t events, int64_t rows, int64_t window);

// The groups are the rule's arm on the strata that the rule covers; at least one.
// docs/judgements.md says where each threshold comes from, and each one's `source` says it with its
// figures.
std::vector<PolicyTrigger> triggers_of(const std::vector<const Group*>& groups);
// The latency that one warm row in a hundred passed; absent: fewer than kLeastRowsOfP99.
std::optional<double> measured_p99(const Group& group);
// The reason why there is no trigger of p99 among them; empty: there is.
std::string p99_undecided(const std::vector<const Group*>& groups);

}  // namespace assay
