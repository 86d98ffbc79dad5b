// Tables of a judgement across bundles.
#include "report/judgements/portability_tables.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/add_once.h"
#include "base/text/text.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

// "threads, stack": a kind of which one axis differs goes by that axis.
std::string differences_text(const Portability& of, size_t regime) {
  const RegimePair& pair = pair_of(of.pairs, 0, regime);
  const std::vector<std::string> axes = axes_of(pair);
  std::vector<std::string> names = perturbations_of(axes);
  const bool alike = names.empty();
  for (std::string& name : names) {
    const auto of_kind = [&](const std::string& axis) { return perturbation_of(axis) == name; };
    const auto only = std::ranges::find_if(axes, of_kind);
    if (std::ranges::count_if(axes, of_kind) == 1) name = *only;
  }
  const std::string text = alike ? "nothing" : join(names, ", ");
  if (pair.unstated.empty()) return text;
  return alike ? "nothing stated" : text + ", or more";
}

// "sensitive"; "undecided (fragile to sensitive)", where the interval allows these bands.
std::string band_text(const RobustnessIndex& index) {
  std::string text(robustness_band_name(index.band));
  if (index.best == index.worst) return text;
  return text + fmt::format(" ({} to {})", robustness_band_name(index.worst),
                            robustness_band_name(index.best));
}

int64_t surviving_points(const RobustnessIndex& index) {
  return std::ranges::count_if(index.points,
                               [](const RetainedShare& point) { return point.gone.empty(); });
}

// The axis that is responsible, with "?" where the runs don't show that; else the reason why none
// is.
std::string suspect_text(const Attribution& of) {
  if (of.suspect.empty()) return std::string(attribution_basis_name(of.basis));
  return of.is_responsible ? of.suspect : of.suspect + "?";
}

// "device (threads)".
std::string axis_text(const Portability& of, const RobustnessIndex& index) {
  const std::string behind = axis_behind(of, index);
  return behind == index.axis ? behind : fmt::format("{} ({})", index.axis, behind);
}

void add_claim_row(const Portability& of, const JudgedClaim& claim, const RobustnessIndex& index,
                   Table& table) {
  table.rows.push_back({claim_text(claim.claim.words), claim_verdict_name(claim.verdict),
                        axis_text(of, index), surviving_points(index), TableCell(index.index, 3),
                        interval_cell(index.interval, 3), band_text(index),
                        TableCell::if_any(index.reason)});
}

TableCell lost_cell(const PortedCondition& condition, size_t regime) {
  const RegimeCell* cell = condition.cells[regime];
  return cell == nullptr ? TableCell::absent() : TableCell(lost_of_text(cell->crashes));
}

TableCell crash_share_cell(const CrashRate& rate) {
  return percent_cell(static_cast<double>(rate.lost) /
                      static_cast<double>(std::max<int64_t>(rate.attempted, 1)));
}

}  // namespace

std::string gain_text(double share) {
  // A sum with 0 is never -0, which would be shown as "-0.0 %".
  return fmt::format("{:.1f} %", std::round(share * 1000) / 10 + 0.0);
}

std::string lost_of_text(const CrashRate& rate) {
  return fmt::format("{}/{}", rate.lost, rate.attempted);
}

std::string axis_behind(const Portability& of, const RobustnessIndex& index) {
  if (index.axis == "all") return index.axis;
  std::vector<std::string> axes;
  for (size_t r = 1; r < of.regimes.size(); ++r) {
    if (std::ranges::find(index.points, of.regimes[r].name, &RetainedShare::name) ==
        index.points.end()) {
      continue;
    }
    add_each_once(axes, axes_of(pair_of(of.pairs, 0, r)));
  }
  return axes.size() == 1 ? axes[0] : index.axis;
}

Table regime_table(const Portability& of) {
  Table table{.columns = columns_of(
                  "<bundle|<differs_on|similar|shift|flip|outcome|crash|missing|undecided")};
  for (size_t r = 1; r < of.regimes.size(); ++r) {
    auto counts = of.counts(r);
    std::vector<TableCell> row = {of.regimes[r].name, differences_text(of, r)};
    for (const PortabilityVerdict verdict :
         {PortabilityVerdict::kSimilar, PortabilityVerdict::kShift,
          PortabilityVerdict::kDirectionFlip, PortabilityVerdict::kOutcomeFlip,
          PortabilityVerdict::kCrashBoth}) {
      row.push_back(counts[verdict]);
    }
    row.push_back(counts[PortabilityVerdict::kMissingA] + counts[PortabilityVerdict::kMissingB]);
    row.push_back(counts[PortabilityVerdict::kUndecided]);
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table claim_table(const Portability& of, bool by_axis) {
  Table table{.columns =
                  columns_of("<claim|<verdict|<axis|points|index|95% interval|<band|<reason")};
  for (const JudgedClaim& claim : of.claims) {
    for (const RobustnessIndex& index : claim.indexes) {
      const bool whole = index.axis == "all";
      if (whole || (by_axis && index.points.size() > 1)) add_claim_row(of, claim, index, table);
    }
  }
  return table;
}

Table claim_regime_table(const Portability& of) {
  Table table{
      .columns = columns_of("<claim|<bundle|<differs_on|<state|ratio|95% interval|p_holm|<reason")};
  for (const JudgedClaim& claim : of.claims) {
    for (const ClaimInRegime& in : claim.regimes) {
      table.rows.push_back({claim_text(claim.claim.words), of.regimes[in.regime].name,
                            TableCell::if_any(join(in.axes, ", ")), claim_state_name(in.state),
                            cell_of(in.shown, &SpreadRatio::ratio), spread_cell(in.shown),
                            p_holm_cell(in.p_holm), TableCell::if_any(in.reason)});
    }
  }
  return table;
}

Table headline_matrix_table(const Portability& of) {
  std::vector<std::string> classes;
  std::vector<std::string> arms;
  std::vector<std::pair<std::string, size_t>> rows;  // arm and regime
  std::map<std::tuple<std::string, size_t, std::string>, std::string> fields;
  for (const HeadlineCell& cell : of.matrix) {
    add_once(classes, cell.model_class);
    add_once(arms, cell.arm);
    add_once(rows, std::pair(cell.arm, cell.regime));
    const std::string gain = cell.prefill_gain ? gain_text(*cell.prefill_gain) : "-";
    const std::string lost = cell.decode_crashes ? lost_of_text(*cell.decode_crashes) : "-";
    fields[{cell.arm, cell.regime, cell.model_class}] = fmt::format("{}, {}", gain, lost);
  }
  // Bundles beside one another, arm by arm.
  std::ranges::stable_sort(rows, {}, [&](const auto& row) {
    return std::pair(std::ranges::find(arms, row.first) - arms.begin(), row.second);
  });
  Table table{.columns = columns_of("<prefill gain, decode lost|<bundle")};
  for (const std::string& name : classes) table.columns.push_back({name});
  for (const auto& [arm, regime] : rows) {
    auto& row = table.rows.emplace_back();
    row = {arm, of.regimes[regime].name};
    for (const std::string& name : classes) {
      const auto at = fields.find({arm, regime, name});
      row.push_back(at == fields.end() ? TableCell::absent() : TableCell(at->second));
    }
  }
  return table;
}

Table headline_table(const Portability& of) {
  Table table{.columns =
                  columns_of("<bundle|<arm|<models|prefill_gain|95% interval|strata|decode_lost|"
                             "crash_rate|its interval")};
  for (const HeadlineCell& cell : of.matrix) {
    const auto& crashes = cell.decode_crashes;
    const auto shares = [](const std::optional<stats::Interval>& interval,
                           fmt::format_string<std::string, std::string> text = "[{}, {}]") {
      if (!interval) return TableCell::absent();
      return TableCell{Json::array({interval->low, interval->high}),
                       fmt::format(text, gain_text(interval->low), gain_text(interval->high))};
    };
    table.rows.push_back(
        {of.regimes[cell.regime].name, cell.arm, cell.model_class, percent_cell(cell.prefill_gain),
         cell.gain_range ? shares(cell.gain_range, "range {} to {}") : shares(cell.gain_interval),
         cell.prefill_strata, cell_of(crashes, lost_of_text), cell_of(crashes, crash_share_cell),
         crashes ? shares(crashes->interval) : TableCell::absent()});
  }
  return table;
}

Table moves_table(const Portability& of, size_t regime) {
  Table table{.columns =
                  columns_of("<phase|<model|<prompt|new_tokens|batch|<arm|<verdict|ratio|interval|"
                             "lost_a|lost_b|<reason")};
  for (const ConditionVerdict& verdict : of.verdicts) {
    if (verdict.b != regime) continue;
    const PortedCondition& condition = of.conditions[verdict.condition];
    const Stratum& s = condition.stratum;
    table.rows.push_back({phase_name(s.phase), s.model, prompt_name(s), s.new_tokens, s.batch,
                          condition.arm(), portability_verdict_name(verdict.verdict),
                          cell_of(verdict.shown, &SpreadRatio::ratio), spread_cell(verdict.shown),
                          lost_cell(condition, verdict.a), lost_cell(condition, verdict.b),
                          TableCell::if_any(verdict.reason)});
  }
  return table;
}

Table with_columns(const Table& table, const std::vector<std::string>& names) {
  Table part{table.title, {}, std::vector<std::vector<TableCell>>(table.rows.size())};
  for (const std::string& name : names) {
    const auto at = std::ranges::find(table.columns, name, &Column::name);
    const auto place = static_cast<size_t>(at - table.columns.begin());
    part.columns.push_back(*at);
    for (size_t i = 0; i < table.rows.size(); ++i) part.rows[i].push_back(table.rows[i][place]);
  }
  return part;
}

Table verdict_table(const Portability& of) {
  Table table{.columns = columns_of(
                  "<phase|<model|<scenario|<new_tokens|<batch|<arm|<cache|<compile_mode|<dynamic|"
                  "<quantization|<a|<b|<verdict|ratio|p_holm|tost_p_holm|lost_a|lost_b|"
                  "<direction_a|<direction_b|<responsible|<control|<reason")};
  for (size_t i = 0; i < of.verdicts.size(); ++i) {
    const ConditionVerdict& verdict = of.verdicts[i];
    const PortedCondition& condition = of.conditions[verdict.condition];
    const Stratum& s = condition.stratum;
    const Attribution& attribution = of.attributions[i];
    const auto direction = [&](size_t regime) {
      const ArmDirection& in = of.directions[verdict.condition][regime];
      return in.ratio ? TableCell(verdict_name(in.decided)) : TableCell::absent();
    };
    const bool changed = is_change(verdict.verdict);
    table.rows.push_back(
        row_of(phase_name(s.phase), s.model, s.scenario, s.new_tokens, s.batch, condition.arm(),
               TableCell::if_any(condition.config.cache), TableCell::if_any(condition.config.mode),
               TableCell::if_any(condition.config.dynamic),
               TableCell::if_any(condition.config.quantization), of.regimes[verdict.a].name,
               of.regimes[verdict.b].name, portability_verdict_name(verdict.verdict),
               cell_of(verdict.shown, &SpreadRatio::ratio), p_holm_cell(verdict.p_holm),
               p_holm_cell(verdict.tost_p_holm), lost_cell(condition, verdict.a),
               lost_cell(condition, verdict.b), direction(verdict.a), direction(verdict.b),
               changed ? TableCell::if_any(suspect_text(attribution)) : TableCell::absent(),
               changed ? TableCell(control_state_name(attribution.control)) : TableCell::absent(),
               TableCell::if_any(verdict.reason)));
  }
  return table;
}

}  // namespace assay
