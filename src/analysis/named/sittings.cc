// Findings about bundles that several sittings measured: the differences, and the arms of a stratum
// that were measured in different ones.
#include <algorithm>
#include <set>

#include "analysis/named/named.h"
#include "analysis/rows/sittings.h"
#include "base/text/text.h"

namespace assay {
namespace {

constexpr size_t kFieldsShown = 12;

class Sittings {
 public:
  explicit Sittings(const Bundle& bundle)
      : bundle_(bundle), summaries_(summarize_sittings(bundle)) {
    for (size_t i = 0; i < summaries_.size(); ++i) {
      if (summaries_[i].rows > 0) measured_.insert(i);
    }
  }

  const std::set<size_t>& measured() const { return measured_; }
  const SittingSummary& at(size_t sitting) const { return summaries_[sitting]; }

  size_t of(const Row& row) const {
    const auto place = static_cast<int64_t>(&row - bundle_.rows.data());
    size_t sitting = 0;
    for (const size_t i : measured_) {
      if (summaries_[i].first_row <= place) sitting = i;
    }
    return sitting;
  }

  // Differences between the first sitting's environment and any other's; with their values if there
  // are but two.
  std::vector<EnvironmentDifference> differences(const std::set<size_t>& sittings) const {
    std::vector<EnvironmentDifference> all;
    for (const size_t sitting : sittings) {
      if (sitting == *sittings.begin()) continue;
      for (auto& one : environment_differences(bundle_.sittings[*sittings.begin()].environment,
                                               bundle_.sittings[sitting].environment)) {
        const auto same = std::ranges::find(all, one.field, &EnvironmentDifference::field);
        if (same == all.end()) {
          all.push_back(std::move(one));
        } else if (same->now != one.now) {
          same->now += ", " + one.now;
        }
      }
    }
    return all;
  }

 private:
  const Bundle& bundle_;
  std::vector<SittingSummary> summaries_;
  std::set<size_t> measured_;  // those with rows
};

std::string numbers(const std::set<size_t>& sittings) {
  std::vector<std::string> parts;
  for (const size_t sitting : sittings) parts.push_back(std::to_string(sitting + 1));
  return join(parts, "+");
}

void add_differences(const std::vector<EnvironmentDifference>& differences, Finding& finding) {
  finding.severity = differences.empty() ? Severity::kNote : Severity::kWarning;
  finding.text += differences.empty() ? "; the same machine and software, as far as it is recorded"
                                      : "; between them differ: " +
                                            difference_text(differences, kFieldsShown, true);
}

Finding about_bundle(const Sittings& sittings) {
  Finding finding;
  finding.kind = "several_sittings";
  std::vector<std::string> parts;
  for (const size_t i : sittings.measured()) {
    const SittingSummary& sitting = sittings.at(i);
    parts.push_back(fmt::format("{} ({}) {}", i + 1, sitting.started_at, sitting_rows(sitting)));
  }
  finding.text =
      "the bundle was measured in several sittings: sitting " + join(parts, ", sitting ");
  add_differences(sittings.differences(sittings.measured()), finding);
  return finding;
}

// The stratum's arms by the sittings that their timed rows are of.
std::map<std::set<size_t>, std::vector<const Group*>> by_sittings(const Samples& samples,
                                                                  size_t stratum,
                                                                  const Sittings& sittings) {
  std::map<std::set<size_t>, std::vector<const Group*>> groups;
  for (size_t g = samples.first_group[stratum]; g < samples.first_group[stratum + 1]; ++g) {
    std::set<size_t> of;
    for (const Row* row : samples.groups[g].timed) of.insert(sittings.of(*row));
    if (!of.empty()) groups[of].push_back(&samples.groups[g]);
  }
  return groups;
}

std::set<size_t> sittings_of(const std::map<std::set<size_t>, std::vector<const Group*>>& groups) {
  std::set<size_t> involved;
  for (const auto& [of, members] : groups) involved.insert(of.begin(), of.end());
  return involved;
}

}  // namespace

std::vector<bool> mixed_sittings(const Bundle& bundle, const Samples& samples) {
  std::vector<bool> mixed(samples.strata.size(), false);
  const Sittings sittings(bundle);
  if (sittings.measured().size() < 2) return mixed;
  for (size_t stratum = 0; stratum < mixed.size(); ++stratum) {
    const auto groups = by_sittings(samples, stratum, sittings);
    mixed[stratum] = groups.size() > 1 && !sittings.differences(sittings_of(groups)).empty();
  }
  return mixed;
}

void find_sittings(const Bundle& bundle, const Samples& samples, std::vector<Finding>& findings) {
  const Sittings sittings(bundle);
  if (sittings.measured().size() < 2) return;
  findings.push_back(about_bundle(sittings));
  for (size_t stratum = 0; stratum < samples.strata.size(); ++stratum) {
    const auto groups = by_sittings(samples, stratum, sittings);
    if (groups.size() < 2) continue;
    const std::set<size_t> involved = sittings_of(groups);
    Finding finding;
    finding.kind = "several_sittings";
    finding.phase = samples.strata[stratum].phase;
    finding.stratum = stratum;
    std::vector<std::string> parts;
    double later = 0;
    double rows = 0;
    for (const auto& [of, members] : groups) {
      std::vector<std::string> arms;
      for (const Group* group : members) {
        arms.push_back(samples.arms[group->arm]);
        for (const Row* row : group->timed) {
          ++rows;
          if (sittings.of(*row) == *involved.begin()) continue;
          ++later;
          add_row(finding, *row);
        }
      }
      parts.push_back(fmt::format("{} in sitting {}", join(arms, ", "), numbers(of)));
    }
    finding.size = later / rows;
    finding.text =
        "the arms were measured in different sittings, so a difference between arms may be one "
        "between sittings: " +
        join(parts, "; ");
    add_differences(sittings.differences(involved), finding);
    findings.push_back(std::move(finding));
  }
}

}  // namespace assay
