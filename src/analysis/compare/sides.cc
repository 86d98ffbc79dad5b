// Two sides of one bundle: their cells and the pairs of their repetitions.
#include "analysis/compare/sides.h"

#include <algorithm>
#include <iterator>

#include "analysis/compare/crashes.h"
#include "analysis/compare/judge.h"
#include "analysis/compare/pairing.h"
#include "analysis/contrast/estimate.h"
#include "analysis/contrast/typical.h"
#include "analysis/rows/summary.h"
#include "base/records/lenient_json.h"
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
  for (size_t stratum = 0; stratum < samples.strata.size(); ++stratum) {
    for (const std::string& arm : pairing.arms) {
      const Group* base = samples.find(stratum, arm + std::string(kBaseSide));
      const Group* cand = samples.find(stratum, arm + std::string(kCandSide));
      if (base || cand) pairing.pairs.push_back({stratum, arm, base, cand});
    }
  }
  return pairing;
}

// A cell with the estimates of its pairs of repetitions.
struct PairedCell {
  CellPair pair;
  std::vector<PairedProcess> rounds;
  Estimate means;
  Estimate typical;
  bool judged = false;

  bool by_processes() const { return rounds.size() > 1; }
  const Estimate& of(ProcessFigure figure) const {
    return figure == ProcessFigure::kMean ? means : typical;
  }
};

ComparedSide describe_side(const PairedCell& cell, bool base) {
  std::vector<double> ms;
  for (const PairedProcess& round : cell.rounds) {
    std::ranges::copy(base ? round.base_ms : round.cand_ms, std::back_inserter(ms));
  }
  ComparedSide side;
  side.processes = std::ssize(cell.rounds);
  side.mean_ms = stats::mean(ms).value_or(0);
  const auto sd = stats::standard_deviation(ms);
  if (sd && side.mean_ms > 0) side.noise = *sd / side.mean_ms;
  return side;
}

void fill(const Estimate& of, bool judged, const CompareOptions& options, ComparedCell& cell) {
  fill_tests(of.log_ratio, judged ? of.error : std::nullopt, options, cell);
  cell.alarm_error = cell.error;  // nothing lies between two runs here
  if (judged) cell.verdict = Verdict::kInconclusive;
  const SpreadRatio as_shown = shown(of);
  if (cell.ratio_interval) cell.ratio_interval = as_shown.interval;
  cell.too_few = of.too_few;
  cell.ratio_range = as_shown.process_range;
}

ComparedCell cell_of(const Comparison& of, const PairedCell& paired, ProcessFigure figure) {
  ComparedCell cell;
  cell.phase = of.strata[paired.pair.stratum].phase;
  cell.stratum = paired.pair.stratum;
  cell.arm = paired.pair.arm;
  cell.base = describe_side(paired, true);
  cell.cand = describe_side(paired, false);
  cell.n_base = static_cast<int64_t>(paired.pair.base->warm.size());
  cell.n_cand = static_cast<int64_t>(paired.pair.cand->warm.size());
  cell.difference_ms = cell.cand->mean_ms - cell.base->mean_ms;
  cell.by_processes = paired.by_processes();
  cell.lost_factor = bounds_of_lost(paired.pair);
  fill(paired.of(figure), paired.judged, of.options, cell);
  return cell;
}

// The cells of one arm in one phase as one.
ComparedCell combine_arm(const Comparison& of, const std::vector<const PairedCell*>& members,
                         ProcessFigure figure) {
  ComparedCell cell;
  cell.phase = of.strata[members[0]->pair.stratum].phase;
  cell.arm = members[0]->pair.arm;
  cell.strata = std::ssize(members);
  cell.by_processes = std::ranges::all_of(members, &PairedCell::by_processes);
  const bool judged = std::ranges::all_of(members, &PairedCell::judged);
  std::vector<Estimate> parts;
  std::vector<std::optional<stats::Interval>> lost;
  for (const PairedCell* part : members) {
    parts.push_back(part->of(figure));
    lost.push_back(bounds_of_lost(part->pair));
    cell.n_base += std::ssize(part->pair.base->warm);
    cell.n_cand += std::ssize(part->pair.cand->warm);
  }
  cell.lost_factor = combined_bounds(lost);
  fill(combine(parts), judged, of.options, cell);
  return cell;
}

ComparedCells compare_pairs(const std::vector<PairedCell>& cells,
                            const std::vector<std::string>& arms, ProcessFigure figure,
                            const Comparison& of) {
  ComparedCells out;
  for (const PairedCell& paired : cells) out.cells.push_back(cell_of(of, paired, figure));
  for (const Phase phase : kPhases) {
    for (const std::string& arm : arms) {
      std::vector<const PairedCell*> members;
      for (const PairedCell& cell : cells) {
        const bool alike = of.strata[cell.pair.stratum].phase == phase && cell.pair.arm == arm;
        if (alike) members.push_back(&cell);
      }
      if (members.size() > 1) out.combined.push_back(combine_arm(of, members, figure));
    }
  }
  return out;
}

const Json& sides_of(const Bundle& bundle) {
  return member(member(bundle.manifest, "study"), "sides");
}

std::string program_of(const Bundle& bundle, const char* side) {
  const std::string program = text_member(sides_of(bundle), side);
  return program.empty() ? side : program;
}

}  // namespace

bool has_sides(const Bundle& bundle) {
  return sides_of(bundle).is_object();
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
  std::vector<GroupPair> family;
  for (const CellPair& pair : sort_out(pairing.pairs, true, out)) {
    PairedCell cell{pair, pair_up(samples, units, *pair.base, *pair.cand), {}, {}, true};
    if (!units.paired(pair.base->stratum)) {
      out.not_comparable.push_back({pair.stratum, pair.arm, "its blocks aren't whole"});
    } else if (cell.rounds.empty()) {
      out.not_comparable.push_back({pair.stratum, pair.arm, "no repetition is ok on both sides"});
    } else {
      cell.judged = cell.by_processes() || options.allow_single_process;
      cell.typical = typical_estimate(cell.rounds, cell.by_processes());
      family.push_back({samples.index_of(*pair.cand), samples.index_of(*pair.base)});
      cells.push_back(std::move(cell));
    }
  }
  std::vector<Estimate> estimates = estimates_of(samples, units, family);
  for (size_t i = 0; i < cells.size(); ++i) cells[i].means = std::move(estimates[i]);
  std::erase_if(cells, [&](const PairedCell& cell) {
    const std::string& reason =
        cell.means.why_absent.empty() ? cell.typical.why_absent : cell.means.why_absent;
    if (!reason.empty()) out.not_comparable.push_back({cell.pair.stratum, cell.pair.arm, reason});
    return !reason.empty();
  });
  ComparedCells means = compare_pairs(cells, pairing.arms, ProcessFigure::kMean, out);
  judge_cells(std::move(means), compare_pairs(cells, pairing.arms, ProcessFigure::kMedian, out),
              out);
  return out;
}

}  // namespace assay
