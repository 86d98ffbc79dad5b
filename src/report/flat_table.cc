// Findings as one table for spreadsheets.
#include "report/flat_table.h"

#include <algorithm>
#include <map>

namespace assay {
namespace {

using Key = std::pair<size_t, std::string>;

std::optional<double> low(const std::optional<stats::Interval>& interval) {
  return interval ? std::optional(interval->low) : std::nullopt;
}

std::optional<double> high(const std::optional<stats::Interval>& interval) {
  return interval ? std::optional(interval->high) : std::nullopt;
}

void add_contrast(const Contrast* c, std::vector<TableCell>& row) {
  if (c == nullptr) {
    row.insert(row.end(), 12, TableCell::absent());
    return;
  }
  row.push_back(TableCell::of(c->baseline));
  row.push_back(TableCell::of(c->ratio));
  for (const auto& value :
       {low(c->ratio_interval), high(c->ratio_interval), low(c->ratio_process_range),
        high(c->ratio_process_range), c->difference_ms, c->p_holm, c->tost_p_holm, c->hedges_g,
        c->vargha_delaney_a}) {
    row.push_back(TableCell::of(value));
  }
  row.push_back(TableCell::of(std::string(verdict_name(c->verdict))));
}

std::vector<Column> columns() {
  std::vector<Column> all;
  for (const char* name : {"phase",
                           "model",
                           "scenario",
                           "new_tokens",
                           "batch",
                           "arm",
                           "attempted",
                           "lost",
                           "parity_failed",
                           "execution",
                           "n",
                           "mean_ms",
                           "mean_low_ms",
                           "mean_high_ms",
                           "mean_process_low_ms",
                           "mean_process_high_ms",
                           "median_ms",
                           "sd_ms",
                           "min_ms",
                           "p90_ms",
                           "p95_ms",
                           "p99_ms",
                           "max_ms",
                           "tokens_per_s",
                           "cold_n",
                           "cold_median_ms",
                           "baseline",
                           "ratio",
                           "ratio_low",
                           "ratio_high",
                           "ratio_process_low",
                           "ratio_process_high",
                           "difference_ms",
                           "p_holm",
                           "tost_p_holm",
                           "hedges_g",
                           "vargha_delaney_a",
                           "verdict"}) {
    all.push_back({name});
  }
  return all;
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
  Table table{"", columns(), {}};
  for (const Latency& l : findings.latencies) {
    const Stratum& s = findings.strata[l.stratum];
    const Key key{l.stratum, l.arm};
    const OutcomeCounts& outcome = *outcomes.at(key);
    const auto execution = executions.find(key);
    std::vector<TableCell> row = {TableCell::of(std::string(phase_name(s.phase))),
                                  TableCell::of(s.model),
                                  TableCell::of(s.scenario),
                                  TableCell::of(s.new_tokens),
                                  TableCell::of(s.batch),
                                  TableCell::of(l.arm),
                                  TableCell::of(outcome.attempted),
                                  TableCell::of(outcome.failed),
                                  {l.parity_failed, ""},
                                  execution == executions.end()
                                      ? TableCell::absent()
                                      : TableCell::of(std::string(execution->second)),
                                  TableCell::of(l.n)};
    for (const auto& value : {l.mean, low(l.mean_interval), high(l.mean_interval),
                              low(l.mean_process_range), high(l.mean_process_range), l.median, l.sd,
                              l.min, l.p90, l.p95, l.p99, l.max, l.tokens_per_s}) {
      row.push_back(TableCell::of(value));
    }
    row.push_back(TableCell::of(l.cold_n));
    row.push_back(TableCell::of(l.cold_median));
    const auto contrast = contrasts.find(key);
    add_contrast(contrast == contrasts.end() ? nullptr : contrast->second, row);
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace assay
