// `assay cache`: the compiled kernels that are kept on disk.
#include <fmt/format.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/command.h"
#include "engine/codegen/kernel_cache.h"

namespace assay::cli {
namespace {

using engine::KernelCache;

Result<KernelCache> open_cache() {
  return KernelCache::open(KernelCache::default_folder());
}

TableCell bytes_cell(uint64_t bytes) {
  return {bytes, format_bytes(static_cast<double>(bytes))};
}

TableCell target_cell(const std::string& target) {
  return target.empty() ? TableCell::absent() : TableCell::of(target);
}

Result<int> list_cache(OutputFormat format) {
  ASSAY_TRY(const KernelCache cache, open_cache());
  ASSAY_TRY(const std::vector<KernelCache::Entry> entries, cache.entries());
  Table table;
  table.columns = {{"kernel", Align::kLeft},
                   {"target", Align::kLeft},
                   {"size_bytes", Align::kRight},
                   {"last_used", Align::kLeft}};
  uint64_t bytes = 0;
  for (const KernelCache::Entry& entry : entries) {
    bytes += entry.bytes;
    table.rows.push_back({TableCell::of(entry.digest), target_cell(entry.target),
                          bytes_cell(entry.bytes),
                          TableCell::of(format_utc(entry.used_at_s * 1'000'000'000))});
  }
  table.title =
      fmt::format("{}: {}, {} of at most {}", cache.folder().string(),
                  counted(std::ssize(entries), "kernel"), format_bytes(static_cast<double>(bytes)),
                  format_bytes(static_cast<double>(cache.limit_bytes())));
  print_table(table, format);
  return 0;
}

Result<int> clear_cache(OutputFormat format) {
  ASSAY_TRY(KernelCache cache, open_cache());
  ASSAY_TRY(const std::vector<KernelCache::Entry> entries, cache.entries());
  ASSAY_TRY(const uint64_t freed_bytes, cache.clear());
  Table table;
  table.columns = {{"folder", Align::kLeft}, {"kernels_removed"}, {"freed_bytes"}};
  table.rows = {{TableCell::of(cache.folder().string()),
                 TableCell::of(static_cast<int64_t>(entries.size())), bytes_cell(freed_bytes)}};
  print_table(table, format);
  return 0;
}

void add_action(CLI::App& cache, const std::string& name, const std::string& summary,
                Result<int> (*run)(OutputFormat), Selected& selected) {
  CLI::App* command = cache.add_subcommand(name, summary);
  const auto format = add_output_format(*command);
  command->callback([=, &selected] { selected.body = [=] { return run(*format); }; });
}

}  // namespace

void add_cache_command(CLI::App& app, Selected& selected) {
  CLI::App* cache =
      app.add_subcommand("cache", "list or clear the compiled kernels that are kept on disk");
  cache->require_subcommand(1);
  add_action(*cache, "list", "list the kernels, most recently used first", list_cache, selected);
  add_action(*cache, "clear", "remove all kernels; later runs compile them again", clear_cache,
             selected);
}

}  // namespace assay::cli
