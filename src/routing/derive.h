// Choices of measured strata to a policy's rules: ranges of prompt lengths, fallbacks, triggers.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/rows/samples.h"
#include "routing/choice.h"
#include "routing/policy.h"

namespace assay {

// The models in the order of the strata.
std::vector<std::string> models_of(const Samples& samples);

// Rules by phase, model, new tokens, batch and prompt length. Measured lengths are points (of
// prompts of varying length: ranges). A rule goes on from one measured length to the next where
// both take the same arm and have the same safe one. Between two that don't, and where strata of
// overlapping lengths choose different arms, the arm serves that is proven on all of them
// (proven_on_all()); its rule rests on these strata. Where there is no such arm, the rule abstains:
// the safe arm serves if it is the same one at both ends, and lengths between have no rule if not.
// Between two measured numbers of new tokens a rule serves the lengths at which both take the same
// arm and have the same safe one; it rests on the strata of both. Nothing is said beyond the
// shortest and the longest measured length, between batches or beyond the measured numbers of new
// tokens: there the policy's fallback counts, which is the arm that is safe on every stratum.
std::vector<PolicyRule> rules_of(const Samples& samples, std::span<const StratumChoice> choices);

// For each choice the arm that the policy's rule takes on its stratum; empty: none.
std::vector<std::string> served_arms(const Samples& samples,
                                     std::span<const StratumChoice> choices);

// True if the stratum is among the rule's evidence.
bool rests_on(const PolicyRule& rule, const Stratum& stratum, const PromptRange& prompts);
// The rows of the rule's arm on each stratum of its evidence.
std::vector<const Group*> groups_of_rule(const Samples& samples, const PolicyRule& rule);

// Evidence on the rule's arm in the choices' rows, one entry a stratum.
std::vector<RuleEvidence> evidence_of(const Samples& samples,
                                      std::span<const StratumChoice* const> choices,
                                      const PolicyRule& rule);

// The arm that is the safe one of every stratum; empty: none is.
std::string common_fallback(std::span<const StratumChoice> choices);

}  // namespace assay
