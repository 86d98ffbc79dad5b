// `assay analyze` and `assay report` as a user meets them: bundles on disk, good and bad, the exit
// status and the one line on stderr.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "analysis/synthetic_bundle.h"
#include "base/subprocess.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

class AnalyzeCommand : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) /
            fmt::format("assay-analyze-{}",
                        testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  CommandOutput assay(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), ASSAY_PROGRAM);
    auto output = run_command(system_spawner(), std::move(arguments), 60);
    EXPECT_TRUE(output);
    return output ? *std::move(output) : CommandOutput{};
  }

  // Two arms on one stratum, written as `assay run` writes them.
  fs::path write_bundle(bool sealed) {
    SyntheticBundle made(5);
    made.add({.arm = "eager", .warmup = 1});
    made.add({.arm = "static", .mean_ms = 20, .warmup = 1});
    const Bundle bundle = made.build();
    BundleHeader header;
    header.study_yaml = "name: synthetic\n";
    header.plan_hash = "0";
    header.environment = bundle.environment;
    header.identity = bundle.manifest["identity"];
    header.study = bundle.manifest["study"];
    header.assay_version = "0";
    const fs::path folder = root_ / "bundle";
    auto writer = BundleWriter::create(disk(), folder, header);
    EXPECT_TRUE(writer) << writer.error().message;
    for (const Row& row : bundle.rows) EXPECT_TRUE(writer->append(row));
    for (const auto& [cell, parity] : bundle.parity) {
      EXPECT_TRUE(writer->write_cell_json(cell, "parity.json", parity));
    }
    EXPECT_TRUE(writer->commit_unit(0, nullptr));
    if (sealed) {
      EXPECT_TRUE(writer->seal({{"rows", bundle.rows.size()}}));
    }
    return folder;
  }

  fs::path root_;
};

TEST_F(AnalyzeCommand, PrintsTheFindingsAndLeavesThemInTheBundle) {
  const fs::path folder = write_bundle(true);
  const CommandOutput table = assay({"analyze", folder});
  EXPECT_EQ(table.end.exit_status, 0) << table.err;
  EXPECT_THAT(table.out, StartsWith("== Identity =="));
  EXPECT_THAT(table.out, HasSubstr("slower"));
  const auto written = read_json_file(folder / "analysis" / "findings.json");
  ASSERT_TRUE(written);
  EXPECT_EQ((*written)["contrasts"][0]["verdict"], "slower");
  EXPECT_EQ(assay({"analyze", folder, "-o", "json"}).out, to_json_text(*written));
  EXPECT_THAT(assay({"analyze", folder, "-o", "csv"}).out, StartsWith("phase,model,"));
  EXPECT_THAT(assay({"analyze", folder, "-o", "md"}).out, StartsWith("# Findings of synthetic"));
  EXPECT_EQ(assay({"verify", folder}).end.exit_status, 0) << "findings must not spoil the bundle";
}

TEST_F(AnalyzeCommand, ReportWritesMarkdownAndPrintsItsPath) {
  const fs::path folder = write_bundle(true);
  const CommandOutput report = assay({"report", folder});
  EXPECT_EQ(report.end.exit_status, 0) << report.err;
  EXPECT_EQ(report.out, (folder / "report.md").string() + "\n");
  EXPECT_THAT(*read_file(folder / "report.md"), HasSubstr("## Decision"));
}

TEST_F(AnalyzeCommand, AnIncompleteBundleIsAnalysedAndSaysSo) {
  const CommandOutput table = assay({"analyze", write_bundle(false)});
  EXPECT_EQ(table.end.exit_status, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("INCOMPLETE RUN"));
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
