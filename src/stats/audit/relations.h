// The ways in which a published figure follows from others, under a set of conventions.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "stats/audit/audit.h"
#include "stats/audit/ranges.h"

namespace assay::stats {

// A row's figures as inputs: as points (the values printed) or as ranges (all that is printed like
// them). A bound is no input.
class Figures {
 public:
  Figures(const PublishedRow& row, bool as_points) : row_(&row), as_points_(as_points) {}
  bool has(Figure figure) const { return (*this)[figure].has_value(); }
  std::optional<Interval> operator[](Figure figure) const;
  std::optional<double> exact(Figure figure) const;
  double exact_or(Figure figure, double fallback) const { return exact(figure).value_or(fallback); }
  // Empty where it isn't printed.
  std::vector<Interval> list(Figure figure) const;
  bool is_integer(Figure figure) const;  // printed without a decimal point
  bool is_percent(Figure figure) const;  // printed with a percent sign

 private:
  const PublishedRow* row_;
  bool as_points_;
};

// Value of a figure under a set. `unknown`, if not empty, names the input that isn't printed, so
// that all its possible values were taken: a figure inside the range is then possible, not
// confirmed. `is_bound`: only bounds are known, and the range's middle means nothing.
struct Reading {
  Interval range;
  std::string_view unknown = {};
  bool is_bound = false;
};

struct Relation {
  Figure claim;
  std::string_view from;
  std::vector<Axis> axes;
  // Absent where inputs aren't printed or the set has no such way. `element`: of a list.
  std::function<std::optional<Reading>(const Figures&, const ConventionSet&, size_t element)>
      compute;
  bool is_fallback = false;  // only where nothing else determines the figure
};

// The figure that `combine` makes of others' ranges; absent where one of these isn't printed.
template <typename F, typename... Of>
Relation of_figures(Figure claim, std::string_view from, bool is_fallback, F combine, Of... of) {
  const auto compute = [=](const Figures& x, const ConventionSet&,
                           size_t) -> std::optional<Reading> {
    if (!(x.has(of) && ...)) return std::nullopt;
    return Reading{combine(*x[of]...)};
  };
  return {claim, from, {}, compute, is_fallback};
}

// The table of relations, the most basic inputs of a figure first.
const std::vector<Relation>& relations();

// One file each.
void add_mean_relations(std::vector<Relation>& table);
void add_test_relations(std::vector<Relation>& table);
void add_effect_relations(std::vector<Relation>& table);
void add_power_relations(std::vector<Relation>& table);
void add_variance_relations(std::vector<Relation>& table);
void add_count_relations(std::vector<Relation>& table);
void add_odds_relations(std::vector<Relation>& table);
void add_step_relations(std::vector<Relation>& table);
void add_list_relations(std::vector<Relation>& table);

}  // namespace assay::stats
