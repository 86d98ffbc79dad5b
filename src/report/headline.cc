#include "report/headline.h"

#include <algorithm>

#include "base/text/text.h"
#include "report/answers.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

// Rank of an answer by how much it decides.
int decided(const Answer& answer) {
  switch (answer.parts.front()->kind) {
    case Decision::Kind::kBest:
      return 3;
    case Decision::Kind::kNoDifference:
      return 2;
    case Decision::Kind::kAhead:
    case Decision::Kind::kOnlyOne:
      return 1;
    case Decision::Kind::kUndecided:
    case Decision::Kind::kVoid:
    case Decision::Kind::kNone:
      break;
  }
  return 0;
}

// The answers of one phase that have the most strata, and among these the ones that decide most.
std::vector<const Answer*> widest(const Findings& findings, const std::vector<Answer>& all,
                                  Phase phase) {
  std::vector<const Answer*> most;
  const auto rank = [](const Answer& answer) {
    return std::pair(answer.parts.size(), decided(answer));
  };
  for (const Answer& answer : all) {
    if (findings.strata[answer.parts.front()->stratum].phase != phase) continue;
    if (!most.empty() && rank(answer) < rank(*most.front())) continue;
    if (!most.empty() && rank(answer) > rank(*most.front())) most.clear();
    most.push_back(&answer);
  }
  return most;
}

// " in 3 of 4 strata"; empty where the phase has one.
std::string where(const Findings& findings, const Answer& answer) {
  const Phase phase = findings.strata[answer.parts.front()->stratum].phase;
  const auto all = std::ranges::count(findings.strata, phase, &Stratum::phase);
  return all == 1 ? "" : fmt::format(" in {} of {} strata", answer.parts.size(), all);
}

// ", at 0.62 [0.60, 0.65] of eager's time"; empty where no ratio has an interval.
std::string of_baseline(const Findings& findings, const Answer& answer) {
  RatioRange range;
  for (const Decision* part : answer.parts) {
    const Contrast* contrast = entry_of(findings.contrasts, part->stratum, part->arm);
    if (contrast != nullptr) range.add(*contrast);
  }
  if (!range.values) return "";
  return fmt::format(", at {} of {}'s time", range.text(), findings.study.baseline);
}

std::string answer_text(const Findings& findings, const Answer& answer) {
  const Decision& first = *answer.parts.front();
  const std::string place = where(findings, answer);
  switch (first.kind) {
    case Decision::Kind::kBest:
      return fmt::format("{} is the fastest arm{}{}", first.arm, place,
                         of_baseline(findings, answer));
    case Decision::Kind::kAhead:
      return fmt::format("{} is faster than the baseline{}{}, and undecided against other arms",
                         first.arm, place, of_baseline(findings, answer));
    case Decision::Kind::kNoDifference:
      return fmt::format("{} and arms equivalent to it are the fastest{}{}", first.arm, place,
                         of_baseline(findings, answer));
    case Decision::Kind::kUndecided:
      return fmt::format("it is undecided which arm is the fastest{} ({} has the lowest mean)",
                         place, first.arm);
    case Decision::Kind::kOnlyOne:
      return fmt::format("{} is the only arm to choose{}", first.arm, place);
    case Decision::Kind::kVoid:
      return fmt::format("the comparison is void{}, because {}", place, first.void_because);
    case Decision::Kind::kNone:
      break;
  }
  return fmt::format("no arm can be chosen{}", place);
}

// ", and other in as many": further arms that are the fastest in as many strata.
std::string others_text(const std::vector<const Answer*>& most) {
  if (most.front()->parts.front()->kind != Decision::Kind::kBest) return "";
  std::string text;
  for (const Answer* answer : most) {
    if (answer == most.front()) continue;
    text += fmt::format(", and {} in as many", answer->parts.front()->arm);
  }
  return text;
}

}  // namespace

std::string headline(const Findings& findings) {
  const std::vector<Answer> all = answers(findings, SameAnswer::kLeaderOfPhase);
  std::vector<std::string> parts;
  for (const Phase phase : kPhases) {
    const std::vector<const Answer*> most = widest(findings, all, phase);
    if (most.empty()) continue;
    parts.push_back(fmt::format("{}: {}{}", phase_name(phase), answer_text(findings, *most.front()),
                                others_text(most)));
  }
  int64_t lost = 0;
  for (const OutcomeCounts& outcome : findings.outcomes) {
    if (!outcome.stratum) lost += outcome.failed;
  }
  if (parts.empty()) parts.emplace_back("there are no rows to choose by");
  if (lost > 0) {
    parts.push_back(fmt::format("{} of {} {} lost", lost, counted(findings.study.rows, "row"),
                                lost == 1 ? "is" : "are"));
  }
  return join(parts, "; ") + ".";
}

}  // namespace assay
