// Every command that reads bundles names one that was damaged or copied.
#include <gmock/gmock.h>

#include "base/files/files.h"
#include "bundle_on_disk.h"
#include "routing/routed_bundle.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class SealedCommand : public BundleCommandTest {
 protected:
  // `change`: what is done to the bundle before it is written and sealed.
  fs::path write(
      const std::string& name, uint64_t seed,
      const std::function<void(Bundle&)>& change = [](Bundle&) {}) {
    RoutedStudy study = two_routed_arms(0.7);
    study.seed = seed;
    Bundle bundle = RoutedBundle(study).made.build();
    for (size_t i = 0; i < bundle.rows.size(); ++i) {
      bundle.rows[i].started_at_ns =
          static_cast<int64_t>(seed) * 1'000'000'000'000 + static_cast<int64_t>(i) * 1'000'000;
    }
    bundle.manifest["started_at_ns"] = static_cast<int64_t>(seed) * 1'000'000'000'000 - 1;
    change(bundle);
    return write_bundle(name, bundle, true);
  }
};

// Each command with that bundle at each of its places.
std::vector<std::vector<std::string>> readers_of(const std::string& bundle,
                                                 const std::string& other,
                                                 const std::string& third) {
  return {{"analyze", bundle},
          {"report", bundle},
          {"gate", bundle},
          {"gate", other, bundle},
          {"route", bundle},
          {"route", other, bundle},
          {"portability", bundle, other},
          {"portability", other, bundle},
          {"compare", bundle, other},
          {"compare", other, bundle, "--fail-on-regression"},
          {"compare", other, bundle, "--", third},
          {"compare", bundle, "--self-test"}};
}

TEST_F(SealedCommand, EveryReaderRefusesWhatVerifyRefutes) {
  const fs::path whole = write("whole", 1);
  const std::string other = write("other", 2);
  const std::string third = write("third", 3);
  std::string evidence;
  std::string parity;
  for (const auto& entry : fs::recursive_directory_iterator(whole / "cells")) {
    if (entry.path().filename() == "evidence.json")
      evidence = entry.path().lexically_relative(whole);
    if (entry.path().filename() == "parity.json") parity = entry.path().lexically_relative(whole);
  }
  ASSERT_FALSE(evidence.empty() || parity.empty());
  const auto cut_half = [](const fs::path& path) {
    fs::resize_file(path, fs::file_size(path) / 2);
  };
  const auto remove = [](const fs::path& path) { fs::remove(path); };
  const std::vector<std::pair<std::string, std::function<void(const fs::path&)>>> damages = {
      {"commits.jsonl", cut_half},
      {"prefill/metrics.csv", cut_half},
      {"study.yaml", cut_half},
      {evidence, cut_half},
      {parity, remove},
      {evidence, remove},
      {"commits.jsonl", remove},
      {"prefill/metrics.csv", remove}};
  for (const auto& [name, damage] : damages) {
    const fs::path damaged = root_ / "damaged";
    fs::remove_all(damaged);
    fs::copy(whole, damaged, fs::copy_options::recursive);
    damage(damaged / name);
    EXPECT_EQ(assay({"verify", damaged}).end.exit_status, 1) << name;
    for (const auto& command : readers_of(damaged, other, third)) {
      EXPECT_THAT(refused(command),
                  AllOf(HasSubstr((damaged / name).string()), HasSubstr("expected")))
          << command[0] << " and " << name;
    }
  }
  for (const auto& command : readers_of(whole, other, third)) {
    EXPECT_LE(assay(command).end.exit_status, 1) << command[0] << ": the damage is what is refused";
  }
}

// Lines of commits are cut off as a kill would: half of the rows would go without a word.
TEST_F(SealedCommand, ALogWithoutItsLastCommitsIsRefusedAndAnUnfinishedBundleIsRead) {
  SyntheticBundle made(4);
  made.add({.arm = "eager"});
  made.add({.arm = "static"});
  const fs::path unfinished = write_bundle("unfinished", made, false);
  const CommandOutput output = assay({"analyze", unfinished});
  EXPECT_EQ(output.end.exit_status, 0) << output.err;
  EXPECT_THAT(output.out, HasSubstr("incomplete: the run did not finish"));
  const fs::path sealed = write_bundle("sealed", made, true);
  const std::string log = *read_file(sealed / "commits.jsonl");
  ASSERT_TRUE(write_file(sealed / "commits.jsonl", ""));
  EXPECT_THAT(refused({"analyze", sealed}),
              HasSubstr(fmt::format("commits.jsonl: expected {} bytes as the manifest lists, "
                                    "found 0",
                                    log.size())));
}

TEST_F(SealedCommand, ACopyIsNoSecondMeasurement) {
  const fs::path one = write("one", 1);
  const std::string two = write("two", 2);
  const std::string three = write("three", 3);
  fs::copy(one, root_ / "copied", fs::copy_options::recursive);
  const auto shift = [](Bundle& bundle) {
    for (Row& row : bundle.rows) row.started_at_ns += 3'600'000'000'000;
  };
  write("another-identity", 1, [](Bundle& bundle) { bundle.manifest["identity"]["cpu"] = "B"; });
  write("another-study", 1, [](Bundle& bundle) { bundle.manifest["study"]["seed"] = 7; });
  write("another-start", 1, [](Bundle& bundle) { bundle.manifest["started_at_ns"] = 5; });
  write("other-times", 1, [&](Bundle& bundle) {
    shift(bundle);
    bundle.manifest["started_at_ns"] = 5;
  });
  write("a-row-less", 1, [](Bundle& bundle) {
    bundle.rows.pop_back();
    bundle.manifest["started_at_ns"] = 5;
  });
  write("without-starts", 1, [](Bundle& bundle) {
    for (Row& row : bundle.rows) row.started_at_ns = 0;
    bundle.manifest["started_at_ns"] = int64_t{1'000'000'000'000} - 1;
  });
  for (const char* name : {"copied", "another-identity", "another-study", "another-start",
                           "other-times", "a-row-less", "without-starts"}) {
    const std::string copy = root_ / name;
    for (const std::vector<std::string>& command :
         std::vector<std::vector<std::string>>{{"gate", one, copy},
                                               {"portability", one, two, copy},
                                               {"compare", one, copy},
                                               {"compare", one, two, "--", three, copy},
                                               {"report", one, copy, "-o", root_ / "page.html"}}) {
      EXPECT_THAT(refused(command),
                  AllOf(HasSubstr(command[0] + ": expected each run once, found "),
                        HasSubstr(one.string()), HasSubstr(copy)))
          << name;
    }
  }
  EXPECT_THAT(refused({"route", two, one, root_ / "copied"}),
              AllOf(HasSubstr("route: expected each run once"), HasSubstr(one.string()),
                    HasSubstr(root_ / "copied")));
  EXPECT_LE(assay({"compare", one, two}).end.exit_status, 1);
  EXPECT_LE(assay({"portability", one, two, three}).end.exit_status, 1);
}

TEST_F(SealedCommand, AHistoryOfCopiesIsNone) {
  fs::create_directories(root_ / "runs");
  for (const uint64_t seed : {1, 2, 3}) write(fmt::format("runs/run{}", seed), seed);
  const std::string base = root_ / "runs/run3";
  const std::string cand = write("cand", 9);
  const std::vector<std::string> command = {"compare", base, cand, "--history", root_ / "runs"};
  EXPECT_LE(assay(command).end.exit_status, 1) << "the base may be of its own history";
  write("runs/again", 2, [](Bundle& bundle) { bundle.manifest["started_at_ns"] = 5; });
  EXPECT_THAT(refused(command), AllOf(HasSubstr("--history: expected each run once"),
                                      HasSubstr("runs/run2"), HasSubstr("runs/again")));
  fs::remove_all(root_ / "runs/again");
  fs::copy(cand, root_ / "runs/again", fs::copy_options::recursive);
  EXPECT_THAT(refused(command), AllOf(HasSubstr(cand), HasSubstr("runs/again")));
}

}  // namespace
}  // namespace assay
