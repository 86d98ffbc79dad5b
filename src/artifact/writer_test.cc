#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "artifact/bundle.h"
#include "artifact/commit_log.h"
#include "artifact/fixture_test.h"
#include "base/files/hash.h"

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
  EXPECT_EQ(bundle->evidence.at("ckv_decode").reported_by, 1);
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

TEST(BundleWriter, NoBundleGoesIntoAnother) {
  const Scratch scratch;
  auto outer = BundleWriter::create(disk(), scratch / "b", test_header());
  ASSERT_TRUE(outer);
  for (const char* name : {"b/sub", "b/prefill/deeper/sub"}) {
    const auto inner = BundleWriter::create(disk(), scratch / name, test_header());
    ASSERT_FALSE(inner) << name;
    EXPECT_THAT(inner.error().message, HasSubstr("expected a folder outside of any bundle"));
    EXPECT_FALSE(BundleWriter::resume(disk(), scratch / name, test_header())) << name;
    EXPECT_FALSE(fs::exists(scratch / name));
  }
  EXPECT_TRUE(BundleWriter::create(disk(), scratch / "beside", test_header()));
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
    EXPECT_FALSE(writer->append_log(id, "words\n")) << id;
    EXPECT_FALSE(writer->offer_cell_file(id, "trace.json.gz")) << id;
  }
}

TEST(BundleWriter, AnotherProcessWritesAFileOfACell) {
  const Scratch scratch;
  auto writer = BundleWriter::create(disk(), scratch / "b", test_header());
  ASSERT_TRUE(writer);
  const auto given_up = writer->offer_cell_file("c1", "trace.json.gz");
  ASSERT_TRUE(given_up);
  EXPECT_TRUE(std::ofstream(*given_up) << "half a tr");
  const auto path = writer->offer_cell_file("c1", "trace.json.gz");
  ASSERT_TRUE(path);
  EXPECT_THAT(path->string(), testing::EndsWith("trace.json.gz"));
  EXPECT_TRUE(std::ofstream(*path) << "trace");
  ASSERT_TRUE(writer->take_cell_file("c1", "trace.json.gz"));
  EXPECT_FALSE(fs::exists(scratch / "b/cells/c1/trace.json.gz")) << "not committed";
  const auto unused = writer->offer_cell_file("c1", "unused");
  ASSERT_TRUE(unused && std::ofstream(*unused) << "not taken");
  ASSERT_TRUE(finish_run(*writer));
  EXPECT_EQ(read_file(scratch / "b/cells/c1/trace.json.gz"), "trace");
  EXPECT_TRUE(verify_bundle(scratch / "b")->empty());
  const auto bundle = read_bundle(scratch / "b");
  ASSERT_TRUE(bundle) << bundle.error().message;
  EXPECT_EQ(read_trace(*bundle, "c1").value_or("none"), "trace");
  EXPECT_FALSE(read_trace(*bundle, "c2"));
  EXPECT_FALSE(read_trace(*bundle, "../c1"));
  ASSERT_TRUE(write_file(scratch / "b/cells/c1/trace.json.gz", "other"));
  EXPECT_THAT(read_trace(*bundle, "c1").error().message, testing::HasSubstr("expected sha256"));
}

// Only committed files are sealed, by a resume as by the run itself.
class CommittedCells : public testing::Test {
 protected:
  // The bundle is one with two units, a parity.json and an interruption.
  void SetUp() override {
    auto writer = BundleWriter::create(disk(), folder_, test_header());
    ASSERT_TRUE(writer && write_unit(*writer, 0) && write_unit(*writer, 1));
    ASSERT_TRUE(writer->write_cell_json("cprefill", "parity.json", {{"passed", false}}));
    ASSERT_TRUE(writer->commit_cells());
  }
  std::string refusal() {
    const auto writer = BundleWriter::resume(disk(), folder_, test_header());
    return writer ? "resumed" : writer.error().message;
  }
  void change(const std::string& name, std::string_view text) {
    ASSERT_TRUE(write_file(folder_ / name, text));
  }

  const Scratch scratch_;
  const fs::path folder_ = scratch_ / "b";
};

TEST_F(CommittedCells, AChangedFileIsRefused) {
  for (const char* name : {"cells/cprefill/parity.json", "cells/cprefill/evidence.json",
                           "cells/cprefill/stderr.log"}) {
    const std::string before = *read_file(folder_ / name);
    std::string text = before;
    text[text.size() / 2] ^= 1;
    change(name, text);
    EXPECT_THAT(refusal(), HasSubstr(name));
    const auto problems = verify_bundle(folder_);
    ASSERT_EQ(problems->size(), 2u) << "that it is unfinished, and this";
    EXPECT_THAT(problems->back().object, HasSubstr(name));
    fs::remove(folder_ / name);
    EXPECT_THAT(refusal(), HasSubstr(name)) << "it is missing";
    change(name, before);
  }
  EXPECT_EQ(refusal(), "resumed");
}

TEST_F(CommittedCells, AChangeWhileTheRunGoesOnIsNotSealed) {
  auto writer = BundleWriter::resume(disk(), folder_, test_header());
  ASSERT_TRUE(writer);
  change("cells/cprefill/parity.json", "{\"passed\": true}\n");
  ASSERT_TRUE(write_unit(*writer, 2));
  const Status sealed = writer->seal({});
  ASSERT_FALSE(sealed);
  EXPECT_THAT(sealed.error().message, HasSubstr("cells/cprefill/parity.json: expected "));
}

// A check that knows of a fault in the measurements refuses, and the manifest remembers.
TEST_F(CommittedCells, WhatIsRefusedIsNeitherCommittedNorSealed) {
  const size_t rows = read_bundle(folder_)->rows.size();
  {
    auto writer = BundleWriter::resume(disk(), folder_, test_header());
    ASSERT_TRUE(writer);
    bool refuse = false;
    writer->check_commits([&]() -> std::optional<CommitRefusal> {
      if (!refuse) return std::nullopt;
      return CommitRefusal{"weights changed", {{"before", 1}, {"now", 2}}};
    });
    ASSERT_TRUE(write_unit(*writer, 2));
    refuse = true;
    for (const Status& status : {write_unit(*writer, 3), writer->seal({})}) {
      ASSERT_FALSE(status);
      EXPECT_EQ(status.error(), (Error{ErrorKind::kEnvironment, "weights changed"}));
    }
  }
  const auto bundle = read_bundle(folder_);
  ASSERT_TRUE(bundle) << bundle.error().message;
  EXPECT_EQ(bundle->rows.size(), rows + 2) << "those of the unit before it stay";
  EXPECT_FALSE(bundle->complete);
  ASSERT_EQ(bundle->manifest["refusals"].size(), 1u);
  EXPECT_EQ(bundle->manifest["refusals"][0],
            Json({{"before", 1}, {"now", 2}, {"message", "weights changed"}}));
  EXPECT_THAT(verify_bundle(folder_)->front().problem, HasSubstr("because weights changed"));
  auto again = BundleWriter::resume(disk(), folder_, test_header());
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_TRUE(finish_run(*again));
  EXPECT_TRUE(verify_bundle(folder_)->empty());
  EXPECT_EQ(read_bundle(folder_)->manifest["refusals"].size(), 1u) << "it isn't forgotten";
}

TEST_F(CommittedCells, WhatWasNotCommittedIsDropped) {
  const std::string log = *read_file(folder_ / "cells/cprefill/stderr.log");
  change("cells/cprefill/stderr.log", log + "of a unit that will be run again\n");
  fs::create_directories(folder_ / "cells/ce2e_kv");
  change("cells/ce2e_kv/parity.json", "{\"passed\": true}\n");
  auto writer = BundleWriter::resume(disk(), folder_, test_header());
  ASSERT_TRUE(writer) << writer.error().message;
  EXPECT_EQ(read_file(folder_ / "cells/cprefill/stderr.log"), log);
  EXPECT_FALSE(fs::exists(folder_ / "cells/ce2e_kv/parity.json"));
  ASSERT_TRUE(finish_run(*writer));
  EXPECT_TRUE(verify_bundle(folder_)->empty());
}

TEST_F(CommittedCells, AForeignFileIsNeverSealed) {
  change("cells/cprefill/notes.txt", "mine");
  EXPECT_THAT(refusal(), HasSubstr("found cells/cprefill/notes.txt"));
  fs::remove(folder_ / "cells/cprefill/notes.txt");
  auto writer = BundleWriter::resume(disk(), folder_, test_header());
  ASSERT_TRUE(writer);
  change("notes.txt", "mine");
  ASSERT_TRUE(finish_run(*writer));
  const auto problems = verify_bundle(folder_);
  ASSERT_EQ(problems->size(), 1u);
  EXPECT_EQ(problems->front().object, "notes.txt");
}

// A link that lies in the way is not followed: its target stays as it is.
TEST_F(CommittedCells, NothingIsWrittenThroughALink) {
  const fs::path precious = scratch_ / "precious";
  ASSERT_TRUE(write_file(precious, "mine"));
  fs::create_directories(scratch_ / "elsewhere");
  for (const char* name : {"commits.jsonl", "prefill/metrics.csv", "cells/cprefill/stderr.log",
                           "cells/cprefill/parity.json", "e2e_kv/metrics.csv", "manifest.json"}) {
    SCOPED_TRACE(name);
    const bool there = fs::exists(folder_ / name);
    if (there) fs::rename(folder_ / name, scratch_ / "aside");
    fs::create_directories((folder_ / name).parent_path());
    fs::create_symlink(precious, folder_ / name);
    EXPECT_THAT(refusal(), HasSubstr("found a symbolic link"));
    fs::remove(folder_ / name);
    if (there) fs::rename(scratch_ / "aside", folder_ / name);
  }
  fs::remove_all(folder_ / "e2e_kv");
  auto writer = BundleWriter::resume(disk(), folder_, test_header());
  ASSERT_TRUE(writer) << writer.error().message;
  // Put there while the run goes on.
  fs::create_directory_symlink(scratch_ / "elsewhere", folder_ / "e2e_kv");
  EXPECT_THAT(writer->append(unit_row(2, 0)).error().message, HasSubstr("found a symbolic link"));
  EXPECT_EQ(read_file(precious), "mine");
  EXPECT_TRUE(fs::is_empty(scratch_ / "elsewhere"));
}

}  // namespace
}  // namespace assay
