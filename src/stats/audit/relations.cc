// The table of relations, and a row as their input.
#include "stats/audit/relations.h"

namespace assay::stats {

std::optional<Interval> Figures::operator[](Figure figure) const {
  const auto found = row_->numbers.find(figure);
  if (found == row_->numbers.end() || found->second.is_bound()) return std::nullopt;
  const PrintedNumber& number = found->second;
  return as_points_ ? point(number.value) : Interval{number.low, number.high};
}

std::optional<double> Figures::exact(Figure figure) const {
  const auto found = row_->numbers.find(figure);
  if (found == row_->numbers.end() || found->second.is_bound()) return std::nullopt;
  return found->second.value;
}

std::vector<Interval> Figures::list(Figure figure) const {
  const auto found = row_->lists.find(figure);
  if (found == row_->lists.end()) return {};
  std::vector<Interval> list;
  for (const PrintedNumber& number : found->second) {
    if (number.is_bound()) return {};
    list.push_back(as_points_ ? point(number.value) : Interval{number.low, number.high});
  }
  return list;
}

bool Figures::is_integer(Figure figure) const {
  const auto found = row_->numbers.find(figure);
  return found != row_->numbers.end() &&
         found->second.text.find_first_of(".eE^") == std::string::npos;
}

bool Figures::is_percent(Figure figure) const {
  const auto found = row_->numbers.find(figure);
  return found != row_->numbers.end() && found->second.is_percent;
}

const std::vector<Relation>& relations() {
  static const std::vector<Relation> all = [] {
    std::vector<Relation> table;
    add_mean_relations(table);
    add_test_relations(table);
    add_effect_relations(table);
    add_power_relations(table);
    add_variance_relations(table);
    add_count_relations(table);
    add_odds_relations(table);
    add_step_relations(table);
    add_list_relations(table);
    return table;
  }();
  return all;
}

}  // namespace assay::stats
