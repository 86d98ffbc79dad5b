// Lines of a calibration's table: how often something was found in so many trials, beside its bar.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/process/thread_pool.h"
#include "base/random.h"

namespace assay {

inline constexpr int64_t kLongTrials = 1000;

// Standard error of a share that so many trials found.
inline double standard_error(double share, double trials) {
  return std::sqrt(std::max(share * (1 - share), 1e-4) / trials);
}

class CalibrationLines {
 public:
  // Two parts of a calibration draw different numbers if their `part` differs (below 256).
  CalibrationLines(int64_t trials, uint64_t seed, uint64_t part);

  // Counts each flag that a trial sets.
  std::vector<int64_t> count(size_t flags, const std::function<void(Random, int64_t*)>& trial);

  // Bars: at least `least`, at most `most`; 0 and 1 are none. A line without a bar can't fail: only
  // long trials have it. A bar that isn't `promised` is shown with what was found and missed
  // without consequence: docs/calibration.md, "Two bundles and contrasts", says why.
  void add(std::string what, std::string truth, int64_t count, double least, double most,
           bool promised = true);

  // Prints a Markdown table. False: a promised bar is missed by more than chance explains, which is
  // so many standard errors of a rate at the bar that a table whose every bar is just met fails in
  // 5 % of seeds (Bonferroni).
  bool print() const;

  // True in long trials. Short ones needn't draw what has no bar.
  bool shows() const { return trials_ >= kLongTrials; }

  int64_t trials() const { return trials_; }

 private:
  struct Line {
    std::string what;
    std::string truth;
    double rate = 0;
    double error = 0;
    double least = 0;  // 0 and 1: there is no bar
    double most = 1;
    bool promised = true;
    bool has_bar() const { return least > 0 || most < 1; }
    bool missed(double errors, double trials) const {
      return rate < least - errors * standard_error(least, trials) ||
             rate > most + errors * standard_error(most, trials);
    }
  };

  int64_t trials_;
  uint64_t seed_;
  uint64_t stream_;
  ThreadPool pool_;
  std::vector<Line> lines_;
};

}  // namespace assay
