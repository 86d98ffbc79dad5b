#include "report/bench/load_text.h"

#include <functional>
#include <utility>

#include "base/text/text.h"
#include "report/load_report.h"
#include "report/screen/parts.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

struct HabitualFigure {
  std::string name;
  std::function<std::optional<OverRuns>(const LoadFigures&)> of;
};

std::vector<HabitualFigure> habitual_figures() {
  std::vector<HabitualFigure> figures = {
      {"Request throughput (req/s)", [](const LoadFigures& of) { return of.requests_per_s; }},
      {"Output token throughput (tok/s)", [](const LoadFigures& of) { return of.tokens_per_s; }},
      {"Request goodput (req/s)", [](const LoadFigures& of) { return of.good_per_s; }},
      {"Mean concurrency", [](const LoadFigures& of) { return of.in_flight; }}};
  for (const auto& [latency, member] :
       {std::pair("TTFT", &LoadFigures::ttft_ms), std::pair("TPOT", &LoadFigures::tpot_ms),
        std::pair("ITL", &LoadFigures::itl_ms), std::pair("E2EL", &LoadFigures::latency_ms)}) {
    for (const auto& [word, part] :
         {std::pair("Mean", &LatencyOverRuns::mean), std::pair("Median", &LatencyOverRuns::p50),
          std::pair("P95", &LatencyOverRuns::p95), std::pair("P99", &LatencyOverRuns::p99)}) {
      figures.push_back(
          {fmt::format("{} {} (ms)", word, latency),
           [member = member, part = part](const LoadFigures& of) { return of.*member.*part; }});
    }
  }
  return figures;
}

// "12.1 ±0.3" for people; a number alone for machines.
TableCell figure_cell(const std::optional<OverRuns>& of) {
  if (!of) return TableCell::absent();
  TableCell cell = TableCell(of->mean);
  if (of->interval) {
    const double half = (of->interval->high - of->interval->low) / 2;
    cell.text =
        fmt::format("{} \u00b1{}", format_significant(of->mean, 4), format_significant(half, 2));
  }
  return cell;
}

Table habitual_table(const Findings& findings) {
  Table table{.columns = columns_of("<figure")};
  const std::vector<LoadFigures>& points = findings.load.points;
  for (const LoadFigures& one : points)
    table.columns.push_back({prompt_name(findings.strata[one.stratum]), Align::kRight, true});
  const auto add = [&](const std::string& name, const auto& cell) {
    std::vector<TableCell> row = {name};
    bool any = false;
    for (const LoadFigures& one : points) {
      row.push_back(cell(one));
      any = any || !row.back().value.is_null();
    }
    if (any) table.rows.push_back(std::move(row));
  };
  add("Runs", [](const LoadFigures& of) { return TableCell(of.runs); });
  add("Successful requests", [](const LoadFigures& of) {
    int64_t ok = of.requests;
    for (const auto& [error_class, count] : of.failed) ok -= count;
    return TableCell(ok);
  });
  add("Failed requests", [](const LoadFigures& of) {
    int64_t failed = 0;
    for (const auto& [error_class, count] : of.failed) failed += count;
    return TableCell(failed);
  });
  for (const HabitualFigure& figure : habitual_figures())
    add(figure.name, [&](const LoadFigures& of) { return figure_cell(figure.of(of)); });
  return table;
}

}  // namespace

Result<std::string> render_load_bench(const Findings& findings, BenchFormat format) {
  const Table table = habitual_table(findings);
  switch (format) {
    case BenchFormat::kJson:
      return to_json_text(findings_to_json(findings).at("load"));
    case BenchFormat::kCsv:
      return table.render(OutputFormat::kCsv);
    case BenchFormat::kTable:
    case BenchFormat::kMarkdown:
      break;
    case BenchFormat::kJsonl:
    case BenchFormat::kSql:
      return bad_input("-o: expected table, md, csv or json of a load, found another format");
  }
  const bool markdown = format == BenchFormat::kMarkdown;
  std::string text;
  for (const std::string& sentence : load_sentences(findings)) text += sentence + "\n";
  text += "\n" + table.render(markdown ? OutputFormat::kMarkdown : OutputFormat::kTable);
  text += (markdown ? "\n" : "") +
          std::string(
              "Means over runs \u00b1 half the 95 % interval; times count from each request's "
              "scheduled time.\n");
  for (const std::string& warning : warning_lines(findings)) text += "- " + warning + "\n";
  return text;
}

}  // namespace assay
