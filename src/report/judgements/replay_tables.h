// Table and sentences of a trace replayed over measured rows.
#pragma once

#include <string>
#include <vector>

#include "base/tables/table.h"
#include "routing/route.h"
#include "routing/simulate.h"

namespace assay {

// One row a strategy. The screen's has p50, p99, throughput and regret.
Table strategy_table(const Simulation& simulation, bool for_screen);
// The replayed trace, requests outside the policy, strategies that can't be had, triggers that
// fired.
std::string replay_sentence(const Simulation& simulation);
std::vector<std::string> replay_lines(const Route& route);

}  // namespace assay
