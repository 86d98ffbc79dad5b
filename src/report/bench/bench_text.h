// Benchmark rows as text: a table for the screen, Markdown for a pull request, and data.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "report/bench/bench_rows.h"

namespace assay {

// The words of `assay bench -o`.
enum class BenchFormat { kTable, kJson, kJsonl, kCsv, kMarkdown, kSql };
const std::vector<std::string>& bench_format_names();  // table, json, jsonl, csv, md, sql
Result<BenchFormat> parse_bench_format(std::string_view name);

// table and md: the rows with a legend and the remarks; md has llama-bench's columns. json and
// jsonl: an object a row, with the time of each repetition; csv the same without those. sql: a
// table `assay_bench` of the same columns, and an INSERT a row. Columns that llama-bench has too
// have its names and units. Ends with a newline. `columns`: the terminal's, which a table keeps to.
std::string render_bench(const Bench& bench, BenchFormat format,
                         std::optional<size_t> columns = std::nullopt);

}  // namespace assay
