// Conditions: cells that are the same in several bundles, each with its cell in every regime that
// has it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "portability/regime.h"

namespace assay {

// Matched by model, phase, scenario, new tokens, batch, cache, mode, dynamic and quantisation.
// Arms' names don't count, unless two arms of one bundle differ by nothing else.
struct PortedCondition {
  Stratum stratum;
  ArmConfig config;
  std::vector<const RegimeCell*> cells;  // by regime; null: not measured there

  // The arm's name in the first bundle that has the condition.
  const std::string& arm() const;
};

// Conditions of regimes that outlive the result; by stratum (phase, model, scenario, ...), then as
// the first regime that has them lists its arms. Gives cells of arms that share a configuration
// their names, and in the regimes' identities (Regime::who) calls each arm config_text() of its
// configuration.
std::vector<PortedCondition> match_conditions(std::span<Regime> regimes);

// "prefill, gpt2-25m, single_micro".
std::string condition_text(const PortedCondition& condition);

// Two folders that end alike go by their whole paths.
void name_apart(std::span<Regime> regimes);

}  // namespace assay
