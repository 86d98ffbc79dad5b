// Measured rows as a replay draws them: by cell, in resampled units, between measured lengths by
// their quantiles.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/findings/options.h"
#include "analysis/rows/samples.h"
#include "base/random.h"
#include "routing/trace.h"

namespace assay {

struct ReplayRow {
  double ms = 0;
  size_t unit = 0;
  bool compiled = false;  // carries a compilation
};

// One arm on one stratum.
struct ReplayCell {
  bool allowed = false;              // the policy, and the best possible choice, may take it
  bool serves = false;               // a simpler strategy may: lost rows at most bar it
  std::vector<ReplayRow> warm;       // of shapes that were met before
  std::vector<ReplayRow> first;      // calls that met a shape, compilation included
  std::vector<ReplayRow> fell_back;  // that ran eager
  // Units of the rows that were lost, a unit as often as it lost one.
  std::vector<size_t> lost_warm;
  std::vector<size_t> lost_cold;
};

// Number of an arm's compilations in a phase, by its rows.
enum class Specialising { kNever, kOnce, kTwice, kEachShape };

// Compilations of one arm in one phase.
struct ReplayArm {
  Specialising specialising = Specialising::kNever;
  std::optional<int64_t> limit;  // graphs after which further shapes ran eager; absent: not seen
};

// A measured stratum with its share of a request's time.
struct ReplayCorner {
  size_t stratum = 0;
  double weight = 1;
};
// A request's place among the measured strata: one, or two or four around it.
struct ReplayPlace {
  std::vector<ReplayCorner> corners;  // empty: it is outside
  std::string outside;                // why
};

class ReplayData {
 public:
  // Data of the strata of `model`. Units, which are resampled whole, are worker processes if some
  // cell has several, else blocks if there are several, else repetitions; only those with a lost or
  // timed row count. A cell is allowed if reason_barred() says nothing, and serves also if
  // barred_by_losses_alone().
  ReplayData(const Samples& samples, const std::string& model, const AnalysisOptions& options);

  // prefill and kv_decode where both were measured, else e2e_kv, else the one that was.
  const std::vector<Phase>& phases() const { return phases_; }
  size_t units() const { return units_; }
  size_t arms() const { return arms_; }
  const ReplayCell& cell(size_t stratum, size_t arm) const { return cells_[stratum * arms_ + arm]; }
  const ReplayArm& arm(Phase phase, size_t arm) const { return about_.at({phase, arm}); }
  bool allowed(const ReplayPlace& place, size_t arm) const;
  bool serves(const ReplayPlace& place, size_t arm) const;
  // Strata of the model in that phase.
  const std::vector<size_t>& strata(Phase phase) const { return of_phase_.at(phase); }

  // Prompts between two measured lengths, and new tokens between two measured numbers, lie between
  // their strata: corners with weights linear in tokens. Batches have to be measured ones.
  ReplayPlace place(Phase phase, const TraceRequest& request) const;
  // The shortest measured length of the phase and batch that is not below the request's.
  std::optional<int64_t> bucket(Phase phase, const TraceRequest& request) const;

 private:
  struct Length {
    int64_t shortest = 0;
    int64_t longest = 0;
    size_t stratum = 0;
  };
  // The lengths, ascending, by new tokens.
  using Grid = std::map<int64_t, std::vector<Length>>;

  void add_cell(const Group& group, const AnalysisOptions& options,
                const std::function<size_t(const Row&)>& unit_of);
  void describe_arms(const Samples& samples);
  static ReplayPlace between(const std::vector<Length>& lengths, int64_t tokens);

  size_t arms_ = 0;
  size_t units_ = 0;
  std::vector<Phase> phases_;
  std::vector<ReplayCell> cells_;  // by stratum of the samples, then arm
  std::map<std::pair<Phase, size_t>, ReplayArm> about_;
  std::map<Phase, std::vector<size_t>> of_phase_;
  std::map<std::pair<Phase, int64_t>, Grid> grids_;  // by phase and batch
};

}  // namespace assay
