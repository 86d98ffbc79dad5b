#include "report/plot/scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::plot {
namespace {

constexpr double kRoom = 0.04;   // at an end, as a share of the extent
constexpr double kSlack = 1e-9;  // of steps: a tick on an axis' end is on the axis
constexpr double kLeastSpan = 1e-9;

// "1500", "25M": as many digits as an axis of such steps needs.
std::string tick_text(double value, double step, double largest) {
  constexpr double kManyDigits = 1e4;
  constexpr double kFewestDecimals = 1e-4;
  if (value == 0) return "0";
  if (largest < kFewestDecimals * 10) return fmt::format("{:.3g}", value);
  const char* suffix = "";
  double unit = 1;
  for (const char* next : {"k", "M", "G", "T", "P"}) {
    if (largest < kManyDigits || largest < unit * 1000) break;
    suffix = next;
    unit *= 1000;
  }
  const double digits = -std::floor(std::log10(step / unit) + kSlack);
  const int decimals = static_cast<int>(std::clamp(digits, 0.0, 6.0));
  return fmt::format("{:.{}f}{}", value / unit, decimals, suffix);
}

}  // namespace

void Extent::add(double value) {
  if (!std::isfinite(value)) return;
  if (!hull_) hull_ = {value, value};
  hull_ = {std::min(hull_->low, value), std::max(hull_->high, value)};
}

Scale Scale::of(const Extent& extent, Start start) {
  Scale scale;
  scale.low_ = extent.low();
  scale.high_ = extent.high();
  if (start == Start::kZero) {
    scale.low_ = std::min(0.0, scale.low_);
  } else if (start == Start::kFree && scale.low_ > 0 && scale.high_ > 10 * scale.low_) {
    scale.logarithmic_ = true;
    scale.low_ = std::log10(scale.low_);
    scale.high_ = std::log10(scale.high_);
  }
  double span = scale.high_ - scale.low_;
  const double least = std::max(std::abs(scale.high_), kLeastSpan) * kLeastSpan;
  if (span < least) span = std::max(std::abs(scale.high_) * 0.2, kLeastSpan);
  if (start != Start::kZero) scale.low_ -= span * kRoom;
  scale.high_ += span * kRoom;
  return scale;
}

double Scale::at(double value) const {
  if (logarithmic_) value = value > 0 ? std::log10(value) : low_;
  const double share = (value - low_) / (high_ - low_);
  return share > 0 ? std::min(share, 1.0) : 0;  // 0 also where the axis is longer than a double
}

// 1, 2 and 5 of each decade; the decades alone, or some of them, where those are too many.
std::vector<double> Scale::log_values(size_t most) const {
  const auto within = [&](double value) {
    const double at = std::log10(value);
    return at >= low_ - kSlack && at <= high_ + kSlack;
  };
  const auto first = static_cast<int>(std::floor(low_));
  const auto last = static_cast<int>(std::ceil(high_));
  std::vector<double> values;
  for (int decade = first; decade <= last; ++decade) {
    for (const double step : {1.0, 2.0, 5.0}) {
      const double value = step * std::pow(10, decade);
      if (within(value)) values.push_back(value);
    }
  }
  for (int every = 1; values.size() > most; ++every) {
    values.clear();
    for (int decade = first; decade <= last; decade += every) {
      if (within(std::pow(10, decade))) values.push_back(std::pow(10, decade));
    }
  }
  return values;
}

double Scale::linear_step(size_t most) const {
  const double rough = (high_ - low_) / static_cast<double>(most);
  const double decade = std::pow(10, std::floor(std::log10(rough)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (step * decade >= rough * (1 - kSlack)) return step * decade;
  }
  return 10 * decade;
}

std::vector<Tick> Scale::ticks(size_t most) const {
  std::vector<Tick> ticks;
  if (logarithmic_) {
    // Each with the decimals that it needs itself.
    for (const double value : log_values(most)) {
      ticks.push_back({value, tick_text(value, value, value)});
    }
    return ticks;
  }
  const double step = linear_step(most);
  const double largest = std::max(std::abs(low_), std::abs(high_));
  for (double n = std::ceil(low_ / step - kSlack); n * step <= high_ + kSlack * step; ++n) {
    ticks.push_back({n * step, tick_text(n * step, step, largest)});
  }
  return ticks;
}

}  // namespace assay::plot
