// Sets of conventions that a row's figures and words leave room for.
#pragma once

#include <span>

#include "stats/audit/audit.h"

namespace assay::stats {

class Admission {
 public:
  explicit Admission(const PublishedRow& row);

  // Every set of the axes' options that is admitted, the usual first: the last axis turns fastest.
  // Axes are in their order.
  template <typename F>
  void for_each_admitted(std::span<const Axis> axes, const F& visit) const {
    visit_from(axes, 0, ConventionSet(), visit);
  }

  // True if the row admits the set's options on these axes; the other axes don't count.
  bool admits(const ConventionSet& set, std::span<const Axis> axes) const;

  // True if the figure comes from a test or an interval that the row declares as none of the known.
  bool leaves_open(Figure figure) const;

 private:
  // Options before `next` are chosen and admitted; the test stands before the effect it limits.
  template <typename F>
  void visit_from(std::span<const Axis> axes, size_t next, ConventionSet set,
                  const F& visit) const {
    if (next == axes.size()) return visit(set);
    const Axis axis = axes[next];
    for (uint8_t option = 0; option < axis_of(axis).options.size(); ++option) {
      set.at(axis) = option;
      if (admits(set, axes.first(next + 1))) visit_from(axes, next + 1, set, visit);
    }
  }
  bool admits(TestKind test) const;

  const PublishedRow& row_;
  bool has_b_ = false;
  bool has_scale_ = false;
  bool has_mu_ = false;
  bool has_df_ = false;
  bool has_z_ = false;
  bool is_paired_ = false;
  bool may_be_paired_ = false;
  bool has_counts_ = false;
  bool has_odds_ = false;
  bool has_empty_cell_ = false;  // of the counts' table: its odds ratio needs halves added
  bool has_means_ = false;
};

}  // namespace assay::stats
