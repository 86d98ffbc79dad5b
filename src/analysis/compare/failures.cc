// Words for a comparison's failures that CI has to see.
#include <algorithm>

#include "analysis/compare/compare.h"
#include "analysis/findings/spread_text.h"
#include "base/text/text.h"

namespace assay {
namespace {

constexpr int kDigits = 4;

std::string cell_name(const Comparison& of, std::optional<size_t> stratum, Phase phase,
                      const std::string& arm) {
  if (stratum) return fmt::format("{} on {}", arm, stratum_text(of.strata[*stratum]));
  return fmt::format("{} on {}, all strata", arm, phase_name(phase));
}

}  // namespace

std::string stratum_text(const Stratum& stratum) {
  std::string text =
      fmt::format("{}, {}, {}", phase_name(stratum.phase), stratum.model, prompt_name(stratum));
  if (stratum.new_tokens > 0) text += ", " + counted(stratum.new_tokens, "new token");
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
    const std::string name = cell_name(*this, c.stratum, c.phase, c.arm);
    all.push_back(
        c.by_processes
            ? fmt::format("crash rate: {}: {} of {} died, {} of {} in the base", name, c.cand.died,
                          counted(std::ssize(c.cand.processes), "process", "processes"),
                          c.base.died, c.base.processes.size())
            : fmt::format("crash rate: {}: {} of {} lost, {} of {} in the base", name, c.cand.lost,
                          counted(c.cand.attempted, "row"), c.base.lost, c.base.attempted));
  }
  for (const CellReason& cell : lost) {
    all.push_back(
        fmt::format("lost: {}: {}", cell_name(*this, cell.stratum, {}, cell.arm), cell.reason));
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
          fmt::format("{}{}", format_significant(cell.ratio),
                      spread_text(cell.ratio_interval, cell.ratio_range, kDigits));
      if (cell.regression && cell.verdict != Verdict::kSlower) {
        all.push_back(fmt::format(
            "lost: {}: {} of the base's time by the rows that it kept, {} if those that it lost "
            "beyond the base's share had been as slow as its slowest",
            name, by_mean, format_significant(cell.ratio * cell.lost_factor->high)));
      } else if (cell.regression) {
        all.push_back(fmt::format("slower: {}: {} of the base's time", name, by_mean));
      } else {
        all.push_back(fmt::format(
            "slower: {}: its typical call takes {}{} of the base's time (its "
            "mean {})",
            name, format_significant(cell.typical->ratio),
            spread_text(cell.typical->ratio_interval, cell.typical->ratio_range, kDigits),
            by_mean));
      }
    }
  }
  return all;
}

int64_t Comparison::undecided() const {
  return std::ranges::count_if(cells, [](const ComparedCell& cell) { return !cell.verdict; });
}

}  // namespace assay
