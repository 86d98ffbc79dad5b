// Findings that pooling would have hidden: models that only one arm has, and pooled figures whose
// sign isn't that of the strata.
#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/named/named.h"
#include "base/text/text.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

std::vector<const Group*> groups_of(const Samples& samples, Phase phase, size_t arm) {
  std::vector<const Group*> groups;
  for (const Group& group : samples.groups) {
    if (samples.strata[group.stratum].phase == phase && group.arm == arm && !group.warm.empty()) {
      groups.push_back(&group);
    }
  }
  return groups;
}

std::set<std::string> models_of(const Samples& samples, const std::vector<const Group*>& groups) {
  std::set<std::string> models;
  for (const Group* group : groups) models.insert(samples.strata[group->stratum].model);
  return models;
}

std::string joined(const std::set<std::string>& names) {
  return join(std::vector<std::string>(names.begin(), names.end()), ", ");
}

Finding of_phase(std::string kind, Phase phase, const std::string& arm) {
  Finding finding;
  finding.kind = std::move(kind);
  finding.severity = Severity::kWarning;
  finding.phase = phase;
  finding.arm = arm;
  return finding;
}

void add_cells_of(const Samples& samples, const std::vector<const Group*>& groups,
                  const std::set<std::string>& models, Finding& finding) {
  for (const Group* group : groups) {
    if (models.contains(samples.strata[group->stratum].model)) add_rows(finding, group->warm);
  }
}

void find_unpaired(const Samples& samples, Phase phase, size_t arm,
                   std::vector<Finding>& findings) {
  const auto mine = groups_of(samples, phase, arm);
  const auto base = groups_of(samples, phase, 0);
  if (mine.empty() || base.empty()) return;
  const auto models = models_of(samples, mine);
  const auto base_models = models_of(samples, base);
  std::set<std::string> only_mine;
  std::set<std::string> only_base;
  std::ranges::set_difference(models, base_models, std::inserter(only_mine, only_mine.end()));
  std::ranges::set_difference(base_models, models, std::inserter(only_base, only_base.end()));
  if (only_mine.empty() && only_base.empty()) return;
  Finding finding = of_phase("unpaired_models", phase, samples.arms[arm]);
  std::vector<std::string> parts;
  if (!only_mine.empty()) {
    parts.push_back(fmt::format("{} only on this arm", joined(only_mine)));
  }
  if (!only_base.empty()) {
    parts.push_back(fmt::format("{} only on {}", joined(only_base), samples.arms[0]));
  }
  finding.size = static_cast<double>(only_mine.size() + only_base.size());
  finding.text = fmt::format(
      "{}: a pooled figure would compare models, so these are left out of the contrasts",
      join(parts, ", "));
  add_cells_of(samples, mine, only_mine, finding);
  add_cells_of(samples, base, only_base, finding);
  findings.push_back(std::move(finding));
}

double pooled_mean(const std::vector<const Group*>& groups) {
  double sum = 0;
  double rows = 0;
  for (const Group* group : groups) {
    for (const double ms : group->warm_ms) sum += ms;
    rows += static_cast<double>(group->warm_ms.size());
  }
  return sum / rows;
}

// The groups of unequal weight: strata that one arm lacks, or has fewer rows of; all where there is
// none, because then long strata outweigh short ones.
void add_uneven(const std::vector<const Group*>& mine, const std::vector<const Group*>& base,
                Finding& finding) {
  const auto rows_on = [](const std::vector<const Group*>& groups, size_t stratum) -> size_t {
    const auto at = std::ranges::find(groups, stratum, &Group::stratum);
    return at == groups.end() ? 0 : (*at)->warm.size();
  };
  for (const bool all : {false, true}) {
    for (const auto* groups : {&mine, &base}) {
      for (const Group* group : *groups) {
        const size_t stratum = group->stratum;
        if (all || rows_on(mine, stratum) != rows_on(base, stratum)) {
          add_rows(finding, group->warm);
        }
      }
    }
    if (!finding.rows.empty()) return;
  }
}

void find_reversed(const Samples& samples, const Contrast& combined, const AnalysisOptions& options,
                   std::vector<Finding>& findings) {
  const size_t arm = samples.place_of(combined.arm);
  const auto mine = groups_of(samples, combined.phase, arm);
  const auto base = groups_of(samples, combined.phase, 0);
  if (mine.empty() || base.empty() || combined.strata < 2) return;
  const double pooled = pooled_mean(mine) / pooled_mean(base) - 1;
  const double strata = combined.ratio - 1;
  if (pooled * strata >= 0 || std::abs(pooled) < options.notable ||
      std::abs(strata) < options.notable) {
    return;
  }
  Finding finding = of_phase("simpson", combined.phase, combined.arm);
  finding.size = std::abs(pooled) + std::abs(strata);
  finding.text = fmt::format(
      "the pooled mean differs by {:+.1f} % from {}'s ({} against {} ms), but the {} "
      "strata combined by {:+.1f} %: the pools weigh strata differently; read the strata",
      pooled * 100, samples.arms[0], format_significant(pooled_mean(mine)),
      format_significant(pooled_mean(base)), combined.strata, strata * 100);
  add_uneven(mine, base, finding);
  findings.push_back(std::move(finding));
}

}  // namespace

void find_unpaired_models(const Samples& samples, std::vector<Finding>& findings) {
  for (const Phase phase : kPhases) {
    for (size_t arm = 1; arm < samples.arms.size(); ++arm) {
      find_unpaired(samples, phase, arm, findings);
    }
  }
}

void find_reversals(const Samples& samples, const std::vector<Contrast>& combined,
                    const AnalysisOptions& options, std::vector<Finding>& findings) {
  for (const Contrast& contrast : combined) find_reversed(samples, contrast, options, findings);
}

}  // namespace assay
