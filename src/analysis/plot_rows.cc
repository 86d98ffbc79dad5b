#include "analysis/plot_rows.h"

#include "analysis/plotted/load_timelines.h"
#include "analysis/plotted/plotted_rows.h"
#include "analysis/plotted/timelines.h"

namespace assay {

Result<PlottedRows> plot_rows(const Bundle& bundle, const Findings& findings) {
  ASSAY_TRY(const Samples samples, group_rows(bundle, findings.study.arms));
  PlottedRows plotted;
  plotted.groups = plotted_groups(samples);
  plotted.timelines = plotted_timelines(bundle, samples);
  plotted.load = load_timelines(bundle, samples);
  return plotted;
}

}  // namespace assay
