// Folders as they are; architectures made beside, then renamed, so that no half of one is ever
// found.
#include "cli/bench/bench_models.h"

#include <algorithm>
#include <filesystem>

#include "base/files/folder.h"
#include "base/text/text.h"
#include "cli/bench/kept_models.h"
#include "cli/command.h"
#include "engine/model/architectures.h"
#include "engine/model/checkpoint.h"
#include "engine/model/make.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// Random weights of the architecture, made if they aren't there.
Result<fs::path> made_model(const std::string& architecture) {
  const fs::path folder = kept_models_folder();
  if (folder.empty()) {
    return environment_error(
        "models' folder: expected HOME, XDG_CACHE_HOME or ASSAY_MODEL_CACHE, found none");
  }
  const fs::path path = folder / architecture;
  if (is_folder(path)) return path;
  print_remark("note",
               fmt::format("making {} with random weights in {}", architecture, path.string()));
  ASSAY_CHECK(disk().make_folder(folder));
  const fs::path unfinished = folder / temporary_name(architecture);
  ASSAY_CHECK(engine::make_checkpoint(architecture, unfinished, {}));
  std::error_code error;
  fs::rename(unfinished, path, error);
  if (!error) return path;
  std::error_code ignored;
  fs::remove_all(unfinished, ignored);
  if (is_folder(path)) return path;  // another process was faster
  return environment_error("{}: expected to make this model's folder, found: {}", path.string(),
                           error.message());
}

Result<fs::path> model_path(const std::string& word) {
  std::error_code error;
  if (is_folder(word) || fs::is_regular_file(word, error)) return word;
  const std::vector<std::string> known = engine::architecture_names();
  if (std::ranges::find(known, word) != known.end()) return made_model(word);
  return bad_input("model: expected a checkpoint's folder, a GGUF file or one of {}, found {}{}",
                   join(known, ", "), quoted_excerpt(word), nearest_hint(word, known));
}

// The folder's own name, or the whole path where that isn't one or another model has it.
std::string model_name(const fs::path& path, const std::vector<BenchedModel>& others) {
  const fs::path normal = fs::absolute(path).lexically_normal();
  const std::string name = (normal.has_filename() ? normal : normal.parent_path()).filename();
  const bool taken = std::ranges::find(others, name, &BenchedModel::name) != others.end();
  return name.empty() || taken ? path.string() : name;
}

}  // namespace

Result<std::vector<BenchedModel>> find_models(const std::vector<std::string>& words) {
  std::vector<BenchedModel> models;
  for (const std::string& word : words) {
    ASSAY_TRY(const fs::path path, model_path(word));
    const auto is_same = [&](const BenchedModel& other) {
      std::error_code gone;  // the opener of the path reports it
      return fs::equivalent(other.path, path, gone);
    };
    if (std::ranges::any_of(models, is_same)) {
      return bad_input("models: expected each model once, found {} again", quoted_excerpt(word));
    }
    ASSAY_TRY(const engine::Checkpoint checkpoint, engine::Checkpoint::open(path));
    models.push_back({.name = model_name(path, models),
                      .path = path.string(),
                      .size_bytes = checkpoint.weight_bytes(),
                      .parameters = checkpoint.parameter_count()});
  }
  return models;
}

}  // namespace assay::cli
