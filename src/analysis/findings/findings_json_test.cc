// findings.json written, read and written again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/findings/findings_text.h"
#include "analysis/findings/whole_findings.h"

namespace assay {
namespace {

using testing::HasSubstr;

// The JSON's members that say nothing, by their paths.
void find_empty(const Json& json, const std::string& path, std::vector<std::string>& empty) {
  const bool no_text = json.is_string() && json.get_ref<const std::string&>().empty();
  if (json.is_null() || (json.is_structured() && json.empty()) || no_text) empty.push_back(path);
  for (const auto& [key, value] : json.items()) {
    if (json.is_structured()) find_empty(value, path + "/" + key, empty);
  }
}

TEST(FindingsFile, SurvivesItsText) {
  const std::string written = to_json_text(findings_to_json(whole_findings()));
  EXPECT_EQ(findings_text(whole_findings()), written);
  const Json json = *parse_json(written, "findings.json");
  std::vector<std::string> empty;
  find_empty(json, "", empty);
  EXPECT_THAT(empty, testing::IsEmpty()) << "what whole_findings() leaves out isn't tested";
  const auto read = findings_from_json(json, "findings.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(to_json_text(findings_to_json(*read)), written);
  EXPECT_EQ(read->contrasts.at(0).stratum, 1u);
  EXPECT_EQ(read->contrasts.at(0).phase, Phase::kKvDecode);
  EXPECT_EQ(read->contrasts.at(0).widening.log_variance, 0.125);
  EXPECT_EQ(read->combined.at(0).stratum, std::nullopt);
  EXPECT_EQ(read->options.seed, UINT64_MAX);
  EXPECT_EQ(read->named.at(0).phase, Phase::kKvDecode);
}

TEST(FindingsFile, OfNothingSurvivesItsTextToo) {
  Findings lost = whole_findings();
  lost.combined[0].lost_strata = 1;
  lost.combined[0].ratio = std::numeric_limits<double>::infinity();
  lost.contrasts[0].test.reset();
  lost.contrasts[0].p_holm.reset();
  lost.named[0].phase.reset();
  lost.named[0].stratum.reset();
  for (const Findings& findings : {Findings(), lost}) {
    const Json json = findings_to_json(findings);
    const auto read = findings_from_json(json, "findings.json");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(to_json_text(findings_to_json(*read)), to_json_text(json));
    EXPECT_EQ(findings_text(findings), to_json_text(json));
  }
  EXPECT_TRUE(findings_to_json(lost)["combined"][0]["verdict"].is_null());
}

std::string refusal(const Json& json) {
  const auto read = findings_from_json(json, "findings.json");
  return read ? "none" : read.error().message;
}

TEST(FindingsFile, OfAnotherVersionIsRefusedInOneLine) {
  Json json = findings_to_json(whole_findings());
  json["schema_version"] = kFindingsSchemaVersion - 1;
  EXPECT_EQ(refusal(json),
            fmt::format("findings.json: expected findings of schema version {}, found version {} "
                        "(`assay analyze` makes them anew)",
                        kFindingsSchemaVersion, kFindingsSchemaVersion - 1));
  json["schema_version"] = kFindingsSchemaVersion + 1;
  EXPECT_THAT(refusal(json), HasSubstr("found version"));
  EXPECT_THAT(refusal(Json::array()), HasSubstr("expected an object"));
  EXPECT_THAT(refusal(Json::object()), HasSubstr("schema_version"));
}

TEST(FindingsFile, ThatContradictsItselfIsRefusedByName) {
  const Json whole = findings_to_json(whole_findings());
  const std::pair<std::function<void(Json&)>, const char*> broken[] = {
      {[](Json& j) { j["contrasts"][0]["model"] = "another"; },
       "expected a stratum that \"strata\" has at contrasts[0]"},
      {[](Json& j) { j["contrasts"][0].erase("model"); },
       "expected a value at contrasts[0].lost_strata"},
      {[](Json& j) { j["contrasts"] = j["combined"]; },
       "expected a stratum's members at contrasts[0]"},
      {[](Json& j) { j["combined"] = j["contrasts"]; }, "expected a phase alone at combined[0]"},
      {[](Json& j) { j["phase_splits"][0]["prefill_stratum"] = 2; },
       "expected a place below 2 at phase_splits[0].prefill_stratum, found 2"},
      {[](Json& j) { j["decisions"][0]["runner_up"] = nullptr; },
       "expected an arm at decisions[0].runner_up, found null"},
      {[](Json& j) { j["requirements"]["verdict"] = "passed"; },
       "expected failed, since a criterion isn't met at requirements.verdict, found passed"},
      {[](Json& j) { j["requirements"]["criteria"] = Json::array(); },
       "expected another one, since no criterion is broken at requirements.verdict, found failed"},
      {[](Json& j) { j["outcomes"].erase(1); },
       "expected an entry of \"outcomes\" beside it at latencies[0]"},
      {[](Json& j) { j["latencies"][0]["mean_interval_ms"] = {1}; },
       "expected an array of 2 at latencies[0].mean_interval_ms, found [1]"},
      {[](Json& j) { j["tails"][0]["execution"] = "quick"; },
       "at tails[0].execution, found \"quick\""},
      {[](Json& j) { j.erase("outcomes"); }, "expected a value at outcomes, found nothing"}};
  for (const auto& [breaks, message] : broken) {
    Json json = whole;
    breaks(json);
    EXPECT_THAT(refusal(json), HasSubstr(message));
  }
}

TEST(FindingsFile, WithFiguresThatNothingMeasuredCouldHaveIsRefusedByName) {
  const Json whole = findings_to_json(whole_findings());
  const std::pair<std::function<void(Json&)>, const char*> broken[] = {
      {[](Json& j) { j["contrasts"][0]["ratio"] = -3; },
       "findings.json: expected a number above 0 at contrasts[0].ratio, found -3"},
      {[](Json& j) {
         j["contrasts"][0]["ratio_interval"] = {0.9, 0.8};
       },
       "expected a low end and a high one, in this order at contrasts[0].ratio_interval, found "
       "[0.9,0.8]"},
      {[](Json& j) {
         j["contrasts"][0]["difference_interval_ms"] = {1, -1};
       },
       "in this order at contrasts[0].difference_interval_ms"},
      {[](Json& j) { j["contrasts"][0]["test"]["p"] = 1.5; },
       "expected a share from 0 to 1 at contrasts[0].test.p, found 1.5"},
      {[](Json& j) { j["contrasts"][0]["equivalence"]["p_holm"] = -0.1; },
       "at contrasts[0].equivalence.p_holm, found -0.1"},
      {[](Json& j) { j["contrasts"][0]["n_arm"] = -1; },
       "expected a number of at least 0 at contrasts[0].n_arm, found -1"},
      {[](Json& j) { j["outcomes"][0]["failed"] = -3; }, "at outcomes[0].failed, found -3"},
      {[](Json& j) { j["outcomes"][0]["failed"] = 40; },
       "expected at most attempted, which is 33 at outcomes[0].failed, found 40"},
      {[](Json& j) { j["outcomes"][0]["failed"] = 4; },
       "expected counts that add up to failed, which is 4 at outcomes[0].by_status"},
      {[](Json& j) { j["outcomes"][0]["by_status"]["oom"] = -3; },
       "at outcomes[0].by_status.oom, found -3"},
      {[](Json& j) {
         j["outcomes"][1]["failed_rate_interval"] = {0.5, 1.5};
       },
       "at outcomes[1].failed_rate_interval[1], found 1.5"},
      {[](Json& j) { j["latencies"][0]["mean_ms"] = -1; }, "at latencies[0].mean_ms, found -1"},
      {[](Json& j) { j["latencies"][0]["mean_ms"] = 100; },
       "expected at least mean_ms, which is 100 at latencies[0].max_ms"},
      {[](Json& j) { j["latencies"][0]["p99_ms"] = 0.5; },
       "expected at least p95_ms, which is 2.5 at latencies[0].p99_ms, found 0.5"},
      {[](Json& j) { j["tails"][0]["slow_recompiled"] = 3; },
       "expected at most slow, which is 2 at tails[0].slow_recompiled, found 3"},
      {[](Json& j) { j["options"]["confidence"] = 95; }, "at options.confidence, found 95"},
      {[](Json& j) {
         j["strata"][0]["prompt_tokens"] = {12, 10};
       },
       "at strata[0].prompt_tokens, found [12,10]"}};
  for (const auto& [breaks, message] : broken) {
    Json json = whole;
    breaks(json);
    EXPECT_THAT(refusal(json), HasSubstr(message));
  }
}

}  // namespace
}  // namespace assay
