#include "cli/bench/kept_models.h"

#include <algorithm>

#include "base/files/cache_folder.h"
#include "base/files/folder.h"
#include "engine/model/architectures.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

std::unexpected<Error> unreadable(const fs::path& path, const std::error_code& error) {
  return environment_error("{}: expected a readable folder, found: {}", path.string(),
                           error.message());
}

Result<uint64_t> bytes_below(const fs::path& folder) {
  uint64_t bytes = 0;
  std::error_code error;
  for (auto at = fs::recursive_directory_iterator(folder, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    std::error_code gone;  // another process may remove it at any time
    const bool file = fs::symlink_status(at->path(), gone).type() == fs::file_type::regular;
    const uint64_t size = file ? fs::file_size(at->path(), gone) : 0;
    if (!gone) bytes += size;
  }
  if (error) return unreadable(folder, error);
  return bytes;
}

}  // namespace

fs::path kept_models_folder() {
  return cache_folder("ASSAY_MODEL_CACHE", "models");
}

Result<std::vector<KeptModel>> kept_models() {
  const fs::path folder = kept_models_folder();
  std::vector<KeptModel> models;
  std::error_code error;
  if (folder.empty() || !fs::exists(folder, error)) return models;
  const std::vector<std::string> known = engine::architecture_names();
  for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    const std::string target = temporary_target(name);
    const std::string& architecture = target.empty() ? name : target;
    std::error_code gone;
    if (fs::symlink_status(at->path(), gone).type() != fs::file_type::directory) continue;
    if (std::ranges::find(known, architecture) == known.end()) continue;
    ASSAY_TRY(const uint64_t bytes, bytes_below(at->path()));
    models.push_back({architecture, at->path(), bytes, !target.empty()});
  }
  if (error) return unreadable(folder, error);
  std::ranges::sort(models, {}, [](const KeptModel& model) { return model.path; });
  return models;
}

Status remove_kept_models(const std::vector<KeptModel>& models) {
  for (const KeptModel& model : models) {
    std::error_code error;
    fs::remove_all(model.path, error);
    if (error) {
      return environment_error("{}: expected to remove this model, found: {}", model.path.string(),
                               error.message());
    }
  }
  return {};
}

}  // namespace assay::cli
