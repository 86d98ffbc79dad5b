// False alarms on a bundle's own noise.
#include "analysis/compare/false_alarms.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/findings/record_entries.h"
#include "analysis/rows/processes.h"
#include "analysis/rows/summary.h"
#include "base/random.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

constexpr size_t kLeastProcesses = 4;  // two a half

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

// A way to deal processes: 0 or 1 of each, in the order of their numbers.
using Sides = std::vector<uint8_t>;

// Place of each process number in that order.
std::map<int64_t, size_t> places_of(const Samples& samples) {
  std::map<int64_t, size_t> places;
  for (const Group& group : samples.groups) {
    for (const Row* row : group.warm) places.try_emplace(process_of(*row));
  }
  size_t next = 0;
  for (auto& [number, place] : places) place = next++;
  return places;
}

// Number of ways to deal n processes to two halves, n / 2 to the second. Absent: more than `most`.
std::optional<int64_t> count_sides(int64_t n, int64_t most) {
  double ways = 1;
  for (int64_t i = 1; i <= n / 2; ++i) {
    ways = ways * static_cast<double>(n - i + 1) / static_cast<double>(i);
    if (ways > 2 * static_cast<double>(most)) return std::nullopt;
  }
  const auto count = static_cast<int64_t>(std::llround(ways));
  return count <= most ? std::optional(count) : std::nullopt;
}

std::vector<Sides> every_side(int64_t n) {
  Sides sides(static_cast<size_t>(n), 0);
  std::fill(sides.end() - n / 2, sides.end(), 1);
  std::vector<Sides> all;
  do all.push_back(sides);
  while (std::ranges::next_permutation(sides).found);
  return all;
}

Sides random_sides(int64_t n, Random random) {
  Sides sides(static_cast<size_t>(n));
  for (size_t i = 0; i < sides.size(); ++i) sides[i] = i % 2;
  random.shuffle(std::span(sides));
  return sides;
}

Split split_once(const Samples& samples, const std::map<int64_t, size_t>& places,
                 const CompareOptions& options, const Sides& sides) {
  Samples halves[2] = {empty_like(samples), empty_like(samples)};
  for (size_t g = 0; g < samples.groups.size(); ++g) {
    for (const Row* row : samples.groups[g].warm) {
      add(halves[sides[places.at(process_of(*row))]].groups[g], row);
    }
  }
  const Comparison comparison = compare_samples(halves[0], halves[1], options, false);
  Split split;
  for (const std::vector<ComparedCell>* cells : {&comparison.combined, &comparison.cells}) {
    for (const ComparedCell& cell : *cells) {
      split.alarm |= cell.alarm();
      split.difference |= cell.verdict == Verdict::kFaster || cell.verdict == Verdict::kSlower;
      if (cell.stratum && cell.minimum_detectable) {
        split.detectable.push_back(*cell.minimum_detectable);
      }
    }
  }
  return split;
}

bool can_split(const Group& group, const CompareOptions& options) {
  return static_cast<int64_t>(group.warm.size()) >= 2 * options.minimum_rows &&
         process_figures(group, ProcessFigure::kMean).size() >= kLeastProcesses;
}

}  // namespace

Result<SelfTest> self_test(const Bundle& bundle, const CompareOptions& options, int64_t splits,
                           uint64_t seed, ThreadPool* pool) {
  ASSAY_TRY(const Samples samples, group_rows(bundle, summarize(bundle).arms));
  const bool any = std::ranges::any_of(
      samples.groups, [&](const Group& group) { return can_split(group, options); });
  const std::map<int64_t, size_t> places = places_of(samples);
  const auto processes = static_cast<int64_t>(places.size());
  if (!any) {
    return bad_input(
        "{}: expected a cell of at least {} processes and {} warm ok rows to split, found "
        "{}: rows of one process can't show the variance between processes (study key "
        "processes)",
        bundle.folder.string(), kLeastProcesses, 2 * options.minimum_rows,
        processes < static_cast<int64_t>(kLeastProcesses)
            ? fmt::format("{} {}", processes, processes == 1 ? "process" : "processes")
            : "none");
  }
  const bool every = count_sides(processes, splits).has_value();
  std::vector<Sides> sides;
  if (every) {
    sides = every_side(processes);
  } else {
    for (int64_t i = 0; i < splits; ++i) {
      sides.push_back(random_sides(processes, Random(seed, static_cast<uint64_t>(i))));
    }
  }
  splits = static_cast<int64_t>(sides.size());
  CompareOptions judged = options;
  judged.allow_single_process = false;
  std::vector<Split> results(sides.size());
  const auto run = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) results[i] = split_once(samples, places, judged, sides[i]);
  };
  if (pool != nullptr) {
    pool->parallel_for(results.size(), 1, run);
  } else {
    run(0, results.size());
  }
  SelfTest test;
  test.splits = splits;
  test.every_split = every;
  test.processes = processes;
  std::vector<double> detectable;
  for (const Split& split : results) {
    test.alarms += split.alarm ? 1 : 0;
    test.differences += split.difference ? 1 : 0;
    detectable.insert(detectable.end(), split.detectable.begin(), split.detectable.end());
  }
  test.alarm_interval = stats::wilson_interval(test.alarms, splits, kConfidence);
  test.difference_interval = stats::wilson_interval(test.differences, splits, kConfidence);
  test.minimum_detectable = stats::quantile_in_place(detectable, 0.5);
  return test;
}

template <>
struct Record<SelfTest> {
  using T = SelfTest;
  static constexpr auto kRate = [](int64_t count, const T& of) {
    return static_cast<double>(count) / static_cast<double>(of.splits);
  };
  static constexpr auto kMembers = std::tuple(
      constant("schema_version", kComparisonSchemaVersion), field("splits", &T::splits),
      field("every_split", &T::every_split), field("processes", &T::processes),
      derived("margin", [](const T&, const CompareOptions& in) { return in.margin; }),
      derived("alpha", [](const T&, const CompareOptions& in) { return in.alpha; }),
      field("false_alarms", &T::alarms),
      derived("false_alarm_rate", [](const T& of) { return kRate(of.alarms, of); }),
      field("false_alarm_interval", &T::alarm_interval), field("differences", &T::differences),
      derived("difference_rate", [](const T& of) { return kRate(of.differences, of); }),
      field("difference_interval", &T::difference_interval),
      field("minimum_detectable_share", &T::minimum_detectable));
};

Json self_test_to_json(const SelfTest& test, const CompareOptions& options) {
  return record_to_json(test, options);
}

}  // namespace assay
