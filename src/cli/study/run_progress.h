// The progress line of a run: unit, repetition, who leads, rows lost, cell, and the time left.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/process/progress.h"
#include "harness/context.h"
#include "study/study.h"
#include "study/time_left.h"

namespace assay::cli {

class RunProgress final : public RunObserver {
 public:
  // `weight_bytes` [model], 0: unknown. The references outlive this.
  RunProgress(const Study& study, const Plan& plan, std::vector<uint64_t> weight_bytes,
              Clock& clock, Progress& progress);

  void on_start(int64_t rows_done, int64_t rows_planned,
                const std::vector<const Unit*>& units_left) override;
  void on_unit(const Cell& cell, const Unit& unit) override;
  void on_row(const Row& row) override;
  void on_dropped(const Cell& cell, const Unit& unit) override;
  void on_warning(const std::string& text) override;
  void on_note(const std::string& text) override;

 private:
  // Seconds of one repetition on an assumed machine: only ratios between cells are used.
  double cost(const Cell& cell) const;
  void show(int64_t repetition);
  // "compiled leads, 0.81 of eager": by the means of the condition's warm rows in this sitting,
  // among the arms that lost none of it. Empty: fewer than two of them have any.
  std::string leader(const Cell& cell) const;

  const Study& study_;
  const Plan& plan_;
  std::vector<uint64_t> weight_bytes_;
  Clock& clock_;
  Progress& progress_;
  ProgressState state_;
  const Cell* cell_ = nullptr;
  const Unit* unit_ = nullptr;
  TimeLeft left_;
  int64_t last_ns_ = 0;    // of the row before, or of the start
  bool starting_ = false;  // the row to come is the first of its cell in a process
  int64_t lost_ = 0;       // rows
  struct Mean {
    double latency_ms = 0;  // sum
    int64_t rows = 0;
    double of_row() const { return latency_ms / static_cast<double>(rows); }
  };
  using ArmOn = std::pair<size_t, size_t>;  // condition and arm
  std::map<ArmOn, Mean> means_;
  std::set<ArmOn> losers_;  // they lost rows
};

}  // namespace assay::cli
