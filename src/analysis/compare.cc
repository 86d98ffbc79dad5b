// Two bundles against each other: pairs, their tests, and what fails.
#include "analysis/compare.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "analysis/compare_parts.h"
#include "analysis/contrast.h"
#include "analysis/summary.h"
#include "base/text.h"
#include "stats/multiple.h"
#include "stats/summary.h"

namespace assay {
namespace {

// The cells of two bundles by the strata of a comparison.
class Pairing {
 public:
  Pairing(const Samples& base, const Samples& cand) : base_(base), cand_(cand) {
    strata = base.strata;
    for (const Stratum& stratum : cand.strata) {
      if (std::ranges::find(strata, stratum) == strata.end()) strata.push_back(stratum);
    }
    arms = base.arms;
    for (const std::string& arm : cand.arms) {
      if (std::ranges::find(arms, arm) == arms.end()) arms.push_back(arm);
    }
  }
  std::vector<CellPair> pairs() const {
    const auto left = by_place(base_);
    const auto right = by_place(cand_);
    std::vector<CellPair> all;
    for (size_t stratum = 0; stratum < strata.size(); ++stratum) {
      for (const std::string& arm : arms) {
        const auto l = left.find({strata[stratum], arm});
        const auto r = right.find({strata[stratum], arm});
        if (l == left.end() && r == right.end()) continue;
        all.push_back({stratum, arm, l == left.end() ? nullptr : l->second,
                       r == right.end() ? nullptr : r->second});
      }
    }
    return all;
  }

  std::vector<Stratum> strata;
  std::vector<std::string> arms;

 private:
  using Places = std::map<std::pair<Stratum, std::string>, const Group*>;
  static Places by_place(const Samples& samples) {
    Places places;
    for (const Group& group : samples.groups) {
      places[{samples.strata[group.stratum], samples.arms[group.arm]}] = &group;
    }
    return places;
  }
  const Samples& base_;
  const Samples& cand_;
};

// Of latencies that can be told apart from 0 and from one another.
bool has_moments(const Group& group) {
  const auto moments = stats::moments(group.warm_ms);
  return group.warm_ms.size() < 2 ||
         (moments && moments->mean >= std::numeric_limits<double>::min());
}

std::string why_not(const CellPair& pair, const CompareOptions& options, bool prompts_matter) {
  AnalysisOptions needs;
  needs.minimum_rows = options.minimum_rows;
  std::vector<std::string> reasons;
  for (const auto& [name, group] : {std::pair{"base", pair.base}, {"candidate", pair.cand}}) {
    for (const std::string& reason : reasons_against(*group, needs)) {
      reasons.push_back(fmt::format("{}: {}", name, reason));
    }
  }
  for (const auto& [name, group] : {std::pair{"base", pair.base}, {"candidate", pair.cand}}) {
    if (!has_moments(*group)) {
      reasons.push_back(fmt::format(
          "{}: its latencies are too large or too small for a mean and a variance", name));
    }
  }
  if (reasons.empty() && prompts_matter && !same_prompts(*pair.base, *pair.cand)) {
    reasons.emplace_back("the bundles answered different prompts");
  }
  return join(reasons, "; ");
}

// What changed about a cell besides its speed.
void note_changes(const CellPair& pair, Comparison& out) {
  if (pair.cand->parity_failed && !pair.base->parity_failed) {
    out.broken.push_back({pair.stratum, pair.arm, "its output no longer passes parity"});
  }
  const Execution before = pair.base->execution();
  const Execution after = pair.cand->execution();
  if (before != after) {
    out.notes.push_back({pair.stratum, pair.arm,
                         fmt::format("ran {} in the base, {} in the candidate",
                                     execution_name(before), execution_name(after))});
  }
}

void sort_out(const std::vector<CellPair>& pairs, bool prompts_matter, Comparison& out,
              std::vector<CellPair>& comparable) {
  for (const CellPair& pair : pairs) {
    if (pair.cand == nullptr) {
      out.missing.push_back({pair.stratum, pair.arm, "the candidate has no rows of it"});
    } else if (pair.base == nullptr) {
      out.added.push_back({pair.stratum, pair.arm, "the base has no rows of it"});
    } else {
      note_changes(pair, out);
      std::string reason = why_not(pair, out.options, prompts_matter);
      if (!reason.empty()) {
        out.not_comparable.push_back({pair.stratum, pair.arm, std::move(reason)});
        continue;
      }
      comparable.push_back(pair);
    }
  }
}

struct ComparedCells {
  std::vector<ComparedCell> combined;
  std::vector<ComparedCell> cells;
};

// The cells of one phase, and each arm's together.
void compare_phase(Phase phase, const std::vector<CellPair>& comparable,
                   const std::vector<std::string>& arms, ProcessFigure figure, const Comparison& of,
                   ComparedCells& out) {
  std::vector<CellPair> family;
  std::ranges::copy_if(comparable, std::back_inserter(family), [&](const CellPair& pair) {
    return of.strata[pair.stratum].phase == phase;
  });
  const SidesByGroup sides = sides_by_group(family, of.options, figure);
  for (const CellPair& pair : family) {
    out.cells.push_back(compare_cell(phase, pair, sides, of.options));
  }
  for (const std::string& arm : arms) {
    std::vector<CellPair> parts;
    std::ranges::copy_if(family, std::back_inserter(parts),
                         [&](const CellPair& pair) { return pair.arm == arm; });
    if (parts.size() < 2) continue;  // one stratum is its own combination
    out.combined.push_back(combine_cells(phase, parts, sides, of.options));
  }
}

ComparedCells compare_cells(const std::vector<CellPair>& comparable,
                            const std::vector<std::string>& arms, ProcessFigure figure,
                            const Comparison& of) {
  ComparedCells out;
  for (const Phase phase : kPhases) compare_phase(phase, comparable, arms, figure, of, out);
  return out;
}

template <typename Raw, typename Adjusted>
int64_t adjust(const std::vector<ComparedCell*>& family, const Raw& raw, const Adjusted& adjusted) {
  std::vector<double> p_values;
  for (const ComparedCell* cell : family) {
    if (cell->*raw) p_values.push_back((cell->*raw)->p);
  }
  const std::vector<double> holm = stats::holm(p_values);
  size_t next = 0;
  for (ComparedCell* cell : family) {
    if (cell->*raw) cell->*adjusted = holm[next++];
  }
  return static_cast<int64_t>(p_values.size());
}

std::vector<ComparedCell*> family_of(std::vector<ComparedCell>& combined,
                                     std::vector<ComparedCell>& cells) {
  std::vector<ComparedCell*> family;
  for (ComparedCell& cell : combined) family.push_back(&cell);
  for (ComparedCell& cell : cells) family.push_back(&cell);
  return family;
}

// Surely slower by more than the margin, and by more than lies between two runs.
bool is_regression(const ComparedCell& cell, const CompareOptions& options, double alpha) {
  return cell.ratio > 1 + options.margin && cell.p_holm && *cell.p_holm < options.alpha &&
         cell.cautious_p_holm && *cell.cautious_p_holm < alpha;
}

// The second alarm: judges the cells by typical calls, and leaves with each of `out` what came of
// it.
void judge_typical_calls(ComparedCells typical, Comparison& out) {
  add_alarm_tests(typical.cells, typical.combined);
  const std::vector<ComparedCell*> of_means = family_of(out.combined, out.cells);
  std::vector<ComparedCell*> family = family_of(typical.combined, typical.cells);
  std::vector<ComparedCell*> judged;
  std::ranges::copy_if(family, std::back_inserter(judged),
                       [](const ComparedCell* cell) { return cell->by_processes; });
  if (judged.empty()) return;
  adjust(judged, &ComparedCell::test, &ComparedCell::p_holm);
  out.families.push_back(
      {"typical_regression", out.options.alpha / 2,
       adjust(judged, &ComparedCell::cautious_test, &ComparedCell::cautious_p_holm)});
  for (size_t i = 0; i < family.size(); ++i) {
    const ComparedCell& cell = *family[i];
    if (!cell.by_processes) continue;
    of_means[i]->typical =
        TypicalCall{.ratio = cell.ratio,
                    .ratio_interval = cell.ratio_interval,
                    .test = cell.test,
                    .p_holm = cell.p_holm,
                    .cautious_test = cell.cautious_test,
                    .cautious_p_holm = cell.cautious_p_holm,
                    .regression = is_regression(cell, out.options, out.options.alpha / 2)};
  }
}

void judge_cells(Comparison& out) {
  const std::vector<ComparedCell*> family = family_of(out.combined, out.cells);
  out.families.push_back({"difference", out.options.alpha,
                          adjust(family, &ComparedCell::test, &ComparedCell::p_holm)});
  out.families.push_back({"equivalence", out.options.alpha,
                          adjust(family, &ComparedCell::tost, &ComparedCell::tost_p_holm)});
  out.families.push_back(
      {"regression", out.options.alpha,
       adjust(family, &ComparedCell::cautious_test, &ComparedCell::cautious_p_holm)});
  for (ComparedCell* cell : family) {
    if (!cell->verdict) continue;
    if (cell->tost_p_holm && *cell->tost_p_holm < out.options.alpha) {
      cell->verdict = Verdict::kEquivalent;
    } else if (cell->p_holm && *cell->p_holm < out.options.alpha) {
      cell->verdict = cell->ratio < 1 ? Verdict::kFaster : Verdict::kSlower;
    }
    cell->regression =
        cell->verdict == Verdict::kSlower &&
        is_regression(*cell, out.options,
                      cell->by_processes ? out.options.alpha / 2 : out.options.alpha);
  }
}

std::string cell_name(const Comparison& of, std::optional<size_t> stratum, Phase phase,
                      const std::string& arm) {
  if (stratum) return fmt::format("{} on {}", arm, stratum_text(of.strata[*stratum]));
  return fmt::format("{} on {}, all strata", arm, phase_name(phase));
}

std::string interval_text(const std::optional<stats::Interval>& interval) {
  if (!interval) return "";
  return fmt::format(" [{}, {}]", format_significant(interval->low),
                     format_significant(interval->high));
}

}  // namespace

std::string stratum_text(const Stratum& stratum) {
  std::string text =
      fmt::format("{}, {}, {}", phase_name(stratum.phase), stratum.model, stratum.scenario);
  if (stratum.new_tokens > 0) text += fmt::format(", {} new tokens", stratum.new_tokens);
  if (stratum.batch != 1) text += fmt::format(", batch {}", stratum.batch);
  return text;
}

std::vector<std::string> Comparison::failures(bool on_regression) const {
  std::vector<std::string> all;
  for (const CellReason& cell : missing) {
    all.push_back(
        fmt::format("missing: {}: {}", cell_name(*this, cell.stratum, {}, cell.arm), cell.reason));
  }
  if (!on_regression) return all;
  for (const ComparedCrashes& c : crashes) {
    if (!c.rise) continue;
    all.push_back(fmt::format("crash rate: {}: {} of {} rows lost, {} of {} in the base",
                              cell_name(*this, c.stratum, c.phase, c.arm), c.cand_lost,
                              c.cand_attempted, c.base_lost, c.base_attempted));
  }
  for (const CellReason& cell : broken) {
    all.push_back(
        fmt::format("output: {}: {}", cell_name(*this, cell.stratum, {}, cell.arm), cell.reason));
  }
  for (const std::vector<ComparedCell>* cells_of : {&combined, &cells}) {
    for (const ComparedCell& cell : *cells_of) {
      if (!cell.alarm()) continue;
      const std::string name = cell_name(*this, cell.stratum, cell.phase, cell.arm);
      const std::string by_mean =
          fmt::format("{}{}", format_significant(cell.ratio), interval_text(cell.ratio_interval));
      if (cell.regression) {
        all.push_back(fmt::format("slower: {}: {} of the base's time", name, by_mean));
      } else {
        all.push_back(
            fmt::format("slower: {}: its typical call takes {}{} of the base's time (its "
                        "mean {})",
                        name, format_significant(cell.typical->ratio),
                        interval_text(cell.typical->ratio_interval), by_mean));
      }
    }
  }
  return all;
}

int64_t Comparison::undecided() const {
  return std::ranges::count_if(cells, [](const ComparedCell& cell) { return !cell.verdict; });
}

Comparison compare_samples(const Samples& base, const Samples& cand, const CompareOptions& options,
                           bool same_prompts) {
  Comparison out;
  out.options = options;
  const Pairing pairing(base, cand);
  out.strata = pairing.strata;
  const std::vector<CellPair> pairs = pairing.pairs();
  out.crashes = compare_crashes(out.strata, pairs, options);
  std::vector<CellPair> comparable;
  sort_out(pairs, same_prompts, out, comparable);
  ComparedCells means = compare_cells(comparable, pairing.arms, ProcessFigure::kMean, out);
  out.cells = std::move(means.cells);
  out.combined = std::move(means.combined);
  out.between_cells = add_alarm_tests(out.cells, out.combined);
  judge_cells(out);
  judge_typical_calls(compare_cells(comparable, pairing.arms, ProcessFigure::kMedian, out), out);
  for (const bool of_phases : {true, false}) {
    const auto tested = std::ranges::count_if(out.crashes, [&](const ComparedCrashes& c) {
      return c.p && c.stratum.has_value() != of_phases;
    });
    out.families.push_back(
        {of_phases ? "crash_rise_by_phase" : "crash_rise_by_cell", options.alpha / 2, tested});
  }
  return out;
}

Result<Comparison> compare(const Bundle& base, const Bundle& cand, const CompareOptions& options,
                           const std::set<std::string>& vary) {
  const auto differences = identity_differences(base, cand);
  std::vector<std::string> refused;
  for (const AxisDifference& d : differences) {
    if (vary.contains(d.axis)) continue;
    const auto shown = [](const std::string& value) {
      return value.empty() ? "nothing" : quoted_excerpt(value);
    };
    refused.push_back(fmt::format("{}{}: expected {}, found {}", d.axis,
                                  d.about.empty() ? "" : " of " + d.about, shown(d.base),
                                  shown(d.cand)));
  }
  if (!refused.empty()) {
    const size_t more = refused.size() - 1;
    return bad_input("{}: identity unlike {}'s: {}{} (--vary AXIS allows it)", cand.folder.string(),
                     base.folder.string(), refused[0],
                     more > 0 ? fmt::format(", and {} more", more) : "");
  }
  ASSAY_TRY(const Samples left, group_rows(base, summarize(base).arms));
  ASSAY_TRY(const Samples right, group_rows(cand, summarize(cand).arms));
  Comparison out = compare_samples(left, right, options);
  out.base_name = base.folder.string();
  out.cand_name = cand.folder.string();
  out.varied = differences;
  out.base_load = machine_load(base);
  out.cand_load = machine_load(cand);
  out.load_differences = load_differences(out.base_load, out.cand_load);
  if (out.crashes.empty()) {
    return bad_input("{}: expected cells that {} has too, found none", out.cand_name,
                     out.base_name);
  }
  return out;
}

}  // namespace assay
