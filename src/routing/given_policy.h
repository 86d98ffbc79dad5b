// A policy that somebody else wrote, held against a study's rows.
#pragma once

#include <string>
#include <vector>

#include "routing/route.h"

namespace assay {

// bad_input where the rows rule the policy out: a model that wasn't measured; an arm that isn't
// there, or that is barred on a stratum which its rule covers or rests on; a rule between measured
// lengths whose arm is barred at one of them; a fallback, of a rule on its strata or of the policy
// on all of them, that didn't run eager, is barred or wasn't measured; an arm that ran compiled
// without a fallback.
Status check_given_policy(const Policy& policy, const Samples& samples, const Route& route);

// Judges the given policy by the rows: its evidence becomes theirs, with an entry kNotMeasured
// for each part that a rule serves beyond them (rule_basis.h). `refuted` gets a sentence for each
// arm that is proven slower than the safe one where a rule takes it, and `differs` one for each
// rule whose arm they don't choose, or that takes an arm where nobody measured, and for axes of the
// identity that the policy doesn't name.
void hold_against_rows(const Samples& samples,
                       const std::vector<std::pair<std::string, std::string>>& identity,
                       Route& route);

}  // namespace assay
