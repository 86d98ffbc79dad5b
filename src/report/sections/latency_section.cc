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

std::vector<TableCell> warm_row(const Findings& findings, const Latency& l) {
  return row_of(stratum_label(findings, l.stratum), arm_label(findings, l.arm, l.stratum), l.n,
                l.mean, spread_cell(l.mean_interval, l.mean_process_range), l.median,
                TableCell(l.sd, 3), l.p90, l.p95, l.p99, l.max, l.tokens_per_s,
                TableCell(l.joules_per_token, 3), interval_cell(l.joules_interval));
}

std::vector<TableCell> cold_row(const Findings& findings, const Latency& l) {
  std::optional<double> ratio;
  if (l.cold_median && l.median) ratio = *l.cold_median / *l.median;
  return row_of(stratum_label(findings, l.stratum), arm_label(findings, l.arm, l.stratum), l.cold_n,
                l.cold_median, l.cold_max, l.median, TableCell(ratio, 3), l.mean, l.mean_with_cold);
}

}  // namespace

ReportSection latency_section(const Findings& findings, Phase phase, Detail detail) {
  ReportSection section{fmt::format("Latency of {}", phase_name(phase)), {}, {}};
  section.figures = {fmt::format("{}-growth", phase_name(phase)),
                     fmt::format("{}-distributions", phase_name(phase)),
                     fmt::format("{}-order", phase_name(phase))};
  section.lines.push_back(
      fmt::format("Wall-clock ms of warm ok rows ({}). Mean with 95 % BCa bootstrap interval, "
                  "{} resamples; sd with n - 1; percentiles type 7.",
                  shared_label(findings, phase), findings.options.resamples));
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
  Table warm{.columns =
                 columns_of("<stratum|<arm|n|mean|95% interval|median|sd|p90|p95|p99|max|tok/s|"
                            "J/token|its interval")};
  Table cold{
      "Cold samples, ms (warm-ups and first calls; not in the table above; mean_all: of warm and "
      "cold rows)",
      columns_of("<stratum|<arm|n_cold|median_cold|max_cold|median_warm|cold/warm|mean|mean_all")};
  for (const Latency& latency : findings.latencies) {
    if (findings.strata[latency.stratum].phase != phase) continue;
    warm.rows.push_back(warm_row(findings, latency));
    if (latency.cold_n > 0) cold.rows.push_back(cold_row(findings, latency));
  }
  if (!energy) {
    for (const char* name : {"J/token", "its interval"}) drop_column(name, warm);
  }
  section.tables.push_back(std::move(warm));
  if (detail != Detail::kSummary && !cold.rows.empty()) section.tables.push_back(std::move(cold));
  return section;
}

}  // namespace assay
