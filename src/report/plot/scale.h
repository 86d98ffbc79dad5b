// Scale of an axis: the place of each value, and the values that the axis names.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace assay::plot {

// The hull of numbers; those that aren't finite don't count.
class Extent {
 public:
  void add(double value);
  bool any() const { return hull_.has_value(); }
  double low() const { return hull_ ? hull_->low : 0; }
  double high() const { return hull_ ? hull_->high : 1; }

 private:
  struct Hull {
    double low = 0;
    double high = 0;
  };
  std::optional<Hull> hull_;
};

struct Tick {
  double value = 0;
  std::string text;
};

// Covers an extent with a little room at its ends. Logarithmic where all values are positive and
// span more than a decade, else linear.
class Scale {
 public:
  enum class Start {
    kFree,
    kLinear,  // as kFree, and never logarithmic: places in an order
    kZero,    // begins at 0, and is linear: lengths of bars are to be compared
  };
  static Scale of(const Extent& extent, Start start = Start::kFree);

  bool logarithmic() const { return logarithmic_; }
  // 0 at the low end, 1 at the high one; values beyond are put on the end. Never NaN.
  double at(double value) const;
  // At most `most` (2 at least) round values, ascending.
  std::vector<Tick> ticks(size_t most) const;

 private:
  std::vector<double> log_values(size_t most) const;
  double linear_step(size_t most) const;

  bool logarithmic_ = false;
  double low_ = 0;  // of the axis; logarithms of 10 where it is logarithmic
  double high_ = 1;
};

}  // namespace assay::plot
