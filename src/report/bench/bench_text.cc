// The tables that people read.
#include "report/bench/bench_text.h"

#include <algorithm>

#include "base/records/backend_traits.h"
#include "base/text/fit_text.h"
#include "base/text/shown_text.h"
#include "base/text/text.h"
#include "report/answers.h"
#include "report/bench/bench_data.h"
#include "report/fitting.h"
#include "report/screen/fitter.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

constexpr size_t kColumns = 100;  // of a remark
constexpr size_t kMostRemarks = 6;

std::string mebibytes(uint64_t bytes) {
  constexpr double kMebi = 1024.0 * 1024.0;
  const double size = static_cast<double>(bytes) / kMebi;
  return size < 1024 ? fmt::format("{:.2f} MiB", size) : fmt::format("{:.2f} GiB", size / 1024);
}

// A number of parameters as llama-bench writes it: "1.24 B", "124.44 M".
std::string parameters_text(uint64_t count) {
  const auto number = static_cast<double>(count);
  return count < 1'000'000'000 ? fmt::format("{:.2f} M", number / 1e6)
                               : fmt::format("{:.2f} B", number / 1e9);
}

// The type of its weights.
const std::string& type_text(const Speed& speed) {
  return speed.quantization.empty() ? speed.dtype : speed.quantization;
}

// Facts that nobody tells, as of a server's model, are left out.
std::string model_text(const BenchedModel& model, const std::string& type) {
  std::string text = model.name;
  if (!type.empty()) text += " " + type;
  if (model.size_bytes > 0) text += ", " + mebibytes(model.size_bytes);
  if (model.parameters > 0)
    text += fmt::format(", {} parameters", parameters_text(model.parameters));
  return text;
}

std::string backend_text(const Speed& speed) {
  if (speed.device.empty() && backend_traits(speed.backend).worker == WorkerKind::kServer)
    return speed.backend;
  return fmt::format("{} {}", speed.backend, speed.device.empty() ? "cpu" : speed.device);
}

TableCell rate_cell(const BenchRow& row) {
  if (!row.tokens_per_s) return TableCell::absent();
  std::string text = fmt::format("{:.2f}", *row.tokens_per_s);
  if (row.speed.sd_tokens_per_s) text += fmt::format(" \u00b1 {:.2f}", *row.speed.sd_tokens_per_s);
  return TableCell(std::move(text));
}

// "10.42 [10.38, 10.46]", "10.42 range 10.38-10.46".
std::string with_spread(double value, const std::optional<stats::Interval>& interval,
                        const std::optional<stats::Interval>& process_range) {
  const auto number = [](double of) { return format_significant(of, 4); };
  return number(value) + spread_text(interval, process_range, number);
}

TableCell ms_cell(const BenchRow& row) {
  if (!row.mean_ms) return TableCell::absent();
  return TableCell(with_spread(*row.mean_ms, row.mean_interval_ms, row.mean_process_range_ms));
}

TableCell gb_cell(const BenchRow& row) {
  if (!row.speed.bytes_per_s) return TableCell::absent();
  return TableCell(format_significant(*row.speed.bytes_per_s / 1e9, 3));
}

TableCell share_cell(const BenchRow& row) {
  const auto share = limit_share(row);
  if (!share) return TableCell::absent();
  return TableCell(fmt::format("{:.0f} %", 100 * *share));
}

// "596, 75 %"; without a limit "596".
TableCell operations_cell(const BenchRow& row) {
  if (!row.operations_per_s) return TableCell::absent();
  std::string text = format_significant(*row.operations_per_s / 1e12, 3);
  if (row.limit_operations_per_s) {
    text += fmt::format(", {:.0f} %", 100 * *row.operations_per_s / *row.limit_operations_per_s);
  }
  return TableCell(std::move(text));
}

TableCell energy_cell(const BenchRow& row) {
  if (!row.joules_per_token) return TableCell::absent();
  const auto number = [](double of) { return format_significant(of, 3); };
  return TableCell(number(*row.joules_per_token) +
                   spread_text(row.joules_interval, std::nullopt, number));
}

bool any_operations(const std::vector<BenchRow>& rows) {
  return std::ranges::any_of(rows,
                             [](const BenchRow& row) { return row.operations_per_s.has_value(); });
}

bool any_energy(const std::vector<BenchRow>& rows) {
  return std::ranges::any_of(rows,
                             [](const BenchRow& row) { return row.joules_per_token.has_value(); });
}

TableCell ratio_cell(const BenchRow& row) {
  if (row.verdict.empty()) return TableCell("1 (baseline)");
  if (!row.ratio) return TableCell(row.verdict);
  if (row.ratio_interval && shows_nothing(*row.ratio_interval)) {
    return TableCell(
        fmt::format("{} {} {}", format_significant(*row.ratio, 4), kTooFew, row.verdict));
  }
  const bool open = row.verdict == verdict_name(Verdict::kInconclusive);
  return TableCell(with_spread(*row.ratio, row.ratio_interval, row.ratio_process_range) + " " +
                   (open && row.one_process           ? "one process"
                    : open && row.ratio_process_range ? "too few processes"
                                                      : row.verdict));
}

// A column, and the function that makes a row's cell of it.
struct BenchColumn {
  Column column;
  TableCell (*cell)(const BenchRow&);
};

const std::vector<BenchColumn>& model_columns() {
  static const std::vector<BenchColumn> columns = {
      {{"model", Align::kLeft},
       [](const BenchRow& row) { return TableCell(row.model.name + " " + type_text(row.speed)); }},
      {{"size"}, [](const BenchRow& row) { return TableCell(mebibytes(row.model.size_bytes)); }},
      {{"params"},
       [](const BenchRow& row) { return TableCell(parameters_text(row.model.parameters)); }},
      {{"backend", Align::kLeft},
       [](const BenchRow& row) { return TableCell(backend_text(row.speed)); }},
      {{"threads"}, [](const BenchRow& row) {
         return row.speed.threads ? TableCell(*row.speed.threads) : TableCell::absent();
       }}};
  return columns;
}

std::vector<BenchColumn> test_columns(const std::vector<BenchRow>& rows) {
  std::vector<BenchColumn> columns = {
      {{"arm", Align::kLeft}, [](const BenchRow& row) { return TableCell(row.speed.arm); }},
      {{"test"}, [](const BenchRow& row) { return TableCell(row.test); }},
      {{"t/s"}, rate_cell},
      {{"ms"}, ms_cell},
      {{"GB/s"}, gb_cell},
      {{"limit"}, share_cell}};
  if (any_operations(rows)) columns.push_back({{"TFLOP/s"}, operations_cell});
  if (any_energy(rows)) columns.push_back({{"J/token"}, energy_cell});
  columns.push_back({{"ratio", Align::kLeft}, ratio_cell});
  return columns;
}

void add_columns(const std::vector<BenchColumn>& columns, const std::vector<BenchRow>& rows,
                 Table& table) {
  table.rows.resize(rows.size());
  for (const auto& [column, cell] : columns) {
    table.columns.push_back(column);
    for (size_t i = 0; i < rows.size(); ++i) table.rows[i].push_back(cell(rows[i]));
  }
}

// The column of lost rows, if any row has some: they are in no mean.
void add_lost(const std::vector<BenchRow>& rows, Table& table) {
  if (std::ranges::all_of(rows, [](const BenchRow& row) { return row.speed.lost == 0; })) return;
  add_columns({{{"lost"}, [](const BenchRow& row) { return TableCell(row.speed.lost); }}}, rows,
              table);
}

// The model's line if all rows share it, so that the table needn't repeat it; empty: they differ.
std::string shared_models(const std::vector<BenchRow>& rows) {
  std::string shared;
  for (const BenchRow& row : rows) {
    std::string line = model_text(row.model, type_text(row.speed)) + "; " + backend_text(row.speed);
    if (const auto threads = row.speed.threads) {
      line += fmt::format(", {} thread{}", *threads, *threads == 1 ? "" : "s");
    }
    if (!shared.empty() && line != shared) return "";
    shared = std::move(line);
  }
  return shared;
}

// The meaning of J/token, or why a GPU's table lacks it; empty: nothing counts energy.
std::string energy_meaning(const std::vector<BenchRow>& rows) {
  if (any_energy(rows)) {
    return " J/token: energy of the GPU over the tokens produced or of the prompt, with its 95 % "
           "interval (-: shorter than its counter resolves);";
  }
  std::optional<double> least_ms;
  for (const BenchRow& row : rows) least_ms = std::max(least_ms, row.speed.least_energy_ms);
  if (!least_ms) return "";
  return fmt::format(
      " J/token is left out: no repetition takes the {} ms that the GPU's energy counter needs;",
      format_significant(*least_ms, 3));
}

std::string legend(const Bench& bench) {
  const bool ranges = std::ranges::any_of(bench.rows, [](const BenchRow& row) {
    return row.mean_process_range_ms || row.ratio_process_range;
  });
  return fmt::format(
      "t/s: tokens over the mean time, \u00b1 standard deviation of repetitions; ms: mean "
      "time with its 95 % interval; GB/s: bytes that {} must read, over its time "
      "(median); limit: the share of the read bandwidth measured here (-: it is unknown, "
      "or the weights fit the cache);{}{} ratio: mean time over {}'s, with its 95 % interval "
      "and verdict{}",
      any_operations(bench.rows) ? "the test" : "decoding",
      any_operations(bench.rows) ? " TFLOP/s: a prompt's products and attention, over its time, "
                                   "and the share of what large products reach here;"
                                 : "",
      energy_meaning(bench.rows), bench.baseline, ranges ? "; " + range_meaning() : "");
}

std::string text_lines(const std::string& text, size_t indent, size_t width) {
  std::string lines;
  for (const std::string& line : wrapped_lines(text, width, indent)) lines += line + "\n";
  return lines;
}

std::vector<std::string> first_remarks(const Bench& bench) {
  std::vector<std::string> remarks(
      bench.remarks.begin(),
      bench.remarks.begin() + std::min(std::ssize(bench.remarks), std::ptrdiff_t{kMostRemarks}));
  if (bench.remarks.size() > kMostRemarks) {
    remarks.push_back(
        fmt::format("and {} more: `assay bench --save BUNDLE`, then `assay analyze "
                    "--full BUNDLE`",
                    bench.remarks.size() - kMostRemarks));
  }
  return remarks;
}

// Leaves out columns that a narrow terminal has no room for, the least important first, and names
// them: a figure without its end would be worth less than none.
std::vector<std::string> narrow(Table& table, size_t columns) {
  std::vector<std::string> left_out;
  for (const char* name :
       {"J/token", "TFLOP/s", "limit", "GB/s", "ms", "threads", "params", "size", "backend"}) {
    if (table_width(table) <= columns) break;
    if (drop_column(name, table)) left_out.emplace_back(name);
  }
  return left_out;
}

std::string terminal_text(const Bench& bench, std::optional<size_t> columns) {
  const size_t width = std::min(kColumns, columns.value_or(kColumns));
  Table table;
  const std::string shared = shared_models(bench.rows);
  if (shared.empty()) add_columns(model_columns(), bench.rows, table);
  add_columns(test_columns(bench.rows), bench.rows, table);
  add_lost(bench.rows, table);
  const auto left_out = columns ? narrow(table, *columns) : std::vector<std::string>();
  const std::string title = shared.empty() ? bench.host : fmt::format("{}; {}", shared, bench.host);
  std::string text = text_lines(shown_line(title), 0, columns ? width : kLongestLine);
  for (const std::string& sentence : bench.sentences) {
    text += text_lines(shown_line(sentence), 2, width);
  }
  text += table.render(OutputFormat::kTable) + text_lines(legend(bench), 0, width);
  if (!left_out.empty()) {
    text += text_lines(fmt::format("left out, as the terminal is narrow: {} (-o csv has all)",
                                   join(left_out, ", ")),
                       0, width);
  }
  if (bench.remarks.empty()) return text;
  text += "\nWhat voids or weakens this:\n";
  for (const std::string& remark : first_remarks(bench)) {
    text += text_lines(shown_line("- " + remark), 2, width);
  }
  return text;
}

// "374fbe1c2d3e-dirty": as much of the hash as tells commits apart.
std::string short_commit(const std::string& commit) {
  constexpr size_t kDigits = 12;
  if (commit.empty()) return "unknown commit";
  const size_t end = std::min(commit.find('-'), commit.size());
  return commit.substr(0, std::min(end, kDigits)) + commit.substr(end);
}

std::string markdown_text(const Bench& bench) {
  Table table;
  add_columns(model_columns(), bench.rows, table);
  add_columns(test_columns(bench.rows), bench.rows, table);
  add_lost(bench.rows, table);
  std::string text = table.render(OutputFormat::kMarkdown);
  text += fmt::format("\n{}.\n", markdown_line(legend(bench)));
  for (const std::string& sentence : bench.sentences) {
    text += fmt::format("\n{}\n", markdown_line(sentence));
  }
  if (!bench.remarks.empty()) text += "\n";
  for (const std::string& remark : first_remarks(bench)) {
    text += "- " + markdown_line(remark) + "\n";
  }
  return text + fmt::format("\nbuild: {}; {}\n", markdown_line(short_commit(bench.commit)),
                            markdown_line(bench.host));
}

}  // namespace

std::string render_bench(const Bench& bench, BenchFormat format, std::optional<size_t> columns) {
  switch (format) {
    case BenchFormat::kMarkdown:
      return markdown_text(bench);
    case BenchFormat::kCsv:
      return bench_csv(bench);
    case BenchFormat::kJson:
      return bench_json(bench);
    case BenchFormat::kJsonl:
      return bench_jsonl(bench);
    case BenchFormat::kSql:
      return bench_sql(bench);
    case BenchFormat::kTable:
      break;
  }
  return terminal_text(bench, columns);
}

const std::vector<std::string>& bench_format_names() {
  static const std::vector<std::string> names = {"table", "json", "jsonl", "csv", "md", "sql"};
  return names;
}

Result<BenchFormat> parse_bench_format(std::string_view name) {
  const auto& names = bench_format_names();
  const auto at = std::ranges::find(names, name);
  if (at == names.end()) {
    return bad_input("output format: expected {}, found {}", join(names, ", "),
                     quoted_excerpt(name));
  }
  return static_cast<BenchFormat>(at - names.begin());
}

}  // namespace assay
