// `vllm bench latency` and `vllm bench throughput`, --output-json: times of whole batches, and of
// one whole list of requests. Neither file names a model or a length.
#include "base/records/lenient_json.h"
#include "import/formats/readers.h"
#include "import/formats/sample_parts.h"
#include "import/formats/settings.h"

namespace assay {
namespace {

Status state_engine(const std::string& object, RunFacts& facts) {
  return state_fields({{ImportField::kBackend, "vllm"}, {ImportField::kPhase, "e2e_kv"}}, object,
                      facts);
}

// Batches that the tool measured behind its warm-up.
Status read_latency(const Json& document, const std::string& object, ImportedRun& run) {
  ASSAY_TRY(const auto seconds, json_numbers(member(document, "latencies"), object, "latencies"));
  for (const double each : seconds) put_latency(run.samples.emplace_back(), each * 1e3);
  run.warmed_up = true;
  run.unstated = {"num_iters_warmup"};
  static const auto kFigures = one_of({"avg_latency", "std_latency", "latencies", "percentiles"});
  return add_settings(document, {.is_other = kFigures, .samples = seconds.size()}, object, run);
}

// The list of requests is what is measured, cold start and all.
Status read_throughput(const Json& document, const std::string& object, ImportedRun& run) {
  ASSAY_TRY(const double seconds, json_number(document, "elapsed_time", object));
  put_latency(run.samples.emplace_back(), seconds * 1e3);
  run.warmed_up = true;
  ASSAY_CHECK(run.facts.state(ImportField::kScenario,
                              plain_text(document, "num_requests") + " requests", object));
  static const auto kOfLoad = one_of({"num_requests", "total_num_tokens"});
  static const auto kFigures = one_of({"elapsed_time", "requests_per_second", "tokens_per_second"});
  const auto is_no_load = [](std::string_view name) { return !kOfLoad(name); };
  const auto is_no_engine = [](std::string_view name) { return kOfLoad(name) || kFigures(name); };
  ASSAY_CHECK(add_settings(document, {.is_other = is_no_engine}, object, run));
  return add_settings(document, {.is_other = is_no_load, .of = SettingOf::kCondition}, object, run);
}

Result<Imported> read_offline(std::span<const SourceText> sources, const char* format,
                              Status (*read)(const Json&, const std::string&, ImportedRun&)) {
  Imported imported{.format = format, .tool = std::string("vllm bench ") + (format + 5)};
  imported.order = "sequential";
  for (const SourceText& source : sources) {
    ASSAY_TRY(const auto documents, documents_of(source));
    for (size_t i = 0; i < documents.size(); ++i) {
      const std::string object =
          documents.size() > 1 ? part_name(source, "run", i + 1) : source.path;
      ImportedRun run{.source = source.path, .facts = {}};
      ASSAY_CHECK(state_engine(object, run.facts));
      ASSAY_CHECK(read(documents[i], object, run));
      ASSAY_CHECK(add_run(std::move(run), imported));
    }
  }
  return imported;
}

}  // namespace

Result<Imported> read_vllm_latency(std::span<const SourceText> sources) {
  return read_offline(sources, "vllm-latency", read_latency);
}

Result<Imported> read_vllm_throughput(std::span<const SourceText> sources) {
  return read_offline(sources, "vllm-throughput", read_throughput);
}

}  // namespace assay
