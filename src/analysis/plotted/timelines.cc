#include "analysis/plotted/timelines.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "base/gzip.h"
#include "base/lenient_json.h"

namespace assay {
namespace {

constexpr size_t kMostStrata = 4;  // of a phase
constexpr uint64_t kMostBytes = uint64_t{128} << 20;
// Events nearer to one another than this share of the whole are one bar.
constexpr double kResolution = 1.0 / 250;
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

// As the torch worker counts them: what a compiled graph ran has a lane of its own, and of
// operators the innermost do the work. Marks of the runtime have names without a namespace.
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

TimelineLane lane(const char* name, std::vector<Event> events, const Event& region) {
  std::ranges::sort(events, {}, &Event::begin_us);
  const double apart = (region.end_us - region.begin_us) * kResolution;
  const auto ms = [&](double us) { return (us - region.begin_us) / 1e3; };
  TimelineLane out{name, {}};
  double end_us = 0;
  double longest = 0;  // of the last bar's events
  for (const Event& event : events) {
    const double length = event.end_us - event.begin_us;
    if (out.spans.empty() || event.begin_us > end_us + apart) {
      out.spans.push_back({ms(event.begin_us), ms(event.end_us), event.name, 1});
      end_us = event.end_us;
      longest = length;
      continue;
    }
    TimelineLane::Span& last = out.spans.back();
    end_us = std::max(end_us, event.end_us);
    last.end_ms = ms(end_us);
    ++last.events;
    if (length > longest) {
      longest = length;
      last.name = event.name;
    }
  }
  return out;
}

// What viewers show of an event beside its time is most of a trace, and isn't needed.
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
  return timelines;
}

}  // namespace assay
