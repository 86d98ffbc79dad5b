// `assay cache`: the compiled kernels, packed weights and models that are kept on disk.
#include <fmt/format.h>

#include "base/clock.h"
#include "base/text/text.h"
#include "cli/bench/kept_models.h"
#include "cli/command.h"
#include "engine/codegen/kernel_cache.h"
#include "engine/device/cpu/weight_cache.h"

namespace assay::cli {
namespace {

using engine::KernelCache;
using engine::WeightCache;

// The two kinds of files of one folder, and the models of another one.
struct Caches {
  KernelCache kernels;
  WeightCache weights;
  std::vector<KernelCache::Entry> kernel_files;
  std::vector<WeightCache::Entry> weight_files;
  std::vector<KeptModel> models;
};

Result<Caches> open_caches() {
  ASSAY_TRY(KernelCache kernels, KernelCache::open(KernelCache::default_folder()));
  ASSAY_TRY(WeightCache weights, WeightCache::open(KernelCache::default_folder()));
  ASSAY_TRY(std::vector<KernelCache::Entry> kernel_files, kernels.entries());
  ASSAY_TRY(std::vector<WeightCache::Entry> weight_files, weights.entries());
  ASSAY_TRY(std::vector<KeptModel> models, kept_models());
  return Caches{std::move(kernels), std::move(weights), std::move(kernel_files),
                std::move(weight_files), std::move(models)};
}

TableCell bytes_cell(uint64_t bytes) {
  return {bytes, format_bytes(static_cast<double>(bytes))};
}

Table entries_table(const Caches& caches) {
  Table table;
  table.columns = columns_of("<kind|<name|<target|size_bytes|<last_used");
  for (const KernelCache::Entry& entry : caches.kernel_files) {
    table.rows.push_back({"kernel", entry.digest, TableCell::if_any(entry.target),
                          bytes_cell(entry.bytes), format_utc(entry.used_at_s * 1'000'000'000)});
  }
  constexpr size_t kShown = 12;  // digits
  for (const WeightCache::Entry& entry : caches.weight_files) {
    const bool damaged = entry.label.empty();
    table.rows.push_back(
        {"weights", damaged ? entry.digest : entry.label + "-" + entry.digest.substr(0, kShown),
         TableCell::if_any(damaged ? "" : "cpu"), bytes_cell(entry.bytes),
         format_utc(entry.used_at_s * 1'000'000'000)});
  }
  for (const KeptModel& model : caches.models) {
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
  ASSAY_TRY(const Caches caches, open_caches());
  Table table = entries_table(caches);
  const auto bytes = [](uint64_t n) { return format_bytes(static_cast<double>(n)); };
  table.title =
      fmt::format("{}: {}, {} of at most {}", caches.kernels.folder().string(),
                  counted(std::ssize(caches.kernel_files), "kernel"),
                  bytes(bytes_of(caches.kernel_files)), bytes(caches.kernels.limit_bytes()));
  if (!caches.weight_files.empty()) {
    table.title +=
        fmt::format("; packed weights of {}, {} of at most {}",
                    counted(std::ssize(caches.weight_files), "model"),
                    bytes(bytes_of(caches.weight_files)), bytes(caches.weights.limit_bytes()));
  }
  if (!caches.models.empty()) table.title += "; " + models_text(caches.models);
  print_table(table, format);
  return 0;
}

Result<int> clear_cache(OutputFormat format, bool with_models) {
  ASSAY_TRY(Caches caches, open_caches());
  ASSAY_TRY(const uint64_t of_kernels, caches.kernels.clear());
  ASSAY_TRY(const uint64_t of_weights, caches.weights.clear());
  Table table;
  table.columns = columns_of("<kind|<folder|removed|freed_bytes");
  const auto add = [&](const std::string& kind, const std::string& folder, size_t count,
                       uint64_t bytes) {
    table.rows.push_back({kind, folder, static_cast<int64_t>(count), bytes_cell(bytes)});
  };
  const std::string folder = caches.kernels.folder().string();
  add("kernels", folder, caches.kernel_files.size(), of_kernels);
  add("weights", folder, caches.weight_files.size(), of_weights);
  const std::vector<KeptModel>& models = caches.models;
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
      "list or clear the files kept on disk: compiled kernels, packed weights, and models that "
      "bench made");
  cache->require_subcommand(1);
  CLI::App* list = cache->add_subcommand(
      "list", "list the kernels and weights, most recently used first, and the models");
  const auto list_format = add_output_format(*list);
  list->callback([=, &selected] { selected.body = [=] { return list_cache(*list_format); }; });

  CLI::App* clear =
      cache->add_subcommand("clear", "remove all kernels and weights; later runs make them again");
  const auto with_models = std::make_shared<bool>(false);
  clear->add_flag("--models", *with_models,
                  "remove the models with random weights too, which bench makes again");
  const auto clear_format = add_output_format(*clear);
  clear->callback(
      [=, &selected] { selected.body = [=] { return clear_cache(*clear_format, *with_models); }; });
}

}  // namespace assay::cli
