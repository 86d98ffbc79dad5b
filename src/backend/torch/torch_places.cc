// Looked up at run time, relative to the program: an installation can be moved.
#include "backend/torch/torch_places.h"

#include <cstdlib>

namespace assay {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// A virtual environment is whole once `complete` is in it.
std::optional<fs::path> newest_environment(const fs::path& cache) {
  std::optional<fs::path> newest;
  fs::file_time_type newest_time;
  std::error_code error;
  for (fs::directory_iterator it(cache, error), end; !error && it != end; it.increment(error)) {
    if (!it->path().filename().string().starts_with("torch-env-")) continue;
    std::error_code unfinished;
    const auto time = fs::last_write_time(it->path() / "complete", unfinished);
    if (unfinished || (newest && time <= newest_time)) continue;
    newest = it->path();
    newest_time = time;
  }
  return newest;
}

}  // namespace

EnvironmentReader process_environment_reader() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (!value || !*value) return std::nullopt;
    return std::string(value);
  };
}

Result<fs::path> find_workers(const fs::path& program, const EnvironmentReader& environment) {
  const fs::path worker = fs::path("torch") / "worker.py";
  if (const auto named = environment("ASSAY_WORKERS")) {
    if (is_file(fs::path(*named) / worker)) return fs::path(*named);
    return environment_error("ASSAY_WORKERS: expected a folder with torch/worker.py, found {}",
                             *named);
  }
  const fs::path folder = program.parent_path();
  const fs::path installed = folder.parent_path() / "share" / "assay" / "workers";
  if (is_file(installed / worker)) return installed;
  for (fs::path above = folder; above.has_relative_path(); above = above.parent_path()) {
    if (is_file(above / "workers" / worker)) return above / "workers";
  }
  return environment_error(
      "torch worker: expected torch/worker.py in {} or in workers/ above {}, found none; "
      "ASSAY_WORKERS names another folder",
      installed.string(), folder.string());
}

Result<std::string> find_python(const StudyArm& arm, const EnvironmentReader& environment) {
  if (arm.options.contains("python")) {
    const auto named = arm.options["python"].get<std::string>();
    if (!named.starts_with('$')) return named;
    if (const auto value = environment(named.substr(1))) return *value;
    return environment_error("{}: expected the path of an interpreter, found it unset", named);
  }
  if (const auto named = environment("ASSAY_TORCH_PYTHON")) return *named;
  const auto home = environment("HOME");
  const auto cache = environment("XDG_CACHE_HOME");
  const fs::path folder =
      (cache ? fs::path(*cache) : fs::path(home.value_or("")) / ".cache") / "assay";
  if (const auto made = newest_environment(folder)) {
    return (*made / "bin" / "python").string();
  }
  return environment_error(
      "torch interpreter: expected ASSAY_TORCH_PYTHON or an environment in {}, found neither",
      folder.string());
}

}  // namespace assay
