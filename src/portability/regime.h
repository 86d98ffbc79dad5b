// One bundle condensed for judgements across bundles: its cells' warm rows without their texts, the
// lost rows, and the identity. Twenty bundles of 52,410 rows fit in 45 MB so.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/contrast/serial.h"
#include "analysis/contrast/units.h"
#include "analysis/findings/execution.h"
#include "analysis/findings/strata.h"
#include "analysis/rows/eager_rows.h"
#include "analysis/rows/losses.h"
#include "artifact/bundle.h"
#include "stats/samples/intervals.h"

namespace assay {

// Settings of an arm that have to be the same for its cells in two bundles to be one condition.
struct ArmConfig {
  std::string cache;
  std::string mode;
  std::string dynamic;
  std::string quantization;
  std::string arm;  // its name, where arms of one bundle share all the others; else empty
  friend auto operator<=>(const ArmConfig&, const ArmConfig&) = default;
};
// "compiled, static cache, dynamic true".
std::string config_text(const ArmConfig& config);

// Rows lost of those attempted, with the rate's interval.
struct CrashRate {
  int64_t lost = 0;
  int64_t attempted = 0;
  std::optional<stats::Interval> interval;  // Losses::interval(); absent: nothing was attempted
  Losses losses;                            // by processes
};
inline constexpr double kCrashConfidence = 0.95;
CrashRate crash_rate(Losses losses);

// Mean time of a cell, with the error of its processes' means (series_means()).
struct CellMean {
  double mean_ms = 0;
  double lowest_ms = 0;  // of single rows
  double highest_ms = 0;
  std::optional<SeriesError> error;  // absent: nothing shows it
  int64_t processes = 0;             // whose means it is the mean of; 0: it is one of rows
  stats::Interval process_means_ms = {};
};

// One arm on one stratum of a bundle.
struct RegimeCell {
  Stratum stratum;
  std::string arm;
  ArmConfig config;
  CrashRate crashes;
  std::vector<MeasuredRow> rows;  // in the order of the run
  Execution execution = Execution::kEager;
  EagerRows eager;  // of a compiled arm
  bool parity_failed = false;
  bool several_processes = false;
  bool by_rounds = false;        // processes are the unit of its stratum
  bool paired = false;           // its stratum's arms ran side by side (contrast/blocks.h)
  bool looked_at = false;        // its blocks ended as soon as its arms were told apart
  std::string void_because;      // why arms of its stratum can't be held against one another
  std::optional<CellMean> mean;  // absent: no warm rows
};

struct Regime {
  std::string folder;
  std::string name;      // the folder's last part; the whole path where two end alike
  std::string baseline;  // the study's
  Bundle who;            // manifest, environment, evidence, and one row a cell: for identity_axes.h
  std::vector<RegimeCell> cells;
};

struct RegimeOptions {
  // Take rows of one process for independent: else cells of one process have a mean without error.
  bool allow_single_process = false;
};

// bad_input: a parity record without a verdict.
Result<Regime> condense(const Bundle& bundle, const RegimeOptions& options);

}  // namespace assay
