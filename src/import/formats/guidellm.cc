// guidellm's benchmarks.json: a benchmark a load, with its requests by their outcome.
#include <algorithm>
#include <cmath>

#include "base/records/lenient_json.h"
#include "base/text/text.h"
#include "import/formats/readers.h"
#include "import/formats/sample_parts.h"
#include "import/formats/served_requests.h"
#include "import/formats/settings.h"

namespace assay {
namespace {

// "concurrent-2", "constant-20.0": the strategy, and the number that tells it from others.
std::string strategy_text(const Json& strategy) {
  std::string load = plain_text(strategy, "type_");
  for (const char* key : {"streams", "rate"}) {
    const std::string number = plain_text(strategy, key);
    if (!number.empty()) load += "-" + number;
  }
  return load;
}

bool is_inside(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) {
    return name.starts_with(part) && (name.size() == part.size() || name[part.size()] == '.');
  });
}

// Members of a benchmark's configuration about its load.
bool is_of_benchmark_load(std::string_view name) {
  return is_inside(name, {"strategy", "constraints", "requests", "warmup", "cooldown",
                          "sample_size", "sample_requests"});
}

// Members of a configuration that change no time: numbers of the run, reports, addresses, and what
// the strategy says again.
bool is_of_report(std::string_view name) {
  return is_inside(name, {"id_", "run_id", "run_index", "profile", "environment", "slo",
                          "confidence", "warnings", "backend.target", "backend.api_key",
                          "backend.api_routes", "prefer_response_metrics"});
}

// The whole document's configuration beside that of each benchmark: the data, its
// tokenizer and its seed. `spec` is newer than `args`.
Status state_data(const Json& document, const std::string& object, ImportedRun& run) {
  const auto is_repeated = [](std::string_view name) {
    return is_inside(name, {"backend", "profile", "rate", "constraints", "outputs", "metrics",
                            "target", "output_path", "output_formats", "output_dir"});
  };
  for (const Json* spec :
       {&member(member(document, "config"), "spec"), &member(document, "args")}) {
    ASSAY_CHECK(add_settings(
        *spec, {.prefix = "", .is_other = is_repeated, .of = SettingOf::kCondition}, object, run));
  }
  ASSAY_CHECK(add_settings(member(member(document, "config"), "metadata"), {}, object, run));
  return add_settings(member(document, "metadata"), {.prefix = "metadata."}, object, run);
}

Status state_load(const Json& document, const Json& benchmark, const std::string& object,
                  ImportedRun& run) {
  const Json& config = member(benchmark, "config");
  const Json& backend = member(config, "backend");
  const std::string model = plain_text(backend, "model");
  const Json& strategy = member(config, "strategy");
  if (plain_text(strategy, "type_").empty()) {
    // Without it, loads of several rates would look like one.
    return bad_input("{}: expected the load at \"config.strategy\", found {}", object,
                     strategy.is_null() ? "nothing" : excerpt(to_json_line(strategy)));
  }
  ASSAY_CHECK(state_fields(
      {{ImportField::kBackend, "guidellm"},
       {ImportField::kModel,
        short_name(model.empty() ? plain_text(member(document, "args"), "model") : model)},
       {ImportField::kScenario, short_name(strategy_text(strategy))}},
      object, run.facts));
  run.facts.state_count(ImportField::kBatch, 1);
  const auto is_no_server = [](std::string_view name) {
    return is_of_benchmark_load(name) || is_of_report(name) || name == "backend.model";
  };
  const auto is_no_load = [](std::string_view name) { return !is_of_benchmark_load(name); };
  ASSAY_CHECK(add_settings(config, {.is_other = is_no_server}, object, run));
  ASSAY_CHECK(
      add_settings(config, {.is_other = is_no_load, .of = SettingOf::kCondition}, object, run));
  return state_data(document, object, run);
}

OptionalCount count_of(const Json& request, const char* key) {
  const auto count = whole_member(request, key);
  return count && *count >= 0 ? OptionalCount(*count) : OptionalCount();
}

// Nanoseconds of a time in seconds since the epoch; absent: it is none.
std::optional<int64_t> start_of(const Json& request) {
  const auto seconds = number_member(request, "request_start_time");
  if (!seconds || !(*seconds >= 0 && *seconds < 9e9)) return std::nullopt;
  return std::llround(*seconds * 1e9);
}

// The exception of a text such as `HTTPStatusError("Server error ...")`.
std::string class_of_error(const std::string& text) {
  const size_t bracket = text.find('(');
  return bracket == std::string::npos ? class_of_message(text)
                                      : class_of_message(text.substr(0, bracket));
}

// The schedule's time, the request's and its end's; absent: the file lacks one.
std::optional<ServedTimes> times_of(const Json& request) {
  const Json& timings = member(member(request, "info"), "timings");
  const auto due = number_member(timings, "targeted_start");
  const auto sent = number_member(timings, "request_start");
  const auto end = number_member(timings, "request_end");
  const bool known = due && sent && end && *due >= 0 && *end < 9e9;
  if (!known) return std::nullopt;
  return ServedTimes{*due, std::max(*sent, *due), std::max(*end, *due)};
}

// The strategy as a point of a load curve; absent: it is another kind.
std::optional<LoadPoint> point_of(const Json& strategy) {
  const std::string type = plain_text(strategy, "type_");
  if (type == "synchronous") return LoadPoint{.concurrency = 1};
  if (const auto streams = whole_member(strategy, "streams");
      type == "concurrent" && streams && *streams >= 1 && *streams <= kMostConcurrency) {
    return LoadPoint{.concurrency = *streams};
  }
  const auto rate = number_member(strategy, "rate");
  const bool open = type == "constant" || type == "poisson" || type == "async";
  if (open && rate && *rate > 0 && *rate <= 100'000) return LoadPoint{.rate = *rate};
  return std::nullopt;
}

Result<ServedRequest> request_of(const Json& request, bool errored, const std::string& object) {
  ServedRequest served;
  ImportedSample& sample = served.whole;
  sample.started_at_ns = start_of(request);
  sample.prompt_tokens = count_of(request, "prompt_tokens");
  served.times = times_of(request);
  if (errored) {
    const std::string error = plain_text(member(request, "info"), "error");
    const std::string error_class = class_of_error(error);
    const bool late = error_class.find("Timeout") != std::string::npos;
    fail_sample(sample, late ? RowStatus::kTimeout : RowStatus::kError, error_class, error);
    return served;
  }
  ASSAY_TRY(const double seconds, json_number(request, "request_latency", object));
  put_latency(sample, seconds * 1e3);
  if (const auto ms = number_member(request, "time_to_first_token_ms")) put_ttft(sample, *ms);
  if (const auto tokens = whole_member(request, "output_tokens")) put_tokens(sample, *tokens);
  put_token_time(served);
  // The tool's own time ends with the last token and not with the answer.
  if (const auto ms = number_member(request, "inter_token_latency_ms")) served.token_ms = ms;
  return served;
}

// Requests in the order in which they were sent. Those that the end of the benchmark cut off tell
// nothing of the server: `cut` counts them.
Result<std::vector<ServedRequest>> requests_of(const Json& requests, const std::string& object,
                                               int64_t& cut) {
  std::vector<ServedRequest> all;
  for (const auto& [outcome, errored] : {std::pair{"successful", false}, {"errored", true}}) {
    const Json& list = member(requests, outcome);
    if (!list.is_array()) {
      return bad_input("{}: expected a list at \"requests.{}\", found {}", object, outcome,
                       list.is_null() ? "nothing" : excerpt(to_json_line(list)));
    }
    for (const Json& request : list) {
      ASSAY_TRY(all.emplace_back(), request_of(request, errored, object));
    }
  }
  std::ranges::stable_sort(all, {},
                           [](const ServedRequest& each) { return each.whole.started_at_ns; });
  const Json& incomplete = member(requests, "incomplete");
  if (incomplete.is_array()) cut += std::ssize(incomplete);
  return all;
}

}  // namespace

Result<Imported> read_guidellm(std::span<const SourceText> sources) {
  Imported imported{.format = "guidellm", .tool = "guidellm"};
  imported.order = "sequential";
  int64_t cut = 0;
  for (const SourceText& source : sources) {
    ASSAY_TRY(const auto documents, documents_of(source));
    const Json& document = documents[0];
    const Json& benchmarks = member(document, "benchmarks");
    if (!benchmarks.is_array()) {
      return unexpected_json(source, "a list", "\"benchmarks\"", benchmarks);
    }
    const std::string version = plain_text(member(document, "metadata"), "guidellm_version");
    if (!version.empty()) imported.tool = "guidellm " + short_name(version);
    for (size_t i = 0; i < benchmarks.size(); ++i) {
      const std::string object = part_name(source, "benchmark", i + 1);
      ImportedRun run{.source = source.path, .facts = {}};
      ASSAY_CHECK(state_load(document, benchmarks[i], object, run));
      ASSAY_TRY(const auto requests, requests_of(member(benchmarks[i], "requests"), object, cut));
      ASSAY_CHECK(add_served(run, requests, imported,
                             point_of(member(member(benchmarks[i], "config"), "strategy"))));
    }
  }
  if (cut > 0) {
    imported.notes.push_back(
        fmt::format("{} cut off by the end of a benchmark and left out",
                    cut == 1 ? "1 request was" : fmt::format("{} requests were", cut)));
  }
  imported.notes.emplace_back(kServedNote);
  return imported;
}

}  // namespace assay
