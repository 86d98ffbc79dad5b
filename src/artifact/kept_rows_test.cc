// Rows of any schema version that are kept without their bundle, with the facts of origin.json.
#include <gmock/gmock.h>

#include "artifact/commit_log.h"
#include "artifact/fixture_test.h"
#include "artifact/manifest.h"
#include "base/files/files.h"
#include "base/tables/csv.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const Json kOrigin = {{"complete", true},
                      {"started_at", "2026-11-22T07:52:33Z"},
                      {"study", {{"name", "kept"}, {"baseline", "eager"}}}};

class KeptRows : public testing::Test {
 protected:
  // `rows` with the columns of that version.
  void keep(const std::vector<Row>& rows, int version, const Json& origin = kOrigin) {
    const auto columns = row_columns(version);
    std::string text = csv_line({columns.begin(), columns.end()});
    for (const Row& row : rows) {
      std::vector<std::string> fields = row_to_fields(row);
      fields.resize(columns.size());
      text += csv_line(fields);
    }
    fs::create_directories(folder_ / "prefill");
    ASSERT_TRUE(write_file(folder_ / metrics_name(Phase::kPrefill), text));
    ASSERT_TRUE(write_file(folder_ / kOriginName, to_json_text(origin)));
  }
  static std::vector<Row> rows(int64_t count) {
    std::vector<Row> rows;
    for (int64_t i = 0; i < count; ++i) rows.push_back(test_row(i, Phase::kPrefill));
    return rows;
  }
  std::string error() {
    const auto bundle = read_kept_rows(folder_);
    return bundle ? "" : bundle.error().message;
  }

  Scratch scratch_;
  fs::path folder_ = scratch_ / "kept";
};

TEST_F(KeptRows, AreReadInEverySchemaVersion) {
  for (int version = kOldestBundleSchemaVersion; version <= kBundleSchemaVersion; ++version) {
    keep(rows(3), version);
    const auto bundle = read_kept_rows(folder_);
    ASSERT_TRUE(bundle) << version << ": " << bundle.error().message;
    EXPECT_EQ(bundle->rows, rows(3)) << version;
    EXPECT_TRUE(bundle->rows_alone);
    EXPECT_TRUE(bundle->complete);
    EXPECT_EQ(bundle->manifest["study"]["name"], "kept");
    ASSERT_EQ(bundle->sittings.size(), 1u);
    EXPECT_EQ(bundle->sittings[0].started_at, "2026-11-22T07:52:33Z");
  }
}

TEST_F(KeptRows, AreNamedByWhoeverNeedsTheWholeBundle) {
  keep(rows(3), kBundleSchemaVersion);
  const auto whole = read_bundle(folder_);
  ASSERT_FALSE(whole);
  EXPECT_NE(whole.error().message.find("found rows kept without theirs (origin.json)"),
            std::string::npos)
      << whole.error().message;
}

TEST_F(KeptRows, ATimeThatIsNoneIsNamed) {
  for (const char* text :
       {"garbage", "", "2026-11-22", "2026-13-22T07:52:33Z", "2026-11-22T07:52:33Z "}) {
    Json origin = kOrigin;
    origin["started_at"] = text;
    keep(rows(3), kBundleSchemaVersion, origin);
    const auto bundle = read_kept_rows(folder_);
    ASSERT_FALSE(bundle) << text;
    EXPECT_NE(bundle.error().message.find("expected a time such as"), std::string::npos)
        << bundle.error().message;
  }
}

TEST_F(KeptRows, KeepTheirSittingsParityAndEvidence) {
  Json origin = kOrigin;
  origin["sittings"] = {
      {{"started_at", "2026-11-22T07:52:33Z"}, {"rows_before", 0}, {"environment", {{"gpu", 1}}}},
      {{"started_at", "2026-11-23T07:52:33Z"}, {"rows_before", 2}, {"environment", {{"gpu", 2}}}}};
  origin["parity"] = {{"cprefill", {{"passed", false}}}};
  origin["evidence"] = {{"cprefill", {{"compiler_real", "yes"}}}};
  keep(rows(3), kBundleSchemaVersion, origin);
  const auto bundle = read_kept_rows(folder_);
  ASSERT_TRUE(bundle) << bundle.error().message;
  ASSERT_EQ(bundle->sittings.size(), 2u);
  EXPECT_EQ(bundle->sittings[1].rows_before, 2);
  EXPECT_EQ(bundle->sittings[1].environment["gpu"], 2);
  EXPECT_EQ(bundle->parity.at("cprefill")["passed"], false);
  EXPECT_EQ(bundle->evidence.at("cprefill").compiler_real, CompilerReal::kYes);
}

TEST_F(KeptRows, OkRowsThatCannotBeAreFalseSuccesses) {
  std::vector<Row> made = rows(3);
  made[1].tokens = 0;
  keep(made, 2);
  const auto bundle = read_kept_rows(folder_);
  ASSERT_TRUE(bundle) << bundle.error().message;
  EXPECT_EQ(bundle->false_oks, std::vector<size_t>{1});
  EXPECT_EQ(bundle->rows[1].status, RowStatus::kFalseSuccess);
  EXPECT_EQ(bundle->speed_unjudged, 2);
}

TEST_F(KeptRows, WhatDoesNotFitIsRefused) {
  EXPECT_NE(error(), "") << "no folder";
  keep({}, kBundleSchemaVersion);
  EXPECT_THAT(error(), HasSubstr("expected rows in PHASE/metrics.csv, found none"));
  keep(rows(2), kBundleSchemaVersion, {{"complete", true}});
  EXPECT_THAT(error(), HasSubstr("started_at"));
  Json late = kOrigin;
  late["sittings"] = {{{"started_at", "2026-11-22T07:52:33Z"}, {"rows_before", 0}},
                      {{"started_at", "2026-11-23T07:52:33Z"}, {"rows_before", 3}}};
  keep(rows(2), kBundleSchemaVersion, late);
  EXPECT_THAT(error(), HasSubstr("expected 0 to 2 rows before a sitting, found 3"));
  late["sittings"] = Json::array();
  keep(rows(2), kBundleSchemaVersion, late);
  EXPECT_THAT(error(), HasSubstr("expected a list at \"sittings\""));
  Json parity = kOrigin;
  parity["parity"] = 3;
  keep(rows(2), kBundleSchemaVersion, parity);
  EXPECT_THAT(error(), HasSubstr("expected an object at \"parity\""));
  keep(rows(2), kBundleSchemaVersion);
  ASSERT_TRUE(write_file(folder_ / metrics_name(Phase::kPrefill), "cell_id,arm\nc,eager\n"));
  EXPECT_THAT(error(), HasSubstr("columns of schema version"));
  ASSERT_TRUE(fs::remove(folder_ / kOriginName));
  EXPECT_THAT(error(), HasSubstr(kOriginName));
}

}  // namespace
}  // namespace assay
