// `vllm bench serve`: one document a run against a server, with its requests where they were saved.
#include <algorithm>
#include <array>
#include <numeric>

#include "base/records/lenient_json.h"
#include "base/text/text.h"
#include "import/formats/readers.h"
#include "import/formats/sample_parts.h"
#include "import/formats/served_requests.h"
#include "import/formats/settings.h"

namespace assay {
namespace {

// Fields that --metadata may have stated about the server.
constexpr std::array kMetadata = {
    ImportField::kArm,     ImportField::kDtype,         ImportField::kQuantization,
    ImportField::kCache,   ImportField::kCompileMode,   ImportField::kDynamic,
    ImportField::kDevice,  ImportField::kCodeGenerator, ImportField::kFrameworkBuild,
    ImportField::kCodeSha, ImportField::kNewTokens};

// The load that the requests were sent under.
std::string traffic_of(const Json& document) {
  const std::string rate = plain_text(document, "request_rate");
  const std::string concurrency = plain_text(document, "max_concurrency");
  std::string traffic = fmt::format("rate-{}", rate.empty() ? "unknown" : rate);
  if (!concurrency.empty()) traffic += fmt::format("-c{}", concurrency);
  return traffic;
}

Status state_run(const Json& document, const std::string& object, RunFacts& facts) {
  const std::string backend = plain_text(document, "backend");
  ASSAY_CHECK(facts.state(ImportField::kBackend,
                          backend.empty() ? plain_text(document, "endpoint_type") : backend,
                          object));
  ASSAY_CHECK(facts.state(ImportField::kArm, plain_text(document, "label"), object));
  ASSAY_CHECK(facts.state(ImportField::kModel, plain_text(document, "model_id"), object));
  ASSAY_CHECK(facts.state(ImportField::kScenario, traffic_of(document), object));
  facts.state_count(ImportField::kBatch, 1);
  for (const ImportField field : kMetadata) {
    const std::string text = plain_text(document, import_field_name(field));
    ASSAY_CHECK(facts.state(field, text, object));
  }
  return {};
}

// True for figures of all requests and of each, and for members that fields are made of.
bool is_no_setting(std::string_view name) {
  static const auto kKnown = one_of({"date",
                                     "backend",
                                     "label",
                                     "model_id",
                                     "duration",
                                     "completed",
                                     "failed",
                                     "total_input_tokens",
                                     "total_output_tokens",
                                     "request_throughput",
                                     "request_goodput",
                                     "output_throughput",
                                     "total_token_throughput",
                                     "input_lens",
                                     "output_lens",
                                     "ttfts",
                                     "itls",
                                     "latencies",
                                     "start_times",
                                     "queue_times",
                                     "generated_texts",
                                     "errors",
                                     "rtfx",
                                     "max_output_tokens_per_s",
                                     "max_concurrent_requests"});
  if (kKnown(name) || name.starts_with("spec_decode_")) return true;
  for (const std::string_view figure : {"mean_", "median_", "std_"}) {
    if (name.starts_with(figure)) return true;
  }
  const bool percentile = name.size() > 2 && name[0] == 'p' && name[1] >= '0' && name[1] <= '9';
  const auto field = parse_import_field(name);
  return percentile || (field && std::ranges::find(kMetadata, *field) != kMetadata.end());
}

Status state_serve_settings(const Json& document, const std::string& object, size_t samples,
                            ImportedRun& run) {
  static const auto kOfLoad =
      one_of({"num_prompts", "request_rate", "max_concurrency", "burstiness", "ramp_up_strategy",
              "ramp_up_start_rps", "ramp_up_end_rps"});
  const auto requests = whole_member(document, "num_prompts");
  const SettingRules of_server = {
      .is_other = [](std::string_view name) { return is_no_setting(name) || kOfLoad(name); },
      .samples = requests.value_or(0) > 0 ? static_cast<size_t>(*requests) : samples};
  const SettingRules of_load = {.is_other = [](std::string_view name) { return !kOfLoad(name); },
                                .of = SettingOf::kCondition};
  ASSAY_CHECK(add_settings(document, of_server, object, run));
  return add_settings(document, of_load, object, run);
}

// The lists of a document that saved its requests.
struct RequestLists {
  std::vector<double> ttfts;
  std::vector<double> input_lens;
  std::vector<double> output_lens;
  std::vector<double> latencies;  // empty: the file has none
  std::vector<double> starts;     // seconds; empty: likewise
  const Json* itls = nullptr;
  const Json* errors = nullptr;
};

Result<RequestLists> lists_of(const Json& document, const std::string& object) {
  RequestLists lists;
  ASSAY_TRY(lists.ttfts, json_numbers(member(document, "ttfts"), object, "ttfts"));
  ASSAY_TRY(lists.input_lens, json_numbers(member(document, "input_lens"), object, "input_lens"));
  ASSAY_TRY(lists.output_lens,
            json_numbers(member(document, "output_lens"), object, "output_lens"));
  if (document.contains("latencies")) {
    ASSAY_TRY(lists.latencies, json_numbers(document["latencies"], object, "latencies"));
  }
  if (document.contains("start_times")) {
    ASSAY_TRY(lists.starts, json_numbers(document["start_times"], object, "start_times"));
  }
  lists.itls = &member(document, "itls");
  lists.errors = &member(document, "errors");
  const size_t n = lists.ttfts.size();
  const auto check = [&](size_t found, const char* key) -> Status {
    if (found == n) return {};
    return bad_input("{}: expected {} entries at \"{}\" as at \"ttfts\", found {}", object, n, key,
                     found);
  };
  ASSAY_CHECK(check(lists.input_lens.size(), "input_lens"));
  ASSAY_CHECK(check(lists.output_lens.size(), "output_lens"));
  ASSAY_CHECK(check(lists.itls->is_array() ? lists.itls->size() : 0, "itls"));
  if (!lists.errors->is_null()) {
    ASSAY_CHECK(check(lists.errors->is_array() ? lists.errors->size() : 0, "errors"));
  }
  if (!lists.latencies.empty()) ASSAY_CHECK(check(lists.latencies.size(), "latencies"));
  if (!lists.starts.empty()) ASSAY_CHECK(check(lists.starts.size(), "start_times"));
  return lists;
}

void judge_error(const Json& errors, size_t i, ImportedSample& sample) {
  const std::string error = errors.is_null() ? "" : shown_text(errors[i]);
  if (error.empty()) return;
  const std::string error_class = class_of_message(error);
  const bool late = error_class.find("Timeout") != std::string::npos;
  fail_sample(sample, late ? RowStatus::kTimeout : RowStatus::kError, error_class, error);
}

OptionalCount token_count(double value) {
  constexpr double kMostTokens = 1e9;
  return value >= 0 && value <= kMostTokens ? OptionalCount(static_cast<int64_t>(value))
                                            : OptionalCount();
}

Result<std::vector<ServedRequest>> requests_of(const Json& document, const std::string& object) {
  ASSAY_TRY(const RequestLists lists, lists_of(document, object));
  std::vector<ServedRequest> requests(lists.ttfts.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    ImportedSample& sample = requests[i].whole;
    judge_error(*lists.errors, i, sample);
    ASSAY_TRY(std::vector<double> gaps, json_numbers((*lists.itls)[i], object, "itls"));
    const double summed = std::accumulate(gaps.begin(), gaps.end(), lists.ttfts[i]);
    if (!lists.starts.empty()) {
      const double latency_s = lists.latencies.empty() ? summed : lists.latencies[i];
      requests[i].times =
          ServedTimes{lists.starts[i], lists.starts[i], lists.starts[i] + std::max(latency_s, 0.0)};
    }
    sample.prompt_tokens = token_count(lists.input_lens[i]);
    sample.prompt_id = fmt::format("{}", i);
    if (sample.status != RowStatus::kOk) continue;
    put_latency(sample, (lists.latencies.empty() ? summed : lists.latencies[i]) * 1e3);
    put_ttft(sample, lists.ttfts[i] * 1e3);
    put_tokens(sample, token_count(lists.output_lens[i]) ? *token_count(lists.output_lens[i]) : -1);
    put_token_time(requests[i]);
    // Chunks of several tokens aren't gaps between two.
    if (!sample.tokens || std::ssize(gaps) + 1 != *sample.tokens) continue;
    for (double& gap : gaps) gap *= 1e3;
    requests[i].gaps_ms = std::move(gaps);
  }
  return requests;
}

// The mean of all requests, for a file without each of them.
Result<ServedRequest> mean_request(const Json& document, const std::string& object) {
  const auto latency = number_member(document, "mean_e2el_ms");
  const auto ttft = number_member(document, "mean_ttft_ms");
  if (!latency && !ttft) {
    return bad_input(
        "{}: expected requests (--save-detailed), mean_ttft_ms or mean_e2el_ms "
        "(--percentile-metrics), found none",
        object);
  }
  ServedRequest mean{.whole = {}, .token_ms = number_member(document, "mean_tpot_ms")};
  if (latency) put_latency(mean.whole, *latency);
  if (ttft) put_ttft(mean.whole, *ttft);
  if (const auto itl = number_member(document, "mean_itl_ms")) mean.gaps_ms = {*itl};
  const auto completed = whole_member(document, "completed");
  const auto produced = whole_member(document, "total_output_tokens");
  const auto prompts = whole_member(document, "total_input_tokens");
  if (completed.value_or(0) > 0 && produced) put_tokens(mean.whole, *produced / *completed);
  if (completed.value_or(0) > 0 && prompts) {
    mean.whole.prompt_tokens = token_count(static_cast<double>(*prompts / *completed));
  }
  return mean;
}

// The load as a point of a curve: its rate or, of requests without one, how many there were at
// once.
std::optional<LoadPoint> load_point_of(const Json& document) {
  const auto rate = number_member(document, "request_rate");
  if (rate && *rate > 0 && *rate <= 100'000) return LoadPoint{.rate = *rate};
  const auto most = whole_member(document, "max_concurrency");
  if (most && *most >= 1 && *most <= kMostConcurrency) return LoadPoint{.concurrency = *most};
  return std::nullopt;
}

Status add_document(const Json& document, const std::string& object, ImportedRun load,
                    Imported& imported) {
  ASSAY_CHECK(state_run(document, object, load.facts));
  std::vector<ServedRequest> requests;
  load.means = member(document, "ttfts").is_null();
  if (load.means) {
    ASSAY_TRY(requests.emplace_back(), mean_request(document, object));
  } else {
    ASSAY_TRY(requests, requests_of(document, object));
  }
  ASSAY_CHECK(state_serve_settings(document, object, requests.size(), load));
  ASSAY_TRY(const auto started, stated_time(plain_text(document, "date"), object + " date"));
  if (!requests.empty()) requests[0].whole.started_at_ns = started;
  return add_served(load, requests, imported, load_point_of(document));
}

}  // namespace

Result<Imported> read_vllm_serve(std::span<const SourceText> sources) {
  Imported imported{.format = "vllm-serve", .tool = "vllm bench serve"};
  imported.order = "sequential";
  for (const SourceText& source : sources) {
    ASSAY_TRY(const auto documents, documents_of(source));
    for (size_t i = 0; i < documents.size(); ++i) {
      const std::string object =
          documents.size() > 1 ? part_name(source, "run", i + 1) : source.path;
      ASSAY_CHECK(
          add_document(documents[i], object, {.source = source.path, .facts = {}}, imported));
    }
  }
  imported.notes.emplace_back(kServedNote);
  return imported;
}

}  // namespace assay
