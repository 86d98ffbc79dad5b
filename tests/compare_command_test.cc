// `assay compare` as a user and as CI meet it: exit status, formats, the one line on stderr.
#include <gmock/gmock.h>

#include "base/files/files.h"
#include "base/records/json.h"
#include "base/tables/csv.h"
#include "bundle_on_disk.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

class CompareCommand : public BundleCommandTest {
 protected:
  // An arm on two prompt lengths, that takes `slower` times as long on the longer one.
  fs::path write(const std::string& name, uint64_t seed, double slower = 1,
                 const std::string& code = "abc", int64_t processes = 10) {
    SyntheticBundle made(seed);
    made.add({.arm = "eager", .noise = 0.01, .processes = processes});
    made.add({.arm = "eager",
              .scenario = "single_long",
              .prompt_tokens = 200,
              .mean_ms = 40 * slower,
              .noise = 0.01,
              .processes = processes});
    made.raw().manifest["identity"]["code_sha"] = code;
    return write_bundle(name, made, true);
  }
};

TEST_F(CompareCommand, OnlyARegressionFailsAndOnlyWhenAsked) {
  const fs::path base = write("base", 1);
  const fs::path same = write("same", 2);
  const fs::path slower = write("slower", 3, 1.06);
  const CommandOutput quiet = assay({"compare", base, same, "--fail-on-regression"});
  EXPECT_EQ(quiet.end.exit_status, 0) << quiet.out << quiet.err;
  EXPECT_THAT(quiet.out, HasSubstr("passes: No cell is missing or lost"));
  const CommandOutput shown = assay({"compare", base, slower});
  EXPECT_EQ(shown.end.exit_status, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("warning: slower: eager on prefill"));
  const CommandOutput failed = assay({"compare", base, slower, "--fail-on-regression"});
  EXPECT_EQ(failed.end.exit_status, 1);
  EXPECT_THAT(failed.out, HasSubstr("FAIL: slower: eager on prefill, gpt2-25m, single_long: 1.0"));
  EXPECT_THAT(failed.out, HasSubstr("cand. ms"));
  EXPECT_EQ(
      assay({"compare", base, slower, "--fail-on-regression", "--margin", "10%"}).end.exit_status,
      0);
  EXPECT_EQ(assay({"compare", slower, base, "--fail-on-regression"}).end.exit_status, 0);
  EXPECT_THAT(refused({"compare", base, base}), HasSubstr("expected each bundle once"));
}

TEST_F(CompareCommand, ThePageHasTheVerdictAndAFigureOfEachPhase) {
  const fs::path base = write("base", 1);
  const fs::path slower = write("slower", 3, 1.06);
  const fs::path page = root_ / "page.html";
  const std::vector<std::string> compare = {"compare", base, slower, "--html", page};
  EXPECT_EQ(assay(compare).end.exit_status, 0);
  std::string html = *read_file(page);
  EXPECT_THAT(html, HasSubstr("<h1>Comparison: "));
  EXPECT_THAT(html, testing::ContainsRegex(
                        "prefill: of 2 cells [^;]*1 is slower[^;]*; 1 alarm. The largest "
                        "ratio: eager takes 1\\.0[5-7][0-9]* \\[.*\\] of the base&#39;s time at "
                        "single_long"));
  EXPECT_THAT(html, HasSubstr("<p>passes: "));
  EXPECT_EQ(
      assay({"compare", base, slower, "--html", page, "--fail-on-regression"}).end.exit_status, 1);
  EXPECT_THAT(*read_file(page), HasSubstr("<p class=alert>FAILS: "));
  EXPECT_THAT(refused({"compare", base, "--self-test", "--html", page}), HasSubstr("--html"));
}

TEST_F(CompareCommand, OneProcessASideIsNotDecidedUnlessAllowed) {
  const fs::path base = write("base", 1, 1, "abc", 1);
  const fs::path slower = write("slower", 3, 1.5, "abc", 1);
  const CommandOutput output = assay({"compare", base, slower, "--fail-on-regression"});
  EXPECT_EQ(output.end.exit_status, 1) << "nobody looked" << output.out << output.err;
  EXPECT_EQ(assay({"compare", base, slower}).end.exit_status, 0) << "and nobody asked";
  EXPECT_THAT(output.out, HasSubstr("2 of 2 cells not decided: one process a side can't show what "
                                    "differs between processes"));
  EXPECT_THAT(assay({"compare", base, slower, "-o", "md"}).out,
              HasSubstr("## Verdict\n\nNOTHING JUDGED: "));
  EXPECT_THAT(assay({"compare", base, slower, "-o", "csv"}).out,
              HasSubstr(",not_decided,false,1,1,"));
  const CommandOutput allowed =
      assay({"compare", base, slower, "--fail-on-regression", "--allow-single-process"});
  EXPECT_EQ(allowed.end.exit_status, 1);
  EXPECT_THAT(allowed.out, HasSubstr("2 of 2 cells are judged by the rows of one process a side"));
  EXPECT_THAT(refused({"compare", base, "--self-test"}), HasSubstr("found 1 process"));
}

TEST_F(CompareCommand, DemandsOfCiAreMetOrNamed) {
  const fs::path base = write("base", 1);
  const fs::path same = write("same", 2);
  const fs::path slower = write("slower", 3, 1.5);
  EXPECT_EQ(assay({"compare", base, same, "--require-mde", "20%"}).end.exit_status, 0);
  const CommandOutput fine = assay({"compare", base, same, "--require-mde", "0.01%"});
  EXPECT_EQ(fine.end.exit_status, 1);
  EXPECT_THAT(fine.out, HasSubstr("FAIL: resolution: "));
  EXPECT_THAT(fine.out, HasSubstr(" or more, expected"));
  EXPECT_EQ(assay({"compare", base, slower, "--fail-on-undecided"}).end.exit_status, 0)
      << "slower is decided";
  const fs::path single = write("single", 4, 1, "abc", 1);
  EXPECT_THAT(assay({"compare", base, single, "--fail-on-undecided"}).out,
              HasSubstr("FAIL: undecided: "));
  const auto json = parse_json(
      assay({"compare", base, slower, "--fail-on-regression", "-o", "json"}).out, "stdout");
  ASSERT_TRUE(json);
  EXPECT_EQ(json->begin().key(), "verdict");
  EXPECT_EQ((*json)["verdict"], "fails");
  EXPECT_FALSE((*json)["unmet"].empty());
}

TEST_F(CompareCommand, ServicesThatRunBuildsGetTheirFormats) {
  const fs::path base = write("base", 1);
  const fs::path slower = write("slower", 3, 1.5);
  const std::string junit =
      assay({"compare", base, slower, "--fail-on-regression", "-o", "junit"}).out;
  EXPECT_THAT(junit, StartsWith("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites "));
  EXPECT_THAT(junit, HasSubstr("<failure message=\"slower: eager on prefill, "));
  EXPECT_THAT(junit,
              testing::ContainsRegex("<testsuite name=\"verdict\" tests=\"1\" failures=\"1\""));
  EXPECT_THAT(assay({"compare", base, write("same", 2), "-o", "junit"}).out,
              HasSubstr(" failures=\"0\" skipped=\"0\">"));
  const std::string unseen =
      assay({"compare", base, write("single", 4, 1, "abc", 1), "-o", "junit"}).out;
  EXPECT_THAT(unseen, HasSubstr("<skipped message=\"no cell was judged\"/>"));
  const fs::path summary = root_ / "summary.md";
  ::setenv("GITHUB_STEP_SUMMARY", summary.c_str(), 1);
  const std::string said =
      assay({"compare", base, slower, "--fail-on-regression", "-o", "github"}).out;
  ::unsetenv("GITHUB_STEP_SUMMARY");
  EXPECT_THAT(said, StartsWith("::error title=assay compare::slower: eager on prefill, "));
  EXPECT_THAT(said, HasSubstr("::error title=assay compare::FAILS: "));
  EXPECT_THAT(said, Not(HasSubstr(" % ")));
  EXPECT_THAT(*read_file(summary), HasSubstr("## Verdict\n\nFAILS: "));
  EXPECT_THAT(refused({"compare", base, "--self-test", "-o", "junit"}), HasSubstr("--self-test"));
}

TEST_F(CompareCommand, ABusierMachineIsNamed) {
  const auto with_load = [&](const std::string& name, double load) {
    SyntheticBundle made(load > 1 ? 2 : 1);
    made.add({.arm = "eager", .noise = 0.01, .processes = 10});
    made.raw().environment["host"]["system"] = {{"load_1min", load}, {"steal_share", 0.001}};
    return write_bundle(name, made, true);
  };
  const CommandOutput output =
      assay({"compare", with_load("idle", 0.1), with_load("busy", 3.5), "--full"});
  EXPECT_EQ(output.end.exit_status, 0) << output.err;
  EXPECT_THAT(output.out, HasSubstr("The base was measured at: load average 0.10 at the start"));
  EXPECT_THAT(output.out,
              HasSubstr("load average at the start 0.10 in the base, 3.50 in the candidate"));
}

TEST_F(CompareCommand, ACellThatTheCandidateLacksFailsAlways) {
  const fs::path base = write("base", 1);
  SyntheticBundle made(2);
  made.add({.arm = "eager", .noise = 0.01, .processes = 10});
  made.raw().manifest["identity"]["code_sha"] = "abc";
  const CommandOutput output = assay({"compare", base, write_bundle("cand", made, true)});
  EXPECT_EQ(output.end.exit_status, 1);
  EXPECT_THAT(output.out, HasSubstr("FAIL: missing: eager on prefill, gpt2-25m, single_long"));
}

TEST_F(CompareCommand, UnlikeIdentitiesAreRefusedUnlessVaried) {
  const fs::path base = write("base", 1);
  const fs::path cand = write("cand", 2, 1, "def");
  EXPECT_THAT(refused({"compare", base, cand}),
              HasSubstr("code_sha: expected \"abc\", found \"def\""));
  const CommandOutput varied = assay({"compare", base, cand, "--vary", "code_sha"});
  EXPECT_EQ(varied.end.exit_status, 0) << varied.err;
  EXPECT_THAT(varied.out, HasSubstr("varied: code_sha: abc -> def"));
  EXPECT_THAT(refused({"compare", base, cand, "--vary", "code"}), HasSubstr("--vary: expected"));
}

TEST_F(CompareCommand, BundlesWhoseRowsWereEditedAreRefused) {
  const fs::path base = write("base", 1);
  const fs::path cand = write("cand", 2);
  const fs::path path = cand / "prefill" / "metrics.csv";
  std::string text = *read_file(path);
  const size_t at = text.find("false,", text.find('\n')) + 6;  // cold, then latency_ms
  text[at] = text[at] == '1' ? '2' : '1';
  ASSERT_TRUE(write_file(path, text));
  EXPECT_THAT(refused({"compare", base, cand}), HasSubstr("prefill/metrics.csv: expected bytes"));
  EXPECT_THAT(refused({"compare", cand, "--self-test"}), HasSubstr("expected bytes 0 to "));
}

TEST_F(CompareCommand, EveryFormatSaysTheSame) {
  const fs::path base = write("base", 1);
  const fs::path slower = write("slower", 3, 1.06);
  const auto json = parse_json(assay({"compare", base, slower, "-o", "json"}).out, "stdout");
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ((*json)["schema_version"], 5);
  EXPECT_EQ((*json)["cells"][0]["judged_by"], "processes");
  EXPECT_EQ((*json)["cells"].size(), 2u);
  EXPECT_EQ((*json)["cells"][1]["regression"], true);
  EXPECT_EQ((*json)["failures"].size(), 1u) << "of two strata that disagree no figure is made";
  const std::string markdown =
      assay({"compare", base, slower, "--fail-on-regression", "-o", "md"}).out;
  EXPECT_THAT(markdown, HasSubstr("## Verdict\n\nFAILS: "));
  EXPECT_THAT(markdown, HasSubstr("| SLOWER"));
  const std::string csv = assay({"compare", base, slower, "-o", "csv"}).out;
  CsvReader reader(csv, "stdout");
  const size_t columns = reader.next()->size();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(reader.next()->size(), columns);
  EXPECT_TRUE(reader.done());
}

TEST_F(CompareCommand, SeveralRunsASideAreJudgedByRuns) {
  std::vector<std::string> arguments = {"compare"};
  for (const uint64_t seed : {1, 2, 3, 4}) {
    arguments.push_back(write(fmt::format("base{}", seed), seed));
  }
  arguments.emplace_back("--");
  for (const uint64_t seed : {5, 6, 7, 8}) {
    arguments.push_back(write(fmt::format("cand{}", seed), seed, 1.06));
  }
  arguments.emplace_back("--fail-on-regression");
  const CommandOutput output = assay(arguments);
  EXPECT_EQ(output.end.exit_status, 1) << output.out << output.err;
  EXPECT_THAT(output.out, HasSubstr("The unit is the run: 4 of the base, 4 of the candidate"));
  EXPECT_THAT(output.out, HasSubstr("FAIL: slower: eager on prefill, gpt2-25m, single_long: 1.0"));
  const CommandOutput same = assay({"compare", root_ / "base1", root_ / "base2", "--candidates",
                                    root_ / "base3", "--fail-on-regression"});
  EXPECT_EQ(same.end.exit_status, 0) << same.out;
  EXPECT_THAT(same.out, HasSubstr("2 of the base, 1 of the candidate"));
  EXPECT_THAT(refused({"compare", "--", root_ / "base1"}), HasSubstr("before the \"--\""));
  EXPECT_THAT(refused({"compare", root_ / "base1", root_ / "base2", root_ / "base3"}),
              HasSubstr("several a side (BASE... -- CAND...), found 3"));
  EXPECT_THAT(refused({"compare", root_ / "base1", root_ / "base2", "--", root_ / "base3",
                       "--history", root_}),
              HasSubstr("--history: expected one bundle a side"));
}

TEST_F(CompareCommand, AnAlarmHasToBeatTheHistory) {
  fs::create_directories(root_ / "runs");
  // Each run as a whole is up to 8 % slower than the one before it.
  for (uint64_t i = 0; i < 10; ++i) {
    SyntheticBundle made(10 + i);
    made.add({.arm = "eager", .mean_ms = i % 2 == 0 ? 10 : 10.8, .noise = 0.01, .processes = 10});
    made.raw().manifest["identity"]["code_sha"] = fmt::format("commit{}", i);
    write_bundle(fmt::format("runs/run{}", i), made, i != 9);
  }
  SyntheticBundle made(30);
  made.add({.arm = "eager", .mean_ms = 10.8, .noise = 0.01, .processes = 10});
  made.raw().manifest["identity"]["code_sha"] = "commit0";
  const fs::path cand = write_bundle("cand", made, true);
  const fs::path base = root_ / "runs" / "run0";
  EXPECT_EQ(assay({"compare", base, cand, "--fail-on-regression"}).end.exit_status, 1);
  const CommandOutput quiet =
      assay({"compare", base, cand, "--fail-on-regression", "--history", root_ / "runs"});
  EXPECT_EQ(quiet.end.exit_status, 0) << quiet.out;
  EXPECT_THAT(quiet.out, HasSubstr("In the history of 9 runs a cell differs from run to run by"));
  EXPECT_THAT(quiet.err, HasSubstr("run9 left out: not complete"));
  // A damaged bundle is one less, and said to be.
  const fs::path rows = root_ / "runs" / "run8" / "prefill" / "metrics.csv";
  ASSERT_TRUE(fs::exists(rows));
  std::string bytes = *read_file(rows);
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(write_file(rows, bytes));
  const CommandOutput damaged =
      assay({"compare", base, cand, "--fail-on-regression", "--history", root_ / "runs"});
  EXPECT_EQ(damaged.end.exit_status, 0) << damaged.err;
  EXPECT_THAT(damaged.out, HasSubstr("In the history of 8 runs"));
  EXPECT_THAT(damaged.err, HasSubstr("run8 left out: "));
  EXPECT_THAT(refused({"compare", base, cand, "--history", root_ / "nowhere"}),
              HasSubstr("expected a folder of bundles"));
}

TEST_F(CompareCommand, TheSelfTestReportsItsRateWithAnInterval) {
  const fs::path base = write("base", 1);
  const CommandOutput table = assay({"compare", base, "--self-test", "--splits", "200"});
  EXPECT_EQ(table.end.exit_status, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("false alarm: some cell slower by more than 2 %"));
  const auto json = parse_json(
      assay({"compare", base, "--self-test", "--splits", "200", "-o", "json"}).out, "stdout");
  ASSERT_TRUE(json);
  EXPECT_LE((*json)["false_alarm_rate"], 0.05);
  EXPECT_EQ((*json)["false_alarm_interval"].size(), 2u);
}

TEST_F(CompareCommand, BadInputsGiveOneLineAndExitTwo) {
  const fs::path base = write("base", 1);
  EXPECT_THAT(refused({"compare", base, root_ / "missing"}), HasSubstr("missing"));
  EXPECT_THAT(refused({"compare", base}), HasSubstr("expected two bundles"));
  EXPECT_THAT(refused({"compare", base, base, "--self-test"}), HasSubstr("found 2"));
  EXPECT_THAT(refused({"compare", base, base, "--margin", "two"}), HasSubstr("found \"two\""));
  EXPECT_THAT(refused({"compare", base, base, "--margin", "0%"}), HasSubstr("--margin"));
  for (const char* option : {"--splits", "--seed"}) {
    EXPECT_THAT(refused({"compare", base, base, option, "20"}), HasSubstr(option));
  }
  for (const std::vector<std::string>& odd : {std::vector<std::string>{"--history", root_.string()},
                                              {"--vary", "code_sha"},
                                              {"--fail-on-regression"},
                                              {"--allow-single-process"},
                                              {"--run"}}) {
    std::vector<std::string> arguments = {"compare", base.string(), "--self-test"};
    arguments.insert(arguments.end(), odd.begin(), odd.end());
    EXPECT_THAT(refused(arguments), HasSubstr(odd[0] + ": expected no --self-test"));
  }
  refused({"compare"});
  refused({"compare", base, base, "-o", "xml"});
}

}  // namespace
}  // namespace assay
