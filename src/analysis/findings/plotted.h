// Rows and traces as a report draws them: thinned to the points that can be seen, and no part of
// findings.json.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// The mark of a row beside its latency; of several marks the last. A cold row that compiles is
// cold.
enum class RowMark { kWarm, kCold, kThrottled, kRecompiled, kLost };
std::string_view row_mark_name(RowMark mark);  // warm | cold | throttled | recompiled | lost

struct PlottedRow {
  size_t cell = 0;  // in PlottedGroup::cells
  int64_t repetition = 0;
  int64_t place = 0;                 // order_index
  int64_t rank = 0;                  // among the rows of its stratum, of all arms, by place
  std::optional<double> latency_ms;  // absent: lost
  RowMark mark = RowMark::kWarm;
  std::string error_class;  // of lost ones
};

struct EcdfStep {
  double ms = 0;
  double share = 0;  // of the warm ok rows that took no longer
};

// Rows of one arm on one stratum.
struct PlottedGroup {
  size_t stratum = 0;
  std::string arm;
  std::vector<std::string> cells;  // ids; one, unless somebody merged bundles
  int64_t rows = 0;                // attempted: those that `order` was thinned from
  int64_t warm = 0;                // those that `ecdf` was thinned from
  std::vector<PlottedRow> order;   // by place
  std::vector<EcdfStep> ecdf;
  std::optional<PlottedRow> slowest;  // of the warm rows
  std::map<RowMark, int64_t> marked;  // of all rows, warm ones apart
};

// One kind of work in a trace.
struct TimelineLane {
  std::string name;  // "kernels", "copies", "calls", "compiled graphs", "operators"
  struct Span {
    double begin_ms = 0;
    double end_ms = 0;
    double busy_ms = 0;  // of it, the time in which some event ran; less if it has short waits
    std::string name;    // of the longest event in it
    int64_t events = 1;  // that begin in it; 0: one of the span before it goes on
  };
  std::vector<Span> spans;  // ascending and apart
  double busy_ms = 0;       // time in which some event ran, exact
  int64_t events = 0;
};

// Trace of one repetition of a cell.
struct Timeline {
  size_t stratum = 0;
  std::string arm;
  std::string cell;
  double length_ms = 0;
  std::vector<TimelineLane> lanes;
};

// One run under load over its time, in equal slices.
struct LoadTimeline {
  size_t stratum = 0;
  std::string arm;
  int64_t run = 0;
  double slice_s = 0;
  double window_begin_s = 0;  // of the requests that count
  double window_end_s = 0;
  std::vector<double> in_flight;     // mean of each slice
  std::vector<double> tokens_per_s;  // that came in each
  std::vector<int64_t> failed;       // requests that failed in each
};

struct PlottedRows {
  std::vector<PlottedGroup> groups;  // by stratum, then arm
  std::vector<Timeline> timelines;
  std::vector<LoadTimeline> load;  // the first run of each arm at each point
};

}  // namespace assay
