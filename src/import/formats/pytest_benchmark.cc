// pytest-benchmark: one object a test, with its rounds where they were saved.
#include "base/records/lenient_json.h"
#include "base/text/text.h"
#include "import/formats/readers.h"
#include "import/formats/sample_parts.h"
#include "import/formats/settings.h"

namespace assay {
namespace {

// Tests of one group are compared; a test alone is a group.
Status state_benchmark(const Json& benchmark, const std::string& object, RunFacts& facts) {
  ASSAY_TRY(const std::string name, json_string(benchmark, "name", object));
  const std::string group = plain_text(benchmark, "group");
  ASSAY_CHECK(facts.state(ImportField::kBackend, "pytest", object));
  ASSAY_CHECK(facts.state(ImportField::kArm, short_name(name), object));
  ASSAY_CHECK(facts.state(ImportField::kScenario, short_name(group), object));
  ASSAY_CHECK(state_members(member(benchmark, "params"), object, facts));
  return state_members(member(benchmark, "extra_info"), object, facts);
}

Status state_machine(const Json& document, const std::string& object, RunFacts& facts) {
  const Json& cpu = member(member(document, "machine_info"), "cpu");
  const Json& commit = member(document, "commit_info");
  if (!facts.knows(ImportField::kDevice)) {
    ASSAY_CHECK(
        facts.state(ImportField::kDevice, short_name(plain_text(cpu, "brand_raw")), object));
  }
  const std::string id = plain_text(commit, "id");
  if (id.empty() || id == "unversioned" || facts.knows(ImportField::kCodeSha)) return {};
  const bool dirty = member(commit, "dirty") == true;
  return facts.state(ImportField::kCodeSha, id + (dirty ? "-dirty" : ""), object);
}

// Members of params and extra_info that are named as fields are fields.
Status state_pytest_settings(const Json& document, const Json& benchmark, const std::string& object,
                             ImportedRun& run) {
  static const auto kOfBenchmark = one_of({"name", "group", "param", "stats"});
  static const auto kOfMachine =
      one_of({"machine_info.node", "machine_info.cpu.brand_raw", "machine_info.cpu.hz_actual",
              "machine_info.cpu.hz_actual_friendly"});
  const auto is_other = [](std::string_view name) {
    for (const std::string_view prefix : {"params.", "extra_info."}) {
      if (name.starts_with(prefix) && parse_import_field(name.substr(prefix.size()))) return true;
    }
    return kOfBenchmark(name);
  };
  const Json& data = member(member(benchmark, "stats"), "data");
  const SettingRules of_benchmark = {.is_other = is_other,
                                     .samples = data.is_array() ? data.size() : 0};
  ASSAY_CHECK(add_settings(benchmark, of_benchmark, object, run));
  ASSAY_CHECK(add_settings(member(document, "machine_info"),
                           {.prefix = "machine_info.", .is_other = kOfMachine}, object, run));
  static const auto kOfDocument = one_of({"machine_info", "commit_info", "benchmarks", "datetime"});
  return add_settings(document, {.is_other = kOfDocument}, object, run);
}

Status add_rounds(const Json& benchmark, const std::string& object, ImportedRun& run) {
  const Json& stats = member(benchmark, "stats");
  const Json& data = member(stats, "data");
  run.means = data.is_null() || (data.is_array() && data.empty());
  std::vector<double> seconds;
  if (run.means) {
    ASSAY_TRY(const double mean, json_number(stats, "mean", object));
    seconds = {mean};
  } else {
    ASSAY_TRY(seconds, json_numbers(data, object, "data"));
  }
  for (const double value : seconds) put_latency(run.samples.emplace_back(), value * 1e3);
  return {};
}

// The machine, but for its name.
Json machine_of(const Json& document) {
  Json machine = Json::object();
  for (const char* key : {"processor", "machine", "python_implementation", "python_version",
                          "python_compiler", "release", "system"}) {
    if (const std::string text = plain_text(member(document, "machine_info"), key); !text.empty()) {
      machine[key] = text;
    }
  }
  return machine;
}

Status read_document(const Json& document, const SourceText& source, Imported& imported) {
  const Json& benchmarks = member(document, "benchmarks");
  if (!benchmarks.is_array())
    return unexpected_json(source, "a list", "\"benchmarks\"", benchmarks);
  imported.machine = machine_of(document);
  const std::string version = plain_text(document, "version");
  imported.tool = "pytest-benchmark" + (version.empty() ? "" : " " + short_name(version));
  ASSAY_TRY(const auto started,
            stated_time(plain_text(document, "datetime"), source.path + " datetime"));
  int64_t several = 0;
  for (size_t i = 0; i < benchmarks.size(); ++i) {
    const std::string object = part_name(source, "benchmark", i + 1);
    ImportedRun run{.source = source.path, .facts = {}};
    ASSAY_CHECK(state_benchmark(benchmarks[i], object, run.facts));
    ASSAY_CHECK(state_machine(document, object, run.facts));
    const Json& warmup = member(member(benchmarks[i], "options"), "warmup");
    run.warmed_up = warmup == true || (warmup.is_number() && warmup > 0);
    ASSAY_CHECK(add_rounds(benchmarks[i], object, run));
    ASSAY_CHECK(state_pytest_settings(document, benchmarks[i], object, run));
    if (!run.samples.empty()) run.samples[0].started_at_ns = started;
    if (whole_member(member(benchmarks[i], "stats"), "iterations").value_or(1) > 1) ++several;
    ASSAY_CHECK(add_run(std::move(run), imported));
  }
  if (several > 0) {
    imported.notes.push_back(
        fmt::format("{}: each sample of {} is the mean of a round's iterations", source.path,
                    counted(several, "benchmark")));
  }
  return {};
}

}  // namespace

Result<Imported> read_pytest_benchmark(std::span<const SourceText> sources) {
  Imported imported{.format = "pytest-benchmark", .tool = "pytest-benchmark"};
  imported.order = "sequential";
  imported.arms_are_code = true;
  for (const SourceText& source : sources) {
    ASSAY_TRY(const auto documents, documents_of(source));
    for (const Json& document : documents) ASSAY_CHECK(read_document(document, source, imported));
  }
  return imported;
}

}  // namespace assay
