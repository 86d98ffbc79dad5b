// One bundle condensed for judgements across bundles: estimates of every two arms of a stratum, the
// mean of each cell, the lost rows, and the identity. It is made of rows and not of findings, since
// these contrast arms with their own baseline alone, and strata that other bundles share are
// combined by the rounds that served them.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/contrast/estimate.h"
#include "analysis/contrast/serial.h"
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
CrashRate crash_rate(Losses losses);

// Mean time of a cell, with the error of its processes' means (series_means()).
struct CellMean {
  double mean_ms = 0;
  double lowest_ms = 0;  // of single rows
  double highest_ms = 0;
  std::optional<stats::StandardError> error;  // absent: nothing shows it
  int64_t processes = 0;                      // whose means it is the mean of; 0: it is one of rows
  stats::Interval process_means_ms = {};
};

// Ratio of the b cell's mean to that of a, of two bundles.
Estimate estimate_between(const CellMean& a, const CellMean& b);

// ln(arm / other) of two arms of a stratum.
struct ArmPair {
  Estimate whole;
  std::map<int64_t, Estimate> rounds;  // estimates_of_rounds()
};

// One arm on one stratum of a bundle.
struct RegimeCell {
  Stratum stratum;
  std::string arm;
  ArmConfig config;
  CrashRate crashes;
  int64_t warm = 0;                       // rows
  std::map<std::string, ArmPair> beside;  // other arms; each two arms are with one of them
  Execution execution = Execution::kEager;
  EagerRows eager;  // of a compiled arm
  bool parity_failed = false;
  bool several_processes = false;
  bool looked_at = false;        // its blocks ended as soon as its arms were told apart
  std::string void_because;      // why arms of its stratum can't be held against one another
  std::optional<CellMean> mean;  // absent: no warm rows
};

// The ratio of two arms of one stratum of a bundle, or of one round of its processes alone.
Estimate estimate_beside(const RegimeCell& arm, const RegimeCell& other,
                         const std::optional<int64_t>& round = {});
// The rounds in which both ran side by side.
std::vector<int64_t> rounds_beside(const RegimeCell& arm, const RegimeCell& other);

struct Regime {
  std::string folder;
  std::string name;      // the folder's last part; the whole path where two end alike
  std::string baseline;  // the study's
  Bundle who;            // manifest, environment, evidence, and one row a cell: for identity_axes.h
  std::vector<RegimeCell> cells;
};

struct RegimeOptions {
  // Take rows of one process for independent: else cells of one process have a mean without error,
  // and their arms are told apart only beyond what processes differ by.
  bool allow_single_process = false;
};

// bad_input: a parity record without a verdict.
Result<Regime> condense(const Bundle& bundle, const RegimeOptions& options);

}  // namespace assay
