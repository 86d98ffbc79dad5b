#include "analysis/plot_rows.h"

#include "analysis/plotted/load_timelines.h"
#include "analysis/plotted/plotted_rows.h"
#include "analysis/plotted/timelines.h"

namespace assay {

PlottedRows plot_rows(const Bundle& bundle, const Samples& samples) {
  PlottedRows plotted;
  plotted.groups = plotted_groups(samples);
  plotted.timelines = plotted_timelines(bundle, samples);
  plotted.load = load_timelines(bundle, samples);
  return plotted;
}

}  // namespace assay
