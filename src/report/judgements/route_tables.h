// Tables and sentences of a routing policy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/tables/table.h"
#include "routing/route.h"

namespace assay {

// "6 rules, 2 of them abstain; every stratum has a safe arm".
std::string route_outcome(const Route& route);
// Prompt tokens of a rule: "10-80", or "10" alone.
std::string lengths_text(int64_t from, int64_t to);
// The prompts of a rule's evidence: "10 tokens", with the scenario's name where another one of the
// rule has these lengths.
std::string evidence_prompt(const PolicyRule& rule, const RuleEvidence& evidence);
// The rule's condition: "prefill of gpt2, 10-80 prompt tokens, batch 2".
std::string rule_place(const PolicyRule& rule);
// The arm that serves a request that no rule covers.
std::string fallback_sentence(const Route& route);

// One row a rule: its condition, the arm, the fallback, verdicts and ratios of its strata.
Table rule_table(const Route& route);
// The same for a screen: columns that all rules share are left out, and rules that differ in their
// numbers of new tokens alone are one row.
Table rule_screen_table(const Route& route);
// Explains the columns and verdicts of rule_screen_table() that occur in it.
std::string rule_screen_legend(const Route& route);
// One row a rule and stratum of its evidence: ratio, and the times of both arms.
Table evidence_table(const Route& route);
// One row a rule and trigger.
Table trigger_table(const Route& route);
Table identity_table(const Route& route);

// The worth of a policy made from half of the rows, on the other half.
std::string validation_sentence(const Optimism& validation);

// One sentence each, those alike taken together.
std::vector<std::string> abstention_lines(const Route& route);
// Rules whose arm isn't the choice of each stratum that they rest on, and is proven faster than the
// safe one on all of them.
std::vector<std::string> taken_lines(const Route& route);
// Strata on which a rule's arm has the longer p99 than the arm that it gives way to.
std::vector<std::string> tail_lines(const Route& route);
std::vector<std::string> barred_lines(const Route& route);

// The decision rule in about ten lines.
std::vector<std::string> break_glass_lines(const Route& route);

}  // namespace assay
