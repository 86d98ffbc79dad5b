// Trials on all cores, and a table of what they found.
#include "calibration_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "stats/distributions/distributions.h"

namespace assay {

CalibrationLines::CalibrationLines(int64_t trials, uint64_t seed, uint64_t part)
    : trials_(trials), seed_(seed), stream_(part << 56), pool_(available_cpus()) {}

std::vector<int64_t> CalibrationLines::count(size_t flags,
                                             const std::function<void(Random, int64_t*)>& trial) {
  stream_ += uint64_t{1} << 32;
  std::vector<int64_t> each(static_cast<size_t>(trials_) * flags);
  pool_.parallel_for(static_cast<size_t>(trials_), 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) trial(Random(seed_, stream_ + i), &each[i * flags]);
  });
  std::vector<int64_t> total(flags);
  for (size_t i = 0; i < each.size(); ++i) total[i % flags] += each[i];
  return total;
}

void CalibrationLines::add(std::string what, std::string truth, int64_t count, double least,
                           double most, bool promised) {
  const auto trials = static_cast<double>(trials_);
  const double rate = static_cast<double>(count) / trials;
  const Line line{
      std::move(what), std::move(truth), rate, standard_error(rate, trials), least, most, promised};
  if (line.has_bar() || shows()) lines_.push_back(line);
}

bool CalibrationLines::print() const {
  fmt::print("seed {}, {} trials a line\n\n| what | truth | found | bar |\n|---|---|---:|---|\n",
             seed_, trials_);
  bool met = true;
  const auto bars = std::ranges::count_if(lines_, &Line::has_bar);
  const double errors = *stats::normal_quantile(1 - 0.05 / static_cast<double>(bars));
  for (const Line& line : lines_) {
    const bool missed = line.missed(errors, static_cast<double>(trials_));
    std::string bar = line.least > 0 && line.most < 1
                          ? fmt::format("{:.0f} to {:.0f} %", line.least * 100, line.most * 100)
                      : line.most < 1  ? fmt::format("at most {:.0f} %", line.most * 100)
                      : line.least > 0 ? fmt::format("at least {:.1f} %", line.least * 100)
                                       : "none";
    if (!line.promised) bar += ", not promised";
    if (missed) bar += ", missed";
    fmt::print("| {} | {} | {:.1f} +- {:.1f} % | {} |\n", line.what, line.truth, line.rate * 100,
               line.error * 100, bar);
    met = met && !(line.promised && missed);
  }
  return met;
}

}  // namespace assay
