// Requests to a server: one run a phase.
#include "import/formats/served_requests.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "import/formats/sample_parts.h"
#include "import/formats/settings.h"
#include "load/load_run.h"

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

// The request in nanoseconds from `begin_s`; times that go back are taken for equal ones.
SentRequest sent_of(const ServedRequest& request, double begin_s) {
  const ImportedSample& whole = request.whole;
  constexpr double kMostSeconds = 1e9;
  const auto since = [&](double at_s) {
    return static_cast<int64_t>(std::clamp(at_s - begin_s, 0.0, kMostSeconds) * 1e9 + 0.5);
  };
  SentRequest sent;
  sent.scheduled_ns = since(request.times->due_s);
  sent.sent_ns = std::max(since(request.times->sent_s), sent.scheduled_ns);
  sent.prompt_tokens = whole.prompt_tokens.value_or(0);
  sent.new_tokens = whole.tokens.value_or(0);
  sent.end_ns = std::max(since(request.times->end_s), sent.sent_ns);
  const bool timed = whole.latency_ms && whole.ttft_ms && sent.new_tokens > 0;
  if (whole.status == RowStatus::kOk && timed) {
    const auto after = [&](double ms) {
      return sent.sent_ns + static_cast<int64_t>(std::clamp(ms, 0.0, kMostSeconds) * 1e6 + 0.5);
    };
    sent.tokens = sent.new_tokens;
    sent.first_token_ns = after(*whole.ttft_ms);
    sent.last_token_ns = std::max(after(*whole.latency_ms), *sent.first_token_ns);
    sent.end_ns = std::max(sent.end_ns, *sent.last_token_ns);
    double at_ms = *whole.ttft_ms;
    sent.token_us = {(*sent.first_token_ns - sent.scheduled_ns) / 1000};
    for (const double gap : request.gaps_ms) {
      at_ms += std::max(gap, 0.0);
      sent.token_us.push_back((after(at_ms) - sent.scheduled_ns) / 1000);
    }
    if (sent.token_us.size() == 1) sent.token_us.clear();  // the others came nobody knows when
    return sent;
  }
  sent.status =
      whole.status == RowStatus::kOk ? "false_success" : std::string(row_status_name(whole.status));
  sent.error_class = whole.status == RowStatus::kOk    ? "no_token"
                     : whole.error_class.str().empty() ? "unknown"
                                                       : whole.error_class.str();
  if (whole.status == RowStatus::kOom) sent.status = "error";
  return sent;
}

Status add_load(const ImportedRun& load, const std::vector<ServedRequest>& requests,
                const LoadPoint& point, Imported& imported) {
  const bool all_timed = std::ranges::all_of(
      requests, [](const ServedRequest& request) { return request.times.has_value(); });
  if (requests.size() < kLeastRequestsOfALoad || !all_timed) return {};
  double begin_s = requests.front().times->due_s;
  for (const ServedRequest& request : requests) begin_s = std::min(begin_s, request.times->due_s);
  ImportedRun run = load;
  ASSAY_CHECK(run.facts.state(ImportField::kPhase, "load", load.source));
  run.offered = OfferedLoad{.point = point, .requests = std::ssize(requests)};
  std::vector<int64_t> prompts, tokens;
  for (const ServedRequest& request : requests) {
    run.sent.push_back(sent_of(request, begin_s));
    if (request.whole.prompt_tokens) prompts.push_back(*request.whole.prompt_tokens);
    if (request.whole.tokens.value_or(0) > 0) tokens.push_back(*request.whole.tokens);
  }
  const bool possible = std::ranges::all_of(
      run.sent, [](const SentRequest& sent) { return wrong_request(sent).empty(); });
  if (!possible) {
    imported.notes.push_back(
        "the requests' times don't fit one another, so that there is no run under load of them");
    return {};
  }
  std::ranges::stable_sort(run.sent, {}, &SentRequest::scheduled_ns);
  for (size_t i = 0; i < run.sent.size(); ++i) run.sent[i].number = static_cast<int64_t>(i);
  ImportedSample sample;
  sample.started_at_ns = requests.front().whole.started_at_ns;
  const auto figures = load_run_figures(*run.offered, {}, run.sent);
  // Its condition follows from the requests' sizes alone, whatever became of them.
  const auto mean = [](const std::vector<int64_t>& of) {
    return std::accumulate(of.begin(), of.end(), int64_t{0}) / std::ssize(of);
  };
  if (!prompts.empty()) sample.prompt_tokens = mean(prompts);
  if (!tokens.empty()) sample.new_tokens = std::max<int64_t>(mean(tokens), 1);
  if (figures && figures->latency_ms && !tokens.empty()) {
    put_latency(sample, figures->latency_ms->mean);
    put_ttft(sample, figures->ttft_ms->mean);
    put_tokens(sample, std::max<int64_t>(
                           1, std::llround(figures->tokens_per_s * figures->window.seconds())));
  } else {
    fail_sample(sample, RowStatus::kFalseSuccess, figures ? "no_token" : "run_too_short", "");
  }
  run.samples.push_back(std::move(sample));
  run.warmed_up = true;  // its window leaves the beginning out
  return add_run(std::move(run), imported);
}

}  // namespace

void put_token_time(ServedRequest& request) {
  const ImportedSample& whole = request.whole;
  if (!whole.latency_ms || !whole.ttft_ms || !whole.tokens || *whole.tokens < 2) return;
  request.token_ms = (*whole.latency_ms - *whole.ttft_ms) / static_cast<double>(*whole.tokens - 1);
}

Status add_served(const ImportedRun& load, const std::vector<ServedRequest>& requests,
                  Imported& imported, std::optional<LoadPoint> point) {
  if (point) ASSAY_CHECK(add_load(load, requests, *point, imported));
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
