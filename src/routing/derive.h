// Choices of measured strata to a policy's rules: ranges of prompt lengths, fallbacks, triggers,
// and the gaps between what was measured.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/rows/samples.h"
#include "routing/choice.h"
#include "routing/policy.h"

namespace assay {

// Rules by phase, model, new tokens, batch and prompt length. Measured lengths are points (of
// prompts of varying length: ranges). Strata whose lengths overlap must agree, else their rule
// abstains. A rule goes on from one measured length to the next where both take the same arm and
// have the same safe one. Between two that don't, lengths go to the safe arm if both have the same
// one: a rule that abstains ("the boundary isn't measured"), or no rule where they haven't.
// Nothing is said beyond the shortest and the longest measured length, between batches or new
// tokens: there the policy's fallback counts, which is the arm that is safe on every stratum.
std::vector<PolicyRule> rules_of(const Samples& samples, std::span<const StratumChoice> choices);

// The arm that is the safe one of every stratum; empty: none is.
std::string common_fallback(std::span<const StratumChoice> choices);

// One sentence each: lengths outside and gaps in between, batches, new tokens and phases that
// weren't measured, arms that lack a stratum.
std::vector<std::string> unmeasured(const Samples& samples);

}  // namespace assay
