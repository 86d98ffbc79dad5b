// `assay analyze` and `assay report` as a user meets them: bundles on disk, good and bad, the exit
// status and the one line on stderr.
#include <gmock/gmock.h>

#include "analysis/findings/findings.h"
#include "bundle_on_disk.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class AnalyzeCommand : public BundleCommandTest {
 protected:
  // Two arms on one stratum.
  fs::path write_bundle(bool sealed) {
    SyntheticBundle made(5);
    made.add({.arm = "eager", .warmup = 1});
    made.add({.arm = "static", .mean_ms = 20, .warmup = 1});
    return BundleCommandTest::write_bundle("bundle", made, sealed);
  }
};

TEST_F(AnalyzeCommand, PrintsTheFindingsAndLeavesThemInTheBundle) {
  const fs::path folder = write_bundle(true);
  const CommandOutput table = assay({"analyze", folder});
  EXPECT_EQ(table.end.exit_status, 0) << table.err;
  EXPECT_THAT(table.out, StartsWith("synthetic: gpt2-25m, 2 arms, "));
  EXPECT_THAT(table.out,
              testing::ContainsRegex("eager  1 \\(baseline\\)  static +[0-9.]+ % +0  faster\n"));
  EXPECT_THAT(table.out, testing::EndsWith("\nreport:   " + folder.string() + "/report.html\n"));
  EXPECT_TRUE(fs::exists(folder / "report.md"));
  const CommandOutput full = assay({"analyze", folder, "--full"});
  EXPECT_THAT(full.out, StartsWith("== Answers ==\n- Prefill: static is slower than eager ("));
  EXPECT_THAT(full.out, HasSubstr("slower"));
  const auto written = read_json_file(folder / "analysis" / "findings.json");
  ASSERT_TRUE(written);
  EXPECT_EQ((*written)["contrasts"][0]["verdict"], "slower");
  auto printed = parse_json(assay({"analyze", folder, "-o", "json"}).out, "stdout");
  ASSERT_TRUE(printed);
  EXPECT_EQ((*printed)["answers"][0]["arms"][1]["verdicts"]["slower"], 1);
  printed->erase("answers");
  EXPECT_EQ(to_json_text(*printed), to_json_text(*written));
  EXPECT_THAT(assay({"analyze", folder, "-o", "csv"}).out, StartsWith("phase,model,"));
  EXPECT_THAT(assay({"analyze", folder, "-o", "md"}).out, StartsWith("# Findings of synthetic"));
  EXPECT_EQ(assay({"verify", folder}).end.exit_status, 0) << "findings must not spoil the bundle";
}

// Whatever an analysis prints, its findings print again; only the lines that name files differ.
TEST_F(AnalyzeCommand, PrintsTheSameFromTheFindingsAlone) {
  const fs::path folder = write_bundle(true);
  const std::string screen = assay({"analyze", folder}).out;
  const fs::path file = root_ / "some-findings.json";
  fs::copy_file(folder / "analysis" / "findings.json", file);
  for (const std::vector<std::string>& form : std::vector<std::vector<std::string>>{
           {"--full"}, {"-o", "json"}, {"-o", "csv"}, {"-o", "md"}}) {
    const auto with_form = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.end(), form.begin(), form.end());
      return assay(arguments);
    };
    const std::string expected = with_form({"analyze", folder}).out;
    const CommandOutput read = with_form({"analyze", "--from-findings", file});
    EXPECT_EQ(read.end.exit_status, 0) << read.err;
    EXPECT_EQ(read.out, expected) << form.back();
  }
  const std::string named = "\nfindings: ";
  const std::string of_file = assay({"analyze", "--from-findings", file}).out;
  EXPECT_EQ(of_file.substr(0, of_file.find(named)), screen.substr(0, screen.find(named)));
  EXPECT_THAT(of_file, HasSubstr(named + file.string() +
                                 "\nin full:  assay analyze --full --from-findings"));
  EXPECT_THAT(of_file, HasSubstr("\nreport:   assay report --from-findings"));
  EXPECT_THAT(of_file, testing::EndsWith(file.string() + " -o report.html\n"));

  const std::string findings = *read_file(folder / "analysis" / "findings.json");
  fs::remove_all(folder);
  fs::create_directories(folder / "analysis");
  ASSERT_TRUE(write_file(folder / "analysis" / "findings.json", findings));
  EXPECT_EQ(assay({"analyze", "--from-findings", folder}).out, screen) << "a bundle without rows";
  EXPECT_FALSE(fs::exists(folder / "report.html")) << "it writes nothing";
}

TEST_F(AnalyzeCommand, FindingsThatCantBeReadAreRefusedInOneLine) {
  const fs::path file = root_ / "findings.json";
  const auto refusal = [&](const std::string& text) {
    EXPECT_TRUE(write_file(file, text));
    return refused({"analyze", "--from-findings", file});
  };
  EXPECT_THAT(refusal("{"), HasSubstr("findings.json"));
  EXPECT_THAT(refusal("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(refusal("{}"), HasSubstr("schema_version"));
  EXPECT_THAT(refusal(fmt::format("{{\"schema_version\": {}}}", kFindingsSchemaVersion)),
              HasSubstr("expected an object at identity, found null"));
  EXPECT_THAT(refused({"analyze", "--from-findings", root_ / "none"}), HasSubstr("none"));
  EXPECT_EQ(assay({"analyze", "--from-findings", "--seed", "1", file}).end.exit_status, 2)
      << "the findings' own seed holds";
}

// The findings fail as the bundle does: CI may keep the findings alone.
TEST_F(AnalyzeCommand, FailedRequirementsFailFromTheFindingsToo) {
  SyntheticBundle made(5);
  made.raw().manifest["study"]["require"] = {{"deterministic", true}};
  made.lose(made.add({.arm = "eager"}), 3, RowStatus::kCrash, "SIGSEGV");
  const fs::path folder = BundleCommandTest::write_bundle("required", made, true);
  const CommandOutput analyzed = assay({"analyze", folder});
  EXPECT_EQ(analyzed.end.exit_status, 1) << analyzed.err;
  const CommandOutput read = assay({"analyze", "--from-findings", folder});
  EXPECT_EQ(read.end.exit_status, 1) << read.err;
  EXPECT_EQ(read.out, analyzed.out);
}

TEST_F(AnalyzeCommand, ReportWritesPageAndMarkdownAndPrintsTheirPaths) {
  const fs::path folder = write_bundle(true);
  const CommandOutput report = assay({"report", folder});
  EXPECT_EQ(report.end.exit_status, 0) << report.err;
  EXPECT_EQ(report.out,
            (folder / "report.html").string() + "\n" + (folder / "report.md").string() + "\n");
  EXPECT_THAT(*read_file(folder / "report.html"), HasSubstr("<figure id=\"prefill-order\""));
  EXPECT_THAT(*read_file(folder / "report.md"), HasSubstr("](plots/prefill-order.svg)"));
  EXPECT_EQ(assay({"verify", folder}).end.exit_status, 0) << "a report must not spoil the bundle";
  EXPECT_THAT(*read_file(folder / "report.md"), HasSubstr("## Decision"));
}

// Only the analysis of the bundle is left: the page is the same but for the parts that need the
// bundle's other files.
TEST_F(AnalyzeCommand, ReportFromFindingsDrawsTheRowsBesideThem) {
  const fs::path folder = write_bundle(true);
  ASSERT_EQ(assay({"report", folder}).end.exit_status, 0);
  const fs::path alone = root_ / "beside";
  fs::create_directories(alone);
  fs::copy(folder / "analysis", alone / "analysis");
  const CommandOutput report = assay({"report", "--from-findings", alone});
  EXPECT_EQ(report.end.exit_status, 0) << report.err;
  for (const auto& plot : fs::directory_iterator(folder / "plots")) {
    EXPECT_EQ(*read_file(alone / "plots" / plot.path().filename()), *read_file(plot.path()));
  }
  EXPECT_THAT(*read_file(alone / "report.md"), HasSubstr("](plots/prefill-order.svg)"));

  ASSERT_TRUE(write_file(alone / "analysis" / "plotted.json", "{\"schema_version\": 0}"));
  EXPECT_THAT(refused({"report", "--from-findings", alone}), HasSubstr("plotted.json"));
}

// Only the findings of the bundle are left.
TEST_F(AnalyzeCommand, ReportIsMadeFromFindingsAlone) {
  const fs::path folder = write_bundle(true);
  ASSERT_EQ(assay({"report", folder}).end.exit_status, 0);
  const fs::path alone = root_ / "alone";
  fs::create_directories(alone / "analysis");
  fs::copy(folder / "analysis" / "findings.json", alone / "analysis");
  const CommandOutput report = assay({"report", "--from-findings", alone});
  EXPECT_EQ(report.end.exit_status, 0) << report.err;
  EXPECT_EQ(report.out,
            (alone / "report.html").string() + "\n" + (alone / "report.md").string() + "\n");
  const std::string markdown = *read_file(alone / "report.md");
  EXPECT_THAT(markdown, HasSubstr("## Decision"));
  EXPECT_THAT(markdown, HasSubstr("](plots/prefill-ratios.svg)"));
  EXPECT_THAT(markdown, Not(HasSubstr("prefill-order"))) << "there are no rows to draw";
  EXPECT_THAT(refused({"compare", alone, alone}), HasSubstr("found findings alone"));

  const std::string file = (alone / "analysis" / "findings.json").string();
  const std::string page = (root_ / "of-file.html").string();
  EXPECT_EQ(assay({"report", "--from-findings", file, "-o", page}).out, page + "\n");
  EXPECT_EQ(*read_file(page), *read_file(alone / "report.html"));
  EXPECT_THAT(refused({"report", "--from-findings", file}), HasSubstr("expected -o FILE.html"));

  EXPECT_EQ(assay({"report", "--from-findings", "--margin", "0.1", alone}).end.exit_status, 2)
      << "the findings' own margin holds";
  ASSERT_TRUE(write_file(alone / "analysis" / "findings.json", "{\"schema_version\": 8}"));
  EXPECT_THAT(refused({"report", "--from-findings", alone}),
              HasSubstr("found version 8 (`assay analyze` makes them anew)"));
  fs::remove_all(alone / "analysis");
  EXPECT_THAT(refused({"report", "--from-findings", alone}), HasSubstr("findings.json"));
}

TEST_F(AnalyzeCommand, ReportOfOneBundleCanGoElsewhere) {
  const fs::path folder = write_bundle(true);
  const std::string page = (root_ / "page.html").string();
  EXPECT_EQ(assay({"report", folder, "-o", page}).out, page + "\n");
  EXPECT_THAT(*read_file(page), HasSubstr("<figure id=\"prefill-order\""));
  EXPECT_FALSE(fs::exists(folder / "report.html"));
}

TEST_F(AnalyzeCommand, ReportShowsTracesBesideOneAnother) {
  SyntheticBundle made(5);
  std::map<std::string, std::string> traces;
  for (const auto& [arm, kernel_us] : {std::pair{"eager", 200.0}, {"static", 20.0}}) {
    const std::string id = made.add({.arm = arm, .mean_ms = kernel_us / 10});
    Json events = Json::array();
    for (int i = 0; i < 40; ++i) {
      const double begin = i * (kernel_us + 100);
      events.push_back({{"ph", "X"},
                        {"cat", "cuda_driver"},
                        {"name", "cuLaunchKernel"},
                        {"ts", begin},
                        {"dur", 10}});
      events.push_back({{"ph", "X"},
                        {"cat", "kernel"},
                        {"name", "gemm<float>"},
                        {"ts", begin + 20},
                        {"dur", kernel_us}});
    }
    traces[id] = Json{{"traceEvents", events}}.dump();
  }
  const fs::path folder = BundleCommandTest::write_bundle("traced", made, true, traces);
  ASSERT_EQ(assay({"report", folder}).end.exit_status, 0);
  const std::string page = *read_file(folder / "report.html");
  EXPECT_THAT(page, HasSubstr("<figure id=\"timelines\""));
  EXPECT_THAT(page, HasSubstr("kernels: gemm&lt;float&gt; at "));
  EXPECT_THAT(page, HasSubstr("40 kernels"));
  EXPECT_TRUE(fs::exists(folder / "plots" / "timelines.svg"));
  // One that was changed is no longer what was sealed.
  const std::string id = traces.begin()->first;
  ASSERT_TRUE(write_file(folder / "cells" / id / "trace.json.gz", "changed"));
  EXPECT_THAT(refused({"report", folder}), HasSubstr(id + "/trace.json.gz: expected"));
}

TEST_F(AnalyzeCommand, ReportPutsBundlesSideBySide) {
  const fs::path one = write_bundle(true);
  SyntheticBundle made(6);
  made.add({.arm = "eager", .warmup = 1});
  const fs::path other = BundleCommandTest::write_bundle("other", made, true);
  const std::string page = (root_ / "page.html").string();
  EXPECT_EQ(assay({"report", one, other, "-o", page}).out, page + "\n");
  EXPECT_THAT(*read_file(page), HasSubstr("<h2>bundle</h2>"));
  EXPECT_THAT(*read_file(page), HasSubstr("<h2>other</h2>"));
  EXPECT_THAT(refused({"report", one, other}), HasSubstr("expected -o FILE.html"));
  EXPECT_THAT(refused({"report", one, one, "-o", page}), HasSubstr("expected each bundle once"));
  EXPECT_FALSE(fs::exists(one / "report.html"));
}

TEST_F(AnalyzeCommand, AnIncompleteBundleIsAnalysedAndSaysSo) {
  const fs::path folder = write_bundle(false);
  const CommandOutput table = assay({"analyze", folder});
  EXPECT_EQ(table.end.exit_status, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("- incomplete: the run did not finish"));
  EXPECT_THAT(assay({"analyze", folder, "--full"}).out, HasSubstr("INCOMPLETE RUN"));
}

// Rows of half the tokens took half the time: verify names them, and no reader takes them for
// speed.
TEST_F(AnalyzeCommand, RowsThatCannotBeOkWinNothing) {
  SyntheticBundle made(6);
  made.add({.arm = "eager", .phase = Phase::kKvDecode});
  const std::string half = made.add({.arm = "static", .phase = Phase::kKvDecode, .mean_ms = 5});
  for (int i = 0; i < 30; ++i) made.row(half, i).tokens = 32;
  const fs::path folder = BundleCommandTest::write_bundle("half", made, true);
  const CommandOutput verified = assay({"verify", folder});
  EXPECT_EQ(verified.end.exit_status, 1);
  EXPECT_THAT(verified.out, HasSubstr("expected 64 tokens on an ok row"));
  EXPECT_THAT(verified.out, HasSubstr("kv_decode/metrics.csv row 2 "));
  const auto json = parse_json(assay({"analyze", folder, "-o", "json"}).out, "stdout");
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ((*json)["contrasts"].size(), 0u);
  EXPECT_EQ((*json)["decisions"][0]["arm"], "eager");
  EXPECT_EQ((*json)["outcomes"][1]["by_error_class"]["too_few_tokens"], 30);
  EXPECT_THAT(assay({"analyze", folder}).out, HasSubstr("false_ok"));
}

// In place, so that only the hashes tell.
TEST_F(AnalyzeCommand, EditedLatenciesAreRefused) {
  const fs::path folder = write_bundle(true);
  const fs::path path = folder / "prefill" / "metrics.csv";
  std::string text = *read_file(path);
  const size_t row = text.find("static,");
  const size_t at = text.find("false,", row) + 6;  // cold, then latency_ms
  text[at] = text[at] == '1' ? '2' : '1';
  ASSERT_TRUE(write_file(path, text));
  for (const char* command : {"analyze", "report"}) {
    EXPECT_THAT(refused({command, folder}), HasSubstr("prefill/metrics.csv: expected bytes 0 to "));
  }
  EXPECT_FALSE(fs::exists(folder / "report.md"));
}

TEST_F(AnalyzeCommand, BadInputsGiveOneLineAndExitTwo) {
  const fs::path damaged = write_bundle(true);
  fs::remove(damaged / "environment.json");
  const fs::path future = root_ / "future";
  fs::create_directories(future);
  ASSERT_TRUE(write_file(future / "manifest.json", "{\"schema_version\": 99}\n"));
  for (const fs::path& folder : {root_ / "missing", root_, damaged, future}) {
    for (const char* command : {"analyze", "report"}) {
      const CommandOutput output = assay({command, folder});
      EXPECT_EQ(output.end.exit_status, 2) << folder;
      EXPECT_TRUE(output.out.empty());
      EXPECT_EQ(std::ranges::count(output.err, '\n'), 1) << output.err;
      EXPECT_THAT(output.err, HasSubstr(folder.string()));
    }
  }
  EXPECT_EQ(assay({"analyze"}).end.exit_status, 2);
  EXPECT_EQ(assay({"analyze", root_, "--margin", "7"}).end.exit_status, 2);
  EXPECT_EQ(assay({"analyze", root_, "-o", "xml"}).end.exit_status, 2);
}

}  // namespace
}  // namespace assay
