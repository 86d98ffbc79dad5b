// Findings as one table for spreadsheets.
#include "report/flat_table.h"

#include <algorithm>
#include <map>

#include "report/sections/sections.h"

namespace assay {
namespace {

using Key = std::pair<size_t, std::string>;

// The cells that a contrast fills, from "baseline" on.
std::vector<TableCell> contrast_cells(const Contrast* c) {
  if (c == nullptr) return std::vector<TableCell>(12);
  return row_of(c->baseline, c->ratio, low_cell(c->ratio_interval), high_cell(c->ratio_interval),
                low_cell(c->ratio_process_range), high_cell(c->ratio_process_range),
                c->difference_ms, c->p_holm, c->tost_p_holm, c->hedges_g, c->vargha_delaney_a,
                verdict_name(c->verdict));
}

}  // namespace

Table flat_table(const Findings& findings) {
  std::map<Key, const Contrast*> contrasts;
  for (const Contrast& c : findings.contrasts) contrasts[{*c.stratum, c.arm}] = &c;
  std::map<Key, const OutcomeCounts*> outcomes;
  for (const OutcomeCounts& o : findings.outcomes) {
    if (o.stratum) outcomes[{*o.stratum, o.arm}] = &o;
  }
  std::map<Key, std::string_view> executions;
  for (const Tail& t : findings.tails) executions[{t.stratum, t.arm}] = execution_name(t.execution);
  Table table{.columns = columns_of(
                  "phase|model|scenario|new_tokens|batch|arm|attempted|lost|parity_failed|"
                  "execution|n|mean_ms|mean_low_ms|mean_high_ms|mean_process_low_ms|"
                  "mean_process_high_ms|median_ms|sd_ms|min_ms|p90_ms|p95_ms|p99_ms|max_ms|"
                  "tokens_per_s|cold_n|cold_median_ms|baseline|ratio|ratio_low|ratio_high|"
                  "ratio_process_low|ratio_process_high|difference_ms|p_holm|tost_p_holm|hedges_g|"
                  "vargha_delaney_a|verdict")};
  for (const Latency& l : findings.latencies) {
    const Stratum& s = findings.strata[l.stratum];
    const Key key{l.stratum, l.arm};
    const OutcomeCounts& outcome = *outcomes.at(key);
    const auto execution = executions.find(key);
    table.rows.push_back(
        row_of(phase_name(s.phase), s.model, s.scenario, s.new_tokens, s.batch, l.arm,
               outcome.attempted, outcome.failed, TableCell(l.parity_failed, ""),
               execution == executions.end() ? TableCell::absent() : TableCell(execution->second),
               l.n, l.mean, low_cell(l.mean_interval), high_cell(l.mean_interval),
               low_cell(l.mean_process_range), high_cell(l.mean_process_range), l.median, l.sd,
               l.min, l.p90, l.p95, l.p99, l.max, l.tokens_per_s, l.cold_n, l.cold_median));
    const auto contrast = contrasts.find(key);
    for (const TableCell& cell :
         contrast_cells(contrast == contrasts.end() ? nullptr : contrast->second)) {
      table.rows.back().push_back(cell);
    }
  }
  return table;
}

}  // namespace assay
