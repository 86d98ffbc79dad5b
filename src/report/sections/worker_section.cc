// The sections on the cost of compilation and on the profiler's counts, arm beside arm.
#include <algorithm>
#include <map>

#include "base/text/text.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

constexpr size_t kLongestName = 60;
constexpr size_t kTopShown = 5;  // of an arm; the trace has them all

struct CountColumn {
  std::string name;
  Counter counter;
  bool zero_tells = true;  // else a column of zeros is left out
};

TableCell ms_cell(const std::optional<int64_t>& ns) {
  return ns ? TableCell(static_cast<double>(*ns) / 1e6) : TableCell::absent();
}

std::string phase_of(const Findings& findings, size_t stratum) {
  return std::string(phase_name(findings.strata[stratum].phase));
}

std::string shortened(const std::string& name) {
  return name.size() <= kLongestName ? name : name.substr(0, kLongestName - 3) + "...";
}

Table profile_table(const Findings& findings) {
  Table table{.columns = columns_of(
                  "<phase|<stratum|<arm|wall_ms|kernels|distinct|launches|busy_ms|gaps_ms|"
                  "copies|syncs")};
  for (const CellProfile& profile : findings.profiles) {
    if (!profile.missing.empty()) continue;
    table.rows.push_back(
        {phase_of(findings, profile.stratum), stratum_label(findings, profile.stratum), profile.arm,
         ms_cell(profile.wall_ns), cell_of(profile.kernels, std::identity()),
         cell_of(profile.distinct_kernels, std::identity()),
         cell_of(profile.launch_calls, std::identity()), ms_cell(profile.gpu_busy_ns),
         ms_cell(profile.gpu_gap_ns), cell_of(profile.copies, std::identity()),
         cell_of(profile.synchronizations, std::identity())});
  }
  return table;
}

Table top_table(const Findings& findings, Detail detail) {
  Table table{"Longest in all", columns_of("<phase|<stratum|<arm|<operation|calls|total_ms"), {}};
  for (const CellProfile& profile : findings.profiles) {
    const size_t shown =
        detail != Detail::kSummary ? profile.top.size() : std::min(kTopShown, profile.top.size());
    for (size_t i = 0; i < shown; ++i) {
      const ProfiledOperation& operation = profile.top[i];
      table.rows.push_back(
          {phase_of(findings, profile.stratum), stratum_label(findings, profile.stratum),
           profile.arm, shortened(operation.name), operation.calls, ms_cell(operation.total_ns)});
    }
  }
  return table;
}

// The counts that some cell has.
std::vector<CountColumn> counts_reported(const Findings& findings) {
  std::vector<CountColumn> all = {
      {"graphs", Counter::kUniqueGraphs},         {"breaks", Counter::kGraphBreaks},
      {"recomp", Counter::kRecompiles},           {"limit", Counter::kRecompileLimitHits},
      {"kernels", Counter::kKernelsCompiled},     {"capt", Counter::kCudagraphCaptures, false},
      {"replays", Counter::kGraphReplays, false}, {"skips", Counter::kCudagraphSkips, false}};
  std::erase_if(all, [&](const CountColumn& column) {
    return std::ranges::none_of(findings.compile_costs, [&](const CompileCost& cost) {
      const auto count = count_of(cost.counts, column.counter);
      return count && (*count > 0 || column.zero_tells);
    });
  });
  return all;
}

}  // namespace

bool has_compile_costs(const Findings& findings) {
  return std::ranges::any_of(findings.compile_costs, [](const CompileCost& cost) {
    return cost.counts.contains(Counter::kUniqueGraphs) || cost.prepare_s.has_value() ||
           !cost.problem.empty();
  });
}

ReportSection compile_cost_section(const Findings& findings) {
  ReportSection section{"What compilation cost", {}, {}};
  section.figures = {"compiling"};
  section.lines.emplace_back(
      "first_prepare: seconds until the cell's first process could take its first sample; "
      "later_prepare: the median of its later processes, which may load what the first one "
      "compiled; compile: the compiler's time in the process whose counts these are. Counts "
      "(recompiles, hits of the recompile limit, captured "
      "graphs, replays, and calls that were not captured) cover the cell; a worker that "
      "counts by process includes its earlier cells. Columns that no worker reported are "
      "left out. An arm that requests no compilation is listed if it captured graphs.");
  Table table{.columns = columns_of(
                  "<phase|<stratum|<arm|<real|first_prepare_s|later_prepare_s|compile_s")};
  const bool parity = std::ranges::any_of(findings.compile_costs, [](const CompileCost& cost) {
    return cost.parity_compile_s.has_value();
  });
  if (parity) {
    table.columns.push_back({"parity_s"});
    section.lines.emplace_back(
        "parity: the compiler's time while the arm gave the tokens of the parity check, for the "
        "scenario and batch of the cell. By default that is a process before the timed ones, which "
        "may then load the kernels that it compiled.");
  }
  const std::vector<CountColumn> counts = counts_reported(findings);
  for (const CountColumn& count : counts) table.columns.push_back({count.name});
  for (const CompileCost& cost : findings.compile_costs) {
    std::vector<TableCell> row =
        row_of(phase_of(findings, cost.stratum), stratum_label(findings, cost.stratum), cost.arm,
               compiler_real_name(cost.compiler_real), TableCell(cost.prepare_s, 3),
               TableCell(cost.later_prepare_s, 3), TableCell(cost.compile_s, 3));
    if (parity) row.push_back(TableCell(cost.parity_compile_s, 3));
    for (const CountColumn& count : counts)
      row.push_back(cell_of(count_of(cost.counts, count.counter), std::identity()));
    table.rows.push_back(std::move(row));
    if (cost.problem.empty()) continue;
    section.lines.push_back(fmt::format("{} {} {}: {}", phase_of(findings, cost.stratum),
                                        stratum_label(findings, cost.stratum), cost.arm,
                                        cost.problem));
  }
  section.tables.push_back(std::move(table));
  return section;
}

ReportSection profile_section(const Findings& findings, Detail detail) {
  ReportSection section{"Profile", {}, {}};
  section.figures = {"timelines"};
  section.lines.emplace_back(
      "One repetition of each cell was traced after its timing. Tracing slows it down, so wall_ms "
      "is not a latency. Any viewer of Chrome traces opens cells/CELL/trace.json.gz.");
  std::map<std::string, int> counted;
  for (const CellProfile& profile : findings.profiles) {
    if (!profile.counts.empty()) ++counted[profile.counts];
    if (profile.missing.empty()) continue;
    section.lines.push_back(fmt::format("{} {} {}: none: {}", phase_of(findings, profile.stratum),
                                        stratum_label(findings, profile.stratum), profile.arm,
                                        profile.missing));
  }
  for (const auto& [what, cells] : counted) section.lines.push_back("kernels: " + what + ".");
  section.tables.push_back(profile_table(findings));
  Table top = top_table(findings, detail);
  if (!top.rows.empty()) section.tables.push_back(std::move(top));
  return section;
}

}  // namespace assay
