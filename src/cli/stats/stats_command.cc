// `assay stats`: every estimator and test on figures and values given by hand, and the audit.
#include "cli/stats/stats_input.h"

namespace assay::cli {

void add_stats_command(CLI::App& app, Selected& selected) {
  CLI::App* stats = app.add_subcommand(
      "stats", "run statistical tests on figures or values, and audit published tables");
  stats->require_subcommand(1);
  add_stats_groups(*stats, selected);
  add_stats_pairs(*stats, selected);
  add_stats_power(*stats, selected);
  add_stats_samples(*stats, selected);
  add_stats_counts(*stats, selected);
  add_stats_anova(*stats, selected);
  add_stats_audit(*stats, selected);
}

}  // namespace assay::cli
