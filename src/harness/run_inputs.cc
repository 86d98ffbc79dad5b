// Gathers the files that backends, models and the environment name.
#include "harness/run_inputs.h"

#include <fmt/format.h>

namespace assay {
namespace {

namespace fs = std::filesystem;

// A checkpoint's folder, or a model in one file. Any other folder is a command's own business.
bool is_bound(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) || fs::is_regular_file(path / "config.json", error);
}

void add_libraries(const Json& environment, std::vector<BoundRoot>& roots) {
  const auto libraries = environment.find("libraries");
  if (libraries == environment.end() || !libraries->is_array()) return;
  for (const Json& library : *libraries) {
    const auto path = library.find("path");
    if (path == library.end() || !path->is_string()) continue;
    roots.push_back({.of = "library",
                     .name = path->get<std::string>(),
                     .path = path->get<std::string>(),
                     .sha256 = library.value("sha256", ""),
                     .told = false});
  }
}

}  // namespace

std::string model_owner(const StudyModel& model) {
  return fmt::format("model \"{}\"", model.name);
}

Result<BoundFiles> bind_inputs(const Study& study, const Preflight& preflight,
                               const BackendSet& backends, const Json& environment) {
  std::vector<BoundRoot> roots;
  for (const StudyModel& model : study.models) {
    if (!model.arch.empty() || !is_bound(model.path)) continue;
    const fs::path path = fs::absolute(model.path);
    std::error_code error;
    roots.push_back(
        {model_owner(model), fs::is_directory(path, error) ? "" : path.filename().string(), path});
  }
  for (size_t i = 0; i < study.arms.size(); ++i) {
    const StudyArm& arm = study.arms[i];
    if (preflight.readiness[i].verdict == ArmReadiness::Verdict::kImpossible) continue;
    for (ArmInput& input : backends.at(arm.backend)->inputs(arm)) {
      roots.push_back({input.of.empty() ? fmt::format("arm \"{}\"", arm.name) : input.of,
                       std::move(input.name), std::move(input.path), std::move(input.sha256)});
    }
  }
  add_libraries(environment, roots);
  return BoundFiles::bind(roots);
}

Status check_same_inputs(const Json& first, const Json& now,
                         const std::vector<std::string>& known) {
  const auto text = [](const Json& environment) {
    const auto found = environment.find("program_sha256");
    return found != environment.end() && found->is_string() ? found->get<std::string>() : "";
  };
  const std::string before = text(first);
  const std::string after = text(now);
  if (!before.empty() && !after.empty() && before != after) {
    return bad_input(
        "program: expected the build with which the run began, sha256 {}, found sha256 {}", before,
        after);
  }
  const auto inputs = [](const Json& environment) {
    const auto found = environment.find("inputs");
    return found == environment.end() ? Json() : *found;
  };
  return check_bound_alike(inputs(first), inputs(now), known);
}

}  // namespace assay
