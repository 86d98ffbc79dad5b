// Strata that have one decision, as one answer, and their ratios as one range.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/findings/findings.h"
#include "analysis/findings/spread_text.h"

namespace assay {

// True if a ratio's interval contains 1 and is wider than tenfold: too few processes or rows to
// show anything, as two of them leave one degree of freedom. Sentences, figures and the screen then
// say kTooFew; tables and data have the interval.
bool shows_nothing(const stats::Interval& of_ratio);
inline constexpr std::string_view kTooFew = "[too few to tell]";

// The sentence that explains "range", without its end.
std::string range_meaning();
// True if some figure has a range where its interval would stand.
bool has_process_ranges(const Findings& findings);

// Ratios of several strata: the hull of the values, of their intervals, and of the ranges of those
// whose processes are too few for one.
struct RatioRange {
  std::optional<stats::Interval> values;
  std::optional<stats::Interval> intervals;
  std::optional<stats::Interval> ranges;
  bool too_few = false;  // one of the intervals shows nothing

  // A ratio without an interval or a range doesn't count.
  void add(double ratio, const std::optional<stats::Interval>& interval,
           const std::optional<stats::Interval>& process_range);
  void add(const Contrast& contrast);
  void add(const Rival& rival);
  // "0.62 [0.60, 0.65]", "0.62 to 0.71 [0.60, 0.73]", "0.62 [too few to tell]", "0.62 range
  // 0.60-0.65"; "an unknown part" without a ratio, as in findings that somebody changed.
  std::string text() const;
  // The same for a table: "0.62-0.71 [0.60, 0.73]", two decimals where they suffice; "-".
  std::string short_text() const;
  // True if 1 lies within the values', intervals' and ranges' hull.
  bool leaves_one_open() const;
};

// A decision's kind in the word of tables that people read: faster | equivalent | ahead |
// undecided | no rival | void | no arm.
std::string_view decision_word(Decision::Kind kind);

// Strata of one phase with one decision.
struct Answer {
  std::vector<const Decision*> parts;  // not empty, by prompt length
};

// Strata that share an answer. The arm that leads is the same in all of them, so that every figure
// of an answer is one of the arm that it names. kArmsAndAlternatives and kArms: neighbours by
// prompt length under one condition (model, new tokens, batch), equally sure, with the same arms in
// question; kArms also with the same arm next to the leader, the other with the same arms that p50
// or the tail would choose. kLeaderOfPhase and kArmOfPhase: all strata of a phase that the arm
// leads, equally surely or however surely.
enum class SameAnswer { kArmsAndAlternatives, kArms, kLeaderOfPhase, kArmOfPhase };

// The answers in the order of phase, condition and prompt length.
std::vector<Answer> answers(const Findings& findings, SameAnswer same);

// The leader and the arms that aren't told apart from it.
std::vector<std::string> arms_in_question(const Decision& decision);

// Strata that typical calls decide and means don't, with one arm ahead and one rival nearest to it.
struct TypicalAnswer {
  std::string arm;
  std::string rival;
  size_t strata = 0;
  RatioRange range = {};                     // arm to rival
  std::map<std::string, int64_t> slow = {};  // by arm its slow rows, where they spread a mean most
};
std::vector<TypicalAnswer> typical_answers(const std::vector<const Decision*>& decisions);
// "by the typical call the choice is A, at 0.88 [0.84, 0.91] of B's time; the mean cannot decide
// because 3 rows of B take over 3 times its median".
std::string typical_text(const TypicalAnswer& answer);

// Prompt tokens of all its strata's rows.
PromptRange prompt_range(const Findings& findings, const Answer& answer);

}  // namespace assay
