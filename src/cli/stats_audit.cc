// assay stats audit TABLE.csv: every claimed figure of a published table held against the others.
#include <map>

#include "base/files.h"
#include "base/text.h"
#include "cli/stats_input.h"
#include "stats/audit.h"
#include "stats/audit_table.h"

namespace assay::cli {
namespace {

using stats::AuditedFigure;
using stats::Verdict;

void append_figure(Table& table, const stats::PublishedTable::Row& row,
                   const AuditedFigure& figure) {
  const auto end = [&](double stats::Interval::*which) {
    return figure.range ? std::optional((*figure.range).*which) : std::nullopt;
  };
  const auto text = [](const std::string& words) {
    return words.empty() ? TableCell::absent() : TableCell::of(words);
  };
  table.rows.push_back({TableCell::of(static_cast<int64_t>(row.line)), text(row.label),
                        TableCell::of(std::string(stats::figure_name(figure.figure))),
                        TableCell::of(row.figures.at(figure.figure).text),
                        TableCell::of(std::string(stats::verdict_name(figure.verdict))),
                        TableCell::of(figure.recomputed, 5),
                        TableCell::of(end(&stats::Interval::low), 5),
                        TableCell::of(end(&stats::Interval::high), 5), text(figure.as),
                        text(join(figure.also, "; "))});
}

Result<int> audit(const std::string& path, OutputFormat format) {
  ASSAY_TRY(const std::string text, read_file(path));
  ASSAY_TRY(const stats::PublishedTable published, stats::parse_published_table(text, path));
  Table table;
  table.columns = {{"line"},
                   {"label", Align::kLeft},
                   {"figure", Align::kLeft},
                   {"claimed"},
                   {"verdict", Align::kLeft},
                   {"recomputed"},
                   {"low"},
                   {"high"},
                   {"as", Align::kLeft},
                   {"also", Align::kLeft}};
  std::map<Verdict, size_t> counts;
  for (const auto& row : published.rows) {
    for (const AuditedFigure& figure : stats::audit_row(row.figures)) {
      ++counts[figure.verdict];
      append_figure(table, row, figure);
    }
  }
  table.title = fmt::format("{}: {} consistent, {} inconsistent, {} not determined", path,
                            counts[Verdict::kConsistent], counts[Verdict::kInconsistent],
                            counts[Verdict::kNotDetermined]);
  fmt::print("{}", table.render(format));
  return counts[Verdict::kInconsistent] > 0 ? 1 : 0;
}

std::string columns_help() {
  std::string help = "Columns of TABLE.csv, in any order; an empty field wasn't published:\n";
  help += "  label: a name for the row\n";
  for (const stats::FigureColumn& column : stats::figure_columns()) {
    help +=
        fmt::format("  {}{}: {}\n", column.name, column.is_claim ? " (claim)" : "", column.meaning);
  }
  return help;
}

}  // namespace

void add_stats_audit(CLI::App& parent, Selected& selected) {
  CLI::App* command = parent.add_subcommand(
      "audit", "recompute the claimed figures of a published table; exit 1 if one can't be");
  command->footer(columns_help());
  const auto path = std::make_shared<std::string>();
  command->add_option("table", *path, "rows of published figures")
      ->type_name("TABLE.csv")
      ->required();
  set_body(*command, selected, [=](OutputFormat format) { return audit(*path, format); });
}

}  // namespace assay::cli
