// Latency of one phase: distributions by stratum and arm, and the cold samples apart.
#include <algorithm>

#include "base/text/text.h"
#include "report/answers.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

// True if rows of this phase have their joules.
bool has_energy(const Findings& findings, Phase phase) {
  return std::ranges::any_of(findings.latencies, [&](const Latency& latency) {
    return findings.strata[latency.stratum].phase == phase && latency.energy_n > 0;
  });
}

Table warm_table(bool energy) {
  Table table{"",
              {{"stratum", Align::kLeft},
               {"arm", Align::kLeft},
               {"n"},
               {"mean"},
               {"95% interval"},
               {"median"},
               {"sd"},
               {"p90"},
               {"p95"},
               {"p99"},
               {"max"},
               {"tok/s"}},
              {}};
  if (energy) {
    table.columns.push_back({"J/token"});
    table.columns.push_back({"its interval"});
  }
  return table;
}

std::vector<TableCell> warm_row(const Findings& findings, const Latency& l, bool energy) {
  std::vector<TableCell> row = {TableCell::of(stratum_label(findings, l.stratum)),
                                TableCell::of(arm_label(findings, l.arm, l.stratum)),
                                TableCell::of(l.n),
                                TableCell::of(l.mean),
                                spread_cell(l.mean_interval, l.mean_process_range),
                                TableCell::of(l.median),
                                TableCell::of(l.sd, 3),
                                TableCell::of(l.p90),
                                TableCell::of(l.p95),
                                TableCell::of(l.p99),
                                TableCell::of(l.max),
                                TableCell::of(l.tokens_per_s)};
  if (energy) {
    row.push_back(TableCell::of(l.joules_per_token, 3));
    row.push_back(spread_cell(l.joules_interval, std::nullopt));
  }
  return row;
}

Table cold_table() {
  return {
      "Cold samples, ms (warm-ups and first calls; not in the table above; mean_all: of warm and "
      "cold rows)",
      {{"stratum", Align::kLeft},
       {"arm", Align::kLeft},
       {"n_cold"},
       {"median_cold"},
       {"max_cold"},
       {"median_warm"},
       {"cold/warm"},
       {"mean"},
       {"mean_all"}},
      {}};
}

std::vector<TableCell> cold_row(const Findings& findings, const Latency& l) {
  std::optional<double> ratio;
  if (l.cold_median && l.median) ratio = *l.cold_median / *l.median;
  return {TableCell::of(stratum_label(findings, l.stratum)),
          TableCell::of(arm_label(findings, l.arm, l.stratum)),
          TableCell::of(l.cold_n),
          TableCell::of(l.cold_median),
          TableCell::of(l.cold_max),
          TableCell::of(l.median),
          TableCell::of(ratio, 3),
          TableCell::of(l.mean),
          TableCell::of(l.mean_with_cold)};
}

}  // namespace

ReportSection latency_section(const Findings& findings, Phase phase, Detail detail) {
  ReportSection section{fmt::format("Latency of {}", phase_name(phase)), {}, {}};
  section.figures = {fmt::format("{}-growth", phase_name(phase)),
                     fmt::format("{}-distributions", phase_name(phase)),
                     fmt::format("{}-order", phase_name(phase))};
  section.lines.push_back(
      fmt::format("Wall-clock ms of warm ok rows ({}). Mean with {:.0f} % BCa bootstrap interval, "
                  "{} resamples; sd with n - 1; percentiles type 7.",
                  shared_label(findings, phase), findings.options.confidence * 100,
                  findings.options.resamples));
  section.lines.emplace_back(
      "\"-\": n is too small (p90 needs 10 rows, p95 20, p99 100) or the value is undefined.");
  if (has_process_ranges(findings)) section.lines.push_back(range_meaning() + ".");
  const bool energy = has_energy(findings, phase);
  if (energy) {
    section.lines.emplace_back(
        fmt::format("J/token: energy of the GPU over the tokens {}, from the rows that are long "
                    "enough for its energy counter, and its 95 % interval (Student's t, of "
                    "processes or of one's rows); \"-\": no row is.",
                    phase == Phase::kPrefill ? "of the prompts" : "produced"));
  }
  Table warm = warm_table(energy);
  Table cold = cold_table();
  for (const Latency& latency : findings.latencies) {
    if (findings.strata[latency.stratum].phase != phase) continue;
    warm.rows.push_back(warm_row(findings, latency, energy));
    if (latency.cold_n > 0) cold.rows.push_back(cold_row(findings, latency));
  }
  section.tables.push_back(std::move(warm));
  if (detail != Detail::kSummary && !cold.rows.empty()) section.tables.push_back(std::move(cold));
  return section;
}

}  // namespace assay
