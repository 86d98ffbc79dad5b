// Bundles that several runs measured: the record kept of each, and the refusals.
#include "artifact/sittings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "artifact/fixture_test.h"

namespace assay {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class SittingsTest : public testing::Test {
 protected:
  // One sitting of two units, not sealed.
  void SetUp() override {
    auto first = BundleWriter::create(disk(), folder_, test_header());
    ASSERT_TRUE(first && write_unit(*first, 0) && write_unit(*first, 1));
  }

  void second_sitting() {
    auto second = BundleWriter::resume(disk(), folder_, later_header());
    ASSERT_TRUE(second && write_unit(*second, 2));
  }

  void seal() {
    auto last = BundleWriter::resume(disk(), folder_, later_header());
    ASSERT_TRUE(last) << last.error().message;
    ASSERT_TRUE(finish_run(*last));
  }

  // Changes environment-2.json and gives the manifest its new hash, as no damage would.
  void forge(const std::string& text, const std::string& name = "environment-2.json") {
    ASSERT_TRUE(write_file(folder_ / name, text));
    Json manifest = *parse_manifest(*read_file(folder_ / kManifestName), "manifest");
    FileEntries files = *file_entries_from_json(manifest, "manifest");
    files[name] = file_entry(text);
    manifest["files"] = file_entries_to_json(files);
    ASSERT_TRUE(write_file(folder_ / kManifestName, manifest_text(manifest)));
  }

  // The one line that reading, resuming and verifying the bundle answer.
  std::string refused() const {
    const auto read = read_bundle(folder_);
    const auto resumed = BundleWriter::resume(disk(), folder_, later_header());
    const auto problems = verify_bundle(folder_);
    EXPECT_FALSE(read);
    EXPECT_FALSE(resumed);
    EXPECT_TRUE(problems);
    if (read || resumed || !problems) return "it is not refused";
    EXPECT_EQ(read.error().message, resumed.error().message);
    EXPECT_EQ(read.error().message.find('\n'), std::string::npos);
    EXPECT_EQ(problems->size(), 2u) << "that, and that it is unfinished";
    return read.error().message;
  }

  const Scratch scratch_;
  const fs::path folder_ = scratch_ / "bundle";
};

Json second_of(int64_t units_before, int64_t rows_before) {
  return sitting_to_json(2, {"2026-11-21T18:50:11Z",
                             1'795'287'011'000'000'000,
                             units_before,
                             rows_before,
                             {{"host", "elsewhere"}}});
}

TEST_F(SittingsTest, EachResumeThatMeasuresIsKept) {
  second_sitting();
  auto bundle = read_bundle(folder_);
  ASSERT_TRUE(bundle) << bundle.error().message;
  ASSERT_EQ(bundle->sittings.size(), 2u);
  EXPECT_EQ(bundle->environment, test_header().environment);
  EXPECT_EQ(bundle->sittings[0].environment, test_header().environment);
  EXPECT_EQ(bundle->sittings[0].started_at, "2023-11-14T22:13:20Z");
  EXPECT_EQ(bundle->sittings[0].rows_before, 0);
  EXPECT_EQ(bundle->sittings[1].environment, later_header().environment);
  EXPECT_EQ(bundle->sittings[1].started_at, "2023-11-14T23:13:20Z");
  EXPECT_EQ(bundle->sittings[1].units_before, 2);
  EXPECT_EQ(bundle->sittings[1].rows_before, 4);
  seal();
  bundle = read_bundle(folder_);
  ASSERT_EQ(bundle->sittings.size(), 3u);
  EXPECT_EQ(bundle->sittings[2].rows_before, 6);
  EXPECT_TRUE(verify_bundle(folder_)->empty());
}

TEST_F(SittingsTest, AResumeThatOnlySealsIsNone) {
  second_sitting();
  {
    auto third = BundleWriter::resume(disk(), folder_, later_header());
    ASSERT_TRUE(third && write_unit(*third, 3) && finish_cells(*third));
  }
  seal();
  EXPECT_EQ(read_bundle(folder_)->sittings.size(), 3u);
  EXPECT_FALSE(fs::exists(folder_ / "environment-4.json"));
  EXPECT_TRUE(verify_bundle(folder_)->empty());
}

TEST_F(SittingsTest, BegunBeforeItsFirstRowItIsKeptOnce) {
  auto second = BundleWriter::resume(disk(), folder_, later_header());
  ASSERT_TRUE(second && second->begin_sitting() && second->begin_sitting());
  EXPECT_EQ(read_bundle(folder_)->sittings.size(), 2u);
  ASSERT_TRUE(write_unit(*second, 2));
  EXPECT_EQ(read_bundle(folder_)->sittings.size(), 2u);
}

// A history is put in order by its starts, and reports show them.
TEST_F(SittingsTest, AStartThatIsNoTimeIsRefused) {
  const Json sound = *parse_manifest(*read_file(folder_ / kManifestName), "manifest");
  const auto with = [&](const char* key, const Json& value) {
    Json manifest = sound;
    manifest[key] = value;
    EXPECT_TRUE(write_file(folder_ / kManifestName, manifest_text(manifest)));
    return refused();
  };
  EXPECT_THAT(with("started_at_ns", "garbage"),
              HasSubstr("manifest.json: expected an integer at \"started_at_ns\", found"));
  EXPECT_THAT(with("started_at_ns", nullptr), HasSubstr("\"started_at_ns\""));
  EXPECT_THAT(with("started_at", 5), HasSubstr("expected a string at \"started_at\""));
  EXPECT_THAT(
      with("started_at", "garbage"),
      HasSubstr("expected 2023-11-14T22:13:20Z at \"started_at\", as \"started_at_ns\" says, "
                "found \"garbage\""));
  EXPECT_THAT(with("started_at_ns", 0), HasSubstr("expected 1970-01-01T00:00:00Z"));
}

TEST_F(SittingsTest, AFreshBundleHasOne) {
  auto fresh = BundleWriter::create(disk(), scratch_ / "fresh", test_header());
  ASSERT_TRUE(fresh && fresh->begin_sitting());
  EXPECT_EQ(read_bundle(scratch_ / "fresh")->sittings.size(), 1u);
}

TEST_F(SittingsTest, AFileThatTheManifestDoesNotKnowIsDropped) {
  ASSERT_TRUE(write_file(folder_ / "environment-2.json", "half a fi"));
  EXPECT_EQ(read_bundle(folder_)->sittings.size(), 1u);
  seal();
  EXPECT_EQ(read_bundle(folder_)->sittings.size(), 2u) << "the sitting that sealed it";
  EXPECT_TRUE(verify_bundle(folder_)->empty());
}

TEST_F(SittingsTest, AChangedOneIsFound) {
  second_sitting();
  ASSERT_TRUE(write_file(folder_ / "environment-2.json", to_json_text(second_of(2, 4))));
  const auto resumed = BundleWriter::resume(disk(), folder_, later_header());
  ASSERT_FALSE(resumed);
  EXPECT_THAT(resumed.error().message, HasSubstr("environment-2.json: expected "));
  const auto problems = verify_bundle(folder_);
  ASSERT_EQ(problems->size(), 2u);
  EXPECT_EQ(problems->back().object, "environment-2.json");
  fs::remove(folder_ / "environment-2.json");
  EXPECT_FALSE(read_bundle(folder_));
}

TEST_F(SittingsTest, WhatIsMalformedIsOneLine) {
  const std::string object = (folder_ / "environment-2.json").string();
  forge("{}");
  EXPECT_EQ(refused(), object + ": expected an object at \"sitting\", found none");
  forge("[1]");
  EXPECT_EQ(refused(), object + ": expected an object at \"sitting\", found none");
  forge("half a fi");
  EXPECT_THAT(refused(), HasSubstr("environment-2.json"));
  Json json = second_of(2, 4);
  json["sitting"]["number"] = 3;
  forge(to_json_text(json));
  EXPECT_EQ(refused(), object + ": expected sitting 2, found 3");
  json = second_of(2, 4);
  json["sitting"]["started_at"] = 7;
  forge(to_json_text(json));
  EXPECT_THAT(refused(), HasSubstr("environment-2.json"));
  for (const int64_t units : {int64_t{-1}, int64_t{3}, INT64_MAX}) {
    forge(to_json_text(second_of(units, 4)));
    EXPECT_EQ(refused(), fmt::format("{}: expected 0 to 2 committed units before it, found {}",
                                     object, units));
  }
  for (const int64_t rows : {int64_t{-1}, int64_t{0}, int64_t{3}, INT64_MAX}) {
    forge(to_json_text(second_of(2, rows)));
    EXPECT_EQ(refused(),
              fmt::format("{}: expected 4 committed rows before it, found {}", object, rows));
  }
  forge(to_json_text(second_of(2, 4)));
  EXPECT_TRUE(read_bundle(folder_));
}

TEST_F(SittingsTest, AGapInTheNumbersIsOneLine) {
  second_sitting();
  forge(to_json_text(second_of(2, 4)), "environment-4.json");
  EXPECT_EQ(refused(), (folder_ / kManifestName).string() +
                           ": expected the 3 sittings to be numbered without a gap, found no "
                           "environment-3.json");
}

TEST(SittingNames, AreCanonical) {
  EXPECT_EQ(sitting_name(2), "environment-2.json");
  EXPECT_EQ(sitting_number("environment-2.json"), 2);
  EXPECT_EQ(sitting_number("environment-10.json"), 10);
  for (const char* other : {"environment.json", "environment-.json", "environment-1.json",
                            "environment-02.json", "environment-+2.json", "environment--2.json",
                            "environment-2x.json", "cells/environment-2.json",
                            "environment-99999999999999999999.json", "environment-2.json.tmp1"}) {
    EXPECT_FALSE(sitting_number(other)) << other;
  }
}

}  // namespace
}  // namespace assay
