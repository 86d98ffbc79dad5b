#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "artifact/bundle.h"
#include "artifact/commit_log.h"
#include "artifact/fixture_test.h"
#include "base/hash.h"

namespace assay {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

TEST(BundleWriter, WritesWhatTheReaderReads) {
  const Scratch scratch;
  const fs::path folder = scratch / "deep/bundle";
  auto writer = BundleWriter::create(disk(), folder, test_header());
  ASSERT_TRUE(writer) << writer.error().message;
  ASSERT_TRUE(finish_run(*writer));
  const auto bundle = read_bundle(folder);
  ASSERT_TRUE(bundle) << bundle.error().message;
  EXPECT_TRUE(bundle->complete);
  EXPECT_EQ(bundle->study_yaml, "name: test\n");
  EXPECT_EQ(bundle->environment, test_header().environment);
  EXPECT_EQ(bundle->manifest["identity"], test_header().identity);
  EXPECT_EQ(bundle->manifest["completion"]["ended"], "as planned");
  ASSERT_EQ(bundle->rows.size(), 8u);
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(bundle->rows[i], unit_row(i / 2, i % 2));
  EXPECT_EQ(bundle->evidence.at("ckv_decode")["unit"], 1);
}

TEST(BundleWriter, UncommittedRowsAreNotRead) {
  const Scratch scratch;
  auto writer = BundleWriter::create(disk(), scratch / "b", test_header());
  ASSERT_TRUE(writer);
  ASSERT_TRUE(write_unit(*writer, 0));
  ASSERT_TRUE(writer->append(unit_row(3, 0)));
  const auto bundle = read_bundle(scratch / "b");
  ASSERT_TRUE(bundle);
  EXPECT_FALSE(bundle->complete);
  EXPECT_EQ(bundle->rows.size(), 2u);
}

TEST(BundleWriter, ResumeKnowsUnitsAndNotes) {
  const Scratch scratch;
  {
    auto writer = BundleWriter::create(disk(), scratch / "b", test_header());
    ASSERT_TRUE(write_unit(*writer, 2));
    ASSERT_TRUE(write_unit(*writer, 0));
    ASSERT_TRUE(writer->append(unit_row(3, 0)));
  }
  auto writer = BundleWriter::resume(disk(), scratch / "b", test_header());
  ASSERT_TRUE(writer) << writer.error().message;
  const std::map<int64_t, Json> expected = {{0, {{"note", 0}}}, {2, {{"note", 2}}}};
  EXPECT_EQ(writer->committed_units(), expected);
  ASSERT_TRUE(finish_run(*writer));
  EXPECT_EQ(read_bundle(scratch / "b")->rows.size(), 8u);
}

TEST(BundleWriter, CreateRefusesWhatIsThere) {
  const Scratch scratch;
  ASSERT_TRUE(BundleWriter::create(disk(), scratch / "b", test_header()));
  const auto again = BundleWriter::create(disk(), scratch / "b", test_header());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(again.error().message, HasSubstr("--resume"));

  ASSERT_TRUE(write_file(scratch / "file", "text"));
  for (const char* path : {"file", "file/below"}) {
    const auto writer = BundleWriter::create(disk(), scratch / path, test_header());
    ASSERT_FALSE(writer);
    EXPECT_EQ(writer.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(writer.error().message, HasSubstr((scratch / "file").string()));
  }
  const auto proc = BundleWriter::create(disk(), "/proc/assay", test_header());
  ASSERT_FALSE(proc);
  EXPECT_EQ(proc.error().kind, ErrorKind::kBadInput);
}

TEST(BundleWriter, ResumeRefusesAnotherRun) {
  const Scratch scratch;
  {
    auto writer = BundleWriter::create(disk(), scratch / "b", test_header());
    ASSERT_TRUE(write_unit(*writer, 0));
  }
  BundleHeader other_plan = test_header();
  other_plan.plan_hash = sha256_hex("another");
  EXPECT_THAT(BundleWriter::resume(disk(), scratch / "b", other_plan).error().message,
              HasSubstr("the study has changed"));
  BundleHeader other_identity = test_header();
  other_identity.identity["code"] = "def";
  EXPECT_THAT(BundleWriter::resume(disk(), scratch / "b", other_identity).error().message,
              HasSubstr("expected the identity"));

  auto writer = BundleWriter::resume(disk(), scratch / "b", test_header());
  ASSERT_TRUE(writer);
  EXPECT_THAT(BundleWriter::resume(disk(), scratch / "b", test_header()).error().message,
              HasSubstr("expected a bundle that no run is writing"));
  ASSERT_TRUE(finish_run(*writer));
  writer = bad_input("let go of the lock");
  EXPECT_THAT(BundleWriter::resume(disk(), scratch / "b", test_header()).error().message,
              HasSubstr("found a complete one"));
}

TEST(BundleWriter, ResumeRefusesAForeignFolder) {
  const Scratch scratch;
  fs::create_directories(scratch / "b");
  ASSERT_TRUE(write_file(scratch / "b/holiday.jpg", "text"));
  const auto writer = BundleWriter::resume(disk(), scratch / "b", test_header());
  ASSERT_FALSE(writer);
  EXPECT_THAT(writer.error().message, HasSubstr("found holiday.jpg and no manifest.json"));
}

TEST(BundleWriter, ResumeRefusesDamage) {
  const Scratch scratch;
  {
    auto writer = BundleWriter::create(disk(), scratch / "b", test_header());
    for (int64_t unit = 0; unit < 3; ++unit) ASSERT_TRUE(write_unit(*writer, unit));
  }
  for (const char* name : {"prefill/metrics.csv", "kv_decode/metrics.csv", "commits.jsonl",
                           "manifest.json", "study.yaml", "environment.json"}) {
    const fs::path path = scratch / "b" / name;
    const std::string before = *read_file(path);
    std::string changed = before;
    changed[changed.size() / 2] ^= 1;
    ASSERT_TRUE(write_file(path, changed));
    const auto writer = BundleWriter::resume(disk(), scratch / "b", test_header());
    ASSERT_FALSE(writer) << name;
    EXPECT_EQ(writer.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(writer.error().message, HasSubstr(name));
    ASSERT_TRUE(write_file(path, before));
  }
  fs::remove(scratch / "b/prefill/metrics.csv");
  EXPECT_THAT(BundleWriter::resume(disk(), scratch / "b", test_header()).error().message,
              HasSubstr("found no file"));
}

TEST(BundleWriter, CellIdsAreFolderNames) {
  const Scratch scratch;
  auto writer = BundleWriter::create(disk(), scratch / "b", test_header());
  ASSERT_TRUE(writer);
  for (const char* id : {"", ".", "..", "../x", "a/b"}) {
    EXPECT_FALSE(writer->write_cell_json(id, "evidence.json", {})) << id;
    EXPECT_FALSE(writer->stderr_path(id)) << id;
  }
  const auto path = writer->stderr_path("c1");
  ASSERT_TRUE(path);
  EXPECT_EQ(*path, scratch / "b/cells/c1/stderr.log");
  EXPECT_TRUE(std::ofstream(*path) << "words\n") << "the folder is there";
}

}  // namespace
}  // namespace assay
