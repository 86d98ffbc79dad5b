// Checks the times at which things happened, and the counts at the end.
#include <algorithm>
#include <map>

#include "artifact/manifest.h"
#include "base/clock.h"
#include "base/records/lenient_json.h"
#include "base/text/text.h"
#include "crosscheck/checks.h"

namespace assay::crosscheck {
namespace {

// A wall clock that is kept in time steps back by less than this while a run goes on.
constexpr int64_t kClockSteps_ns = 1'000'000'000;

// The text and the nanoseconds of one moment.
void check_moment(const std::string& object, const std::string& name, const Json& holder,
                  Problems& problems) {
  const auto ns = whole_member(holder, name + "_ns");
  const std::string text = text_member(holder, name);
  if (!ns || text.empty()) return;
  problems.hold(object, fmt::format("{} of {}_ns", name, name), format_utc(*ns), text);
}

// Start of the sitting in which the bundle's row of this place was measured.
int64_t sitting_start_ns(const Bundle& bundle, int64_t place) {
  int64_t start = 0;
  for (const Sitting& sitting : bundle.sittings) {
    if (sitting.rows_before <= place) start = sitting.started_at_ns;
  }
  return start;
}

// Within each cell: a command prints several samples at once, which cells then show in turn.
void check_rows_run_forward(const Checked& checked, const CellRows& cell, Problems& problems) {
  const Bundle& bundle = checked.bundle;
  const auto end = whole_member(member(bundle.manifest, "completion"), "finished_at_ns");
  int64_t before = 0;
  for (const Row* row : cell.rows) {
    const int64_t started = row->started_at_ns;
    if (started == 0) continue;
    before = std::max(before, sitting_start_ns(bundle, row - bundle.rows.data()));
    if (started < before - kClockSteps_ns) {
      problems.add(row_object(*row),
                   fmt::format("expected a start from {} on, when the cell's row before it or its "
                               "sitting began, found {}",
                               before, started));
    } else if (end && started > *end + kClockSteps_ns) {
      problems.add(
          row_object(*row),
          fmt::format("expected a start before the run's end at {}, found {}", *end, started));
    } else {
      before = std::max(before, started);
    }
  }
}

void check_counts(const Bundle& bundle, Problems& problems) {
  const Json& said = member(member(bundle.manifest, "completion"), "rows_by_status");
  if (!said.is_object()) return;
  std::map<RowStatus, int64_t> rows;
  for (const Row& row : bundle.rows) ++rows[row.status];
  const Json found = status_counts_to_json(rows);
  if (found == said) return;
  problems.add(kManifestName,
               fmt::format("expected completion.rows_by_status {} of the rows, found {}",
                           to_json_line(found), quoted_excerpt(to_json_line(said))));
}

}  // namespace

void check_course(const Checked& checked, Problems& problems) {
  const Bundle& bundle = checked.bundle;
  check_counts(bundle, problems);
  check_moment(kManifestName, "started_at", bundle.manifest, problems);
  check_moment(kManifestName, "finished_at", member(bundle.manifest, "completion"), problems);
  // Other tools' files are put behind one another as they are named.
  if (checked.imported) return;
  for (const CellRows& cell : checked.cells) check_rows_run_forward(checked, cell, problems);
}

}  // namespace assay::crosscheck
