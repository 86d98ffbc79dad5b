// bench_kernels [matvec | product | generated [MODEL]]: the engine's kernels against the machine's
// limits. Prints tables, judges in their last column, and always exits 0: the machine's noise must
// not fail a build.
#include <fmt/core.h>

#include <string_view>

#include "kernels.h"

namespace {

void print(const assay::Result<assay::Table>& table) {
  if (table) {
    fmt::print("{}\n", table->render(assay::OutputFormat::kTable));
  } else {
    fmt::print(stderr, "{}\n", table.error().message);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view only = argc > 1 ? argv[1] : "";
  const std::string_view model = argc > 2 ? argv[2] : "";
  assay::ThreadPool pool(assay::available_cpus());
  const auto wanted = [&](std::string_view name) { return only.empty() || only == name; };
  if (wanted("matvec")) print(assay::bench::matvec_table(pool, model));
  if (wanted("product")) print(assay::bench::product_table(pool, model));
  if (wanted("generated")) print(assay::bench::generated_table(pool, model));
}
