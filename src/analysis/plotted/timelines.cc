#include "analysis/plotted/timelines.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <tuple>

#include "base/files/gzip.h"
#include "base/records/lenient_json.h"

namespace assay {
namespace {

constexpr size_t kMostStrata = 4;  // of a phase
constexpr uint64_t kMostBytes = uint64_t{128} << 20;
// A page draws a trace at most so many pixels wide.
constexpr double kPixels = 400;
// A bar is drawn so many pixels high: shares of busy time nearer than that are one.
constexpr double kLevels = 8;
// workers/torch/assay_torch/profiling.py names the region so.
constexpr const char* kRegion = "assay: timed region";

// PyTorch's name of a run of a compiled graph on the processor, whose kernels have no events of
// their own.
constexpr std::string_view kCompiledGraph = "CompiledFxGraph";

struct Event {
  double begin_us = 0;
  double end_us = 0;
  std::string name;
  std::string thread;
};

struct LaneKind {
  const char* name;
  std::array<const char*, 3> categories;  // of Chrome's events
};
constexpr size_t kKernels = 0;
constexpr size_t kGraphs = 3;
constexpr size_t kOperators = 4;
constexpr std::array<LaneKind, 5> kLanes = {{{"kernels", {"kernel", "", ""}},
                                             {"copies", {"gpu_memcpy", "gpu_memset", ""}},
                                             {"calls", {"cuda_runtime", "cuda_driver", ""}},
                                             {"compiled graphs", {"", "", ""}},
                                             {"operators", {"cpu_op", "", ""}}}};

std::optional<size_t> lane_of(const std::string& category) {
  for (size_t i = 0; i < kLanes.size(); ++i) {
    if (category.empty()) break;
    if (std::ranges::find(kLanes[i].categories, category) != kLanes[i].categories.end()) return i;
  }
  return std::nullopt;
}

std::optional<Event> event_of(const Json& json) {
  const auto begin = number_member(json, "ts");
  const auto length = number_member(json, "dur");
  if (text_member(json, "ph") != "X" || !begin || !length || *length < 0) return std::nullopt;
  return Event{*begin, *begin + *length, text_member(json, "name"),
               to_json_line(member(json, "tid"))};
}

// Parts the operators as the torch worker counts them: operators of a compiled graph have a lane of
// their own, and of the others the innermost do the work. Marks of the runtime have names without a
// namespace.
void part_operators(std::vector<Event>& operators, std::vector<Event>& graphs) {
  std::ranges::sort(operators, [](const Event& a, const Event& b) {
    return std::tie(a.thread, a.begin_us, b.end_us) < std::tie(b.thread, b.begin_us, a.end_us);
  });
  std::vector<Event> leaves;
  for (Event& event : operators) {
    if (event.name.find(kCompiledGraph) != std::string::npos) {
      graphs.push_back(std::move(event));
    } else if (event.name.find("::") != std::string::npos) {
      const bool within_last = !leaves.empty() && leaves.back().thread == event.thread &&
                               event.begin_us < leaves.back().end_us;
      if (within_last) leaves.pop_back();
      leaves.push_back(std::move(event));
    }
  }
  operators = std::move(leaves);
}

// Time in which at least one event ran, all of it or, where waits were joined before, a part.
struct Busy {
  double begin_ms = 0;
  double end_ms = 0;
  double busy_ms = 0;
};

// Events that a span may be named by.
struct Named {
  double begin_ms = 0;
  double longest_ms = 0;
  std::string_view name;
  int64_t events = 1;
};

// Times in which at least one of the events ran; the events are ascending.
std::vector<Busy> busy_times(const std::vector<Named>& events) {
  std::vector<Busy> times;
  for (const Named& event : events) {
    const double end_ms = event.begin_ms + event.longest_ms;
    if (times.empty() || event.begin_ms > times.back().end_ms) {
      times.push_back({event.begin_ms, end_ms});
    } else {
      times.back().end_ms = std::max(times.back().end_ms, end_ms);
    }
  }
  for (Busy& time : times) time.busy_ms = time.end_ms - time.begin_ms;
  return times;
}

// Busy times whose waits are too short to be seen, in columns of a pixel's width.
class Chain {
 public:
  Chain(std::span<const Busy> times, double pixel_ms)
      : times_(times), begin_ms_(times.front().begin_ms) {
    const double length = times.back().end_ms - begin_ms_;
    columns_.resize(static_cast<size_t>(std::max(1.0, std::floor(length / pixel_ms))));
    width_ms_ = length / static_cast<double>(columns_.size());
    for (const Busy& time : times) add(time);
  }

  // Neighbouring columns that would be drawn alike are one span.
  void append_spans(std::vector<TimelineLane::Span>& spans) const {
    for (size_t first = 0; first < columns_.size();) {
      size_t last = first;
      double busy = columns_[first];
      while (last + 1 < columns_.size() && level(last + 1) == level(first))
        busy += columns_[++last];
      const bool ends = last + 1 == columns_.size();
      spans.push_back({at(first), ends ? times_.back().end_ms : at(last + 1), busy, "", 0});
      first = last + 1;
    }
  }

 private:
  double at(size_t column) const { return begin_ms_ + width_ms_ * static_cast<double>(column); }

  int level(size_t column) const {
    constexpr double kSlack = 1e-6;  // of a level
    if (width_ms_ <= 0) return 0;
    return static_cast<int>(std::ceil(columns_[column] / width_ms_ * kLevels - kSlack));
  }

  void add(const Busy& time) {
    if (width_ms_ <= 0 || time.end_ms <= time.begin_ms) return;
    const double share = time.busy_ms / (time.end_ms - time.begin_ms);
    auto column = static_cast<size_t>((time.begin_ms - begin_ms_) / width_ms_);
    for (; column < columns_.size() && at(column) < time.end_ms; ++column) {
      const double end = column + 1 == columns_.size() ? time.end_ms : at(column + 1);
      columns_[column] +=
          share * std::max(0.0, std::min(time.end_ms, end) - std::max(time.begin_ms, at(column)));
    }
  }

  std::span<const Busy> times_;
  double begin_ms_;
  double width_ms_ = 0;
  std::vector<double> columns_;  // busy time
};

// Events count where they begin.
void name_spans(const std::vector<Named>& events, std::vector<TimelineLane::Span>& spans) {
  size_t at = 0;
  double longest = -1;
  for (const Named& event : events) {
    while (at + 1 < spans.size() && spans[at + 1].begin_ms <= event.begin_ms) {
      ++at;
      longest = -1;
    }
    spans[at].events += event.events;
    if (event.longest_ms <= longest) continue;
    longest = event.longest_ms;
    spans[at].name = event.name;
  }
  // One that no event begins in goes on with the event of the span before it.
  for (size_t i = 1; i < spans.size(); ++i) {
    if (spans[i].events == 0) spans[i].name = spans[i - 1].name;
  }
}

// Spans of the busy times; waits shorter than a pixel don't show.
std::vector<TimelineLane::Span> spans_of(std::span<const Busy> times,
                                         const std::vector<Named>& events, double pixel_ms) {
  std::vector<TimelineLane::Span> spans;
  for (size_t first = 0; first < times.size();) {
    size_t end = first + 1;
    while (end < times.size() && times[end].begin_ms - times[end - 1].end_ms < pixel_ms) ++end;
    Chain(times.subspan(first, end - first), pixel_ms).append_spans(spans);
    first = end;
  }
  name_spans(events, spans);
  return spans;
}

TimelineLane lane(const char* name, std::vector<Event> events, const Event& region) {
  std::ranges::sort(events, {}, &Event::begin_us);
  std::vector<Named> named;
  for (const Event& event : events) {
    const double end_us = std::min(event.end_us, region.end_us);
    named.push_back(
        {(event.begin_us - region.begin_us) / 1e3, (end_us - event.begin_us) / 1e3, event.name, 1});
  }
  const std::vector<Busy> times = busy_times(named);
  TimelineLane out;
  out.name = name;
  out.events = std::ssize(events);
  out.spans = spans_of(times, named, (region.end_us - region.begin_us) / 1e3 / kPixels);
  for (const Busy& time : times) out.busy_ms += time.busy_ms;
  return out;
}

// False for an event's arguments: viewers show them, and they are most of a trace.
bool is_wanted(int, Json::parse_event_t event, Json& parsed) {
  return event != Json::parse_event_t::key || parsed != "args";
}

std::optional<Timeline> read_timeline(const Bundle& bundle, const std::string& cell) {
  const auto packed = read_trace(bundle, cell);
  if (!packed) return std::nullopt;
  const auto text = gunzip(*packed, kMostBytes, cell);
  if (!text) return std::nullopt;
  const auto trace = parse_json(*text, cell, is_wanted);
  return trace ? timeline_of(*trace) : std::nullopt;
}

}  // namespace

std::optional<Timeline> timeline_of(const Json& trace) {
  const Json& events = member(trace, "traceEvents");
  if (!events.is_array()) return std::nullopt;
  std::array<std::vector<Event>, kLanes.size()> lanes;
  std::optional<Event> region;
  std::optional<Event> hull;
  for (const Json& json : events) {
    std::optional<Event> event = event_of(json);
    if (!event) continue;
    const std::string category = text_member(json, "cat");
    if (event->name == kRegion && category == "user_annotation") region = event;
    const auto place = lane_of(category);
    if (!place) continue;
    if (!hull) hull = event;
    hull->begin_us = std::min(hull->begin_us, event->begin_us);
    hull->end_us = std::max(hull->end_us, event->end_us);
    lanes[*place].push_back(*std::move(event));
  }
  if (!region) region = hull;
  if (!region || region->end_us <= region->begin_us) return std::nullopt;
  Timeline timeline;
  timeline.length_ms = (region->end_us - region->begin_us) / 1e3;
  const bool on_gpu = !lanes[kKernels].empty();
  if (!on_gpu) part_operators(lanes[kOperators], lanes[kGraphs]);
  for (size_t i = 0; i < lanes.size(); ++i) {
    if (on_gpu && i == kOperators) continue;
    std::erase_if(lanes[i], [&](const Event& event) {
      return event.begin_us < region->begin_us || event.begin_us > region->end_us;
    });
    if (!lanes[i].empty()) {
      timeline.lanes.push_back(lane(kLanes[i].name, std::move(lanes[i]), *region));
    }
  }
  if (timeline.lanes.empty()) return std::nullopt;
  return timeline;
}

void coarsen(Timeline& timeline, double pixel_ms) {
  for (TimelineLane& lane : timeline.lanes) {
    const std::vector<TimelineLane::Span> fine = std::move(lane.spans);
    std::vector<Busy> times;
    std::vector<Named> named;
    for (const TimelineLane::Span& span : fine) {
      times.push_back({span.begin_ms, span.end_ms, span.busy_ms});
      named.push_back({span.begin_ms, span.busy_ms, span.name, span.events});
    }
    lane.spans = spans_of(times, named, pixel_ms);
  }
}

std::vector<Timeline> plotted_timelines(const Bundle& bundle, const Samples& samples) {
  std::vector<Timeline> timelines;
  std::map<Phase, size_t> strata;
  std::optional<size_t> last;
  for (const Group& group : samples.groups) {
    if (!group.evidence || !group.evidence->profile || !group.evidence->profile->summary) continue;
    const Phase phase = samples.strata[group.stratum].phase;
    if (last != group.stratum && strata[phase] == kMostStrata) continue;
    auto timeline = read_timeline(bundle, group.rows.front()->cell_id);
    if (!timeline) continue;
    if (last != group.stratum) ++strata[phase];
    last = group.stratum;
    timeline->stratum = group.stratum;
    timeline->arm = samples.arms[group.arm];
    timeline->cell = group.rows.front()->cell_id;
    timelines.push_back(*std::move(timeline));
  }
  // Those of a stratum are drawn on one scale.
  std::map<size_t, double> longest_ms;
  for (const Timeline& one : timelines) {
    double& longest = longest_ms[one.stratum];
    longest = std::max(longest, one.length_ms);
  }
  for (Timeline& one : timelines) {
    const double longest = longest_ms[one.stratum];
    if (one.length_ms < longest) coarsen(one, longest / kPixels);
  }
  return timelines;
}

}  // namespace assay
