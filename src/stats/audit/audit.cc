// The audit: of all sets of conventions those that contradict the fewest claims of a row.
//
// Relations are asked once for every combination of the axes they name. Axes that no claim has in
// common are searched apart, as their contradictions only add up.
#include "stats/audit/audit.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/records/enum_words.h"
#include "base/text/text.h"
#include "stats/audit/admission.h"
#include "stats/audit/relations.h"

namespace assay::stats {
namespace {

enum class Fit : uint8_t { kUnknown, kPossible, kMeets, kFails };

struct Answer {
  Fit fit = Fit::kUnknown;
  std::optional<double> value;
  Interval range;
  std::string_view unknown;
};

// Rounding of the program's own arithmetic must not decide.
double slack_of(double x) {
  return std::isfinite(x) ? 1e-9 * std::abs(x) : 0;
}

bool meets(const PrintedNumber& claim, const Interval& range) {
  switch (claim.bound) {
    case Bound::kBelow:
      return range.low < claim.value;
    case Bound::kAbove:
      return range.high > claim.value;
    case Bound::kAtMost:
      return range.low - slack_of(range.low) <= claim.value;
    case Bound::kAtLeast:
      return range.high + slack_of(range.high) >= claim.value;
    case Bound::kNone:
      break;
  }
  return range.low - slack_of(range.low) <= claim.high + slack_of(claim.high) &&
         range.high + slack_of(range.high) >= claim.low - slack_of(claim.low);
}

// Rounding keeps order, so a printed figure may not even touch its neighbour's bound from outside.
bool lies_between(const PrintedNumber& claim, const Interval& range) {
  return claim.high - slack_of(claim.high) > range.low &&
         claim.low + slack_of(claim.low) < range.high;
}

struct Claim {
  Figure figure;
  std::optional<size_t> element;  // from 0
  const PrintedNumber* printed;
};

// A relation of a claim with its answers, by the options of its axes (mixed radix).
struct Link {
  size_t claim = 0;
  const Relation* relation = nullptr;
  std::vector<Answer> answers;

  size_t index(const ConventionSet& set) const {
    size_t at = 0;
    for (const Axis axis : relation->axes) at = at * axis_of(axis).options.size() + set.at(axis);
    return at;
  }
  const Answer& answer(const ConventionSet& set) const { return answers[index(set)]; }
};

// Every set of options of some axes, the usual first: the last axis turns fastest.
template <typename F>
void for_each_set(std::span<const Axis> axes, const F& visit) {
  ConventionSet set;
  for (;;) {
    visit(set);
    size_t i = axes.size();
    for (; i > 0; --i) {
      uint8_t& option = set.at(axes[i - 1]);
      if (++option < axis_of(axes[i - 1]).options.size()) break;
      option = 0;
    }
    if (i == 0) return;
  }
}

Answer ask(const Relation& relation, const Claim& claim, const ConventionSet& set,
           const Figures& points, const Figures& ranges, bool may_be_halved) {
  Answer answer;
  const size_t element = claim.element.value_or(0);
  for (const Axis axis : relation.axes) {
    if (axis != Axis::kTest && axis_of(axis).options[set.at(axis)].is_other) return answer;
  }
  const auto reading = relation.compute(ranges, set, element);
  if (!reading || std::isnan(reading->range.low) || std::isnan(reading->range.high)) return answer;
  answer.range = reading->range;
  if (!reading->is_bound && reading->unknown.empty()) {
    const auto at = relation.compute(points, set, element);
    if (!at || !std::isfinite(at->range.low)) return answer;
    answer.value = at->range.low;
    answer.range = hull(answer.range, point(*answer.value));
  }
  answer.unknown = reading->unknown;
  // Half of a p passes a bound that the p doesn't, so a bound shows no test to be one-sided.
  const bool is_halved = may_be_halved && claim.printed->is_bound() && set.sides() != Sides::kTwo;
  if (is_halved && answer.unknown.empty()) answer.unknown = "if one-sided, which nothing says";
  const bool fits = reading->is_bound ? lies_between(*claim.printed, answer.range)
                                      : meets(*claim.printed, answer.range);
  if (!fits) {
    answer.fit = Fit::kFails;
  } else {
    answer.fit = answer.unknown.empty() ? Fit::kMeets : Fit::kPossible;
  }
  return answer;
}

// Claims that share axes, directly or through others.
struct Component {
  std::vector<Axis> axes;  // ascending
  std::vector<size_t> claims;
};

// Fit of one set of conventions to a component's claims.
struct Score {
  size_t contradictions = 0;
  size_t met = 0;
  size_t printed_alike = 0;  // recomputed values that would be printed like the claims

  bool is_better_than(const Score& other) const {
    if (contradictions != other.contradictions) return contradictions < other.contradictions;
    if (met != other.met) return met > other.met;
    return printed_alike > other.printed_alike;
  }
};

class RowAudit {
 public:
  explicit RowAudit(const PublishedRow& row)
      : row_(row), admission_(row), points_(row, true), ranges_(row, false) {
    collect_claims();
    collect_links();
  }

  std::vector<AuditedFigure> run() {
    audited_.resize(claims_.size());
    for (const Component& component : components()) judge(component);
    std::vector<AuditedFigure> reported;
    for (size_t i = 0; i < claims_.size(); ++i) {
      const bool says_nothing =
          audited_[i].verdict == Verdict::kNotDetermined && !audited_[i].range;
      if (column_of(claims_[i].figure).role == Role::kEither && says_nothing) continue;
      reported.push_back(std::move(audited_[i]));
    }
    return reported;
  }

 private:
  void collect_claims() {
    for (const FigureColumn& column : figure_columns()) {
      if (column.role == Role::kInput) continue;
      if (const auto found = row_.numbers.find(column.figure); found != row_.numbers.end()) {
        claims_.push_back({column.figure, std::nullopt, &found->second});
      }
      if (const auto found = row_.lists.find(column.figure); found != row_.lists.end()) {
        for (size_t i = 0; i < found->second.size(); ++i) {
          claims_.push_back({column.figure, i, &found->second[i]});
        }
      }
    }
  }

  void collect_links() {
    for (size_t i = 0; i < claims_.size(); ++i) {
      if (admission_.leaves_open(claims_[i].figure)) continue;
      std::vector<Link> fallbacks;
      const size_t before = links_.size();
      const bool may_be_halved = !row_.declared.is_declared(Axis::kSides);
      for (const Relation& relation : relations()) {
        if (relation.claim != claims_[i].figure) continue;
        if (relation.is_fallback && links_.size() > before) continue;
        Link link{i, &relation, {}};
        bool says_something = false;
        for_each_set(relation.axes, [&](const ConventionSet& set) {
          const bool admitted = admission_.admits(set, relation.axes);
          link.answers.push_back(
              admitted ? ask(relation, claims_[i], set, points_, ranges_, may_be_halved)
                       : Answer{});
          says_something = says_something || link.answers.back().fit != Fit::kUnknown;
        });
        if (!says_something) continue;
        (relation.is_fallback ? fallbacks : links_).push_back(std::move(link));
      }
      if (links_.size() == before) std::ranges::move(fallbacks, std::back_inserter(links_));
    }
  }

  std::vector<Component> components() const {
    std::vector<Component> all;
    for (size_t i = 0; i < claims_.size(); ++i) {
      Component mine;
      mine.claims = {i};
      for (const Link& link : links_) {
        if (link.claim != i) continue;
        mine.axes.insert(mine.axes.end(), link.relation->axes.begin(), link.relation->axes.end());
      }
      std::erase_if(all, [&](const Component& other) {
        const bool shares = std::ranges::any_of(other.axes, [&](Axis axis) {
          return std::ranges::find(mine.axes, axis) != mine.axes.end();
        });
        if (!shares) return false;
        mine.axes.insert(mine.axes.end(), other.axes.begin(), other.axes.end());
        mine.claims.insert(mine.claims.end(), other.claims.begin(), other.claims.end());
        return true;
      });
      std::ranges::sort(mine.axes);
      const auto repeated = std::ranges::unique(mine.axes);
      mine.axes.erase(repeated.begin(), repeated.end());
      all.push_back(std::move(mine));
    }
    return all;
  }

  // Worst fit among the claim's relations: one failure is enough.
  Fit fit_of(size_t claim, const ConventionSet& set) const {
    Fit fit = Fit::kUnknown;
    for (const Link& link : links_) {
      if (link.claim == claim) fit = std::max(fit, link.answer(set).fit);
    }
    return fit;
  }

  // The answer to show: the first that has the claim's fit.
  const Link* shown_link(size_t claim, const ConventionSet& set) const {
    const Fit fit = fit_of(claim, set);
    for (const Link& link : links_) {
      if (link.claim == claim && fit != Fit::kUnknown && link.answer(set).fit == fit) return &link;
    }
    return nullptr;
  }

  Score score_of(const Component& component, const ConventionSet& set) const {
    Score score;
    for (const size_t claim : component.claims) {
      const Fit fit = fit_of(claim, set);
      if (fit == Fit::kFails) ++score.contradictions;
      if (fit != Fit::kMeets) continue;
      ++score.met;
      const Link* link = shown_link(claim, set);
      const auto& value = link->answer(set).value;
      if (value && meets(*claims_[claim].printed, point(*value))) ++score.printed_alike;
    }
    return score;
  }

  // The relation that convicts the claim: of those that fail under `set`, the one that fails under
  // most of the best sets.
  const Link* most_failing(size_t claim, const ConventionSet& set,
                           std::span<const ConventionSet> others) const {
    const Link* most = nullptr;
    std::ptrdiff_t most_often = -1;
    for (const Link& link : links_) {
      if (link.claim != claim || link.answer(set).fit != Fit::kFails) continue;
      const auto often = std::ranges::count_if(
          others, [&](const ConventionSet& x) { return link.answer(x).fit == Fit::kFails; });
      if (often <= most_often) continue;
      most = &link;
      most_often = often;
    }
    return most;
  }

  // True if another option of the axis would change the figure's range.
  static bool matters(const Link& link, ConventionSet set, Axis axis) {
    const Answer& mine = link.answer(set);
    for (uint8_t option = 0; option < axis_of(axis).options.size(); ++option) {
      set.at(axis) = option;
      const Answer& other = link.answer(set);
      if (other.fit != Fit::kUnknown && !(other.range == mine.range)) return true;
    }
    return false;
  }

  // The set's options as far as they matter to the figure or are declared.
  std::string name_of(const Link& link, const ConventionSet& set) const {
    const Figure figure = link.relation->claim;
    std::vector<std::string> parts;
    std::string_view usual;  // stands for options that go without saying, where nothing else does
    // The test leads: "Welch, two-sided".
    std::vector<Axis> axes = link.relation->axes;
    std::ranges::stable_sort(axes, {}, [](Axis axis) { return axis == Axis::kTest ? 0 : 1; });
    for (const Axis axis : axes) {
      const std::string_view name = axis_of(axis).options[set.at(axis)].name;
      const bool is_told = axis == Axis::kEffect || row_.declared.is_declared(axis);
      if (!is_told && !matters(link, set, axis)) continue;
      const bool is_sign = axis == Axis::kSignT || axis == Axis::kSignD || axis == Axis::kSignDelta;
      if (name.empty()) {
        usual = is_sign ? "a - b" : "usual";
        continue;
      }
      // The sign of t goes without saying where p is told.
      if (axis == Axis::kSignT && figure != Figure::kT && figure != Figure::kZ) continue;
      parts.emplace_back(name);
    }
    if (parts.empty() && !usual.empty()) parts.emplace_back(usual);
    std::string name = join(parts, ", ");
    const std::string_view unknown = link.answer(set).unknown;
    if (!unknown.empty()) name += (name.empty() ? "" : "; ") + std::string(unknown);
    return name;
  }

  static std::map<Axis, std::string> conventions_of(const Link& link, const ConventionSet& set) {
    std::map<Axis, std::string> all;
    for (const Axis axis : link.relation->axes) {
      const ConventionOption& option = axis_of(axis).options[set.at(axis)];
      all[axis] = option.name.empty() ? split(option.keywords, ' ')[0] : std::string(option.name);
    }
    return all;
  }

  static bool is_by_confidence(const Link& link) {
    const Figure claim = link.relation->claim;
    if (claim == Figure::kOddsLow || claim == Figure::kOddsHigh) return true;
    return std::ranges::any_of(link.relation->axes, [](Axis axis) {
      return axis == Axis::kInterval || axis == Axis::kRateInterval;
    });
  }

  void judge(const Component& component) {
    std::optional<Score> best;
    ConventionSet chosen;
    std::vector<ConventionSet> others;  // that contradict as few claims
    admission_.for_each_admitted(component.axes, [&](const ConventionSet& set) {
      const Score score = score_of(component, set);
      if (!best || score.contradictions < best->contradictions) others.clear();
      if (!best || score.is_better_than(*best)) {
        if (best && score.contradictions == best->contradictions) others.push_back(chosen);
        best = score;
        chosen = set;
      } else if (score.contradictions == best->contradictions) {
        others.push_back(set);
      }
    });
    if (!best) return judge_nothing(component);
    for (const size_t claim : component.claims) describe(claim, chosen, others, *best);
  }

  void judge_nothing(const Component& component) {
    for (const size_t claim : component.claims) audited_[claim] = blank(claim);
  }

  AuditedFigure blank(size_t claim) const {
    AuditedFigure figure;
    figure.figure = claims_[claim].figure;
    if (claims_[claim].element) figure.element = *claims_[claim].element + 1;
    figure.claimed = claims_[claim].printed->text;
    return figure;
  }

  void describe(size_t claim, const ConventionSet& chosen, std::span<const ConventionSet> others,
                const Score& best) {
    AuditedFigure& figure = audited_[claim] = blank(claim);
    // Where no set fits, a figure may contradict under one of the best and not under another.
    ConventionSet set = chosen;
    if (best.contradictions > 0 && fit_of(claim, set) != Fit::kFails) {
      const auto failing = std::ranges::find_if(
          others, [&](const ConventionSet& x) { return fit_of(claim, x) == Fit::kFails; });
      if (failing != others.end()) set = *failing;
    }
    const Link* link = shown_link(claim, set);
    if (!link) return;
    if (link->answer(set).fit == Fit::kFails) link = most_failing(claim, set, others);
    const Answer& answer = link->answer(set);
    figure.from = link->relation->from;
    figure.as = name_of(*link, set);
    figure.conventions = conventions_of(*link, set);
    if (is_by_confidence(*link)) figure.confidence = ranges_.exact_or(Figure::kConfidence, 0.95);
    figure.range = answer.range;
    if (answer.fit == Fit::kPossible) return;
    figure.recomputed = answer.value;
    figure.verdict = answer.fit == Fit::kFails ? Verdict::kInconsistent : Verdict::kConsistent;
    if (answer.fit == Fit::kFails) return;
    for (const ConventionSet& other : others) {
      const Link* its = shown_link(claim, other);
      if (!its || its->answer(other).fit != answer.fit) continue;
      std::string name = name_of(*its, other);
      if (name == figure.as || std::ranges::find(figure.also, name) != figure.also.end()) continue;
      figure.also.push_back(std::move(name));
    }
  }

  const PublishedRow& row_;
  Admission admission_;
  Figures points_;
  Figures ranges_;
  std::vector<Claim> claims_;
  std::vector<Link> links_;
  std::vector<AuditedFigure> audited_;
};

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  return word_of(verdict, {"consistent", "inconsistent", "not determined"});
}

std::vector<AuditedFigure> audit_row(const PublishedRow& row) {
  return RowAudit(row).run();
}

}  // namespace assay::stats
