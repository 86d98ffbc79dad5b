// criterion, the Rust crate: a folder a benchmark, with its samples, its estimates and its name in
// files of their own.
#include <algorithm>
#include <filesystem>

#include "base/records/lenient_json.h"
#include "base/text/text.h"
#include "import/formats/readers.h"
#include "import/formats/sample_parts.h"
#include "import/formats/settings.h"

namespace assay {
namespace {

constexpr double kMsOfNs = 1e-6;

// The files of one folder; null: it isn't among the sources.
struct CriterionFolder {
  std::string path;  // of the file that has the figures
  const Json* sample = nullptr;
  const Json* estimates = nullptr;
  const Json* benchmark = nullptr;
};

Result<std::map<std::string, CriterionFolder>> folders_of(std::span<const SourceText> sources) {
  std::map<std::string, CriterionFolder> folders;
  for (const SourceText& source : sources) {
    ASSAY_TRY(const auto documents, documents_of(source));
    const Json& document = documents[0];
    CriterionFolder& folder = folders[folder_of(source)];
    const Json*& place = document.contains("times")      ? folder.sample
                         : document.contains("group_id") ? folder.benchmark
                                                         : folder.estimates;
    if (place != nullptr) {
      return bad_input("{}: expected one such file a folder, found a second", source.path);
    }
    place = &document;
    if (folder.path.empty() || place == folder.sample) folder.path = source.path;
  }
  return folders;
}

// The names of the folders between "criterion" and the last one, as the tool lays them out.
std::string name_of_path(const std::string& path) {
  std::vector<std::string> names;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path().parent_path();
  for (const std::filesystem::path& part : folder) {
    names.push_back(part.string());
    if (part == "criterion") names.clear();
  }
  const bool inside = std::ranges::find(folder, "criterion") != folder.end();
  return inside ? join(names, "/") : "";
}

Status state_name(const CriterionFolder& folder, RunFacts& facts) {
  const Json none;
  const Json& benchmark = folder.benchmark ? *folder.benchmark : none;
  const std::string group = plain_text(benchmark, "group_id");
  const std::string function = plain_text(benchmark, "function_id");
  const std::string value = plain_text(benchmark, "value_str");
  const std::string name = folder.benchmark ? group : name_of_path(folder.path);
  if (name.empty()) {
    return bad_input(
        "{}: expected benchmark.json of its folder too, or a path .../criterion/NAME/new/FILE, "
        "found neither",
        folder.path);
  }
  // Functions of one group are compared, on each of its values.
  const std::string place = function.empty() ? value : value.empty() ? group : group + " " + value;
  return state_fields({{ImportField::kBackend, "criterion"},
                       {ImportField::kArm, short_name(function.empty() ? name : function)},
                       {ImportField::kScenario, short_name(place)}},
                      folder.path, facts);
}

// Each sample is the mean of its iterations.
Status add_iterations(const CriterionFolder& folder, ImportedRun& run) {
  const Json& sample = *folder.sample;
  ASSAY_TRY(const auto times, json_numbers(member(sample, "times"), folder.path, "times"));
  ASSAY_TRY(const auto iterations, json_numbers(member(sample, "iters"), folder.path, "iters"));
  ASSAY_CHECK(check_entries(member(sample, "iters"), "iters", times.size(), "times", folder.path));
  for (size_t i = 0; i < times.size(); ++i) {
    put_latency(run.samples.emplace_back(), times[i] / iterations[i] * kMsOfNs);
  }
  return {};
}

Status add_estimate(const CriterionFolder& folder, ImportedRun& run) {
  ASSAY_TRY(const double mean,
            json_number(member(*folder.estimates, "mean"), "point_estimate", folder.path));
  run.means = true;
  put_latency(run.samples.emplace_back(), mean * kMsOfNs);
  return {};
}

Result<ImportedRun> read_folder(const CriterionFolder& folder) {
  ImportedRun run{.source = folder.path, .facts = {}, .warmed_up = true};
  ASSAY_CHECK(state_name(folder, run.facts));
  ASSAY_CHECK(folder.sample ? add_iterations(folder, run) : add_estimate(folder, run));
  static const auto kOfBenchmark =
      one_of({"group_id", "function_id", "value_str", "full_id", "directory_name", "title"});
  static const auto kOfSample = one_of({"times", "iters"});
  if (folder.benchmark) {
    ASSAY_CHECK(add_settings(*folder.benchmark, {.is_other = kOfBenchmark}, folder.path, run));
  }
  if (folder.sample) {
    ASSAY_CHECK(add_settings(*folder.sample, {.is_other = kOfSample}, folder.path, run));
  }
  return run;
}

}  // namespace

Result<Imported> read_criterion(std::span<const SourceText> sources) {
  Imported imported{.format = "criterion", .tool = "criterion"};
  imported.order = "sequential";
  imported.arms_are_code = true;
  ASSAY_TRY(const auto folders, folders_of(sources));
  for (const auto& [name, folder] : folders) {
    if (!folder.sample && !folder.estimates) {
      return bad_input("{}: expected sample.json or estimates.json of its folder too, found none",
                       folder.path);
    }
    ASSAY_TRY(ImportedRun run, read_folder(folder));
    ASSAY_CHECK(add_run(std::move(run), imported));
  }
  imported.notes.emplace_back(
      "each sample of criterion is the mean of its iterations, and its times are taken for "
      "nanoseconds, as its own clock writes them");
  return imported;
}

}  // namespace assay
