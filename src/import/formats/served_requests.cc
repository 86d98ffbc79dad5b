// Requests to a server: one run a phase.
#include "import/formats/served_requests.h"

#include <algorithm>
#include <utility>

#include "import/formats/sample_parts.h"
#include "import/formats/settings.h"

namespace assay {
namespace {

// Adds the request as one token that took `ms`; if it was lost, without a time.
void add_token(const ServedRequest& request, std::optional<double> ms,
               std::vector<ImportedSample>& samples) {
  ImportedSample token = request.whole;
  static_cast<Measured&>(token) = {};
  if (token.status == RowStatus::kOk && token.tokens && *token.tokens < 1) {
    fail_sample(token, RowStatus::kFalseSuccess, "too_few_tokens", "");
  }
  if (token.status == RowStatus::kOk) {
    if (!ms) return;
    put_latency(token, *ms);
  }
  token.tokens = 1;
  token.new_tokens = 1;
  samples.push_back(std::move(token));
}

bool has_success(const std::vector<ImportedSample>& samples) {
  return std::ranges::any_of(
      samples, [](const ImportedSample& sample) { return sample.status == RowStatus::kOk; });
}

Status add_phase(const ImportedRun& load, const char* phase, const char* mark,
                 std::vector<ImportedSample> samples, Imported& imported) {
  ImportedRun run = load;
  ASSAY_CHECK(run.facts.state(ImportField::kPhase, phase, load.source));
  if (*mark != '\0') {
    ASSAY_CHECK(run.facts.state(ImportField::kScenario,
                                run.facts.text(ImportField::kScenario) + mark, load.source));
  }
  run.samples = std::move(samples);
  return add_run(std::move(run), imported);
}

// True if the run of whole requests is to be made: if any has a time, or was lost.
bool has_whole(const std::vector<ImportedSample>& samples) {
  return samples.empty() || std::ranges::any_of(samples, [](const ImportedSample& sample) {
           return sample.latency_ms.has_value() || sample.status != RowStatus::kOk;
         });
}

}  // namespace

void put_token_time(ServedRequest& request) {
  const ImportedSample& whole = request.whole;
  if (!whole.latency_ms || !whole.ttft_ms || !whole.tokens || *whole.tokens < 2) return;
  request.token_ms = (*whole.latency_ms - *whole.ttft_ms) / static_cast<double>(*whole.tokens - 1);
}

Status add_served(const ImportedRun& load, const std::vector<ServedRequest>& requests,
                  Imported& imported) {
  std::vector<ImportedSample> whole;
  std::vector<ImportedSample> first;
  std::vector<ImportedSample> token;
  std::vector<ImportedSample> gaps;
  size_t count = 0;
  for (const ServedRequest& request : requests) count += request.gaps_ms.size();
  for (const ServedRequest& request : requests) {
    whole.push_back(request.whole);
    add_token(request, request.whole.ttft_ms, first);
    add_token(request, request.token_ms, token);
    if (count > kMostGaps) continue;
    if (request.gaps_ms.empty()) add_token(request, std::nullopt, gaps);
    for (const double ms : request.gaps_ms) add_token(request, ms, gaps);
  }
  if (has_whole(whole)) ASSAY_CHECK(add_phase(load, "e2e_kv", "", std::move(whole), imported));
  if (has_success(first))
    ASSAY_CHECK(add_phase(load, "prefill", "-ttft", std::move(first), imported));
  if (has_success(token))
    ASSAY_CHECK(add_phase(load, "kv_decode", "-tpot", std::move(token), imported));
  if (has_success(gaps)) {
    ASSAY_CHECK(add_phase(load, "kv_decode", "-itl", std::move(gaps), imported));
  }
  return {};
}

}  // namespace assay
