#include "analysis/compare/demands.h"

#include <algorithm>

#include "base/records/enum_words.h"
#include "base/text/text.h"

namespace assay {
namespace {

std::string name_of(const Comparison& of, const ComparedCell& cell) {
  return fmt::format("{} on {}", cell.arm,
                     cell.stratum ? stratum_text(of.strata[*cell.stratum])
                                  : fmt::format("{}, all strata", phase_name(cell.phase)));
}

// "the candidate", if every row that one of the sides of one run attempted is lost; empty:
// neither's.
std::string side_without_rows(const Comparison& of) {
  for (const auto& [name, side] :
       {std::pair{"the base", &ComparedCrashes::base}, {"the candidate", &ComparedCrashes::cand}}) {
    int64_t attempted = 0;
    int64_t lost = 0;
    for (const ComparedCrashes& crashes : of.crashes) {
      attempted += (crashes.*side).attempted;
      lost += (crashes.*side).lost;
    }
    if (attempted > 0 && lost == attempted) return name;
  }
  return "";
}

std::string percent_text(double share) {
  return format_significant(share * 100, 3) + " %";
}

}  // namespace

std::string_view compare_outcome_name(CompareOutcome outcome) {
  return word_of(outcome, {"passes", "nothing_judged", "fails"});
}

std::vector<std::string> unmet_demands(const Comparison& of, const CompareDemands& demands) {
  std::vector<std::string> all = of.failures(demands.regression);
  if (const std::string side = side_without_rows(of); of.in_one_run && !side.empty()) {
    all.push_back(fmt::format("lost: every row of {} was lost", side));
  }
  for (const ComparedCell& cell : of.cells) {
    const bool decided = cell.verdict && cell.verdict != Verdict::kInconclusive;
    if (demands.undecided && !decided) {
      all.push_back(fmt::format("undecided: {}", name_of(of, cell)));
    }
    if (!demands.resolution) continue;
    if (!cell.minimum_detectable) {
      all.push_back(fmt::format("resolution: {}: its rows show no smallest difference, expected {}",
                                name_of(of, cell), percent_text(*demands.resolution)));
    } else if (*cell.minimum_detectable > *demands.resolution) {
      all.push_back(fmt::format("resolution: {}: its rows show {} or more, expected {}",
                                name_of(of, cell), percent_text(*cell.minimum_detectable),
                                percent_text(*demands.resolution)));
    }
  }
  return all;
}

CompareOutcome compare_outcome(const Comparison& of, const CompareDemands& demands) {
  if (!unmet_demands(of, demands).empty()) return CompareOutcome::kFails;
  const bool judged = std::ranges::any_of(
      of.cells, [](const ComparedCell& cell) { return cell.verdict.has_value(); });
  return judged ? CompareOutcome::kPasses : CompareOutcome::kNothingJudged;
}

}  // namespace assay
