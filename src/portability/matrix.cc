// Prefill gains and decode losses by model class.
#include "portability/matrix.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/add_once.h"
#include "base/text/text.h"

namespace assay {
namespace {

// "25m", "0.5b", "1b": digits, perhaps a point, and the letter of a unit.
bool is_size(const std::string& word) {
  if (word.size() < 2) return false;
  const char unit = word.back();
  if (unit != 'm' && unit != 'b' && unit != 'k' && unit != 'M' && unit != 'B' && unit != 'K') {
    return false;
  }
  return std::ranges::all_of(word.substr(0, word.size() - 1),
                             [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

}  // namespace

std::string model_class(const std::string& model) {
  const size_t slash = model.find_last_of('/');
  const std::string name = slash == std::string::npos ? model : model.substr(slash + 1);
  std::vector<std::string> kept;
  for (const std::string& word : split(name, '-')) {
    if (!is_size(word)) kept.push_back(word);
  }
  return kept.empty() ? name : join(kept, "-");
}

std::vector<HeadlineCell> headline_matrix(std::span<const PortedCondition> conditions,
                                          std::span<const std::vector<ArmDirection>> directions,
                                          const ArmConfig& baseline) {
  std::vector<HeadlineCell> cells;
  std::vector<std::vector<Estimate>> gains;  // of a cell, by stratum
  std::map<std::tuple<size_t, ArmConfig, std::string>, size_t> places;
  std::vector<std::string> classes;  // as they appear
  std::vector<ArmConfig> arms;
  for (size_t c = 0; c < conditions.size(); ++c) {
    const PortedCondition& condition = conditions[c];
    if (condition.config == baseline || condition.stratum.phase == Phase::kE2eKv) continue;
    const std::string of_model = model_class(condition.stratum.model);
    add_once(classes, of_model);
    add_once(arms, condition.config);
    for (size_t r = 0; r < condition.cells.size(); ++r) {
      const RegimeCell* cell = condition.cells[r];
      if (cell == nullptr) continue;
      const auto [at, fresh] = places.try_emplace({r, condition.config, of_model}, cells.size());
      if (fresh) {
        HeadlineCell& made = cells.emplace_back();
        made.regime = r;
        made.config = condition.config;
        made.arm = cell->arm;
        made.model_class = of_model;
        gains.emplace_back();
      }
      HeadlineCell& of = cells[at->second];
      if (condition.stratum.phase == Phase::kPrefill) {
        const auto& ratio = directions[c][r].ratio;
        if (ratio) {
          gains[at->second].push_back(*ratio);
        } else {
          ++of.prefill_left_out;
        }
        continue;
      }
      Losses losses = of.decode_crashes ? std::move(of.decode_crashes->losses) : Losses{};
      losses.add(cell->crashes.losses);
      of.decode_crashes = crash_rate(std::move(losses));
    }
  }
  for (size_t i = 0; i < cells.size(); ++i) {
    cells[i].prefill_strata = std::ssize(gains[i]);
    if (gains[i].empty()) continue;
    const SpreadRatio mean = shown(combine(gains[i]));
    const auto gain_of = [](const std::optional<stats::Interval>& ratios) {
      return ratios ? std::optional(stats::Interval{1 - ratios->high, 1 - ratios->low}) : ratios;
    };
    cells[i].prefill_gain = 1 - mean.ratio;
    cells[i].gain_interval = gain_of(mean.interval);
    cells[i].gain_range = gain_of(mean.process_range);
  }
  const auto place_of = [](const auto& all, const auto& one) {
    return std::ranges::find(all, one) - all.begin();
  };
  std::ranges::stable_sort(cells, {}, [&](const HeadlineCell& cell) {
    return std::tuple(cell.regime, place_of(arms, cell.config),
                      place_of(classes, cell.model_class));
  });
  return cells;
}

}  // namespace assay
