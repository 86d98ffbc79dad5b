// Traces of cells as lanes of work.
#pragma once

#include <optional>

#include "analysis/findings/plotted.h"
#include "analysis/rows/samples.h"

namespace assay {

// Timelines of the first strata of each phase that have traces. A trace that can't be read is left
// out: a report says of profiles that they are missing.
std::vector<Timeline> plotted_timelines(const Bundle& bundle, const Samples& samples);

// Timeline of a Chrome trace: the events within the timed region, or in all of the trace if it
// marks none. Absent if there are none. A wait of at least 1/400 of it, which a page draws as a
// pixel, stands between two spans. Shorter ones are within a span, which is cut into pieces of that
// length by the share of them that is busy; it is to be drawn as high as that share.
std::optional<Timeline> timeline_of(const Json& trace);

// The same for a page on which a pixel is so long, longer than before: beside a longer trace.
void coarsen(Timeline& timeline, double pixel_ms);

}  // namespace assay
