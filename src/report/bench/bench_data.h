// Benchmark rows for programs.
#pragma once

#include <optional>
#include <string>

#include "report/bench/bench_rows.h"

namespace assay {

// What decoding read a second, of what memory can; absent: one of them is.
std::optional<double> limit_share(const BenchRow& row);

// As render_bench() says. Times are in nanoseconds, and what is absent is null, of csv empty.
std::string bench_json(const Bench& bench);
std::string bench_jsonl(const Bench& bench);
std::string bench_csv(const Bench& bench);
std::string bench_sql(const Bench& bench);

}  // namespace assay
