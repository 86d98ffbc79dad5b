// `assay cache`: the compiled kernels and the models that are kept on disk.
#include <fmt/format.h>

#include "base/clock.h"
#include "base/text/text.h"
#include "cli/bench/kept_models.h"
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

Table entries_table(const std::vector<KernelCache::Entry>& kernels,
                    const std::vector<KeptModel>& models) {
  Table table;
  table.columns = columns_of("<kind|<name|<target|size_bytes|<last_used");
  for (const KernelCache::Entry& entry : kernels) {
    table.rows.push_back({"kernel", entry.digest, TableCell::if_any(entry.target),
                          bytes_cell(entry.bytes), format_utc(entry.used_at_s * 1'000'000'000)});
  }
  for (const KeptModel& model : models) {
    table.rows.push_back({model.unfinished ? "unfinished model" : "model", model.name,
                          TableCell::absent(), bytes_cell(model.bytes), TableCell::absent()});
  }
  return table;
}

template <typename T>
uint64_t bytes_of(const std::vector<T>& all) {
  uint64_t bytes = 0;
  for (const T& one : all) bytes += one.bytes;
  return bytes;
}

std::string models_text(const std::vector<KeptModel>& models) {
  return fmt::format("{}: {}, {}", kept_models_folder().string(),
                     counted(std::ssize(models), "model"),
                     format_bytes(static_cast<double>(bytes_of(models))));
}

Result<int> list_cache(OutputFormat format) {
  ASSAY_TRY(const KernelCache cache, open_cache());
  ASSAY_TRY(const std::vector<KernelCache::Entry> kernels, cache.entries());
  ASSAY_TRY(const std::vector<KeptModel> models, kept_models());
  Table table = entries_table(kernels, models);
  table.title = fmt::format("{}: {}, {} of at most {}", cache.folder().string(),
                            counted(std::ssize(kernels), "kernel"),
                            format_bytes(static_cast<double>(bytes_of(kernels))),
                            format_bytes(static_cast<double>(cache.limit_bytes())));
  if (!models.empty()) table.title += "; " + models_text(models);
  print_table(table, format);
  return 0;
}

Result<int> clear_cache(OutputFormat format, bool with_models) {
  ASSAY_TRY(KernelCache cache, open_cache());
  ASSAY_TRY(const std::vector<KernelCache::Entry> kernels, cache.entries());
  ASSAY_TRY(const std::vector<KeptModel> models, kept_models());
  ASSAY_TRY(const uint64_t freed_bytes, cache.clear());
  Table table;
  table.columns = columns_of("<kind|<folder|removed|freed_bytes");
  const auto add = [&](const std::string& kind, const std::string& folder, size_t count,
                       uint64_t bytes) {
    table.rows.push_back({kind, folder, static_cast<int64_t>(count), bytes_cell(bytes)});
  };
  add("kernels", cache.folder().string(), kernels.size(), freed_bytes);
  if (with_models) {
    ASSAY_CHECK(remove_kept_models(models));
    add("models", kept_models_folder().string(), models.size(), bytes_of(models));
  }
  print_table(table, format);
  if (!with_models && !models.empty()) {
    print_remark("note", models_text(models) + " stay; `assay cache clear --models` removes them");
  }
  return 0;
}

}  // namespace

void add_cache_command(CLI::App& app, Selected& selected) {
  CLI::App* cache = app.add_subcommand(
      "cache",
      "list or clear the files kept on disk: compiled kernels, and models that bench made");
  cache->require_subcommand(1);
  CLI::App* list =
      cache->add_subcommand("list", "list the kernels, most recently used first, and the models");
  const auto list_format = add_output_format(*list);
  list->callback([=, &selected] { selected.body = [=] { return list_cache(*list_format); }; });

  CLI::App* clear =
      cache->add_subcommand("clear", "remove all kernels; later runs compile them again");
  const auto with_models = std::make_shared<bool>(false);
  clear->add_flag("--models", *with_models,
                  "remove the models with random weights too, which bench makes again");
  const auto clear_format = add_output_format(*clear);
  clear->callback(
      [=, &selected] { selected.body = [=] { return clear_cache(*clear_format, *with_models); }; });
}

}  // namespace assay::cli
