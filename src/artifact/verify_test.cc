#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <functional>

#include "artifact/bundle.h"
#include "artifact/commit_log.h"
#include "artifact/fixture_test.h"
#include "artifact/manifest.h"
#include "artifact/read_bundle.h"
#include "base/files/hash.h"

namespace assay {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

// A finished bundle of four units with a worker's stderr.
class Verify : public testing::Test {
 protected:
  void SetUp() override {
    auto writer = BundleWriter::create(disk(), folder_, test_header());
    ASSERT_TRUE(writer);
    ASSERT_TRUE(finish_run(*writer));
  }

  std::vector<VerifyProblem> problems() const {
    auto found = verify_bundle(folder_);
    EXPECT_TRUE(found) << found.error().message;
    return found ? *std::move(found) : std::vector<VerifyProblem>();
  }
  // The one problem with `object`, or a text that says why there isn't one.
  std::string problem_of(const std::string& object) const {
    std::string all;
    for (const VerifyProblem& problem : problems()) {
      if (problem.object == object) return problem.problem;
      all += problem.object + ": " + problem.problem + "\n";
    }
    return "no problem with it among:\n" + all;
  }

  const Scratch scratch_;
  const fs::path folder_ = scratch_ / "bundle";
};

std::vector<std::string> all_files(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) names.push_back(entry.path().lexically_relative(folder));
  }
  return names;
}

// Overwrites in place: the fastest of the ways to change a file thousands of times.
void put(const fs::path& path, std::string_view content) {
  FILE* file = std::fopen(path.c_str(), "wb");
  ASSERT_TRUE(file);
  ASSERT_EQ(std::fwrite(content.data(), 1, content.size(), file), content.size());
  ASSERT_EQ(std::fclose(file), 0);
}

TEST_F(Verify, AFinishedBundleIsWhole) {
  EXPECT_THAT(problems(), testing::IsEmpty());
  // 3 metrics, 3 evidence, 3 logs, parity, study, environment, commits, manifest
  EXPECT_EQ(all_files(folder_).size(), 14u);
}

// Applies `change` at every `stride`-th position of every file, and counts the cases that verify
// missed.
void expect_found(const fs::path& folder, size_t stride,
                  const std::function<void(std::string&, size_t)>& change) {
  for (const std::string& name : all_files(folder)) {
    const std::string before = *read_file(folder / name);
    size_t missed = 0;
    for (size_t i = 0; i < before.size(); i += stride) {
      std::string changed = before;
      change(changed, i);
      put(folder / name, changed);
      missed += verify_bundle(folder)->empty();
      const auto read = read_bundle(folder);
      missed += read && verify_bundle(*read)->empty();
    }
    EXPECT_EQ(missed, 0u) << name;
    put(folder / name, before);
  }
  EXPECT_TRUE(verify_bundle(folder)->empty()) << "the test itself restored every file";
}

TEST_F(Verify, AnyChangedByteIsFound) {
  expect_found(folder_, 1, [](std::string& text, size_t i) {
    text[i] = static_cast<char>(text[i] ^ (1 << (i % 8)));
  });
}

// Lengths alone give these away: every few positions do.
TEST_F(Verify, AnyRemovedByteIsFound) {
  expect_found(folder_, 5, [](std::string& text, size_t i) { text.erase(text.size() - 1 - i, 1); });
}

TEST_F(Verify, AnyAddedByteIsFound) {
  expect_found(folder_, 5, [](std::string& text, size_t i) {
    text.insert(text.size() - i, 1, i % 2 ? ' ' : '\n');
  });
}

TEST_F(Verify, AnyMissingOrAddedFileIsFound) {
  for (const std::string& name : all_files(folder_)) {
    fs::rename(folder_ / name, scratch_ / "aside");
    EXPECT_EQ(problem_of(name), "missing");
    fs::rename(scratch_ / "aside", folder_ / name);
  }
  for (const char* name : {"extra", "prefill/extra.csv", "cells/x", "report.md.bak", ".hidden"}) {
    put(folder_ / name, "");
    EXPECT_EQ(problem_of(name), "not in the manifest");
    fs::remove(folder_ / name);
  }
}

TEST_F(Verify, DerivedFilesMayBeAdded) {
  fs::create_directories(folder_ / "analysis");
  fs::create_directories(folder_ / "plots");
  for (const char* name : {"analysis/findings.json", "analysis/tmp-1-findings.json", "report.md",
                           "report.html", "plots/prefill-ratios.svg", "plots/tmp-1-a.svg"}) {
    put(folder_ / name, "derived");
  }
  EXPECT_THAT(problems(), testing::IsEmpty());
}

TEST_F(Verify, NothingElseMayBeAddedUnderTheirNames) {
  fs::create_directories(folder_ / "report.md");
  fs::create_directories(folder_ / "plots/a");
  fs::create_directories(folder_ / "analysis/deeper");
  for (const char* name : {"report.md/hidden", "plots/a/b.svg", "plots/c", "plots/d.html",
                           "analysis/deeper/d", "report.html.bak", "tmp-1-metrics.csv"}) {
    put(folder_ / name, "");
    EXPECT_EQ(problem_of(name), "not in the manifest");
    fs::remove(folder_ / name);
  }
}

TEST_F(Verify, AnEmptyFolderIsFound) {
  for (const char* name : {"empty", "report.md", "report.html", "plots/below", "analysis/below",
                           "cells/cprefill/below"}) {
    fs::create_directories(folder_ / name);
    EXPECT_EQ(problem_of(name), "expected folders with something in them, found an empty one");
    fs::remove(folder_ / name);
  }
  EXPECT_THAT(problems(), testing::IsEmpty());
}

// A run that is killed between sealing its rows and writing its findings leaves a whole bundle.
TEST_F(Verify, TheFoldersOfTheReportMayBeEmpty) {
  fs::create_directories(folder_ / "analysis");
  fs::create_directories(folder_ / "plots");
  EXPECT_THAT(problems(), testing::IsEmpty());
}

TEST_F(Verify, ALinkIsNoPartOfABundle) {
  ASSERT_TRUE(write_file(scratch_ / "findings.json", "elsewhere"));
  const std::vector<std::pair<const char*, fs::path>> links = {{"cells/link", "/etc/passwd"},
                                                               {"analysis", scratch_ / ""},
                                                               {"report.md", "/etc/passwd"},
                                                               {"report.html", "/etc/passwd"},
                                                               {"dangling", "nowhere"}};
  for (const auto& [name, target] : links) {
    fs::create_symlink(target, folder_ / name);
    EXPECT_EQ(problem_of((folder_ / name).string()),
              "expected a regular file, found a symbolic link");
    fs::remove(folder_ / name);
  }
  const fs::path pipe = folder_ / "cells/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(problem_of(pipe.string()), "expected a regular file, found a pipe");
}

// The link leads to a manifest, and still to none of the bundle's own.
TEST_F(Verify, ALinkedManifestIsAProblemNotAnAbort) {
  fs::rename(folder_ / "manifest.json", scratch_ / "manifest.json");
  for (const fs::path& target : {fs::path("manifest.json"), scratch_ / "manifest.json"}) {
    fs::create_symlink(target, folder_ / "manifest.json");
    EXPECT_EQ(problem_of("manifest.json"), "expected a regular file, found a symbolic link");
    fs::remove(folder_ / "manifest.json");
  }
}

TEST_F(Verify, TheDamagedUnitIsNamed) {
  const fs::path path = folder_ / "kv_decode/metrics.csv";
  std::string text = *read_file(path);
  text[text.size() - 2] ^= 1;
  put(path, text);
  const auto found = problems();
  const auto names_unit = [](const VerifyProblem& problem) {
    return problem.problem.find("(unit 1)") != std::string::npos;
  };
  EXPECT_TRUE(std::ranges::any_of(found, names_unit));
}

TEST_F(Verify, NothingToVerifyIsBadInput) {
  put(scratch_ / "file", "");
  for (const char* name : {"nowhere", "file"}) {
    const auto result = verify_bundle(scratch_ / name);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind, ErrorKind::kBadInput);
  }
}

// Bundles whose writer was at fault: hashes and commits fit, the rows don't.
class VerifyRows : public testing::Test {
 protected:
  std::string first_problem(const std::function<void(Row&)>& spoil) {
    fs::remove_all(folder_);
    auto writer = BundleWriter::create(disk(), folder_, test_header());
    Row good = test_row(0, Phase::kPrefill);
    Row bad = test_row(1, Phase::kPrefill);
    spoil(bad);
    EXPECT_TRUE(writer->append(good) && writer->append(bad) && writer->commit_unit(0, {}) &&
                writer->seal({}));
    const auto found = verify_bundle(folder_);
    if (!found || found->empty()) return "none";
    return found->front().object + ": " + found->front().problem;
  }

  const Scratch scratch_;
  const fs::path folder_ = scratch_ / "bundle";
};

TEST_F(VerifyRows, RowsAreHeldAgainstTheSchema) {
  EXPECT_EQ(first_problem([](Row&) {}), "none");
  EXPECT_EQ(first_problem([](Row& row) { row.repetition = 0; }),
            "prefill/metrics.csv row 2: expected each repetition of a cell once, found 0 of "
            "cprefill again");
  EXPECT_EQ(first_problem([](Row& row) { row.latency_ms.reset(); }),
            "prefill/metrics.csv row 2: expected latency_ms on an ok row, found none (no_latency)");
  EXPECT_EQ(first_problem([](Row& row) { row.tokens.reset(); }),
            "prefill/metrics.csv row 2: expected tokens on an ok row, found none (no_tokens)");
  EXPECT_EQ(first_problem([](Row& row) { row.error_class = "SIGSEGV"; }),
            "prefill/metrics.csv row 2: expected no error_class on an ok row, found \"SIGSEGV\"");
  EXPECT_EQ(first_problem([](Row& row) { row.status = RowStatus::kCrash; }),
            "prefill/metrics.csv row 2: expected an error_class, found none");
  EXPECT_EQ(first_problem([](Row& row) { row.batch = 0; }),
            "prefill/metrics.csv line 3 column batch: expected at least 1, found 0");
}

TEST_F(VerifyRows, ManyProblemsAreSummedUp) {
  auto writer = BundleWriter::create(disk(), folder_, test_header());
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(writer->append(test_row(0, Phase::kE2eKv)));
  ASSERT_TRUE(writer->commit_unit(0, {}) && writer->seal({}));
  const auto found = verify_bundle(folder_);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 21u);
  EXPECT_EQ(found->back().problem, "79 more rows with problems");
}

// The harness's rules hold for a bundle's rows too: by the tokens, and by the cell's evidence of
// the memory's speed.
TEST(VerifyFalseOks, RowsThatCannotBeOkAreNamedAndReadAsFalseSuccesses) {
  const Scratch scratch;
  auto writer = BundleWriter::create(disk(), scratch / "b", test_header());
  ASSERT_TRUE(writer);
  for (int64_t i = 0; i < 5; ++i) {
    Row row = test_row(i, Phase::kKvDecode);
    row.new_tokens = 8;
    row.tokens = i == 1 ? 0 : i == 2 ? 4 : 8;
    row.latency_ms = i == 3 ? 0.5 : i == 4 ? 1e308 : 2.0;
    ASSERT_TRUE(writer->append(row));
  }
  // 10 MB at 12.5 GB/s are 0.8 ms.
  ASSERT_TRUE(writer->write_cell_json(
      test_row(0, Phase::kKvDecode).cell_id, "evidence.json",
      {{"read_bytes", {{"10", 10'000'000}}},
       {"read_limit", {{"bytes_per_s", 1e10}, {"cache_bytes", 0}, {"tolerance", 0.25}}}}));
  ASSERT_TRUE(writer->commit_unit(0, nullptr));
  ASSERT_TRUE(writer->seal(nullptr));
  const auto problems = verify_bundle(scratch / "b");
  ASSERT_TRUE(problems);
  std::vector<std::string> found;
  for (const VerifyProblem& one : *problems) found.push_back(one.object + ": " + one.problem);
  const std::string object = "kv_decode/metrics.csv row ";
  EXPECT_THAT(found, testing::ElementsAre(
                         object + "2: expected 8 tokens on an ok row of batch 1 and 8 new tokens, "
                                  "found 0 (too_few_tokens)",
                         object + "3: expected 8 tokens on an ok row of batch 1 and 8 new tokens, "
                                  "found 4 (too_few_tokens)",
                         object + "4: expected at least 0.8 ms on an ok row that reads 1e+07 bytes "
                                  "at 1e+10 bytes/s, found 0.5 ms (faster_than_memory)",
                         object + "5: expected times of 1 ns to a year on an ok row, found 1e+308 "
                                  "ms (impossible_latency)"));
  const auto bundle = read_bundle(scratch / "b");
  ASSERT_TRUE(bundle) << bundle.error().message;
  EXPECT_EQ(bundle->false_oks, (std::vector<size_t>{1, 2, 3, 4}));
  EXPECT_EQ(bundle->speed_unjudged, 0);
  EXPECT_EQ(bundle->rows[0].status, RowStatus::kOk);
  const char* classes[] = {"", "too_few_tokens", "too_few_tokens", "faster_than_memory",
                           "impossible_latency"};
  for (size_t i = 1; i < 5; ++i) {
    EXPECT_EQ(bundle->rows[i].status, RowStatus::kFalseSuccess);
    EXPECT_EQ(bundle->rows[i].error_class, classes[i]);
  }
}

// Readers use no byte that differs from the committed or sealed one, without verify having run.
TEST_F(Verify, ReadersRefuseWhatDiffersFromItsHash) {
  EXPECT_TRUE(read_bundle(folder_));
  EXPECT_EQ(read_bundle(folder_)->speed_unjudged, kTestUnits * 2) << "no evidence has a limit";
  for (const std::string& name : all_files(folder_)) {
    const std::string before = *read_file(folder_ / name);
    std::string changed = before;
    changed[changed.size() - 3] ^= 1;
    put(folder_ / name, changed);
    const auto bundle = read_bundle(folder_);
    ASSERT_FALSE(bundle) << name;
    EXPECT_EQ(bundle.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(bundle.error().message, HasSubstr((folder_ / name).string()));
    put(folder_ / name, before);
  }
  put(folder_ / "cells/ckv_decode/parity.json", "{\"passed\": true}\n");
  const auto bundle = read_bundle(folder_);
  ASSERT_FALSE(bundle);
  EXPECT_THAT(bundle.error().message,
              HasSubstr("expected a file that the manifest lists, found another"));
}

// A file less, half a log or a shorter file, as a disk or a hand leaves them.
TEST_F(Verify, ReadersRefuseWhatIsMissing) {
  for (const std::string& name : all_files(folder_)) {
    const std::string before = *read_file(folder_ / name);
    fs::remove(folder_ / name);
    const auto without = read_bundle(folder_);
    ASSERT_FALSE(without) << name;
    EXPECT_EQ(without.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(without.error().message, HasSubstr((folder_ / name).string()));
    put(folder_ / name, before.substr(0, before.find('\n') + 1));
    const auto cut = read_bundle(folder_);
    EXPECT_TRUE(!cut || before.find('\n') + 1 == before.size()) << name;
    put(folder_ / name, before);
  }
  EXPECT_TRUE(read_bundle(folder_));
}

// Problems that a reader needn't refuse are still named, without a second reading.
TEST_F(Verify, WhatWasReadIsVerifiedFromMemory) {
  const auto problem_of_read = [&]() -> std::string {
    const auto read = read_bundle(folder_);
    if (!read) return read.error().message;
    const auto found = verify_bundle(*read);
    if (!found || found->empty()) return "none";
    return found->front().object + ": " + found->front().problem;
  };
  EXPECT_EQ(problem_of_read(), "none");
  put(folder_ / "notes.txt", "mine");
  EXPECT_EQ(problem_of_read(), "notes.txt: not in the manifest");
  fs::remove(folder_ / "notes.txt");
  fs::create_directories(folder_ / "empty");
  EXPECT_EQ(problem_of_read(),
            "empty: expected folders with something in them, found an empty one");
}

// Its own hash fits, and the commits' are others.
TEST_F(Verify, AManifestThatDisagreesWithTheCommitsIsRefused) {
  const std::string before = *read_file(folder_ / "manifest.json");
  const auto message_of = [&](const std::function<void(Json&)>& change) -> std::string {
    Json manifest = *parse_manifest(before, "manifest.json");
    change(manifest);
    put(folder_ / "manifest.json", manifest_text(manifest));
    const auto bundle = read_bundle(folder_);
    put(folder_ / "manifest.json", before);
    return bundle ? "none" : bundle.error().message;
  };
  const std::string parity = "cells/cprefill/parity.json";
  EXPECT_THAT(message_of([&](Json& manifest) { manifest["files"].erase(parity); }),
              HasSubstr("expected " + parity + " among its files, as committed, found none"));
  EXPECT_THAT(message_of([&](Json& manifest) { manifest["completion"]["rows"] = 3; }),
              HasSubstr("expected 3 rows as its manifest's completion says, found 8"));
  const std::string foreign = "cells/cprefill/more.json";
  put(folder_ / foreign, "{}\n");
  EXPECT_THAT(message_of([&](Json& manifest) {
                manifest["files"][foreign] = file_entries_to_json({{"a", file_entry("{}\n")}})["a"];
              }),
              HasSubstr("expected files that were committed, found " + foreign));
}

// A latency that is edited in place still parses, and still sums up.
TEST_F(Verify, ReadersRefuseAnEditedLatency) {
  const fs::path path = folder_ / "prefill/metrics.csv";
  std::string text = *read_file(path);
  const size_t at = text.find(",1.1,");
  ASSERT_NE(at, std::string::npos);
  text[at + 3] = '2';
  put(path, text);
  const auto bundle = read_bundle(folder_);
  ASSERT_FALSE(bundle);
  EXPECT_THAT(bundle.error().message, HasSubstr("(unit 0) with sha256 "));
}

TEST(VerifyUnfinished, ChangedBytesAreFoundBeforeTheSeal) {
  const Scratch scratch;
  const fs::path folder = scratch / "b";
  {
    auto writer = BundleWriter::create(disk(), folder, test_header());
    for (int64_t unit = 0; unit < 3; ++unit) ASSERT_TRUE(write_unit(*writer, unit));
  }
  const auto count = [&] { return verify_bundle(folder)->size(); };
  EXPECT_EQ(count(), 1u) << "that it is unfinished, and nothing else";
  for (const char* name : {"prefill/metrics.csv", "kv_decode/metrics.csv", "e2e_kv/metrics.csv",
                           "commits.jsonl", "study.yaml", "environment.json", "manifest.json"}) {
    const std::string before = *read_file(folder / name);
    for (size_t i = 0; i < before.size(); ++i) {
      std::string changed = before;
      changed[i] = static_cast<char>(changed[i] ^ 0x04);
      put(folder / name, changed);
      const auto found = verify_bundle(folder);
      ASSERT_TRUE(found);
      // A manifest that can't be trusted ends the search: one problem, and another one.
      const bool seen = std::ranges::any_of(*found, [](const VerifyProblem& problem) {
        return problem.problem.find("unfinished run") == std::string::npos;
      });
      ASSERT_TRUE(seen) << name << " byte " << i;
    }
    put(folder / name, before);
  }
  EXPECT_EQ(count(), 1u);
}

TEST(Manifest, ALaterSchemaIsRefused) {
  Json manifest = opening_manifest(test_header());
  manifest["schema_version"] = kBundleSchemaVersion + 1;
  const auto parsed = parse_manifest(manifest_text(manifest), "manifest.json");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().message, "manifest.json: expected schema version 1 to 8, found 9");
  manifest["schema_version"] = 0;
  EXPECT_FALSE(parse_manifest(manifest_text(manifest), "manifest.json"));
}

TEST(RowsOfACell, CountTheirProcessesUp) {
  // The problem that verify finds of a cell whose rows have these processes; -1: none came up.
  const auto problem_of = [](const std::vector<int64_t>& processes) -> std::string {
    const Scratch scratch;
    auto writer = BundleWriter::create(disk(), scratch / "b", test_header());
    if (!writer) return writer.error().message;
    for (size_t i = 0; i < processes.size(); ++i) {
      Row row = test_row(static_cast<int64_t>(i), Phase::kPrefill);
      if (processes[i] >= 0) row.process = processes[i];
      if (!writer->append(row)) return "can't append";
    }
    if (!writer->commit_unit(0, nullptr) || !writer->seal({})) return "can't seal";
    const auto found = verify_bundle(scratch / "b");
    if (!found) return found.error().message;
    if (found->empty()) return "";
    return found->front().object + ": " + found->front().problem;
  };
  EXPECT_EQ(problem_of({0, 0, 1, 2, 2}), "");
  EXPECT_EQ(problem_of({-1, 0, -1, 1, -1}), "") << "a process that never came up has no number";
  EXPECT_EQ(problem_of({-1, -1}), "");
  EXPECT_EQ(problem_of({1, 1}), "prefill/metrics.csv row 1: expected process 0, found 1");
  EXPECT_EQ(problem_of({0, 2}), "prefill/metrics.csv row 2: expected process 0 or 1, found 2");
  EXPECT_EQ(problem_of({0, 1, 0}), "prefill/metrics.csv row 3: expected process 1 or 2, found 0");
}

// Bundles as programs before today's schema version left them.
TEST(OlderVersions, AreReadAndVerified) {
  for (int version = kOldestBundleSchemaVersion; version < kBundleSchemaVersion; ++version) {
    const Scratch scratch;
    ASSERT_TRUE(write_older_version(scratch / "b", version, version, true));
    const auto problems = verify_bundle(scratch / "b");
    ASSERT_TRUE(problems);
    for (const VerifyProblem& one : *problems) ADD_FAILURE() << one.object << one.problem;
    const auto bundle = read_bundle(scratch / "b");
    ASSERT_TRUE(bundle) << bundle.error().message;
    ASSERT_EQ(bundle->rows.size(), 3u);
    EXPECT_EQ(bundle->rows[2], test_row(2, Phase::kPrefill));
  }
}

TEST(OlderVersions, AreNotResumed) {
  for (int version = kOldestBundleSchemaVersion; version < kBundleSchemaVersion; ++version) {
    const Scratch scratch;
    ASSERT_TRUE(write_older_version(scratch / "b", version, version, false));
    const auto resumed = BundleWriter::resume(disk(), scratch / "b", test_header());
    ASSERT_FALSE(resumed) << "its columns are fewer";
    EXPECT_THAT(resumed.error().message,
                HasSubstr(fmt::format(
                    "manifest.json: expected schema version 8 to resume, found {}", version)));
  }
}

TEST(OlderVersions, DoNotMixWithTheNext) {
  const Scratch scratch;
  ASSERT_TRUE(write_older_version(scratch / "b", 1, 2, true));  // columns of 1, said to be 2
  const std::string expected =
      "expected the 46 columns of schema version 2, found 39: \"cell_id,backend,arm,";
  const auto bundle = read_bundle(scratch / "b");
  ASSERT_FALSE(bundle);
  EXPECT_THAT(bundle.error().message, HasSubstr("prefill/metrics.csv line 1: " + expected));
  const auto problems = verify_bundle(scratch / "b");
  ASSERT_TRUE(problems);
  ASSERT_FALSE(problems->empty());
  EXPECT_EQ(problems->front().object, "prefill/metrics.csv line 1");
  EXPECT_THAT(problems->front().problem, HasSubstr(expected));
}

TEST(CommitLog, RecordsMustFollowOneAnother) {
  const std::string plan = sha256_hex("plan");
  const std::string file = metrics_name(Phase::kPrefill);
  const CommitRecord first{0, 2, {{file, {100, "aa"}}}, {{"k", "v"}}};
  const auto message_of = [&](const CommitRecord& second) {
    std::string chain = plan;
    std::string text = commit_line(first, chain);
    text += commit_line(second, chain);
    const auto log = parse_commit_log(text, plan, "commits.jsonl");
    return log ? "fine" : log.error().message;
  };
  EXPECT_EQ(message_of({1, 4, {{file, {200, "bb"}}}, nullptr}), "fine");
  EXPECT_THAT(message_of({0, 4, {}, nullptr}), HasSubstr("expected each unit once"));
  EXPECT_THAT(message_of({1, 1, {}, nullptr}), HasSubstr("expected at least 2 rows"));
  EXPECT_THAT(message_of({1, 4, {{file, {50, "bb"}}}, nullptr}),
              HasSubstr("to grow from 100 bytes, found 50"));

  std::string chain = plan;
  const std::string line = commit_line(first, chain);
  EXPECT_EQ(parse_commit_log(line, plan, "t")->records[0], first);
  EXPECT_FALSE(parse_commit_log(line, sha256_hex("other"), "t")) << "another plan's commits";
  EXPECT_FALSE(parse_commit_log(line + line, plan, "t")) << "a record repeated";
  const auto cut = parse_commit_log(line + line.substr(0, 20), plan, "t");
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->size_bytes, line.size());
}

TEST(CommitLog, HostileTextIsAnError) {
  for (const char* text : {"\n", "{}\n", "[]\n", "null\n", "{\"chain\":1}\n", "\xff\xfe\n",
                           "{\"chain\":\"\",\"files\":{\"../x\":{}}}\n"}) {
    EXPECT_FALSE(parse_commit_log(text, sha256_hex("plan"), "t")) << text;
  }
}

}  // namespace
}  // namespace assay
