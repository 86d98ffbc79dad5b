// Imported bundles: they verify, and their identity states the files' facts.
#include "import/import_bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "import/import_fixture.h"

namespace assay {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kMapping =
    "name: table\n"
    "columns: {arm: arm, latencies: t_ms, tokens: n, cache: cache}\n"
    "constants: {phase: kv_decode, new_tokens: 4, model: m, device: Example GPU, dtype: fp16}\n";
constexpr const char* kTable =
    "arm,t_ms,n,cache\n"
    "gpu-compile,9;1;2,4,static\n"
    "gpu,8;2;3,4,static\n"
    "other,1,0,\n";

class ImportBundle : public testing::Test {
 protected:
  ImportBundle() {
    std::string pattern = testing::TempDir() + "/assay-import-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~ImportBundle() override { std::filesystem::remove_all(folder_); }

  Result<ImportSummary> write(const ImportOptions& options = {}) {
    auto imported = import_text(kTable, kMapping);
    if (!imported) return std::unexpected(imported.error());
    imported->files = {{"table.csv", {1, sha256_hex("table")}}};
    return write_imported(*imported, options, disk(), folder_ / "bundle");
  }
  Bundle bundle() { return read_bundle(folder_ / "bundle").value(); }

  std::filesystem::path folder_;
};

TEST_F(ImportBundle, IsSealedAndVerifies) {
  const auto summary = write();
  ASSERT_TRUE(summary) << summary.error().message;
  const auto problems = verify_bundle(folder_ / "bundle");
  ASSERT_TRUE(problems) << problems.error().message;
  EXPECT_THAT(*problems, IsEmpty());
  EXPECT_TRUE(bundle().complete);
  EXPECT_THAT(bundle().false_oks, IsEmpty()) << "rows that can't be ok aren't recorded as ok";
  EXPECT_EQ(summary->rows, 7);
  EXPECT_EQ(summary->rows_by_status.at(RowStatus::kFalseSuccess), 1);
  EXPECT_EQ(summary->lost_by_class.at("false_success (too_few_tokens)"), 1);
}

TEST_F(ImportBundle, TheIdentityHasWhatIsStatedAndNamesTheRest) {
  ASSERT_TRUE(write());
  const Json identity = bundle().manifest["identity"];
  EXPECT_EQ(identity["device"], "Example GPU");
  EXPECT_FALSE(identity.contains("code_sha"));
  EXPECT_FALSE(identity.contains("framework_build"));
  EXPECT_EQ(identity["imported_from"], "mapped-csv");
  const std::vector<std::string> unknown = identity["unknown"];
  EXPECT_THAT(unknown, Contains("code_sha"));
  EXPECT_THAT(unknown, Contains("code_generator"));
  EXPECT_THAT(unknown, Contains("cache")) << "of one arm";
  EXPECT_THAT(unknown, testing::Not(Contains("device")));
  EXPECT_EQ(identity["arms"]["gpu"]["cache"], "static");
  EXPECT_FALSE(identity["arms"]["other"].contains("cache"));
  const std::vector<std::string> of_gpu = identity["arms"]["gpu"]["unknown"];
  EXPECT_THAT(of_gpu, testing::Not(Contains("cache")));
}

TEST_F(ImportBundle, TheEnvironmentNamesFilesStandInsAndUnknownFields) {
  ASSERT_TRUE(write());
  const Json about = bundle().environment["imported"];
  EXPECT_EQ(about["files"][0]["name"], "table.csv");
  EXPECT_EQ(about["stand_ins"]["batch"], "1");
  EXPECT_EQ(about["mapping"], kMapping);
  const std::vector<std::string> warnings = bundle().environment["warnings"];
  EXPECT_THAT(warnings, Contains(HasSubstr("the imported files don't state batch, cache")));
  EXPECT_THAT(warnings, Contains(HasSubstr("the compiler of gpu-compile is unproven")));
  EXPECT_THAT(warnings, Contains(HasSubstr("no date")));
}

TEST_F(ImportBundle, ACompilerThatIsOnlyNamedIsUnprovenAndNoBaseline) {
  const auto summary = write();
  ASSERT_TRUE(summary);
  EXPECT_THAT(summary->arms, ElementsAre("gpu", "gpu-compile", "other"));
  const Bundle made = bundle();
  int64_t compiled = 0;
  for (const Row& row : made.rows) {
    const Evidence& evidence = made.evidence.at(row.cell_id);
    EXPECT_EQ(evidence.compiler_real, CompilerReal::kUnproven);
    ASSERT_TRUE(evidence.reported);
    EXPECT_THAT(evidence.reported->reasons, testing::SizeIs(1));
    if (row.arm != "gpu-compile") continue;
    EXPECT_EQ(row.compile_mode, "compiled");
    ++compiled;
  }
  EXPECT_EQ(compiled, 3);
}

TEST_F(ImportBundle, ABaselineMustBeAnArm) {
  ImportOptions options;
  options.baseline = "gp";
  const auto refused = write(options);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("did you mean \"gpu\"?"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "bundle")) << "nothing is left behind";
  options.baseline = "other";
  EXPECT_EQ(write(options)->arms.front(), "other");
}

TEST_F(ImportBundle, TooManyConditionsAreRefused) {
  std::string table = "arm,t_ms\n";
  for (size_t i = 0; i <= kMostImportCells; ++i) table += fmt::format("a{},1\n", i);
  EXPECT_THAT(import_refusal(table, "columns: {arm: arm, latency: t_ms}\n"),
              HasSubstr("at most 5000 conditions"));
}

TEST_F(ImportBundle, SamplesAndMeansOfOneConditionAreRefused) {
  const std::string test =
      R"("build_commit":"a","build_number":1,"backends":"CPU","model_filename":"m",)"
      R"("model_type":"llama 1B F16","n_prompt":8,"n_gen":0,"avg_ns":5)";
  EXPECT_THAT(import_refusal("{" + test + "}\n{" + test + R"(,"samples_ns":[5,6]})" + "\n"),
              HasSubstr("expected samples or means of one condition, found both"));
}

// Two arms, of which each states some axes, and the header of their bundle.
BundleHeader header_of_arms(const std::string& table) {
  auto imported =
      import_text(table,
                  "columns: {latency: t_ms, arm: a, device: d, code_sha: s, dynamic: dy, "
                  "compile_mode: cm, started_at: at}\n");
  EXPECT_TRUE(imported) << imported.error().message;
  imported->notes = {"a note of the reader"};
  imported->machine = {{"cpu_count", 4}};
  imported->asserted = {{"cache", "static"}};
  const auto made = make_rows(*imported, FirstSamples::kByFile);
  EXPECT_TRUE(made) << made.error().message;
  return import_header(*imported, *made, {});
}

TEST(ImportIdentity, WhatOneArmStatesIsNotSaidOfAll) {
  const Json identity =
      header_of_arms("t_ms,a,d,s,dy,cm,at\n5,x,GPU,abc,true,default,\n5,y,,abc,,eager,\n").identity;
  EXPECT_EQ(identity["code_sha"], "abc") << "both state it";
  EXPECT_FALSE(identity.contains("device"));
  EXPECT_EQ(identity["arms"]["x"]["device"], "GPU");
  EXPECT_FALSE(identity["arms"]["y"].contains("device"));
  EXPECT_EQ(identity["arms"]["x"]["dynamic"], "true");
  EXPECT_EQ(identity["arms"]["x"]["compile_mode"], "default");
  const std::vector<std::string> unknown = identity["arms"]["y"]["unknown"];
  EXPECT_THAT(unknown, Contains("device"));
}

TEST(ImportIdentity, TwoDevicesStayTwo) {
  const Json two =
      header_of_arms("t_ms,a,d,s,dy,cm,at\n5,x,GPU,a,,eager,\n5,y,CPU,a,,eager,\n").identity;
  EXPECT_FALSE(two.contains("device"));
  EXPECT_EQ(two["arms"]["x"]["device"], "GPU");
  EXPECT_EQ(two["arms"]["y"]["device"], "CPU");
  // Arms of one name on two devices become two arms.
  const Json one_name =
      header_of_arms("t_ms,a,d,s,dy,cm,at\n5,x,GPU,a,,eager,\n5,x,CPU,a,,eager,\n").identity;
  EXPECT_TRUE(one_name["arms"].contains("x-GPU") && one_name["arms"].contains("x-CPU"));
}

TEST(ImportIdentity, TheTimeIsTheEarliestAndWhatFilesAndUserSayIsKept) {
  const BundleHeader header = header_of_arms(
      "t_ms,a,d,s,dy,cm,at\n5,x,,,,,2026-11-25T10:00:00Z\n5,x,,,,,2026-11-25T09:55:10Z\n"
      "5,x,,,,,2026-11-25T11:00:00Z\n");
  EXPECT_EQ(header.started_at_ns, 1'795'600'510'000'000'000);
  const Json& about = header.environment["imported"];
  EXPECT_EQ(about["said"]["cpu_count"], 4);
  EXPECT_EQ(about["asserted"]["cache"], "static");
  const std::vector<std::string> warnings = header.environment["warnings"];
  EXPECT_THAT(warnings, Contains("a note of the reader"));
  EXPECT_THAT(warnings, testing::Not(Contains(HasSubstr("no date"))));
}

TEST(ImportIdentity, ARunWithoutSamplesIsAWarning) {
  auto imported = import_text(
      R"({"results": [{"command": "a", "mean": 1, "times": [1]}, {"command": "b", "mean": 1, "times": []}]})");
  ASSERT_TRUE(imported) << imported.error().message;
  const auto made = make_rows(*imported, FirstSamples::kByFile);
  ASSERT_TRUE(made) << made.error().message;
  const std::vector<std::string> warnings =
      import_header(*imported, *made, {}).environment["warnings"];
  EXPECT_THAT(warnings, Contains(HasSubstr("1 run of \"b\" without a sample")));
}

TEST_F(ImportBundle, WeightsThatFilesDisagreeAboutHaveNoSize) {
  const auto weights = [&](int64_t second) {
    auto imported = import_text("t_ms,a\n5,x\n5,y\n",
                                "columns: {latency: t_ms, arm: a}\n"
                                "constants: {model: m}\n");
    imported->runs[0].weight_bytes = 1000;
    imported->runs[1].weight_bytes = second;
    std::filesystem::remove_all(folder_ / "bundle");
    EXPECT_TRUE(write_imported(*imported, {}, disk(), folder_ / "bundle"));
    return bundle().manifest["completion"]["model_weight_bytes"];
  };
  EXPECT_EQ(weights(1000), Json({{"m", 1000}}));
  EXPECT_EQ(weights(2000), Json::object());
}

TEST_F(ImportBundle, TheBoundOnSamplesIsOfAllFilesTogether) {
  Imported imported{.format = "f", .tool = {}};
  for (int run = 0; run < 2; ++run) {
    imported.runs.push_back({.source = "file", .facts = {}});
    imported.runs.back().samples.resize(kMostImportSamples / 2 + run);
  }
  const auto made = make_rows(imported, FirstSamples::kByFile);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("at most 2000000 samples"));
}

}  // namespace
}  // namespace assay
