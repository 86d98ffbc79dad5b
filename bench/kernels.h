// The kernel benchmarks: each gives a table with measured, expected and the fraction of the limit,
// for the models whose names begin with `model`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/process/thread_pool.h"
#include "base/result.h"
#include "base/tables/table.h"
#include "samples.h"

namespace assay::bench {

// A row of the tables of products beside the read bandwidth, both in GB/s.
std::vector<TableCell> rate_row(const auto& shape, std::string_view format, const Samples& product,
                                const Samples& read, double bar) {
  const double fraction = product.best() / read.best();
  return {std::string(shape.model),
          std::string(shape.name),
          std::string(format),
          shape.inputs,
          shape.outputs,
          product.best(),
          product.median(),
          TableCell(product.spread(), 2),
          read.best(),
          bar * read.best(),
          TableCell(fraction, 3),
          std::string(verdict(fraction, bar))};
}

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
