// Finds slow calls that one arm of a phase has and the other hasn't.
#include <algorithm>
#include <map>
#include <utility>

#include "analysis/contrast/unseen_tails.h"
#include "analysis/findings/tails.h"
#include "analysis/named/named.h"
#include "base/text/counts.h"

namespace assay {
namespace {

// Contrasts of one arm with the baseline in one phase that allow for the tail of one of them.
struct OneSided {
  std::string slow_arm;
  std::string other;
  int64_t strata = 0;
  double factor = 1;
};

void report_one_sided(const Samples& samples, Phase phase, const OneSided& of,
                      std::vector<Finding>& findings) {
  Finding finding = about_phase("one_sided_tail", Severity::kWarning, phase);
  finding.arm = of.slow_arm;
  finding.size = of.factor - 1;
  int64_t rows = 0;
  int64_t slow = 0;
  for (const Group& group : samples.groups) {
    if (samples.strata[group.stratum].phase != phase || samples.arms[group.arm] != of.slow_arm) {
      continue;
    }
    const SlowCalls calls = slow_calls_of(group);
    rows += calls.rows;
    slow += std::ssize(calls.slow);
    add_rows(finding, calls.slow);
  }
  finding.text = fmt::format(
      "{} of {} take more than {:.0f} times their median, and none of {}'s: on {} whose rows hold "
      "none, its mean may be up to {:.0f} % too low, and the interval of the ratio and the verdict "
      "allow for that",
      slow, counted(rows, "warm row"), kSlowFactor, of.other,
      counted(of.strata, "stratum", "strata"), 100 * (of.factor - 1));
  findings.push_back(std::move(finding));
}

}  // namespace

void find_one_sided_tails(const Samples& samples, const std::vector<Contrast>& contrasts,
                          const AnalysisOptions& options, std::vector<Finding>& findings) {
  std::map<std::pair<Phase, std::string>, OneSided> all;  // by phase and arm
  for (const Contrast& contrast : contrasts) {
    if (contrast.unseen_slow_factor - 1 < options.notable) continue;
    OneSided& of = all[{contrast.phase, contrast.arm}];
    of.slow_arm = contrast.slow_arm;
    of.other = contrast.slow_arm == contrast.arm ? contrast.baseline : contrast.arm;
    of.factor = std::max(of.factor, contrast.unseen_slow_factor);
    ++of.strata;
  }
  for (const auto& [key, of] : all) report_one_sided(samples, key.first, of, findings);
}

}  // namespace assay
