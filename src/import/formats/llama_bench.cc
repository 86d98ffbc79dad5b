// llama-bench: one object or row a test, with its settings, and in JSON with its samples.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include "base/records/lenient_json.h"
#include "base/tables/csv.h"
#include "import/formats/readers.h"
#include "import/formats/sample_parts.h"
#include "import/formats/settings.h"

namespace assay {
namespace {

// Settings and how llama-bench's options name them, for the names of arms.
constexpr std::array<std::pair<std::string_view, const char*>, 24> kSettingMarks = {{
    {"n_threads", "t"},
    {"n_batch", "b"},
    {"n_ubatch", "ub"},
    {"type_k", "ctk-"},
    {"type_v", "ctv-"},
    {"n_gpu_layers", "ngl"},
    {"n_cpu_moe", "ncmoe"},
    {"split_mode", "sm-"},
    {"main_gpu", "mg"},
    {"no_kv_offload", "nkvo-"},
    {"flash_attn", "fa-"},
    {"devices", "dev-"},
    {"tensor_split", "ts-"},
    {"tensor_buft_overrides", "ot-"},
    {"use_mmap", "mmp-"},
    {"load_mode", "lm-"},
    {"no_op_offload", "nopo-"},
    {"cpu_mask", "C-"},
    {"cpu_strict", "cpu-strict-"},
    {"poll", "poll"},
    {"embeddings", "embd-"},
    {"lazy_mode", "lazy-"},
    {"repack", "repack-"},
    {"no_host", "no-host-"},
}};

// A member of an object or of a row, in which numbers are texts.
Result<int64_t> whole(const Json& test, const char* key, const std::string& object) {
  const std::string text = plain_text(test, key);
  if (text.empty()) return bad_input("{}: expected a number at \"{}\", found nothing", object, key);
  RunFacts check;  // the same bounds as for any count
  ASSAY_CHECK(check.state(ImportField::kNewTokens, text, fmt::format("{}: {}", object, key)));
  return *check.count(ImportField::kNewTokens);
}

std::string base_name(const std::string& path) {
  std::string name = path.substr(path.find_last_of("/\\") + 1);
  if (name.ends_with(".gguf")) name.resize(name.size() - 5);
  return name.empty() ? path : name;
}

// "Q4_K - Medium" of "llama 1B Q4_K - Medium": the words behind the architecture and the size,
// without those that older builds put before a type, and the remark that it was guessed from a
// name.
std::string weights_type(const std::string& model_type) {
  const size_t first = model_type.find(' ');
  const size_t second = first == std::string::npos ? first : model_type.find(' ', first + 1);
  if (second == std::string::npos) return "";
  std::string type = model_type.substr(second + 1);
  for (const std::string_view word : {"all ", "mostly "}) {
    if (type.starts_with(word)) type.erase(0, word.size());
  }
  constexpr std::string_view kGuessed = " (guessed)";
  if (type.ends_with(kGuessed)) type.resize(type.size() - kGuessed.size());
  return type;
}

Status state_model(const Json& test, const std::string& object, RunFacts& facts) {
  ASSAY_CHECK(
      facts.state(ImportField::kModel, base_name(plain_text(test, "model_filename")), object));
  const std::string type = weights_type(plain_text(test, "model_type"));
  const std::string dtype = plain_dtype(type);
  const bool plain = dtype == "fp32" || dtype == "fp16" || dtype == "bf16";
  if (plain) ASSAY_CHECK(facts.state(ImportField::kDtype, dtype, object));
  return facts.state(ImportField::kQuantization, plain ? "none" : type, object);
}

Status state_build(const Json& test, const std::string& object, RunFacts& facts) {
  const std::string commit = plain_text(test, "build_commit");
  const std::string gpu = plain_text(test, "gpu_info");
  const bool on_gpu = !gpu.empty() && plain_text(test, "backends") != "CPU";
  ASSAY_CHECK(
      facts.state(ImportField::kDevice, on_gpu ? gpu : plain_text(test, "cpu_info"), object));
  if (commit.empty() || commit == "unknown") return {};
  ASSAY_CHECK(facts.state(ImportField::kCodeSha, commit, object));
  return facts.state(ImportField::kFrameworkBuild,
                     fmt::format("llama.cpp {} ({})", plain_text(test, "build_number"), commit),
                     object);
}

// Phase and lengths: a prompt, tokens behind `n_depth` others, or both.
Status state_test(const Json& test, const std::string& object, RunFacts& facts) {
  ASSAY_TRY(const int64_t prompt, whole(test, "n_prompt", object));
  ASSAY_TRY(const int64_t generated, whole(test, "n_gen", object));
  const bool has_depth = !member(test, "n_depth").is_null();
  ASSAY_TRY(const int64_t depth, has_depth ? whole(test, "n_depth", object) : Result<int64_t>(0));
  if (prompt == 0 && generated == 0) {
    return bad_input("{}: expected tokens at n_prompt or n_gen, found 0 at both", object);
  }
  const Phase phase = generated == 0 ? Phase::kPrefill
                      : prompt == 0  ? Phase::kKvDecode
                                     : Phase::kE2eKv;
  std::string scenario = phase == Phase::kPrefill    ? fmt::format("pp{}", prompt)
                         : phase == Phase::kKvDecode ? fmt::format("tg{}", generated)
                                                     : fmt::format("pp{}+tg{}", prompt, generated);
  if (depth > 0) scenario += fmt::format("@d{}", depth);
  ASSAY_CHECK(facts.state(ImportField::kPhase, phase_name(phase), object));
  ASSAY_CHECK(facts.state(ImportField::kScenario, scenario, object));
  facts.state_count(ImportField::kPromptTokens, phase == Phase::kKvDecode ? depth : prompt);
  facts.state_count(ImportField::kNewTokens, generated);
  facts.state_count(ImportField::kBatch, 1);
  return {};
}

// A sample's tokens are samples_ts times its time, and that is n_prompt + n_gen: a sample with
// another number isn't believed.
void put_bench_tokens(const Json& test, const RunFacts& facts, size_t i, ImportedSample& sample) {
  const int64_t wanted =
      facts.phase() == Phase::kPrefill ? 1 : facts.count(ImportField::kNewTokens).value_or(0);
  put_tokens(sample, wanted);
  const Json& rates = member(test, "samples_ts");
  if (!rates.is_array() || i >= rates.size() || !rates[i].is_number() || !sample.latency_ms) return;
  double all = static_cast<double>(facts.count(ImportField::kNewTokens).value_or(0));
  if (facts.phase() != Phase::kKvDecode) {
    all += static_cast<double>(facts.count(ImportField::kPromptTokens).value_or(0));
  }
  const double said = rates[i].get<double>() * *sample.latency_ms / 1e3;
  if (std::abs(said - all) > 0.01 * all) put_tokens(sample, 0);
}

Status add_samples(const Json& test, const std::string& object, ImportedRun& run) {
  const Json& samples = member(test, "samples_ns");
  ASSAY_TRY(const auto started, stated_time(plain_text(test, "test_time"), object + " test_time"));
  run.means = samples.is_null();
  std::vector<double> times_ns;
  if (run.means) {
    ASSAY_TRY(const int64_t mean, [&]() -> Result<int64_t> {
      const std::string text = plain_text(test, "avg_ns");
      char* end = nullptr;
      const double value = std::strtod(text.c_str(), &end);
      if (text.empty() || *end != '\0' || !(value >= 0 && value < 9e18)) {
        return bad_input("{}: expected nanoseconds at \"avg_ns\", found \"{}\"", object, text);
      }
      return static_cast<int64_t>(value);
    }());
    times_ns = {static_cast<double>(mean)};
  } else {
    ASSAY_TRY(times_ns, json_numbers(samples, object, "samples_ns"));
    ASSAY_CHECK(check_entries(member(test, "samples_ts"), "samples_ts", times_ns.size(),
                              "samples_ns", object));
  }
  for (size_t i = 0; i < times_ns.size(); ++i) {
    ImportedSample& sample = run.samples.emplace_back();
    if (i == 0) sample.started_at_ns = started;
    put_latency(sample, times_ns[i] / 1e6);
    put_bench_tokens(test, run.facts, i, sample);
  }
  return {};
}

// JSON has true where the other formats and the options have 1.
Json with_numbers(const Json& test) {
  Json plain = test;
  for (Json& value : plain) {
    if (value.is_boolean()) value = value.get<bool>() ? 1 : 0;
  }
  return plain;
}

// Every member that no field or figure is made of.
Status state_bench_settings(const Json& test, const std::string& object, ImportedRun& run) {
  static const auto kOfTest =
      one_of({"backends", "model_filename", "model_type", "model_size", "model_n_params",
              "n_prompt", "n_gen", "n_depth", "test_time", "avg_ns", "stddev_ns", "avg_ts",
              "stddev_ts", "samples_ns", "samples_ts", "build_commit"});
  const RunFacts& facts = run.facts;
  const bool has_build = facts.knows(ImportField::kFrameworkBuild);
  const auto is_other = [&](std::string_view name) {
    if (name == "build_number") return has_build;
    const bool device = name == "cpu_info" || name == "gpu_info";
    return kOfTest(name) || (device && plain_text(test, name) == facts.text(ImportField::kDevice));
  };
  const Json& samples = member(test, "samples_ns");
  ASSAY_CHECK(add_settings(
      with_numbers(test),
      {.is_other = is_other, .samples = samples.is_array() ? samples.size() : 0}, object, run));
  for (StatedSetting& setting : run.settings) {
    const auto mark =
        std::ranges::find(kSettingMarks, setting.name, [](const auto& m) { return m.first; });
    if (mark != kSettingMarks.end()) setting.mark = mark->second;
  }
  for (const char* key : {"model_type", "model_size", "model_n_params"}) {
    add_setting(run, key, plain_text(test, key), SettingOf::kModel);
  }
  return {};
}

Result<ImportedRun> read_test(const Json& test, const std::string& object,
                              const std::string& source) {
  if (!test.is_object()) {
    return bad_input("{}: expected an object, found {}", object, to_json_line(test).substr(0, 60));
  }
  // The tool warms up before each test, unless --no-warmup, which it doesn't write.
  ImportedRun run{.source = source, .facts = {}, .unstated = {"warmup"}, .warmed_up = true};
  ASSAY_CHECK(state_fields(
      {{ImportField::kBackend, "llama.cpp"}, {ImportField::kArm, plain_text(test, "backends")}},
      object, run.facts));
  ASSAY_CHECK(state_model(test, object, run.facts));
  ASSAY_CHECK(state_build(test, object, run.facts));
  ASSAY_CHECK(state_test(test, object, run.facts));
  ASSAY_CHECK(state_bench_settings(test, object, run));
  const std::string size = plain_text(test, "model_size");  // in Markdown "885.97 MiB"
  int64_t bytes = 0;
  const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), bytes);
  if (error == std::errc() && end == size.data() + size.size() && bytes > 0) {
    run.weight_bytes = bytes;
  }
  ASSAY_CHECK(add_samples(test, object, run));
  return run;
}

Result<std::vector<Json>> csv_rows(const SourceText& source) {
  CsvReader reader(source.text, source.path, ',', static_cast<size_t>(kMostJsonMembers));
  ASSAY_TRY(const std::vector<std::string> header, reader.next());
  if (std::set<std::string>(header.begin(), header.end()).size() != header.size()) {
    return bad_input("{}: expected a header of different columns, found one twice", source.path);
  }
  std::vector<Json> rows;
  while (!reader.done()) {
    ASSAY_TRY(const std::vector<std::string> fields, reader.next());
    if (fields.size() != header.size()) {
      return bad_input("{} line {}: expected {} fields, found {}", source.path, reader.line(),
                       header.size(), fields.size());
    }
    if (static_cast<int64_t>(rows.size() * header.size()) > kMostJsonValues) {
      return bad_input("{}: expected at most {} values, found more", source.path, kMostJsonValues);
    }
    Json& row = rows.emplace_back(Json::object());
    for (size_t i = 0; i < fields.size(); ++i) row[header[i]] = fields[i];
  }
  return rows;
}

Result<std::vector<Json>> tests_of(const SourceText& source) {
  if (source.documents.empty()) {
    if (is_llama_bench_markdown(source.text)) return llama_bench_markdown_rows(source);
    const bool sql = source.text.find("INSERT INTO") != std::string::npos;
    return sql ? llama_bench_sql_rows(source) : csv_rows(source);
  }
  if (source.lines || !source.documents[0].is_array()) return source.documents;
  return std::vector<Json>(source.documents[0].begin(), source.documents[0].end());
}

// Files of one name in different folders are different models; a path that can't be a name is an
// error, since their samples would be taken for those of one model.
Status tell_models_apart(const std::map<std::string, std::set<std::string>>& paths,
                         const std::vector<std::string>& path_of_run, Imported& imported) {
  for (size_t i = 0; i < imported.runs.size(); ++i) {
    if (paths.at(base_name(path_of_run[i])).size() < 2) continue;
    ImportedRun& run = imported.runs[i];
    ASSAY_CHECK(run.facts.state(ImportField::kModel, path_of_run[i], run.source));
  }
  return {};
}

}  // namespace

Result<Imported> read_llama_bench(std::span<const SourceText> sources) {
  Imported imported{.format = "llama-bench", .tool = "llama-bench"};
  imported.order = "sequential";
  std::map<std::string, std::set<std::string>> paths;
  std::vector<std::string> path_of_run;
  for (const SourceText& source : sources) {
    ASSAY_TRY(const std::vector<Json> tests, tests_of(source));
    for (size_t i = 0; i < tests.size(); ++i) {
      ASSAY_TRY(ImportedRun run,
                read_test(tests[i], part_name(source, "test", i + 1), source.path));
      const std::string path = plain_text(tests[i], "model_filename");
      paths[base_name(path)].insert(path);
      path_of_run.push_back(path);
      ASSAY_CHECK(add_run(std::move(run), imported));
    }
  }
  ASSAY_CHECK(tell_models_apart(paths, path_of_run, imported));
  return imported;
}

}  // namespace assay
