// The key `load`.
#include "study/load_study.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/files/files.h"
#include "base/random.h"
#include "base/records/backend_traits.h"
#include "base/text/text.h"
#include "study/arm_options.h"
#include "study/scenarios.h"

namespace assay {
namespace {

constexpr double kMostDeviation = 1e6;
constexpr double kMostBound_ms = 86'400'000;
constexpr size_t kMostPoints = 32;

// Positive numbers, each once, as points of a load curve.
Status parse_points(const YamlValue& value, double most, std::optional<double> LoadPoint::*member,
                    std::vector<LoadPoint>& points) {
  ASSAY_TRY(const std::vector<YamlValue> items, value.items());
  for (const YamlValue& item : items) {
    LoadPoint point;
    ASSAY_TRY(point.*member, item.positive_number(most));
    if (std::ranges::find(points, point) != points.end()) return item.error("each value once");
    points.push_back(point);
  }
  return {};
}

Result<TokenLengths> parse_lengths(const YamlValue& value) {
  static const std::vector<std::string> known = {"mean", "deviation", "least", "most"};
  TokenLengths lengths;
  if (!value.is_map()) {
    ASSAY_TRY(lengths.values, parse_integers(value, kMaxTokens));
    return lengths;
  }
  ASSAY_TRY(const YamlMap map, value.map(known));
  ASSAY_TRY(const YamlValue most, map.require("most"));
  ASSAY_TRY(lengths.most, most.integer(1, kMaxTokens));
  if (const auto least = map.find("least")) {
    ASSAY_TRY(lengths.least, least->integer(1, lengths.most));
  }
  const auto mean = map.find("mean"), deviation = map.find("deviation");
  if (mean.has_value() != deviation.has_value()) {
    return value.error("mean and deviation together, or neither", "one of them");
  }
  if (mean) {
    ASSAY_TRY(lengths.mean, mean->positive_number(static_cast<double>(kMaxTokens)));
    ASSAY_TRY(lengths.deviation, deviation->positive_number(kMostDeviation));
  }
  return lengths;
}

Result<ServiceBounds> parse_slo(const YamlValue& value) {
  static const std::vector<std::string> known = {"ttft_ms", "itl_ms", "latency_ms"};
  ASSAY_TRY(const YamlMap map, value.map(known));
  ServiceBounds bounds;
  for (const auto& [key, bound] :
       {std::pair("ttft_ms", &ServiceBounds::ttft_ms), std::pair("itl_ms", &ServiceBounds::itl_ms),
        std::pair("latency_ms", &ServiceBounds::latency_ms)}) {
    if (const auto found = map.find(key)) {
      ASSAY_TRY(bounds.*bound, found->positive_number(kMostBound_ms));
    }
  }
  if (!bounds.any()) return value.error("ttft_ms, itl_ms or latency_ms", "none");
  return bounds;
}

Status parse_trace_keys(const YamlMap& map, const YamlValue& file, StudyLoad& load,
                        std::vector<LoadPoint>& points) {
  for (const std::string& key : map.keys()) {
    if (key == "trace" || key == "speed" || key == "slo") continue;
    return file.error("a trace beside speed and slo alone", fmt::format("the key \"{}\"", key));
  }
  ASSAY_TRY(load.trace_file, file.text());
  ASSAY_TRY(const std::string text, read_file(load.trace_file));
  ASSAY_TRY(load.offered.trace, parse_load_trace(text, load.trace_file));
  if (const auto speed = map.find("speed"))
    return parse_points(*speed, 100'000, &LoadPoint::speed, points);
  points.push_back({.speed = 1});
  return {};
}

Status parse_offered(const YamlMap& map, const YamlValue& whole, StudyLoad& load,
                     std::vector<LoadPoint>& points) {
  if (const auto concurrency = map.find("concurrency")) {
    ASSAY_TRY(const auto numbers, parse_integers(*concurrency, kMostConcurrency));
    for (const int64_t number : numbers) points.push_back({.concurrency = number});
  }
  if (const auto rate = map.find("rate")) {
    ASSAY_CHECK(parse_points(*rate, 100'000, &LoadPoint::rate, points));
  }
  if (points.empty()) return whole.error("concurrency, rate or trace", "none of them");
  if (const auto arrivals = map.find("arrivals")) {
    ASSAY_TRY(const size_t index,
              arrivals->one_of(std::vector<std::string>{"poisson", "constant"}));
    load.offered.arrivals = EnumWords<Arrivals>::kAll[index];
  }
  if (const auto duration = map.find("duration_s")) {
    ASSAY_TRY(load.offered.duration_s, duration->positive_number(86'400));
  }
  if (const auto requests = map.find("requests")) {
    ASSAY_TRY(load.offered.requests, requests->integer(1, kMostLoadRequests));
  }
  if (!load.offered.duration_s && !load.offered.requests)
    return whole.error("duration_s or requests", "neither");
  if (const auto turns = map.find("turns")) {
    ASSAY_TRY(load.offered.turns, turns->integer(1, kMostTurns));
  }
  if (const auto prompts = map.find("prompt_tokens")) {
    ASSAY_TRY(load.offered.prompt_tokens, parse_lengths(*prompts));
    load.own_prompts = true;
  }
  if (const auto fresh = map.find("new_tokens")) {
    ASSAY_TRY(load.offered.new_tokens, parse_lengths(*fresh));
    load.own_new_tokens = true;
  }
  return {};
}

int64_t mean_of_trace(const std::vector<TracedRequest>& trace, int64_t TracedRequest::*tokens) {
  double sum = 0;
  for (const TracedRequest& request : trace) sum += static_cast<double>(request.*tokens);
  return std::max<int64_t>(1, std::llround(sum / static_cast<double>(trace.size())));
}

// The study's scenarios, or the one that stands for the load's own prompts.
Result<std::vector<StudyScenario>> base_scenarios(const YamlMap& map, const YamlValue& whole,
                                                  const StudyLoad& load) {
  const auto scenarios = map.find("scenarios");
  const bool traced = !load.offered.trace.empty();
  if (!scenarios) {
    if (traced) {
      return std::vector{StudyScenario{
          "trace", {mean_of_trace(load.offered.trace, &TracedRequest::prompt_tokens)}, ""}};
    }
    if (!load.own_prompts)
      return whole.error("prompt_tokens, or the study's key \"scenarios\"", "neither");
    return std::vector{StudyScenario{"prompts", {mean_length(load.offered.prompt_tokens)}, ""}};
  }
  if (load.own_prompts || traced) {
    return scenarios->error("no scenarios beside a load with prompts of its own", "both");
  }
  ASSAY_TRY(auto parsed, parse_scenarios(*scenarios, std::vector{Phase::kLoad}));
  for (const StudyScenario& one : parsed) {
    if (!one.text.empty())
      return scenarios->error("prompt_tokens in each scenario of a load", "a text");
  }
  return parsed;
}

}  // namespace

Status parse_load_study(const YamlMap& map, const YamlValue& value, Study& study) {
  static const std::vector<std::string> known = {
      "concurrency", "rate",  "arrivals", "duration_s",    "requests", "slo",
      "new_tokens",  "trace", "speed",    "prompt_tokens", "turns"};
  for (const char* const key : {"phases", "batch", "padding", "stopping"}) {
    if (const auto other = map.find(key)) {
      return other->error(fmt::format("no key \"{}\" beside \"load\"", key), "both");
    }
  }
  constexpr int64_t kDefaultSlots = 4;  // as `assay serve` has them
  for (StudyArm& arm : study.arms) {
    const BackendTraits& traits = backend_traits(arm.backend);
    if (!traits.serves_load) {
      return value.error("arms of backend http or native, which serve load",
                         fmt::format("\"{}\" of backend {}", arm.name, arm.backend));
    }
    if (traits.worker != WorkerKind::kAssay) continue;
    if (arm.cache != "static")
      return value.error("a static cache in arms of backend native", arm.cache);
    if (!arm.options.contains(kSlotsOption)) arm.options[kSlotsOption] = kDefaultSlots;
  }
  ASSAY_TRY(const YamlMap keys, value.map(known));
  StudyLoad load;
  std::vector<LoadPoint> points;
  if (const auto trace = keys.find("trace")) {
    ASSAY_CHECK(parse_trace_keys(keys, *trace, load, points));
  } else {
    ASSAY_CHECK(parse_offered(keys, value, load, points));
  }
  if (points.size() > kMostPoints)
    return value.error(fmt::format("at most {} points", kMostPoints),
                       fmt::format("{}", points.size()));
  if (const auto slo = keys.find("slo")) {
    ASSAY_TRY(load.slo, parse_slo(*slo));
  }
  ASSAY_TRY(const auto bases, base_scenarios(map, value, load));
  for (const StudyScenario& base : bases) {
    for (const LoadPoint& point : points) {
      StudyScenario one = base;
      one.name += ", " + load_point_name(point);
      one.load = point;
      study.scenarios.push_back(std::move(one));
    }
  }
  study.phases = {Phase::kLoad};
  study.batch = {1};
  study.repetitions = kDefaultLoadRuns;
  study.warmup = 0;
  const auto lengths = map.find("token_lengths");
  if (lengths && (load.own_new_tokens || !load.trace_file.empty())) {
    return lengths->error("no token_lengths beside a load with new tokens of its own", "both");
  }
  if (lengths) {
    ASSAY_TRY(study.token_lengths, parse_integers(*lengths, kMaxTokens));
  } else if (!load.trace_file.empty()) {
    study.token_lengths = {mean_of_trace(load.offered.trace, &TracedRequest::new_tokens)};
  } else if (load.own_new_tokens) {
    study.token_lengths = {mean_length(load.offered.new_tokens)};
  } else {
    return value.error("new_tokens, or the study's key \"token_lengths\"", "neither");
  }
  study.load = std::move(load);
  for (const StudyScenario& scenario : study.scenarios) {
    OfferedLoad offered = study.load->offered;
    offered.point = *scenario.load;
    if (const std::string wrong = wrong_load(offered); !wrong.empty())
      return value.error("a load that can be offered", wrong);
  }
  return {};
}

OfferedLoad offered_load(const Study& study, const Cell& cell, int64_t repetition) {
  const StudyScenario& scenario = study.scenarios[cell.scenario];
  OfferedLoad offered = study.load->offered;
  offered.point = *scenario.load;
  if (!study.load->own_prompts) offered.prompt_tokens.values = scenario.prompt_tokens;
  if (!study.load->own_new_tokens) offered.new_tokens.values = {cell.new_tokens};
  uint64_t mix = study.seed ^ (static_cast<uint64_t>(cell.condition) << 32) ^
                 static_cast<uint64_t>(repetition + kMostLoadRequests);
  offered.seed = splitmix64(mix) >> 1;  // fits the integers of every JSON reader
  return offered;
}

Json load_to_json(const StudyLoad& load) {
  Json json = record_to_json(load.offered);
  json.erase("point");
  json.erase("seed");
  if (load.offered.turns == 1) json.erase("turns");  // plans from before sessions stay the same
  json["own_prompts"] = load.own_prompts;
  json["own_new_tokens"] = load.own_new_tokens;
  json["slo"] = record_to_json(load.slo);
  return json;
}

}  // namespace assay
