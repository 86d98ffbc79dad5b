// Progress of a long run on stderr: one rewritten line on a terminal, a plain line now and then
// elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace assay {

// Progress of a run.
struct ProgressState {
  int64_t done = 0;  // steps of `total`
  int64_t total = 0;
  std::string what;        // "eager leads  unit 12/90  repetition 3/5": the most important first
  std::string alert = {};  // "3 rows lost", before `what`; may be empty
  // Seconds left, if the caller has a better estimate than the share that is done.
  std::optional<double> left_s = {};
};

// Rules for showing a line.
struct ProgressStyle {
  bool rewrite = false;    // a terminal: each line replaces the one before
  size_t columns = 80;     // longest line
  double interval_s = 30;  // between lines; on a terminal a tenth of a second is right
  bool colours = false;
};

// The style for stderr: a terminal of so many columns, or a file or pipe.
ProgressStyle stderr_style();

// One line for the state: "[#####-----]  50 %  alert  what  1 min 20 s left". Never wider than
// `columns`. Parts without room go in this order: those of `what` except the first (two spaces part
// them), the bar, the end of the first part, the alert's. Colours take no column.
std::string progress_line(const ProgressState& state, std::optional<double> left_s, size_t columns,
                          bool colours = false);

// Seconds left if the steps left take as long as those of this run so far; absent before the first
// is done. `first_done`: steps that a former run had done.
std::optional<double> estimate_left_s(const ProgressState& state, int64_t first_done,
                                      double elapsed_s);

// Writes a line whenever the interval has passed; the first and last always. The clock and the sink
// must outlive it. Use from one thread.
class Progress {
 public:
  using Sink = std::function<void(std::string_view)>;
  Progress(ProgressStyle style, Clock& clock, Sink sink);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();  // clear()

  void update(const ProgressState& state);
  // Wipes the terminal's line, so that other text can be written; the next update shows it again.
  void clear();

 private:
  ProgressStyle style_;
  Clock& clock_;
  Sink sink_;
  int64_t started_ns_ = 0;
  std::optional<int64_t> first_done_;
  std::optional<int64_t> shown_ns_;
  bool line_stands_ = false;
};

}  // namespace assay
