// False alarms on a bundle's own noise.
#include "analysis/false_alarms.h"

#include <algorithm>
#include <numeric>

#include "analysis/summary.h"
#include "base/random.h"
#include "stats/summary.h"

namespace assay {
namespace {

struct Split {
  bool alarm = false;
  bool difference = false;
  std::vector<double> detectable;
};

// The same cells without rows: ok, warm rows are all that a split deals.
Samples empty_like(const Samples& samples) {
  Samples half;
  half.strata = samples.strata;
  half.prompts = samples.prompts;
  half.arms = samples.arms;
  half.first_group = samples.first_group;
  for (const Group& group : samples.groups) {
    Group& copy = half.groups.emplace_back();
    copy.stratum = group.stratum;
    copy.arm = group.arm;
  }
  return half;
}

void add(Group& half, const Row* row) {
  half.rows.push_back(row);
  half.timed.push_back(row);
  half.warm.push_back(row);
  half.warm_ms.push_back(*row->latency_ms);
}

// Halves keep the order of the run, so that what neighbours share stays to be seen.
Split split_once(const Samples& samples, const CompareOptions& options, Random random) {
  Samples halves[2] = {empty_like(samples), empty_like(samples)};
  std::vector<uint8_t> side;
  for (size_t g = 0; g < samples.groups.size(); ++g) {
    const Group& group = samples.groups[g];
    side.resize(group.warm.size());
    for (size_t i = 0; i < side.size(); ++i) side[i] = i % 2;
    random.shuffle(std::span(side));
    for (size_t i = 0; i < side.size(); ++i) add(halves[side[i]].groups[g], group.warm[i]);
  }
  const Comparison comparison = compare_samples(halves[0], halves[1], options, false);
  Split split;
  for (const std::vector<ComparedCell>* cells : {&comparison.combined, &comparison.cells}) {
    for (const ComparedCell& cell : *cells) {
      split.alarm |= cell.regression;
      split.difference |= cell.verdict == Verdict::kFaster || cell.verdict == Verdict::kSlower;
      if (cell.stratum && cell.minimum_detectable) {
        split.detectable.push_back(*cell.minimum_detectable);
      }
    }
  }
  return split;
}

}  // namespace

Result<SelfTest> self_test(const Bundle& bundle, const CompareOptions& options, int64_t splits,
                           uint64_t seed, ThreadPool* pool) {
  ASSAY_TRY(const Samples samples, group_rows(bundle, summarize(bundle).arms));
  const auto needed = static_cast<size_t>(2 * options.minimum_rows);
  const bool any = std::ranges::any_of(
      samples.groups, [&](const Group& group) { return group.warm.size() >= needed; });
  if (!any) {
    return bad_input("{}: expected a cell of at least {} warm ok rows to split, found none",
                     bundle.folder.string(), needed);
  }
  std::vector<Split> results(static_cast<size_t>(splits));
  const auto run = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) results[i] = split_once(samples, options, Random(seed, i));
  };
  if (pool != nullptr) {
    pool->parallel_for(results.size(), 1, run);
  } else {
    run(0, results.size());
  }
  SelfTest test;
  test.splits = splits;
  std::vector<double> detectable;
  for (const Split& split : results) {
    test.alarms += split.alarm ? 1 : 0;
    test.differences += split.difference ? 1 : 0;
    detectable.insert(detectable.end(), split.detectable.begin(), split.detectable.end());
  }
  test.alarm_interval = stats::wilson_interval(test.alarms, splits, options.confidence);
  test.difference_interval = stats::wilson_interval(test.differences, splits, options.confidence);
  test.minimum_detectable = stats::quantile_in_place(detectable, 0.5);
  return test;
}

Json self_test_to_json(const SelfTest& test, const CompareOptions& options) {
  const auto rate = [&](int64_t count) {
    return static_cast<double>(count) / static_cast<double>(test.splits);
  };
  const auto bounds = [](const std::optional<stats::Interval>& interval) {
    return interval ? Json::array({interval->low, interval->high}) : Json(nullptr);
  };
  return {{"schema_version", kComparisonSchemaVersion},
          {"splits", test.splits},
          {"margin", options.margin},
          {"alpha", options.alpha},
          {"false_alarms", test.alarms},
          {"false_alarm_rate", rate(test.alarms)},
          {"false_alarm_interval", bounds(test.alarm_interval)},
          {"differences", test.differences},
          {"difference_rate", rate(test.differences)},
          {"difference_interval", bounds(test.difference_interval)},
          {"minimum_detectable_share",
           test.minimum_detectable ? Json(*test.minimum_detectable) : Json(nullptr)}};
}

}  // namespace assay
