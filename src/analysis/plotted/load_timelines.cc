#include "analysis/plotted/load_timelines.h"

#include <algorithm>

#include "analysis/rows/load.h"
#include "load/load_run.h"

namespace assay {
namespace {

constexpr size_t kSlices = 60;

LoadTimeline timeline_of_run(const OfferedLoad& load, const std::vector<SentRequest>& sent) {
  LoadTimeline timeline;
  int64_t end_ns = 1;
  for (const SentRequest& request : sent) end_ns = std::max(end_ns, request.end_ns);
  timeline.slice_s = static_cast<double>(end_ns) / 1e9 / kSlices;
  timeline.in_flight = in_flight_over({0, end_ns}, sent, kSlices);
  timeline.tokens_per_s.assign(kSlices, 0);
  timeline.failed.assign(kSlices, 0);
  const auto slice_of = [&](int64_t at_ns) {
    const double place = static_cast<double>(at_ns) / 1e9 / timeline.slice_s;
    return std::min(static_cast<size_t>(std::max(place, 0.0)), kSlices - 1);
  };
  for (const SentRequest& request : sent) {
    if (!request.ok()) {
      ++timeline.failed[slice_of(request.end_ns)];
      continue;
    }
    const double each = static_cast<double>(*request.tokens) /
                        static_cast<double>(std::max<size_t>(request.token_us.size(), 1));
    for (const int64_t at_us : request.token_us)
      timeline.tokens_per_s[slice_of(request.scheduled_ns + at_us * 1000)] += each;
  }
  for (double& tokens : timeline.tokens_per_s) tokens /= timeline.slice_s;
  if (const auto window = load_window(load, sent)) {
    timeline.window_begin_s = static_cast<double>(window->begin_ns) / 1e9;
    timeline.window_end_s = static_cast<double>(window->end_ns) / 1e9;
  }
  return timeline;
}

}  // namespace

std::vector<LoadTimeline> load_timelines(const Bundle& bundle, const Samples& samples) {
  std::vector<LoadTimeline> timelines;
  if (bundle.requests.empty()) return timelines;
  const LoadOfStudy study = load_of_study(bundle);
  const auto requests = requests_by_run(bundle);
  for (const Group& group : samples.groups) {
    const auto load = study.offered.find(samples.strata[group.stratum].scenario);
    if (load == study.offered.end()) continue;
    for (const Row* row : group.rows) {
      const auto sent = requests.find({row->cell_id.str(), row->repetition});
      if (sent == requests.end() || row->cold) continue;
      LoadTimeline timeline = timeline_of_run(load->second, sent->second);
      timeline.stratum = group.stratum;
      timeline.arm = samples.arms[group.arm];
      timeline.run = row->repetition;
      timelines.push_back(std::move(timeline));
      break;
    }
  }
  return timelines;
}

}  // namespace assay
