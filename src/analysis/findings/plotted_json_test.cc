// plotted.json written and read back, and its refusals.
#include "analysis/findings/plotted_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "analysis/findings/findings_text.h"
#include "analysis/findings/whole_findings.h"
#include "base/files/files.h"

namespace assay {
namespace {

using testing::HasSubstr;

PlottedRows whole_rows() {
  PlottedGroup group;
  group.stratum = 1;
  group.arm = "static";
  group.cells = {"c001"};
  group.rows = 3;
  group.warm = 1;
  group.order = {{0, -1, 4, 0, 12.5, RowMark::kCold, ""},
                 {0, 0, 5, 2, 10.25, RowMark::kWarm, ""},
                 {0, 1, 9, 3, std::nullopt, RowMark::kLost, "SIGSEGV"}};
  group.ecdf = {{10.25, 0.5}, {11, 1}};
  group.slowest = group.order[1];
  group.marked = {{RowMark::kCold, 1}, {RowMark::kLost, 1}};
  PlottedRows rows;
  rows.groups = {group};
  // An event of the first span goes on in the second.
  rows.timelines = {
      {1,
       "static",
       "c001",
       5,
       {{"kernels", {{0, 2.5, 2.25, "gemm", 3}, {2.5, 3, 0.1, "gemm", 0}}, 2.35, 3}}}};
  return rows;
}

TEST(PlottedFile, SurvivesItsText) {
  const Findings findings = whole_findings();
  const std::string written = plotted_text(whole_rows(), findings, "ab");
  const auto read = plotted_from_json(*parse_json(written, "p"), findings, "ab", "p");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(plotted_text(*read, findings, "ab"), written);
  const PlottedGroup& group = read->groups.at(0);
  EXPECT_EQ(group.stratum, 1u);
  EXPECT_EQ(group.order.at(2).error_class, "SIGSEGV");
  EXPECT_EQ(group.order.at(0).latency_ms, 12.5);
  EXPECT_EQ(group.marked.at(RowMark::kCold), 1);
  EXPECT_EQ(read->timelines.at(0).lanes.at(0).spans.at(0).events, 3);
}

TEST(PlottedFile, ThatNoFigureCouldBeDrawnOfIsRefusedInOneLine) {
  using Change = std::function<void(PlottedRows&)>;
  const std::vector<std::pair<const char*, Change>> changes = {
      {"a cell below 1 at groups[0].order[0]", [](auto& r) { r.groups[0].order[0].cell = 1; }},
      {"a latency above 0", [](auto& r) { r.groups[0].order[1].latency_ms = 0; }},
      {"a latency above 0", [](auto& r) { r.groups[0].order[1].latency_ms.reset(); }},
      {"places from 0 on", [](auto& r) { r.groups[0].slowest->rank = -1; }},
      {"steps that rise", [](auto& r) { r.groups[0].ecdf[1].share = 0.5; }},
      {"steps that rise", [](auto& r) { r.groups[0].ecdf[1].share = 1.5; }},
      {"an arm of the study", [](auto& r) { r.groups[0].arm = "nobody"; }},
      {"the order of strata and arms", [](auto& r) { r.groups.push_back(r.groups[0]); }},
      {"a length above 0", [](auto& r) { r.timelines[0].length_ms = -1; }},
      {"begins before it ends", [](auto& r) { r.timelines[0].lanes[0].spans[0].end_ms = -2; }}};
  for (const auto& [expected, change] : changes) {
    const Findings findings = whole_findings();
    PlottedRows rows = whole_rows();
    change(rows);
    const Json json = *parse_json(plotted_text(rows, findings, "ab"), "p.json");
    const auto read = plotted_from_json(json, findings, "ab", "p.json");
    ASSERT_FALSE(read) << expected;
    EXPECT_THAT(read.error().message, HasSubstr(expected));
    EXPECT_THAT(read.error().message, HasSubstr("p.json"));
  }
}

TEST(PlottedFile, OfOtherFindingsOrAnotherVersionIsRefused) {
  const Findings findings = whole_findings();
  Json json = *parse_json(plotted_text(whole_rows(), findings, "ab"), "p");
  EXPECT_THAT(plotted_from_json(json, findings, "cd", "p").error().message,
              HasSubstr("found those of another"));
  json["schema_version"] = kPlottedSchemaVersion + 1;
  EXPECT_THAT(plotted_from_json(json, findings, "ab", "p").error().message,
              HasSubstr("schema version"));
  EXPECT_FALSE(plotted_from_json(Json::array(), findings, "ab", "p"));
}

TEST(PlottedFile, LiesBesideTheFindings) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "assay-plotted-file";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const Findings findings = whole_findings();
  ASSERT_TRUE(write_findings_with_rows(findings, findings_text(findings), whole_rows(), folder));
  for (const auto& path : {folder, folder / "analysis" / "findings.json"}) {
    const auto read = read_findings_with_rows(path);
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_TRUE(read->plotted);
    EXPECT_EQ(read->plotted->groups.size(), 1u);
  }
  // Findings that somebody changed have no rows any more; those without a file never had any.
  std::ofstream(folder / "analysis" / "findings.json") << to_json_text(findings_to_json({}));
  EXPECT_FALSE(read_findings_with_rows(folder));
  std::filesystem::remove(folder / "analysis" / "plotted.json");
  const auto alone = read_findings_with_rows(folder);
  ASSERT_TRUE(alone);
  EXPECT_FALSE(alone->plotted);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace assay
