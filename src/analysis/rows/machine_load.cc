// Load and steal of a run.
#include "analysis/rows/machine_load.h"

#include <algorithm>
#include <cmath>

#include "base/records/lenient_json.h"
#include "base/text/counts.h"
#include "base/text/text.h"

namespace assay {
namespace {

constexpr double kLoadPerCpu = 0.25;
constexpr double kSteal = 0.01;

std::optional<double> larger(std::optional<double> a, std::optional<double> b) {
  return a && b ? std::max(*a, *b) : a ? a : b;
}

// Mean and maximum of one member of the units' notes.
class OfUnits {
 public:
  OfUnits(const std::vector<Json>& notes, const char* key) {
    for (const Json& note : notes) {
      const auto value = number_member(note, key);
      if (!value) continue;
      worst_ = larger(worst_, value);
      sum_ += *value;
      ++count_;
    }
  }
  std::optional<double> mean() const {
    return count_ > 0 ? std::optional(sum_ / static_cast<double>(count_)) : std::nullopt;
  }
  std::optional<double> worst() const { return worst_; }

 private:
  std::optional<double> worst_;
  double sum_ = 0;
  int64_t count_ = 0;
};

std::optional<double> usable_cpus(const Json& cpu) {
  const Json allowed = member(cpu, "affinity");
  const auto quota = number_member(cpu, "quota_cpus");
  if (!allowed.is_array() || allowed.empty()) return quota;
  const auto count = static_cast<double>(allowed.size());
  return quota ? std::min(count, *quota) : count;
}

std::string share_text(double share) {
  return fmt::format("{:.1f} %", share * 100);
}

std::string load_number(double load) {
  return fmt::format("{:.2f}", load);
}

// "load average 0.40 at the start, 1.10 in the mean of its units, 1.31 at most".
std::string figures_text(const std::string& what, const std::string& first_is,
                         std::optional<double> first, std::optional<double> mean,
                         std::optional<double> worst, std::string (*text)(double)) {
  std::vector<std::string> parts;
  if (first) parts.push_back(fmt::format("{} {}", text(*first), first_is));
  if (mean) parts.push_back(text(*mean) + " in the mean of its units");
  if (worst) parts.push_back(text(*worst) + " at most");
  return parts.empty() ? "" : fmt::format("{} {}", what, join(parts, ", "));
}

}  // namespace

MachineLoad machine_load(const Bundle& bundle) {
  MachineLoad load;
  const auto add = [&](const Json& environment) {
    const Json host = member(environment, "host");
    const Json system = member(host, "system");
    load.cpus = larger(load.cpus, usable_cpus(member(host, "cpu")));
    load.start_load = larger(load.start_load, number_member(system, "load_1min"));
    load.boot_steal = larger(load.boot_steal, number_member(system, "steal_share"));
  };
  add(bundle.environment);
  for (const Sitting& sitting : bundle.sittings) add(sitting.environment);
  const OfUnits loads(bundle.unit_notes, "worst_load_1min");
  const OfUnits steals(bundle.unit_notes, "worst_steal_share");
  load.mean_load = loads.mean();
  load.worst_load = loads.worst();
  load.mean_steal = steals.mean();
  load.worst_steal = steals.worst();
  return load;
}

std::string load_text(const MachineLoad& load) {
  std::vector<std::string> parts;
  for (const std::string& part : {figures_text("load average", "at the start", load.start_load,
                                               load.mean_load, load.worst_load, load_number),
                                  figures_text("steal", "since boot", load.boot_steal,
                                               load.mean_steal, load.worst_steal, share_text)}) {
    if (!part.empty()) parts.push_back(part);
  }
  if (!parts.empty() && load.cpus) parts.push_back(counted_about(*load.cpus, "usable CPU"));
  return join(parts, "; ");
}

std::vector<std::string> load_differences(const MachineLoad& base, const MachineLoad& cand) {
  std::vector<std::string> all;
  const auto add = [&](const std::string& what, std::optional<double> a, std::optional<double> b,
                       double most, std::string (*text)(double)) {
    if (!a || !b || !(std::abs(*a - *b) > most)) return;
    all.push_back(fmt::format("{} {} in the base, {} in the candidate", what, text(*a), text(*b)));
  };
  const double cpus = std::max(1.0, larger(base.cpus, cand.cpus).value_or(1));
  const bool loads = base.mean_load && cand.mean_load;
  add(loads ? "mean load average" : "load average at the start",
      loads ? base.mean_load : base.start_load, loads ? cand.mean_load : cand.start_load,
      kLoadPerCpu * cpus, load_number);
  const bool steals = base.mean_steal && cand.mean_steal;
  add(steals ? "mean steal" : "steal since boot", steals ? base.mean_steal : base.boot_steal,
      steals ? cand.mean_steal : cand.boot_steal, kSteal, share_text);
  return all;
}

}  // namespace assay
