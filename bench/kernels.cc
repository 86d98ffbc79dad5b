// bench_kernels [matvec | blocks | product | generated [MODEL]]: the engine's kernels against the
// machine's limits. Prints tables and judges in their last column; a poor figure is no failure,
// since the machine's noise must not fail a build. Exit status 2 for a name that nothing is
// measured of, 3 where nothing can be measured.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text/text.h"
#include "kernels.h"

namespace assay::bench {
namespace {

struct Suite {
  std::string_view name;
  Result<Table> (*table)(ThreadPool& pool, std::string_view model);
};
constexpr std::array kSuites = {Suite{"matvec", matvec_table}, Suite{"blocks", blocks_table},
                                Suite{"product", product_table},
                                Suite{"generated", generated_table}};

// `only` and `model` may be empty.
Status print_tables(std::string_view only, std::string_view model) {
  const auto wanted = [&](const Suite& suite) { return only.empty() || only == suite.name; };
  if (std::ranges::none_of(kSuites, wanted)) {
    return bad_input("bench_kernels: expected matvec, blocks, product or generated, found {}",
                     quoted_excerpt(only));
  }
  ThreadPool pool(available_cpus());
  bool any = false;
  for (const Suite& suite : kSuites) {
    if (!wanted(suite)) continue;
    ASSAY_TRY(const Table table, suite.table(pool, model));
    if (table.rows.empty()) continue;
    fmt::print("{}\n", table.render(OutputFormat::kTable));
    any = true;
  }
  if (any) return {};
  return bad_input("bench_kernels: expected the beginning of a model's name, found {}",
                   quoted_excerpt(model));
}

}  // namespace
}  // namespace assay::bench

int main(int argc, char** argv) {
  const auto printed = assay::bench::print_tables(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "");
  if (printed) return 0;
  fmt::print(stderr, "{}\n", printed.error().message);
  return printed.error().kind == assay::ErrorKind::kBadInput ? 2 : 3;
}
