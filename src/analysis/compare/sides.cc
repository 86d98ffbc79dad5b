// Two sides of one bundle: their cells and the pairs of their repetitions.
#include "analysis/compare/sides.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "analysis/compare/crashes.h"
#include "analysis/compare/judge.h"
#include "analysis/compare/pairing.h"
#include "analysis/compare/pairs.h"
#include "analysis/contrast/process_range.h"
#include "analysis/rows/summary.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

// Names of the arms as src/study/sides.h makes them; the bundle's own names are all that a reader
// has.
constexpr std::string_view kBaseSide = "@base";
constexpr std::string_view kCandSide = "@cand";

Pairing pair_sides(const Samples& samples) {
  Pairing pairing;
  pairing.strata = samples.strata;
  for (const std::string& arm : samples.arms) {
    if (!arm.ends_with(kBaseSide)) continue;
    pairing.arms.push_back(arm.substr(0, arm.size() - kBaseSide.size()));
  }
  const auto find = [&](size_t stratum, const std::string& arm) -> const Group* {
    const auto at = std::ranges::find(samples.arms, arm);
    if (at == samples.arms.end()) return nullptr;
    return samples.find(stratum, static_cast<size_t>(at - samples.arms.begin()));
  };
  for (size_t stratum = 0; stratum < samples.strata.size(); ++stratum) {
    for (const std::string& arm : pairing.arms) {
      const Group* base = find(stratum, arm + std::string(kBaseSide));
      const Group* cand = find(stratum, arm + std::string(kCandSide));
      if (base || cand) pairing.pairs.push_back({stratum, arm, base, cand});
    }
  }
  return pairing;
}

// Units of a judged cell: pairs of processes or, where there is one and that is allowed, pairs of
// rows.
struct PairedCell {
  CellPair pair;
  std::vector<PairedProcess> units;
  int64_t processes = 0;
  bool judged = false;
};

PairedCell paired_cell(const Samples& samples, const Units& units, const CellPair& pair,
                       const CompareOptions& options) {
  PairedCell cell{pair, pair_up(samples, units, *pair.base, *pair.cand), 0, true};
  cell.processes = static_cast<int64_t>(cell.units.size());
  if (cell.processes > 1) return cell;
  cell.judged = options.allow_single_process;
  if (cell.judged) cell.units = split_pairs(cell.units);
  return cell;
}

ComparedSide describe_side(const PairedCell& cell, bool base) {
  std::vector<double> ms;
  for (const PairedProcess& unit : cell.units) {
    std::ranges::copy(base ? unit.base_ms : unit.cand_ms, std::back_inserter(ms));
  }
  ComparedSide side;
  side.processes = cell.processes;
  side.mean_ms = stats::mean(ms).value_or(0);
  const auto sd = stats::standard_deviation(ms);
  if (sd && side.mean_ms > 0) side.noise = *sd / side.mean_ms;
  return side;
}

void fill(const PairedRatio& ratio, bool judged, const CompareOptions& options,
          ComparedCell& cell) {
  fill_tests(ratio.log_ratio(), judged ? ratio.error() : std::nullopt, options, cell);
  cell.alarm_error = cell.error;  // nothing lies between two runs here
  if (judged) cell.verdict = Verdict::kInconclusive;
  cell.too_few = cell.by_processes && std::ssize(ratio.values) < kLeastProcessesOfInterval;
  const auto logs = range_of(ratio.values);
  if (!cell.too_few || !logs) return;
  cell.ratio_range = stats::exp_of(*logs);
}

ComparedCell cell_of(const Comparison& of, const PairedCell& paired, const PairedRatio& ratio) {
  ComparedCell cell;
  cell.phase = of.strata[paired.pair.stratum].phase;
  cell.stratum = paired.pair.stratum;
  cell.arm = paired.pair.arm;
  cell.base = describe_side(paired, true);
  cell.cand = describe_side(paired, false);
  cell.n_base = static_cast<int64_t>(paired.pair.base->warm.size());
  cell.n_cand = static_cast<int64_t>(paired.pair.cand->warm.size());
  cell.difference_ms = cell.cand->mean_ms - cell.base->mean_ms;
  cell.by_processes = paired.processes > 1;
  cell.lost_factor = bounds_of_lost(paired.pair);
  fill(ratio, paired.judged, of.options, cell);
  return cell;
}

// Combines the cells of one arm in one phase, if there are several.
void combine(const Comparison& of, const std::vector<PairedRatio>& ratios,
             const std::vector<size_t>& members, ComparedCells& out) {
  if (members.size() < 2) return;
  ComparedCell cell;
  cell.phase = out.cells[members[0]].phase;
  cell.arm = out.cells[members[0]].arm;
  cell.strata = static_cast<int64_t>(members.size());
  cell.by_processes = true;
  bool judged = true;
  std::vector<PairedRatio> parts;
  std::vector<std::optional<stats::Interval>> lost;
  for (const size_t member : members) {
    const ComparedCell& part = out.cells[member];
    parts.push_back(ratios[member]);
    lost.push_back(part.lost_factor);
    cell.n_base += part.n_base;
    cell.n_cand += part.n_cand;
    cell.by_processes = cell.by_processes && part.by_processes;
    judged = judged && part.verdict.has_value();
  }
  cell.lost_factor = combined_bounds(lost);
  fill(combine_ratios(parts), judged, of.options, cell);
  out.combined.push_back(std::move(cell));
}

ComparedCells compare_pairs(const std::vector<PairedCell>& cells,
                            const std::vector<std::string>& arms, ProcessFigure figure,
                            const Comparison& of) {
  ComparedCells out;
  std::vector<PairedRatio> ratios;
  for (const PairedCell& paired : cells) {
    const auto ratio = paired_ratio(paired.units, figure);
    if (!ratio) continue;
    out.cells.push_back(cell_of(of, paired, *ratio));
    ratios.push_back(*ratio);
  }
  for (const Phase phase : kPhases) {
    for (const std::string& arm : arms) {
      std::vector<size_t> members;
      for (size_t i = 0; i < out.cells.size(); ++i) {
        if (out.cells[i].phase == phase && out.cells[i].arm == arm) members.push_back(i);
      }
      combine(of, ratios, members, out);
    }
  }
  return out;
}

std::string program_of(const Bundle& bundle, const char* side) {
  const auto& sides = bundle.manifest["study"]["sides"];
  const auto program = sides.find(side);
  return program != sides.end() && program->is_string() ? program->get<std::string>() : side;
}

}  // namespace

bool has_sides(const Bundle& bundle) {
  const auto study = bundle.manifest.find("study");
  return study != bundle.manifest.end() && study->is_object() && study->contains("sides") &&
         (*study)["sides"].is_object();
}

Result<Comparison> compare_sides(const Bundle& bundle, const CompareOptions& options) {
  const std::string name = bundle.folder.string();
  if (!has_sides(bundle)) {
    return bad_input("{}: expected a bundle that `assay compare --run` measured, found one side",
                     name);
  }
  ASSAY_TRY(const Samples samples, group_rows(bundle, summarize(bundle).arms));
  const Pairing pairing = pair_sides(samples);
  Comparison out;
  out.options = options;
  out.base_name = program_of(bundle, "base");
  out.cand_name = program_of(bundle, "cand");
  out.in_one_run = true;
  out.base_load = out.cand_load = machine_load(bundle);
  out.strata = pairing.strata;
  out.crashes = compare_crashes(out.strata, pairing.pairs, options);
  const Units units(samples, true);
  std::vector<PairedCell> cells;
  for (const CellPair& pair : sort_out(pairing.pairs, true, out)) {
    PairedCell cell = paired_cell(samples, units, pair, options);
    if (!units.paired(pair.base->stratum)) {
      out.not_comparable.push_back({pair.stratum, pair.arm, "its blocks aren't whole"});
    } else if (cell.units.empty()) {
      out.not_comparable.push_back({pair.stratum, pair.arm, "no repetition is ok on both sides"});
    } else {
      cells.push_back(std::move(cell));
    }
  }
  ComparedCells means = compare_pairs(cells, pairing.arms, ProcessFigure::kMean, out);
  judge_cells(std::move(means), compare_pairs(cells, pairing.arms, ProcessFigure::kMedian, out),
              out);
  return out;
}

}  // namespace assay
