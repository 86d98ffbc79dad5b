// Finds a file's format by its content, and calls the reader.
#include "import/import.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/files/files.h"
#include "base/records/lenient_json.h"
#include "base/text/text.h"
#include "import/formats/readers.h"
#include "import/formats/settings.h"
#include "study/yaml_tree.h"

namespace assay {
namespace {

constexpr std::array<std::string_view, 8> kFormatNames = {
    "llama-bench", "vllm-serve",       "aiperf",    "optimum",
    "nvbench",     "pytest-benchmark", "hyperfine", "mapped-csv"};

constexpr std::string_view kSettingPrefix = "setting.";

bool has_all(const Json& object, std::initializer_list<const char*> keys) {
  return object.is_object() &&
         std::ranges::all_of(keys, [&](const char* key) { return object.contains(key); });
}

bool is_llama_bench(const Json& test) {
  return has_all(test, {"build_commit", "build_number", "model_filename", "n_prompt", "n_gen"});
}

// A report has measurements by name, each with a latency.
bool is_optimum_report(const Json& report) {
  if (!report.is_object()) return false;
  for (const char* target : {"prefill", "decode", "generate", "forward", "per_token", "load"}) {
    const Json& measured = member(report, target);
    if (measured.is_object() && measured.contains("latency") && measured.contains("throughput")) {
      return true;
    }
  }
  return member(report, "load_model").is_object() &&
         member(report, "load_model").contains("latency");
}

bool is_optimum(const Json& document) {
  if (is_optimum_report(document) || is_optimum_report(member(document, "report"))) return true;
  return has_all(document, {"backend", "scenario", "launcher"});
}

std::optional<ImportFormat> detect_object(const Json& document) {
  if (is_llama_bench(document)) return ImportFormat::kLlamaBench;
  if (has_all(document, {"metadata", "metrics"}) &&
      member(document, "metadata").contains("request_start_ns")) {
    return ImportFormat::kAiperf;
  }
  if (member(member(document, "request_latency"), "unit").is_string()) return ImportFormat::kAiperf;
  if (has_all(document, {"machine_info", "benchmarks"})) return ImportFormat::kPytestBenchmark;
  if (has_all(document, {"devices", "benchmarks"})) return ImportFormat::kNvbench;
  if (member(document, "results").is_array()) {
    const Json& results = document["results"];
    if (!results.empty() && has_all(results[0], {"command", "mean"})) {
      return ImportFormat::kHyperfine;
    }
  }
  if (has_all(document, {"model_id", "duration", "completed", "request_throughput"})) {
    return ImportFormat::kVllmServe;
  }
  if (is_optimum(document)) return ImportFormat::kOptimum;
  return std::nullopt;
}

bool is_llama_bench_text(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  const bool csv = line.find("build_commit") != std::string_view::npos &&
                   line.find("build_number") != std::string_view::npos &&
                   line.find("avg_ns") != std::string_view::npos;
  return csv || text.find("INSERT INTO llama_bench") != std::string_view::npos;
}

Result<ImportFormat> one_format(std::span<const SourceText> sources) {
  std::optional<ImportFormat> format;
  for (const SourceText& source : sources) {
    const auto found = detect_format(source);
    if (!found) {
      return bad_input("{}: expected results of one of {}, found {}", source.path,
                       join(std::vector<std::string>(import_format_names().begin(),
                                                     import_format_names().end() - 1),
                            ", "),
                       source.documents.empty()
                           ? "another kind of file (a CSV of another tool needs --mapping)"
                           : "JSON of another kind (--format names the format)");
    }
    if (format && *format != *found) {
      return bad_input("{}: expected files of one format, found {} after {}", source.path,
                       import_format_name(*found), import_format_name(*format));
    }
    format = found;
  }
  return *format;
}

// Adds the user's statement, which must not contradict a file's.
Status assert_setting(const std::string& name, std::string_view value, ImportedRun& run) {
  const std::string stated = name.substr(kSettingPrefix.size());
  const auto known = std::ranges::find(run.settings, stated, &StatedSetting::name);
  if (known != run.settings.end() && known->value != setting_text(value)) {
    return bad_input("--set {}: expected a setting that the files don't state, found {} in {}",
                     name, quoted_excerpt(known->value), run.source);
  }
  if (known == run.settings.end()) add_setting(run, stated, value);
  std::erase(run.unstated, stated);
  return {};
}

Status assert_field(ImportField field, const std::string& name, std::string_view value,
                    ImportedRun& run) {
  RunFacts stated;
  ASSAY_CHECK(stated.state(field, value, "--set"));
  if (run.facts.knows(field) && run.facts.text(field) != stated.text(field)) {
    return bad_input("--set {}: expected a field that the files don't state, found {} in {}", name,
                     quoted_excerpt(run.facts.text(field)), run.source);
  }
  return run.facts.state(field, value, "--set");
}

Status assert_stated(std::string_view assertion, Imported& imported) {
  const size_t equals = assertion.find('=');
  const std::string name(assertion.substr(0, equals));
  const auto field = parse_import_field(name);
  const bool setting = name.starts_with(kSettingPrefix) && name.size() > kSettingPrefix.size();
  if (!(field || setting) || equals == std::string_view::npos) {
    return bad_input(
        "--set: expected FIELD=VALUE with one of {}, or setting.NAME=VALUE, found {}{}",
        join(import_field_names(), ", "), quoted_excerpt(assertion),
        nearest_hint(name, import_field_names()));
  }
  const std::string_view value = assertion.substr(equals + 1);
  for (ImportedRun& run : imported.runs) {
    ASSAY_CHECK(field ? assert_field(*field, name, value, run) : assert_setting(name, value, run));
  }
  imported.asserted[name] = value;
  return {};
}

Status check_mapping(const ImportRequest& request) {
  const bool csv = request.format == ImportFormat::kMappedCsv;
  if (csv && !request.mapping) {
    return bad_input("--format mapped-csv: expected --mapping FILE with it, found none");
  }
  if (request.mapping && request.format && !csv) {
    return bad_input("--mapping: expected the format mapped-csv with it, found {}",
                     import_format_name(*request.format));
  }
  return {};
}

}  // namespace

std::string_view import_format_name(ImportFormat format) {
  return kFormatNames[static_cast<size_t>(format)];
}

const std::vector<std::string>& import_format_names() {
  static const std::vector<std::string> names(kFormatNames.begin(), kFormatNames.end());
  return names;
}

std::optional<ImportFormat> parse_import_format(std::string_view name) {
  const auto at = std::ranges::find(kFormatNames, name);
  if (at == kFormatNames.end()) return std::nullopt;
  return static_cast<ImportFormat>(at - kFormatNames.begin());
}

std::optional<ImportFormat> detect_format(const SourceText& source) {
  if (source.documents.empty()) {
    if (is_llama_bench_text(source.text)) return ImportFormat::kLlamaBench;
    return std::nullopt;
  }
  const Json& first = source.documents[0];
  if (!first.is_array()) return detect_object(first);
  return !first.empty() && is_llama_bench(first[0]) ? std::optional(ImportFormat::kLlamaBench)
                                                    : std::nullopt;
}

Result<Imported> import_sources(std::span<const SourceText> sources,
                                std::optional<ImportFormat> format, const CsvMapping* mapping) {
  if (!format) {
    if (mapping) {
      format = ImportFormat::kMappedCsv;
    } else {
      ASSAY_TRY(format, one_format(sources));
    }
  }
  switch (*format) {
    case ImportFormat::kLlamaBench:
      return read_llama_bench(sources);
    case ImportFormat::kVllmServe:
      return read_vllm_serve(sources);
    case ImportFormat::kAiperf:
      return read_aiperf(sources);
    case ImportFormat::kOptimum:
      return read_optimum(sources);
    case ImportFormat::kNvbench:
      return read_nvbench(sources);
    case ImportFormat::kPytestBenchmark:
      return read_pytest_benchmark(sources);
    case ImportFormat::kHyperfine:
      return read_hyperfine(sources);
    case ImportFormat::kMappedCsv:
      break;
  }
  return read_mapped_csv(sources, *mapping);
}

Result<Imported> read_imported(const ImportRequest& request) {
  ASSAY_CHECK(check_mapping(request));
  std::optional<CsvMapping> mapping;
  if (request.mapping) {
    ASSAY_TRY(const std::string text, read_file(*request.mapping, kMaxYamlBytes));
    ASSAY_TRY(mapping, parse_csv_mapping(text, request.mapping->string()));
  }
  std::vector<SourceText> sources;
  std::set<std::string> hashes;  // of files that would count twice if given twice
  for (const std::filesystem::path& path : request.files) {
    ASSAY_TRY(SourceText source, read_source(path));
    if (!hashes.insert(source.digest.sha256).second) {
      return bad_input("{}: expected each result once, found the bytes of another file again",
                       path.string());
    }
    sources.push_back(std::move(source));
  }
  ASSAY_TRY(Imported imported,
            import_sources(sources, request.format, mapping ? &*mapping : nullptr));
  for (size_t i = 0; i < sources.size(); ++i) {
    imported.files.push_back({request.files[i].filename().string(), sources[i].digest});
  }
  for (const std::string& assertion : request.asserted) {
    ASSAY_CHECK(assert_stated(assertion, imported));
  }
  return imported;
}

}  // namespace assay
