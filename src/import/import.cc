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

constexpr std::string_view kSettingPrefix = "setting.";

bool has_all(const Json& object, std::initializer_list<const char*> keys) {
  return object.is_object() &&
         std::ranges::all_of(keys, [&](const char* key) { return object.contains(key); });
}

// The list's first element, where the member is a list.
const Json& first_element(const Json& object, const char* key) {
  static const Json kNone;
  const Json& list = member(object, key);
  return list.is_array() && !list.empty() ? list[0] : kNone;
}

bool is_llama_bench(const Json& test) {
  return has_all(test, {"build_commit", "build_number", "model_filename", "n_prompt", "n_gen"});
}

bool is_aiperf(const Json& document) {
  return member(document, "metadata").contains("request_start_ns") ||
         member(member(document, "request_latency"), "unit").is_string();
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

bool is_criterion(const Json& document) {
  return has_all(document, {"iters", "times"}) ||
         has_all(document, {"group_id", "function_id", "directory_name"}) ||
         (has_all(document, {"median", "median_abs_dev", "std_dev"}) &&
          member(member(document, "mean"), "point_estimate").is_number());
}

// A format, its mark in the first object of a file (null: it is no JSON), and its reader.
struct FormatEntry {
  std::string_view name;
  bool (*is_of)(const Json& first);
  Result<Imported> (*read)(std::span<const SourceText> sources);
};
// In the order of the enum.
constexpr std::array<FormatEntry, static_cast<size_t>(ImportFormat::kMappedCsv) + 1> kFormats = {{
    {"llama-bench", is_llama_bench, read_llama_bench},
    {"vllm-serve",
     [](const Json& d) {
       return has_all(d, {"model_id", "duration", "completed", "request_throughput"});
     },
     read_vllm_serve},
    {"vllm-latency",
     [](const Json& d) {
       return has_all(d, {"avg_latency", "latencies", "percentiles"});
     },
     read_vllm_latency},
    {"vllm-throughput",
     [](const Json& d) {
       return has_all(d, {"elapsed_time", "num_requests", "requests_per_second"});
     },
     read_vllm_throughput},
    {"guidellm",
     [](const Json& d) {
       return has_all(member(first_element(d, "benchmarks"), "requests"),
                      {"successful", "errored"});
     },
     read_guidellm},
    {"aiperf", is_aiperf, read_aiperf},
    {"optimum", is_optimum, read_optimum},
    {"nvbench",
     [](const Json& d) {
       return has_all(d, {"devices", "benchmarks"});
     },
     read_nvbench},
    {"pytest-benchmark",
     [](const Json& d) {
       return has_all(d, {"machine_info", "benchmarks"});
     },
     read_pytest_benchmark},
    {"hyperfine",
     [](const Json& d) {
       return has_all(first_element(d, "results"), {"command", "mean"});
     },
     read_hyperfine},
    {"criterion", is_criterion, read_criterion},
    {"mapped-csv", nullptr, nullptr},
}};

bool is_llama_bench_text(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  const bool csv = line.find("build_commit") != std::string_view::npos &&
                   line.find("build_number") != std::string_view::npos &&
                   line.find("avg_ns") != std::string_view::npos;
  return csv || text.find("INSERT INTO llama_bench") != std::string_view::npos ||
         is_llama_bench_markdown(text);
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

// A file to read, and its name in the bundle: without the folders above what the user named.
struct NamedFile {
  std::filesystem::path path;
  std::string name;
};

// criterion's files below a folder, by their paths.
Result<std::vector<NamedFile>> files_below(const std::filesystem::path& folder) {
  constexpr size_t kMostFiles = 10'000;
  std::vector<NamedFile> found;
  std::error_code error;
  std::filesystem::recursive_directory_iterator at(folder, error);
  for (; !error && at != std::filesystem::recursive_directory_iterator(); at.increment(error)) {
    const std::filesystem::path& path = at->path();
    const bool named = path.filename() == "sample.json" || path.filename() == "benchmark.json";
    if (!named || path.parent_path().filename() != "new" || !at->is_regular_file(error)) continue;
    found.push_back({path, path.lexically_relative(folder).string()});
    if (found.size() > kMostFiles) {
      return bad_input("{}: expected at most {} files, found more", folder.string(), kMostFiles);
    }
  }
  if (error || found.empty()) {
    return bad_input(
        "{}: expected a file, or a folder of criterion's with NAME/new/sample.json in it, found {}",
        folder.string(), error ? error.message() : "a folder without");
  }
  std::ranges::sort(found, {}, &NamedFile::path);
  return found;
}

Result<std::vector<NamedFile>> files_to_read(const ImportRequest& request) {
  std::vector<NamedFile> files;
  for (const std::filesystem::path& path : request.files) {
    std::error_code none;
    if (!std::filesystem::is_directory(path, none)) {
      files.push_back({path, path.filename().string()});
      continue;
    }
    ASSAY_TRY(std::vector<NamedFile> below, files_below(path));
    std::ranges::move(below, std::back_inserter(files));
  }
  return files;
}

}  // namespace

std::string_view import_format_name(ImportFormat format) {
  return kFormats[static_cast<size_t>(format)].name;
}

const std::vector<std::string>& import_format_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const FormatEntry& format : kFormats) all.emplace_back(format.name);
    return all;
  }();
  return names;
}

std::optional<ImportFormat> parse_import_format(std::string_view name) {
  const auto at = std::ranges::find(kFormats, name, &FormatEntry::name);
  if (at == kFormats.end()) return std::nullopt;
  return static_cast<ImportFormat>(at - kFormats.begin());
}

std::optional<ImportFormat> detect_format(const SourceText& source) {
  if (source.documents.empty()) {
    if (is_llama_bench_text(source.text)) return ImportFormat::kLlamaBench;
    return std::nullopt;
  }
  const Json& first = source.documents[0];
  if (first.is_array()) {
    return !first.empty() && is_llama_bench(first[0]) ? std::optional(ImportFormat::kLlamaBench)
                                                      : std::nullopt;
  }
  const auto at = std::ranges::find_if(
      kFormats, [&](const FormatEntry& format) { return format.is_of && format.is_of(first); });
  if (at == kFormats.end()) return std::nullopt;
  return static_cast<ImportFormat>(at - kFormats.begin());
}

Result<Imported> import_sources(std::span<const SourceText> sources,
                                std::optional<ImportFormat> format, const CsvMapping* mapping) {
  if (mapping) return read_mapped_csv(sources, *mapping);
  if (!format) {
    ASSAY_TRY(format, one_format(sources));
  }
  return kFormats[static_cast<size_t>(*format)].read(sources);
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
  ASSAY_TRY(const std::vector<NamedFile> files, files_to_read(request));
  for (const NamedFile& file : files) {
    ASSAY_TRY(SourceText source, read_source(file.path));
    if (!hashes.insert(source.digest.sha256).second) {
      return bad_input("{}: expected each result once, found the bytes of another file again",
                       file.path.string());
    }
    sources.push_back(std::move(source));
  }
  ASSAY_TRY(Imported imported,
            import_sources(sources, request.format, mapping ? &*mapping : nullptr));
  for (size_t i = 0; i < sources.size(); ++i) {
    imported.files.push_back({files[i].name, sources[i].digest});
  }
  for (const std::string& assertion : request.asserted) {
    ASSAY_CHECK(assert_stated(assertion, imported));
  }
  return imported;
}

}  // namespace assay
