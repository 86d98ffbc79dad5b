// nvbench: benchmarks, their states (an axis value each), and the summaries of each state; with
// --jsonbin also files of samples beside the JSON.
#include <bit>
#include <cstring>

#include "base/files/files.h"
#include "base/records/lenient_json.h"
#include "base/text/text.h"
#include "import/formats/readers.h"
#include "import/formats/sample_parts.h"
#include "import/formats/settings.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

// The summary with this tag or hint; null where there is none.
const Json& summary_of(const Json& state, const char* key, std::string_view value) {
  static const Json kNone;
  const Json& summaries = member(state, "summaries");
  if (!summaries.is_array()) return kNone;
  for (const Json& summary : summaries) {
    if (text_member(summary, key) == value) return summary;
  }
  return kNone;
}

// nvbench writes numbers as texts.
std::string datum(const Json& summary, std::string_view name) {
  const Json& data = member(summary, "data");
  if (!data.is_array()) return "";
  for (const Json& value : data) {
    if (text_member(value, "name") == name) return plain_text(value, "value");
  }
  return "";
}

std::optional<double> seconds_of(const Json& state, std::string_view tag) {
  const std::string text = datum(summary_of(state, "tag", tag), "value");
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return text.empty() || *end != '\0' ? std::nullopt : std::optional(value);
}

// "BlockSize=256-T=F32": the state's axis values. They are the condition.
std::string condition_of(const Json& state) {
  std::string condition;
  const Json& values = member(state, "axis_values");
  if (!values.is_array()) return "";
  for (const Json& value : values) {
    condition += fmt::format("{}{}={}", condition.empty() ? "" : "-", text_member(value, "name"),
                             plain_text(value, "value"));
  }
  return short_name(condition);
}

// The command line's options, without those that say where results go: some, such as that which
// locks the clocks, stand nowhere else.
std::string options_of(const Json& argv) {
  static const auto kOutput = one_of({"--json", "--jsonbin", "--csv", "--markdown", "--md"});
  std::string options;
  if (!argv.is_array()) return options;
  for (size_t i = 1; i < argv.size(); ++i) {
    const std::string word = shown_text(argv[i]);
    if (kOutput(word)) {
      ++i;  // its value
    } else {
      options += (options.empty() ? "" : " ") + word;
    }
  }
  return options;
}

// Paths where a state's samples may be: nothing outside of the JSON's folder is read.
std::vector<fs::path> sidecars(const SourceText& source, const fs::path& name) {
  std::vector<fs::path> paths;
  const fs::path folder = fs::path(source.path).parent_path();
  const fs::path plain = name.lexically_normal();
  if (plain.is_relative() && !plain.empty() && *plain.begin() != "..") {
    paths.push_back(folder / plain);
  }
  // Older versions wrote the path from where nvbench was started.
  if (plain.has_parent_path() && plain.parent_path().has_filename() &&
      plain.parent_path().filename() != "..") {
    paths.push_back(folder / plain.parent_path().filename() / plain.filename());
  }
  return paths;
}

// Seconds as 4-byte floats; none: the file isn't there.
Result<std::optional<std::vector<double>>> sample_times(const SourceText& source,
                                                        const Json& state) {
  const Json& summary = summary_of(state, "hint", "file/sample_times");
  const std::string name = datum(summary, "filename");
  if (name.empty()) return std::optional<std::vector<double>>();
  for (const fs::path& path : sidecars(source, name)) {
    std::error_code unknown;
    if (!fs::exists(path, unknown)) continue;
    ASSAY_TRY(const std::string bytes, read_file(path, kMostImportSamples * sizeof(float)));
    const size_t n = bytes.size() / sizeof(float);
    if (bytes.size() % sizeof(float) != 0 || datum(summary, "size") != fmt::format("{}", n)) {
      return bad_input("{}: expected {} samples of 4 bytes, found {} bytes", path.string(),
                       excerpt(datum(summary, "size")), bytes.size());
    }
    std::vector<double> times;
    for (size_t i = 0; i < n; ++i) {
      float seconds = 0;
      std::memcpy(&seconds, bytes.data() + i * sizeof(float), sizeof(float));
      times.push_back(static_cast<double>(seconds));
    }
    return std::optional(std::move(times));
  }
  return std::optional<std::vector<double>>();
}

class NvbenchFile {
 public:
  NvbenchFile(const SourceText& source, const Json& document, Imported& imported)
      : source_(source), document_(document), imported_(imported) {
    const Json& devices = member(document, "devices");
    if (!devices.is_array()) return;
    for (const Json& device : devices) {
      devices_.try_emplace(to_json_line(member(device, "id")), &device);
    }
  }

  Status read() {
    const Json& benchmarks = member(document_, "benchmarks");
    if (!benchmarks.is_array()) {
      return unexpected_json(source_, "a list", "\"benchmarks\"", benchmarks);
    }
    for (const Json& benchmark : benchmarks) {
      const Json& states = member(benchmark, "states");
      if (states.is_null()) continue;
      if (!states.is_array()) return unexpected_json(source_, "a list", "\"states\"", states);
      for (const Json& state : states) ASSAY_CHECK(add_state(benchmark, state));
    }
    if (gone_ > 0) {
      imported_.notes.push_back(fmt::format(
          "{}: the files with the samples of {} are missing beside it, so these rows are means",
          source_.path, counted(gone_, "state")));
    }
    return {};
  }

 private:
  const Json& device_of(const Json& state) const {
    static const Json kNone;
    const auto at = devices_.find(to_json_line(member(state, "device")));
    return at == devices_.end() ? kNone : *at->second;
  }

  // A state repeats its benchmark's settings, or has others.
  Status state_settings(const Json& benchmark, const Json& state, const std::string& object,
                        ImportedRun& run) const {
    static const auto kOfState = one_of({"name", "device", "type_config_index", "axis_values",
                                         "summaries", "is_skipped", "skip_reason"});
    static const auto kOfBenchmark = one_of({"name", "index", "axes", "states", "devices"});
    const size_t samples = run.means ? 0 : run.samples.size();
    ASSAY_CHECK(add_settings(state, {.is_other = kOfState, .samples = samples}, object, run));
    const auto is_other = [&](std::string_view name) {
      return kOfBenchmark(name) || state.contains(name);
    };
    ASSAY_CHECK(add_settings(benchmark, {.is_other = is_other}, object, run));
    ASSAY_CHECK(add_settings(
        device_of(state), {.prefix = "device.", .is_other = one_of({"device.id", "device.name"})},
        object, run));
    ASSAY_CHECK(add_settings(member(document_, "meta"),
                             {.prefix = "meta.", .is_other = one_of({"meta.argv"})}, object, run));
    add_setting(run, "meta.argv", options_of(member(member(document_, "meta"), "argv")));
    static const auto kOfDocument = one_of({"meta", "devices", "benchmarks"});
    return add_settings(document_, {.is_other = kOfDocument}, object, run);
  }

  Status add_state(const Json& benchmark, const Json& state) {
    const std::string object =
        fmt::format("{}: state {}", source_.path, quoted_excerpt(text_member(state, "name")));
    ImportedRun run{.source = source_.path, .facts = {}};
    RunFacts& facts = run.facts;
    ASSAY_CHECK(facts.state(ImportField::kBackend, "nvbench", object));
    ASSAY_CHECK(facts.state(ImportField::kArm, short_name(text_member(benchmark, "name")), object));
    ASSAY_CHECK(facts.state(ImportField::kScenario, condition_of(state), object));
    ASSAY_CHECK(facts.state(ImportField::kDevice, short_name(text_member(device_of(state), "name")),
                            object));
    if (member(state, "is_skipped") == true) {
      const std::string reason = plain_text(state, "skip_reason");
      fail_sample(run.samples.emplace_back(), RowStatus::kError, "skipped", reason);
    } else {
      ASSAY_CHECK(add_times(state, object, run));
    }
    ASSAY_CHECK(state_settings(benchmark, state, object, run));
    ASSAY_CHECK(add_run(std::move(run), imported_));
    return {};
  }

  Status add_times(const Json& state, const std::string& object, ImportedRun& run) {
    ASSAY_TRY(const auto times, sample_times(source_, state));
    if (times) {
      for (const double seconds : *times) {
        ImportedSample& sample = run.samples.emplace_back();
        put_latency(sample, seconds * 1e3);
        sample.device_ms = sample.latency_ms;
      }
      return {};
    }
    if (!summary_of(state, "hint", "file/sample_times").is_null()) ++gone_;
    run.means = true;
    const auto gpu = seconds_of(state, "nv/cold/time/gpu/mean");
    const auto cpu = seconds_of(state, "nv/cold/time/cpu/mean");
    const auto host_only = seconds_of(state, "nv/cpu_only/time/cpu/mean");
    // Samples are GPU times, and so is their mean.
    const auto latency = gpu ? gpu : cpu ? cpu : host_only;
    if (!latency) {
      return bad_input("{}: expected the summary nv/cold/time/gpu/mean or its like, found none",
                       object);
    }
    ImportedSample& sample = run.samples.emplace_back();
    put_latency(sample, *latency * 1e3);
    if (gpu && *gpu >= 0) sample.device_ms = *gpu * 1e3;
    return {};
  }

  const SourceText& source_;
  const Json& document_;
  Imported& imported_;
  std::map<std::string, const Json*> devices_;  // by id
  int64_t gone_ = 0;
};

}  // namespace

Result<Imported> read_nvbench(std::span<const SourceText> sources) {
  static_assert(std::endian::native == std::endian::little);
  Imported imported{.format = "nvbench", .tool = "nvbench"};
  imported.order = "sequential";
  imported.arms_are_code = true;
  for (const SourceText& source : sources) {
    ASSAY_TRY(const auto documents, documents_of(source));
    const Json& version = member(member(member(documents[0], "meta"), "version"), "nvbench");
    if (const std::string text = plain_text(version, "string"); !text.empty()) {
      imported.tool = "nvbench " + short_name(text);
    }
    for (const Json& document : documents) {
      ASSAY_CHECK(NvbenchFile(source, document, imported).read());
    }
  }
  return imported;
}

}  // namespace assay
