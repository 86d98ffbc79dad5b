// The kernel benchmarks: each gives a table with measured, expected and the fraction of the limit,
// for the models whose names begin with `model`.
#pragma once

#include <string_view>

#include "base/process/thread_pool.h"
#include "base/result.h"
#include "base/tables/table.h"

namespace assay::bench {

// Matrix-vector products in fp32 and bf16 against the read bandwidth measured between their
// repetitions.
Result<Table> matvec_table(ThreadPool& pool, std::string_view model);

// The same of weights in blocks, in each format.
Result<Table> blocks_table(ThreadPool& pool, std::string_view model);

// fp32 matrix products of 128 and 512 rows against oneDNN called directly between their
// repetitions.
Result<Table> product_table(ThreadPool& pool, std::string_view model);

// Generated matrix-vector kernels in fp32 and bf16 beside the eager operator and the read
// bandwidth.
Result<Table> generated_table(ThreadPool& pool, std::string_view model);

}  // namespace assay::bench
