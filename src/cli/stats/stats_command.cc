// `assay stats`: every estimator and test on figures and values given by hand, and the audit.
#include "cli/stats/stats_table.h"

namespace assay::cli {

void add_stats_command(CLI::App& app, Selected& selected) {
  CLI::App* stats = app.add_subcommand(
      "stats", "run statistical tests on figures or values, and audit published tables");
  stats->require_subcommand(1);
  for (const auto& subcommands :
       {stats_of_groups(), std::vector{stats_of_pairs()}, stats_of_power(), stats_of_samples(),
        stats_of_counts(), std::vector{stats_of_two_factors()}}) {
    for (const StatsSubcommand& one : subcommands) add_stats_subcommand(*stats, one, selected);
  }
  add_stats_audit(*stats, selected);
}

}  // namespace assay::cli
