// Arm by model size.
#include "analysis/describe/model_size.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <tuple>

#include "analysis/contrast/resampling.h"
#include "analysis/contrast/verdict.h"
#include "analysis/describe/reach.h"
#include "analysis/rows/each.h"
#include "base/records/lenient_json.h"
#include "stats/estimates/few_values.h"
#include "stats/power/powers.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

// The last number in the name that an m or b follows, as a word: "qwen2.5-0.5b" is 0.5e9.
std::optional<double> size_in_name(const std::string& name) {
  std::optional<double> found;
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || c == '.'; };
  for (size_t i = 0; i < name.size();) {
    if (!is_digit(name[i])) {
      ++i;
      continue;
    }
    double value = 0;
    const auto [end, error] = std::from_chars(name.data() + i, name.data() + name.size(), value,
                                              std::chars_format::fixed);
    const auto stop = static_cast<size_t>(end - name.data());
    const char unit = stop < name.size() ? name[stop] : ' ';
    const bool word =
        stop + 1 >= name.size() || !std::isalnum(static_cast<unsigned char>(name[stop + 1]));
    if (error == std::errc() && word && value > 0) {
      if (unit == 'm' || unit == 'M') found = value * 1e6;
      if (unit == 'b' || unit == 'B') found = value * 1e9;
    }
    i = std::max(stop, i + 1);
  }
  return found;
}

std::optional<double> recorded_size(const Bundle& bundle, const std::string& model) {
  const Json& completion = member(bundle.manifest, "completion");
  const auto size = number_member(member(completion, "model_weight_bytes"), model);
  return size && *size > 0 ? size : std::nullopt;
}

struct Condition {
  Phase phase = Phase::kPrefill;
  std::string scenario;
  int64_t new_tokens = 0;
  int64_t batch = 1;
  friend bool operator==(const Condition&, const Condition&) = default;
};

// The groups of one condition that can be contrasted, by model and arm.
struct Grid {
  Condition condition;
  std::vector<std::string> models;  // as they first appear
  std::map<std::pair<std::string, size_t>, size_t> groups;
};

std::vector<Grid> grids(const Samples& samples, const AnalysisOptions& options) {
  std::vector<Grid> all;
  for (size_t g = 0; g < samples.groups.size(); ++g) {
    const Group& group = samples.groups[g];
    if (!reasons_against(group, options).empty()) continue;
    const Stratum& s = samples.strata[group.stratum];
    const Condition condition{s.phase, s.scenario, s.new_tokens, s.batch};
    auto grid = std::ranges::find(all, condition, &Grid::condition);
    if (grid == all.end()) {
      grid = all.insert(all.end(), Grid{});
      grid->condition = condition;
    }
    if (std::ranges::find(grid->models, s.model) == grid->models.end()) {
      grid->models.push_back(s.model);
    }
    grid->groups[{s.model, group.arm}] = g;
  }
  return all;
}

std::vector<size_t> arms_of(const Samples& samples, const Grid& grid) {
  std::vector<size_t> arms;
  for (size_t arm = 0; arm < samples.arms.size(); ++arm) {
    const bool any = std::ranges::any_of(grid.models, [&](const auto& model) {
      return grid.groups.contains({model, arm});
    });
    if (any) arms.push_back(arm);
  }
  return arms;
}

// ln(ms) of the group's rows; of processes the mean of each.
std::vector<double> log_values(const Group& group, const UnitSeries& series, bool of_processes) {
  std::vector<double> logs;
  for (const double ms : group.warm_ms) logs.push_back(std::log(ms));
  if (!of_processes) return logs;
  std::vector<double> means(series.keys.size(), 0.0);
  for (size_t i = 0; i < logs.size(); ++i) {
    means[series.of_row[i]] += logs[i] / static_cast<double>(series.rows[series.of_row[i]]);
  }
  return means;
}

void add_anova(const Samples& samples, const Units& units, const Grid& grid,
               const std::vector<size_t>& arms, SizeAnalysis& out) {
  const bool of_processes = std::ranges::all_of(grid.groups, [&](const auto& entry) {
    return units.of(samples.groups[entry.second].stratum) == ContrastUnit::kProcesses;
  });
  std::vector<stats::AnovaCell> cells;
  for (size_t a = 0; a < arms.size(); ++a) {
    for (size_t m = 0; m < grid.models.size(); ++m) {
      const auto at = grid.groups.find({grid.models[m], arms[a]});
      if (at == grid.groups.end()) continue;
      const std::vector<double> logs =
          log_values(samples.groups[at->second], units.series(at->second), of_processes);
      if (const auto moments = stats::moments(logs)) cells.push_back({a, m, *moments});
    }
  }
  out.type2 = stats::two_way_anova(cells, stats::SumsOfSquares::kTypeII);
}

// Sizes ascending, and at each the resampled means of arm and baseline.
struct Line {
  std::vector<double> log_size;
  std::vector<const stats::ResampledMean*> arm;
  std::vector<const stats::ResampledMean*> base;
  std::vector<double> widening;  // of the contrasts, for few values too
};

struct Crossing {
  double log_size = 0;
  int64_t count = 0;
};

// The first sign change of `y` along ln(size).
Crossing crossing_of(const std::vector<double>& log_size, const std::vector<double>& y) {
  Crossing crossing;
  for (size_t i = 0; i + 1 < y.size(); ++i) {
    if ((y[i] < 0) == (y[i + 1] < 0)) continue;
    if (crossing.count++ > 0) continue;
    crossing.log_size = log_size[i] + y[i] / (y[i] - y[i + 1]) * (log_size[i + 1] - log_size[i]);
  }
  return crossing;
}

void add_crossover(const Line& line, SizeCrossover& out) {
  std::vector<double> y;
  for (const SizeRatio& ratio : out.ratios) y.push_back(std::log(ratio.ratio));
  const Crossing estimate = crossing_of(line.log_size, y);
  if (estimate.count == 0) return;
  out.crossover = std::exp(estimate.log_size);
  const auto few = [](const SizeRatio& ratio) { return ratio.process_range.has_value(); };
  if (std::ranges::any_of(out.ratios, few)) return;  // too few processes for an interval
  // A resample without a crossing puts it beyond the end towards which the estimate's sign goes.
  const bool faster_first = y.front() < 0;
  const std::vector<double> center = y;
  std::vector<double> log_sizes(line.arm.front()->replicates.size());
  std::vector<std::vector<double>> replicates(y.size());
  for (size_t i = 0; i < y.size(); ++i) {
    replicates[i].resize(log_sizes.size());
    stats::log_ratios(line.arm[i]->replicates, line.base[i]->replicates, replicates[i]);
  }
  for (size_t r = 0; r < log_sizes.size(); ++r) {
    for (size_t i = 0; i < y.size(); ++i) {
      y[i] = center[i] + line.widening[i] * (replicates[i][r] - center[i]);
    }
    const Crossing crossing = crossing_of(line.log_size, y);
    const bool beyond = (y.front() < 0) == faster_first;
    log_sizes[r] = crossing.count > 0 ? crossing.log_size
                   : beyond           ? std::numeric_limits<double>::infinity()
                                      : -std::numeric_limits<double>::infinity();
  }
  // The exponential keeps the order, so it is taken of the bounds alone.
  const Reach reach = reach_of(log_sizes);
  Reach& interval = out.interval.emplace();
  if (reach.low) interval.low = std::exp(*reach.low);
  if (reach.high) interval.high = std::exp(*reach.high);
}

using ContrastsByPlace = std::map<std::pair<size_t, std::string>, const Contrast*>;

void add_crossovers(const Samples& samples, const Resampled& resampled,
                    const ContrastsByPlace& contrasts, const Grid& grid, const ModelSizes& sizes,
                    SizeAnalysis& out) {
  std::vector<std::string> models = grid.models;
  std::ranges::stable_sort(models, {}, [&](const auto& model) { return sizes.of.at(model); });
  for (size_t arm = 1; arm < samples.arms.size(); ++arm) {
    SizeCrossover crossover;
    crossover.arm = samples.arms[arm];
    Line line;
    for (const std::string& model : models) {
      const auto mine = grid.groups.find({model, arm});
      const auto base = grid.groups.find({model, 0});
      if (mine == grid.groups.end() || base == grid.groups.end()) continue;
      if (!resampled[mine->second] || !resampled[base->second]) continue;
      const auto contrast =
          contrasts.find({samples.groups[mine->second].stratum, samples.arms[arm]});
      if (contrast == contrasts.end()) continue;
      const double size = sizes.of.at(model);
      crossover.ratios.push_back({model, size, contrast->second->ratio,
                                  contrast->second->ratio_interval,
                                  contrast->second->ratio_process_range});
      line.log_size.push_back(std::log(size));
      line.arm.push_back(&*resampled[mine->second]);
      line.base.push_back(&*resampled[base->second]);
      const auto n_arm = static_cast<double>(line.arm.back()->n);
      const auto n_base = static_cast<double>(line.base.back()->n);
      line.widening.push_back(
          contrast->second->widening.error *
          stats::expansion(std::min(n_arm, n_base), n_arm + n_base - 2, kConfidence));
    }
    if (crossover.ratios.size() < 2) continue;
    add_crossover(line, crossover);
    out.crossovers.push_back(std::move(crossover));
  }
}

void adjust_interactions(std::vector<SizeAnalysis>& all) {
  for (const Phase phase : kPhases) {
    std::vector<SizeAnalysis*> family;
    std::vector<std::optional<double>> p_values;
    for (SizeAnalysis& one : all) {
      if (one.phase != phase || !one.type2) continue;
      family.push_back(&one);
      p_values.push_back(one.type2->interaction.p);
    }
    p_values = holm_of(p_values);
    for (size_t i = 0; i < family.size(); ++i) family[i]->interaction_p_holm = p_values[i];
  }
}

}  // namespace

ModelSizes model_sizes(const Bundle& bundle, const std::vector<Stratum>& strata) {
  for (const bool recorded : {true, false}) {
    ModelSizes sizes;
    sizes.unit = recorded ? "weight bytes" : "parameters";
    bool all = !strata.empty();
    for (const Stratum& stratum : strata) {
      const auto size =
          recorded ? recorded_size(bundle, stratum.model) : size_in_name(stratum.model);
      all = all && size;
      if (size) sizes.of[stratum.model] = *size;
    }
    if (all) return sizes;
  }
  return {};
}

std::vector<SizeAnalysis> analyze_sizes(const Samples& samples, const Units& units,
                                        const Resampled& resampled,
                                        const std::vector<Contrast>& contrasts,
                                        const ModelSizes& sizes, const AnalysisOptions& options,
                                        ThreadPool* pool) {
  std::vector<Grid> wide;
  for (Grid& grid : grids(samples, options)) {
    if (grid.models.size() >= 2 && arms_of(samples, grid).size() >= 2) {
      wide.push_back(std::move(grid));
    }
  }
  ContrastsByPlace by_place;
  for (const Contrast& contrast : contrasts)
    by_place[{*contrast.stratum, contrast.arm}] = &contrast;
  std::vector<SizeAnalysis> all(wide.size());
  for_each_index(wide.size(), pool, [&](size_t i) {
    const Grid& grid = wide[i];
    SizeAnalysis& one = all[i];
    one.phase = grid.condition.phase;
    one.scenario = grid.condition.scenario;
    one.new_tokens = grid.condition.new_tokens;
    one.batch = grid.condition.batch;
    one.models = grid.models;
    const std::vector<size_t> arms = arms_of(samples, grid);
    for (const size_t arm : arms) one.arms.push_back(samples.arms[arm]);
    add_anova(samples, units, grid, arms, one);
    if (!sizes.unit.empty()) {
      add_crossovers(samples, resampled, by_place, grid, sizes, one);
    }
  });
  adjust_interactions(all);
  return all;
}

}  // namespace assay
