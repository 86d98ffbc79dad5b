// Imported bundles: verified, and what they say of their identity.
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

}  // namespace
}  // namespace assay
