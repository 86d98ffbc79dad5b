// Benchmark rows for programs.
#pragma once

#include <optional>
#include <string>

#include "report/bench/bench_rows.h"

namespace assay {

// Bytes that decoding read a second over the memory's limit; absent if either isn't known.
std::optional<double> limit_share(const BenchRow& row);

// The rows in the formats that render_bench() names. Times are in nanoseconds; an absent value is
// null, or empty in csv.
std::string bench_json(const Bench& bench);
std::string bench_jsonl(const Bench& bench);
std::string bench_csv(const Bench& bench);
std::string bench_sql(const Bench& bench);

}  // namespace assay
