// Strata that have one decision, as one answer, and their ratios as one range.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/findings/findings.h"

namespace assay {

// Whether a ratio's interval, about 1 and wider than tenfold, is that of too few processes or rows
// to show anything: two of them leave one degree of freedom. Sentences, figures and the screen say
// kTooFew in its place; tables and data have it.
bool shows_nothing(const stats::Interval& of_ratio);
inline constexpr std::string_view kTooFew = "[too few to tell]";

// Ratios of several strata: the hull of the values and of their intervals.
struct RatioRange {
  std::optional<stats::Interval> values;
  std::optional<stats::Interval> intervals;
  bool too_few = false;  // one of the intervals shows nothing

  // Without an interval a ratio doesn't count.
  void add(double ratio, const std::optional<stats::Interval>& interval);
  // "0.62 [0.60, 0.65]", "0.62 to 0.71 [0.60, 0.73]", "0.62 [too few to tell]"; `values` must be
  // there.
  std::string text() const;
};

// A decision's kind in the word of tables that people read: faster | equivalent | ahead |
// undecided | no rival | void | no arm.
std::string_view decision_word(Decision::Kind kind);

// Strata of one phase with one decision.
struct Answer {
  std::vector<const Decision*> parts;  // not empty, by prompt length
};

// Which strata share an answer: neighbours by prompt length, under one condition (model, new
// tokens, batch), with the same arms in question, and with or without regard to the arms that p50
// or the tail would choose; or all of a phase for which the same arm leads, equally surely or
// however surely.
enum class SameAnswer { kArmsAndAlternatives, kArms, kLeaderOfPhase, kArmOfPhase };

// By phase, condition and prompt length.
std::vector<Answer> answers(const Findings& findings, SameAnswer same);

// The leader and the arms that aren't told apart from it.
std::vector<std::string> arms_in_question(const Decision& decision);

// Strata that typical calls decide and means don't, with one arm ahead.
struct TypicalAnswer {
  std::string arm;
  size_t strata = 0;
  RatioRange range;      // to the rival that is nearest
  std::string rivals;    // "eager", or "eager and 2 others"
  std::string slow_arm;  // whose slow rows spread the mean most; empty: none did
  int64_t slow = 0;      // rows, over all the strata
};
std::vector<TypicalAnswer> typical_answers(const std::vector<const Decision*>& decisions);
// "by the typical call the choice is A, at 0.88 [0.84, 0.91] of B's time; the mean cannot decide
// because 3 rows of B take over 3 times its median".
std::string typical_text(const TypicalAnswer& answer);

// The contrast of the decision's arm with the baseline; null where it is the baseline.
const Contrast* leader_contrast(const Findings& findings, const Decision& decision);

// Prompt tokens of all its strata's rows.
PromptRange prompt_range(const Findings& findings, const Answer& answer);

}  // namespace assay
