// hyperfine: one result a command, with the time and the exit code of each run.
#include "base/records/lenient_json.h"
#include "base/text/text.h"
#include "import/formats/readers.h"
#include "import/formats/sample_parts.h"
#include "import/formats/settings.h"

namespace assay {
namespace {

// A run that ended with another status than 0 is a crash; without one, a signal ended it.
void judge_exit(const Json& codes, size_t i, ImportedSample& sample) {
  if (!codes.is_array()) return;
  const Json& code = codes[i];
  if (code.is_number_integer() && code == 0) return;
  fail_sample(sample, RowStatus::kCrash,
              code.is_null() ? "signal" : "exit " + to_json_line(code).substr(0, 20), "");
}

Result<ImportedRun> read_result(const Json& result, const std::string& object,
                                const std::string& source) {
  ImportedRun run{.source = source, .facts = {}, .own_processes = true};
  ASSAY_TRY(const std::string command, json_string(result, "command", object));
  ASSAY_CHECK(run.facts.state(ImportField::kBackend, "command", object));
  ASSAY_CHECK(run.facts.state(ImportField::kArm, short_name(command), object));
  ASSAY_CHECK(state_members(member(result, "parameters"), object, run.facts));
  const Json& times = member(result, "times");
  run.means = times.is_null();
  std::vector<double> seconds;
  if (run.means) {
    ASSAY_TRY(const double mean, json_number(result, "mean", object));
    seconds = {mean};
  } else {
    ASSAY_TRY(seconds, json_numbers(times, object, "times"));
  }
  const Json& codes = member(result, "exit_codes");
  if (!run.means) ASSAY_CHECK(check_entries(codes, "exit_codes", seconds.size(), "times", object));
  for (size_t i = 0; i < seconds.size(); ++i) {
    ImportedSample& sample = run.samples.emplace_back();
    if (!run.means) judge_exit(codes, i, sample);
    put_latency(sample, seconds[i] * 1e3);
  }
  // Members of `parameters` go to state_members(), which names them as fields are named.
  static const auto kOfResult = one_of({"command", "mean", "stddev", "median", "user", "system",
                                        "min", "max", "times", "exit_codes", "memory_usage_byte"});
  const auto is_other = [](std::string_view name) {
    constexpr std::string_view kParameters = "parameters.";
    return kOfResult(name) || (name.starts_with(kParameters) &&
                               parse_import_field(name.substr(kParameters.size())).has_value());
  };
  ASSAY_CHECK(
      add_settings(result, {.is_other = is_other, .samples = run.samples.size()}, object, run));
  // Settings of hyperfine's work before and around each run, which its file lacks.
  expect_settings({"shell", "warmup", "prepare"}, run);
  return run;
}

}  // namespace

Result<Imported> read_hyperfine(std::span<const SourceText> sources) {
  Imported imported{.format = "hyperfine", .tool = "hyperfine"};
  imported.order = "sequential";
  imported.arms_are_code = true;
  for (const SourceText& source : sources) {
    ASSAY_TRY(const auto documents, documents_of(source));
    for (const Json& document : documents) {
      const Json& results = member(document, "results");
      if (!results.is_array()) return unexpected_json(source, "a list", "\"results\"", results);
      for (size_t i = 0; i < results.size(); ++i) {
        ASSAY_TRY(ImportedRun run,
                  read_result(results[i], part_name(source, "result", i + 1), source.path));
        ASSAY_CHECK(add_run(std::move(run), imported));
      }
    }
  }
  return imported;
}

}  // namespace assay
