// Worth of an arm's prefill end to end.
#include "analysis/describe/phase_split.h"

#include <algorithm>
#include <limits>
#include <set>

#include "analysis/contrast/resampling.h"
#include "analysis/describe/reach.h"
#include "analysis/rows/each.h"
#include "stats/estimates/few_values.h"
#include "stats/power/powers.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

constexpr int64_t kLengths[] = {1, 8, 32, 128, 512};  // the record's own sweep

// The four means of one split, of the samples or of one resample: prefill, and a decoded token.
struct Times {
  double prefill = 0;
  double base_prefill = 0;
  double token = 0;
  double base_token = 0;

  double gain() const { return base_prefill - prefill; }
  double total(double tokens) const { return prefill + tokens * token; }
  double base_total(double tokens) const { return base_prefill + tokens * base_token; }
};

constexpr double kNever = std::numeric_limits<double>::infinity();

// The decode length from which on the gain is less than `share` of the baseline's whole time.
double stops_at(const Times& t, double share) {
  return std::max(0.0, (t.gain() / share - t.base_prefill) / t.base_token);
}

// The decode length at which a slower decode has used up the gain.
double even_at(const Times& t) {
  if (t.gain() <= 0) return 0;
  return t.token > t.base_token ? t.gain() / (t.token - t.base_token) : kNever;
}

class Replicates {
 public:
  // `widenings` of the four means' errors, for few values too. All is widened once: every length
  // asks for each replicate again.
  Replicates(const stats::ResampledMean* means[4], const double widenings[4], double decoded)
      : estimate_{means[0]->mean, means[1]->mean, means[2]->mean / decoded,
                  means[3]->mean / decoded},
        replicates_(means[0]->replicates.size()) {
    std::vector<double> wide[4];
    for (size_t of = 0; of < 4; ++of) wide[of] = widened(*means[of], widenings[of]);
    for (size_t i = 0; i < replicates_.size(); ++i) {
      replicates_[i] = {wide[0][i], wide[1][i], wide[2][i] / decoded, wide[3][i] / decoded};
    }
  }
  const Times& estimate() const { return estimate_; }
  template <typename Figure>
  std::vector<double> of(const Figure& figure) const {
    std::vector<double> values(replicates_.size());
    for (size_t i = 0; i < values.size(); ++i) values[i] = figure(replicates_[i]);
    return values;
  }

 private:
  // Replicates widened on the scale of logarithms: times stay positive.
  static std::vector<double> widened(const stats::ResampledMean& mean, double widening) {
    std::vector<double> replicates = mean.replicates;
    if (widening > 1) stats::spread_on_logs(replicates, mean.mean, widening);
    return replicates;
  }

  Times estimate_;
  std::vector<Times> replicates_;
};

template <typename Figure>
std::optional<stats::Interval> interval_of(const Replicates& replicates, const Figure& figure,
                                           const AnalysisOptions& options) {
  const auto values = replicates.of(figure);
  return stats::bootstrap_interval(values, figure(replicates.estimate()), 0,
                                   ratio_bootstrap(options));
}

// `few`: of processes too few for intervals.
void add_lengths(const Replicates& replicates, const std::set<int64_t>& measured, bool few,
                 const AnalysisOptions& options, PhaseSplit& split) {
  std::set<int64_t> lengths(std::begin(kLengths), std::end(kLengths));
  lengths.insert(measured.begin(), measured.end());
  for (const int64_t length : lengths) {
    const auto n = static_cast<double>(length);
    const auto ratio = [&](const Times& t) { return t.total(n) / t.base_total(n); };
    SplitAt& at = split.at.emplace_back();
    at.new_tokens = length;
    at.extrapolated = length > *measured.rbegin();
    at.prefill_share = replicates.estimate().gain() / replicates.estimate().base_total(n);
    at.ratio = ratio(replicates.estimate());
    if (few || !measured.contains(length)) continue;
    at.ratio_interval = interval_of(replicates, ratio, options);
  }
}

// `gains_of_few`: of the processes, where they are too few for intervals.
PhaseSplit make_split(const Replicates& replicates, const std::set<int64_t>& measured,
                      const std::optional<stats::Interval>& gains_of_few,
                      const AnalysisOptions& options) {
  PhaseSplit split;
  const Times times = replicates.estimate();
  split.gain_ms = times.gain();
  split.gain_process_range = gains_of_few;
  if (!gains_of_few) {
    split.gain_interval = interval_of(
        replicates, [](const Times& t) { return t.gain(); }, options);
  }
  add_lengths(replicates, measured, gains_of_few.has_value(), options, split);
  const auto& gain = gains_of_few ? gains_of_few : split.gain_interval;
  if (!gain || gain->low <= 0) return split;  // no gain to speak of
  split.stops_mattering = stops_at(times, options.margin);
  if (times.token > times.base_token) split.breaks_even = even_at(times);
  if (gains_of_few) return split;
  auto stops = replicates.of([&](const Times& t) { return stops_at(t, options.margin); });
  split.stops_interval = reach_of(stops);
  if (split.breaks_even) {
    auto even = replicates.of(even_at);
    split.even_interval = reach_of(even);
  }
  return split;
}

// The contrasts of one arm on one model, scenario and batch.
struct Parts {
  const Contrast* prefill = nullptr;
  std::map<int64_t, const Contrast*> decode;  // by new tokens
};
using SplitCondition = std::tuple<std::string, std::string, int64_t, std::string>;

// Absent without both phases, or where a constant sample has no resamples.
std::optional<PhaseSplit> split_of(const Samples& samples, const Resampled& resampled,
                                   const SplitCondition& condition, const Parts& parts,
                                   const AnalysisOptions& options) {
  if (parts.prefill == nullptr || parts.decode.empty()) return std::nullopt;
  const auto& [longest, decode] = *parts.decode.rbegin();
  if (longest < 1) return std::nullopt;
  const size_t arm = samples.place_of(parts.prefill->arm);
  const stats::ResampledMean* means[4] = {};
  double widenings[4] = {};
  size_t next = 0;
  for (const Contrast* contrast : {parts.prefill, decode}) {
    for (const size_t of : {arm, size_t{0}}) {
      const Group* group = samples.find(*contrast->stratum, of);
      const auto& mean = resampled[samples.index_of(*group)];
      if (!mean) return std::nullopt;
      const auto df = static_cast<double>(contrast->n_arm + contrast->n_baseline - 2);
      widenings[next] = contrast->widening.error *
                        stats::expansion(static_cast<double>(mean->n), df, kConfidence);
      means[next++] = &*mean;
    }
  }
  std::set<int64_t> measured;
  for (const auto& [tokens, contrast] : parts.decode) measured.insert(tokens);
  std::optional<stats::Interval> gains_of_few = parts.prefill->difference_process_range_ms;
  if (gains_of_few) gains_of_few = stats::Interval{-gains_of_few->high, -gains_of_few->low};
  PhaseSplit split = make_split(Replicates(means, widenings, static_cast<double>(longest)),
                                measured, gains_of_few, options);
  std::tie(split.model, split.scenario, split.batch, split.arm) = condition;
  split.prefill_stratum = *parts.prefill->stratum;
  return split;
}

}  // namespace

std::vector<PhaseSplit> split_phases(const Samples& samples, const Resampled& resampled,
                                     const std::vector<Contrast>& contrasts,
                                     const AnalysisOptions& options, ThreadPool* pool) {
  std::vector<std::pair<SplitCondition, Parts>> all;
  for (const Contrast& contrast : contrasts) {
    const Stratum& stratum = samples.strata[*contrast.stratum];
    if (stratum.phase == Phase::kE2eKv) continue;
    const SplitCondition condition{stratum.model, stratum.scenario, stratum.batch, contrast.arm};
    auto at = std::ranges::find(all, condition, &std::pair<SplitCondition, Parts>::first);
    if (at == all.end()) at = all.insert(all.end(), {condition, {}});
    if (stratum.phase == Phase::kPrefill) at->second.prefill = &contrast;
    if (stratum.phase == Phase::kKvDecode) at->second.decode[stratum.new_tokens] = &contrast;
  }
  std::vector<std::optional<PhaseSplit>> made(all.size());
  for_each_index(all.size(), pool, [&](size_t i) {
    made[i] = split_of(samples, resampled, all[i].first, all[i].second, options);
  });
  std::vector<PhaseSplit> splits;
  for (auto& split : made) {
    if (split) splits.push_back(*std::move(split));
  }
  return splits;
}

}  // namespace assay
