// AIPerf: a request a line, and beside it one document of all requests' figures and the
// configuration.
#include <algorithm>

#include "base/records/lenient_json.h"
#include "base/text/text.h"
#include "import/formats/readers.h"
#include "import/formats/sample_parts.h"
#include "import/formats/served_requests.h"
#include "import/formats/settings.h"

namespace assay {
namespace {

// A metric in milliseconds; absent: it isn't there.
Result<std::optional<double>> metric_ms(const Json& metrics, const char* name, const char* figure,
                                        const std::string& object) {
  const Json& metric = member(metrics, name);
  if (metric.is_null()) return std::optional<double>();
  const std::string unit = plain_text(metric, "unit");
  const double factor = unit == "ms"                   ? 1
                        : unit == "s" || unit == "sec" ? 1e3
                        : unit == "us"                 ? 1e-3
                        : unit == "ns"                 ? 1e-6
                                                       : 0;
  if (factor == 0) {
    return bad_input("{}: expected a unit of time at \"{}\", found {}", object, name,
                     quoted_excerpt(unit));
  }
  ASSAY_TRY(const double value, json_number(metric, figure, object));
  return std::optional(value * factor);
}

OptionalCount metric_count(const Json& metrics, const char* name, const char* figure) {
  constexpr double kMostTokens = 1e9;
  const auto value = number_member(member(metrics, name), figure);
  if (!value || !(*value >= 0) || *value > kMostTokens) return {};
  return static_cast<int64_t>(*value);
}

// The server's count where it gave one: the tool's own is of the text, tokenised again.
OptionalCount first_count(const Json& metrics, std::initializer_list<const char*> names,
                          const char* figure) {
  for (const char* name : names) {
    if (const OptionalCount count = metric_count(metrics, name, figure)) return count;
  }
  return {};
}

Status put_figures(const Json& metrics, const char* figure, const std::string& object,
                   ImportedSample& sample) {
  ASSAY_TRY(const auto latency, metric_ms(metrics, "request_latency", figure, object));
  if (latency) put_latency(sample, *latency);
  ASSAY_TRY(const auto ttft, metric_ms(metrics, "time_to_first_token", figure, object));
  if (ttft) put_ttft(sample, *ttft);
  sample.tokens = first_count(
      metrics, {"usage_completion_tokens", "output_sequence_length", "output_token_count"}, figure);
  // A failed request has only the tool's.
  sample.prompt_tokens = metric_count(metrics, "input_sequence_length", figure);
  return {};
}

Result<ImportedSample> request_of(const Json& record, const std::string& object) {
  ImportedSample sample;
  const Json& metadata = member(record, "metadata");
  const Json& error = member(record, "error");
  if (!member(metadata, "request_start_ns").is_null()) {
    ASSAY_TRY(sample.started_at_ns, json_int(metadata, "request_start_ns", object));
  }
  sample.prompt_id = short_name(plain_text(metadata, "conversation_id"));
  sample.cold = plain_text(metadata, "benchmark_phase") == "warmup";
  if (!error.is_null()) {
    const std::string type = plain_text(error, "type");
    const bool late = type.find("Timeout") != std::string::npos;
    fail_sample(sample, late ? RowStatus::kTimeout : RowStatus::kError, type, to_json_line(error));
    sample.prompt_tokens = metric_count(member(record, "metrics"), "error_isl", "value");
    return sample;
  }
  ASSAY_CHECK(put_figures(member(record, "metrics"), "value", object, sample));
  return sample;
}

// The configuration's statements; it lies in the document of all requests.
struct AiperfConfig {
  const Json* whole = nullptr;  // input_config; null: it isn't there
  std::string version;
  std::string model;
  std::string load;        // concurrency or rate
  std::string new_tokens;  // asked of every request; empty: not known, or not the same of all
};

std::string load_of(const Json& phase) {
  std::string load;
  for (const auto& [key, name] : {std::pair<const char*, const char*>{"concurrency", "c"},
                                  {"request_rate", "rate-"},
                                  {"rate", "rate-"}}) {
    const std::string value = plain_text(phase, key);
    if (!value.empty()) load += (load.empty() ? "" : "-") + (name + value);
  }
  return load;
}

const Json& first_of(const Json& list) {
  static const Json kNone;
  return list.is_array() && list.size() == 1 ? list[0] : kNone;
}

// A fixed length of the answers: a mean of a whole number, without a deviation.
std::string asked_tokens(const Json& input) {
  const Json& length = member(member(first_of(member(input, "datasets")), "prompts"), "osl");
  const auto mean = number_member(length, "mean");
  const double spread = number_member(length, "stddev").value_or(0);
  if (!mean || spread != 0 || !(*mean >= 1 && *mean <= 1e9)) return "";
  const auto tokens = static_cast<int64_t>(*mean);
  return static_cast<double>(tokens) == *mean ? fmt::format("{}", tokens) : "";
}

AiperfConfig config_of(const Json& document) {
  AiperfConfig config;
  const Json& input = member(document, "input_config");
  if (input.is_object()) config.whole = &input;
  config.version = plain_text(document, "aiperf_version");
  // Before 0.13 the configuration had other members.
  const Json& old_name = first_of(member(member(input, "endpoint"), "model_names"));
  const Json& name = member(first_of(member(member(input, "models"), "items")), "name");
  config.model = shown_text(name.is_null() ? old_name : name);
  config.load = load_of(member(input, "loadgen"));
  config.new_tokens = asked_tokens(input);
  const Json& phases = member(input, "phases");
  if (!phases.is_array()) return config;
  for (const Json& phase : phases) {
    if (plain_text(phase, "kind") == "profiling") config.load = load_of(phase);
  }
  return config;
}

Status state_requests(const AiperfConfig& config, const std::string& object, RunFacts& facts) {
  ASSAY_CHECK(facts.state(ImportField::kBackend, "aiperf", object));
  ASSAY_CHECK(facts.state(ImportField::kModel, short_name(config.model), object));
  ASSAY_CHECK(facts.state(ImportField::kScenario, short_name(config.load), object));
  ASSAY_CHECK(facts.state(ImportField::kNewTokens, config.new_tokens, object));
  facts.state_count(ImportField::kBatch, 1);
  return {};
}

// The server's address, and where results go, change no time.
bool is_of_output(std::string_view name) {
  for (const std::string_view part :
       {"endpoint.urls", "endpoint.url", "artifacts", "output", "otel", "mlflow", "wandb",
        "server_metrics.urls", "cli_command"}) {
    if (name == part) return true;
  }
  return false;
}

bool is_of_load(std::string_view name) {
  for (const std::string_view part : {"phases", "datasets", "loadgen", "input"}) {
    const std::string_view behind = name.substr(std::min(name.size(), part.size()));
    if (name.starts_with(part) && (behind.empty() || behind.starts_with('.'))) return true;
  }
  return false;
}

Status state_aiperf_settings(const AiperfConfig& config, const std::string& object,
                             ImportedRun& run) {
  add_setting(run, "aiperf_version", config.version);
  if (config.whole) {
    const auto is_no_server = [](std::string_view name) {
      return is_of_output(name) || is_of_load(name);
    };
    const auto is_no_load = [](std::string_view name) { return !is_of_load(name); };
    ASSAY_CHECK(add_settings(*config.whole, {.is_other = is_no_server}, object, run));
    ASSAY_CHECK(add_settings(*config.whole, {.is_other = is_no_load, .of = SettingOf::kCondition},
                             object, run));
  } else {
    run.unstated.emplace_back("input_config");
  }
  return {};
}

bool is_record(const Json& document) {
  return document.is_object() && document.contains("metadata") && document.contains("metrics");
}

// Adds requests in the order in which they were sent; they are written as they end.
Status add_records(const SourceText& source, const AiperfConfig& config, Imported& imported) {
  ImportedRun run{.source = source.path, .facts = {}};
  ASSAY_CHECK(state_requests(config, source.path, run.facts));
  ASSAY_CHECK(state_aiperf_settings(config, source.path, run));
  std::vector<ServedRequest> requests;
  for (size_t i = 0; i < source.documents.size(); ++i) {
    const std::string object = part_name(source, "line", i + 1);
    if (!is_record(source.documents[i])) {
      return bad_input("{}: expected a request with metadata and metrics, found {}", object,
                       excerpt(to_json_line(source.documents[i])));
    }
    ServedRequest& request = requests.emplace_back();
    ASSAY_TRY(request.whole, request_of(source.documents[i], object));
    put_token_time(request);
    run.warmed_up = run.warmed_up || request.whole.cold;
  }
  std::ranges::stable_sort(requests, {},
                           [](const ServedRequest& each) { return each.whole.started_at_ns; });
  return add_served(run, requests, imported);
}

Status add_summary(const SourceText& source, const Json& document, Imported& imported) {
  ImportedRun run{.source = source.path, .facts = {}};
  run.means = true;
  ASSAY_CHECK(state_requests(config_of(document), source.path, run.facts));
  ASSAY_CHECK(state_aiperf_settings(config_of(document), source.path, run));
  ServedRequest mean;
  ASSAY_CHECK(put_figures(document, "avg", source.path, mean.whole));
  // The tool divides by its own count of tokens, which isn't that of a server that counts them.
  if (!document.contains("usage_completion_tokens")) {
    ASSAY_TRY(mean.token_ms, metric_ms(document, "inter_token_latency", "avg", source.path));
  }
  ASSAY_TRY(mean.whole.started_at_ns,
            stated_time(plain_text(document, "start_time"), source.path + " start_time"));
  return add_served(run, {mean}, imported);
}

}  // namespace

Result<Imported> read_aiperf(std::span<const SourceText> sources) {
  Imported imported{.format = "aiperf", .tool = "aiperf"};
  imported.order = "sequential";
  std::map<std::string, AiperfConfig> configs;  // by folder
  std::map<std::string, bool> has_records;
  for (const SourceText& source : sources) {
    ASSAY_TRY(const auto documents, documents_of(source));
    if (is_record(documents[0])) {
      has_records[folder_of(source)] = true;
      continue;
    }
    configs[folder_of(source)] = config_of(documents[0]);
    const std::string version = plain_text(documents[0], "aiperf_version");
    if (!version.empty()) imported.tool = "aiperf " + short_name(version);
  }
  for (const SourceText& source : sources) {
    if (is_record(source.documents[0])) {
      ASSAY_CHECK(add_records(source, configs[folder_of(source)], imported));
    } else if (!has_records[folder_of(source)]) {
      ASSAY_CHECK(add_summary(source, source.documents[0], imported));
    }
  }
  imported.notes.emplace_back(kServedNote);
  return imported;
}

}  // namespace assay
