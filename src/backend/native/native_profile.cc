// The region ends with its last kernel's last instructions at most still to run, so that all it
// started began in it.
#include "backend/native/native_profile.h"

#include <algorithm>
#include <map>
#include <set>

namespace assay {
namespace {

using engine::cuda::Activity;

constexpr size_t kTop = 10;

std::vector<Activity> inside(const std::vector<Activity>& activities, int64_t begin_ns,
                             int64_t end_ns) {
  std::vector<Activity> found;
  for (const Activity& one : activities) {
    if (one.start_ns >= begin_ns && one.start_ns <= end_ns) found.push_back(one);
  }
  std::ranges::sort(found, {}, &Activity::start_ns);
  return found;
}

bool waits(const std::string& call) {
  for (const char* name :
       {"cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize", "cuDeviceSynchronize"}) {
    if (call.starts_with(name)) return true;
  }
  return false;
}

// Busy time and gaps of the GPU's work, which is in the order of its start.
struct Busy {
  int64_t busy_ns = 0, gap_ns = 0;
};
Busy busy_of(const std::vector<Activity>& work) {
  Busy busy;
  if (work.empty()) return busy;
  int64_t reached = work.front().start_ns;
  for (const Activity& one : work) {
    busy.gap_ns += std::max<int64_t>(0, one.start_ns - reached);
    busy.busy_ns += std::max<int64_t>(0, one.end_ns - std::max(one.start_ns, reached));
    reached = std::max(reached, one.end_ns);
  }
  return busy;
}

struct Total {
  int64_t calls = 0, ns = 0;
};

Json top_of(const std::map<std::string, Total>& kernels) {
  std::vector<std::pair<std::string, Total>> order(kernels.begin(), kernels.end());
  std::ranges::stable_sort(order, std::greater<>(), [](const auto& one) { return one.second.ns; });
  Json top = Json::array();
  for (size_t i = 0; i < std::min(kTop, order.size()); ++i) {
    const auto& [name, total] = order[i];
    top.push_back({{"name", name}, {"calls", total.calls}, {"total_ns", total.ns}});
  }
  return top;
}

const char* category(Activity::Kind kind) {
  switch (kind) {
    case Activity::Kind::kKernel:
      return "kernel";
    case Activity::Kind::kCopy:
      return "gpu_memcpy";
    case Activity::Kind::kFill:
      return "gpu_memset";
    case Activity::Kind::kCall:
      break;
  }
  return "cuda_driver";
}

}  // namespace

Json profile_summary(const std::vector<Activity>& activities, int64_t begin_ns, int64_t end_ns) {
  std::vector<Activity> work;
  std::map<std::string, Total> kernels;
  int64_t launched = 0, copies = 0, launch_calls = 0, synchronizations = 0;
  for (const Activity& one : inside(activities, begin_ns, end_ns)) {
    if (one.kind == Activity::Kind::kCall) {
      launch_calls += one.name.find("Launch") != std::string::npos;
      synchronizations += waits(one.name);
      continue;
    }
    work.push_back(one);
    copies += one.kind == Activity::Kind::kCopy;
    if (one.kind != Activity::Kind::kKernel) continue;
    ++launched;
    Total& total = kernels[one.name];
    ++total.calls;
    total.ns += one.end_ns - one.start_ns;
  }
  const Busy busy = busy_of(work);
  return {{"device", "cuda"},
          {"counts", "kernels on the device"},
          {"kernels_launched", launched},
          {"distinct_kernels", kernels.size()},
          {"gpu_busy_ns", busy.busy_ns},
          {"gpu_gap_ns", busy.gap_ns},
          {"copies", copies},
          {"synchronizations", synchronizations},
          {"launch_calls", launch_calls},
          {"top", top_of(kernels)}};
}

std::string chrome_trace(const std::vector<Activity>& activities, int64_t begin_ns,
                         int64_t end_ns) {
  const auto us = [](int64_t ns) { return static_cast<double>(ns) * 1e-3; };
  Json events = Json::array();
  for (const Activity& one : inside(activities, begin_ns, end_ns)) {
    const bool call = one.kind == Activity::Kind::kCall;
    events.push_back({{"ph", "X"},
                      {"cat", category(one.kind)},
                      {"name", one.name},
                      {"pid", call ? "host" : "gpu"},
                      {"tid", 0},
                      {"ts", us(one.start_ns - begin_ns)},
                      {"dur", us(one.end_ns - one.start_ns)}});
  }
  return to_json_text({{"traceEvents", std::move(events)}});
}

}  // namespace assay
