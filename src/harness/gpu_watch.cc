// Reads the driver's lists, and the kernel's for who started whom.
#include "harness/gpu_watch.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/process/process_parent.h"

namespace assay {
namespace {

// Longer than a window of the driver's (200 ms on an H200).
constexpr int64_t kBefore_us = 250'000;
constexpr int kMostGenerations = 64;

}  // namespace

GpuWatch::Kin GpuWatch::kin_of(int64_t pid) const {
  if (own_.contains(pid)) return Kin::kOwn;
  int64_t at = pid;
  for (int generation = 0; generation < kMostGenerations && at > 0; ++generation) {
    if (at == self_) return Kin::kOwn;
    const auto stat = files_.read(fmt::format("/proc/{}/stat", at));
    const auto parent = stat ? parent_in_stat(*stat) : std::nullopt;
    if (!parent) return at == pid ? Kin::kGone : Kin::kOther;
    at = *parent;
  }
  return Kin::kOther;
}

void GpuWatch::begin(const std::string& uuid, int64_t wall_ns) {
  uuid_ = uuid;
  since_us_ = wall_ns / 1000 - kBefore_us;
  others_.clear();
  vanished_.clear();
  look();
}

void GpuWatch::look() {
  const auto note = [](std::map<int64_t, GpuNeighbour>& all, const GpuProcess& process) {
    GpuNeighbour& one = all[process.pid];
    one.pid = process.pid;
    one.process = process.name;
    one.memory_bytes = std::max(one.memory_bytes, process.memory_bytes);
  };
  const auto listed = gpus_.processes(uuid_);
  if (!listed) return;
  std::vector<GpuProcess> gone;
  for (const GpuProcess& process : *listed) {
    switch (kin_of(process.pid)) {
      case Kin::kOwn:
        own_.insert(process.pid);
        break;
      case Kin::kOther:
        note(others_, process);
        break;
      case Kin::kGone:
        gone.push_back(process);
        break;
    }
  }
  if (gone.empty()) return;
  // One that has ended since isn't listed again.
  const auto again = gpus_.processes(uuid_);
  if (!again) return;
  for (const GpuProcess& process : gone) {
    if (std::ranges::find(*again, process.pid, &GpuProcess::pid) != again->end()) {
      note(vanished_, process);
    }
  }
}

std::vector<GpuNeighbour> GpuWatch::end() {
  look();
  if (!own_.empty()) others_.merge(vanished_);
  std::vector<GpuNeighbour> all;
  if (others_.empty()) return all;
  const auto uses = gpus_.uses_since(uuid_, since_us_);
  std::set<int64_t> windows;
  for (const GpuUse& use : uses.value_or(std::vector<GpuUse>())) {
    windows.insert(use.at_us);
    if (const auto at = others_.find(use.pid); at != others_.end()) at->second.share += use.share;
  }
  for (auto& [pid, one] : others_) {
    if (!windows.empty()) one.share /= static_cast<double>(windows.size());
    one.share = std::min(one.share, 1.0);
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace assay
