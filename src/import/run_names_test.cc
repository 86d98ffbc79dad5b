// Arms keep apart what their files tell apart, and names that claim a compiler.
#include "import/run_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using testing::ElementsAre;

ImportedRun named_run(const std::string& arm, const std::string& model = "m") {
  ImportedRun run{.source = "file", .facts = {}};
  EXPECT_TRUE(run.facts.state(ImportField::kArm, arm, "file"));
  EXPECT_TRUE(run.facts.state(ImportField::kModel, model, "file"));
  return run;
}

std::vector<std::string> arms_of(const Imported& imported) {
  std::vector<std::string> arms;
  for (const RunNames& names : name_runs(imported)) arms.push_back(names.arm);
  return arms;
}

TEST(RunNames, ASettingThatDiffersIsPutBehindTheNameAndOneThatDoesntIsNot) {
  Imported imported{.format = "f", .tool = {}};
  for (const char* threads : {"1", "4"}) {
    imported.runs.push_back(named_run("CPU"));
    imported.runs.back().settings = {{"n_threads", threads, "t"}, {"n_batch", "512", "b"}};
  }
  EXPECT_THAT(arms_of(imported), ElementsAre("CPU-t1", "CPU-t4"));
}

TEST(RunNames, ASettingThatOneRunLacksTellsItApart) {
  Imported imported{.format = "f", .tool = {}};
  imported.runs = {named_run("CPU"), named_run("CPU")};
  imported.runs[1].settings = {{"flash_attn", "1", "fa-"}};
  EXPECT_THAT(arms_of(imported), ElementsAre("CPU", "CPU-fa-1"));
}

TEST(RunNames, OneSettingTellsApartWhatDiffersInMore) {
  Imported imported{.format = "f", .tool = {}};
  for (const char* value : {"1", "2", "2"}) {
    imported.runs.push_back(named_run("CPU"));
    imported.runs.back().settings = {{"a", value}, {"b", value}};
  }
  EXPECT_THAT(arms_of(imported), ElementsAre("CPU-a=1", "CPU-a=2", "CPU-a=2"));
  imported.runs[2].settings[1].value = "3";
  EXPECT_THAT(arms_of(imported), ElementsAre("CPU-a=1", "CPU-a=2-b=2", "CPU-a=2-b=3"));
}

TEST(RunNames, ASettingThatIsNamedAsAFieldIsStillOne) {
  Imported imported{.format = "f", .tool = {}};
  imported.runs = {named_run("CPU"), named_run("CPU")};
  imported.runs[0].settings = {{"device", "x"}};
  imported.runs[1].settings = {{"device", "y"}};
  EXPECT_THAT(arms_of(imported), ElementsAre("CPU-device=x", "CPU-device=y"));
}

TEST(RunNames, LoadsOfOneNameThatDifferAreDifferentScenariosOfOneArm) {
  Imported imported{.format = "f", .tool = {}};
  for (const char* prompts : {"16", "32", "32"}) {
    imported.runs.push_back(named_run("vllm"));
    ASSERT_TRUE(imported.runs.back().facts.state(ImportField::kScenario, "c2", "file"));
    imported.runs.back().settings = {{"num_prompts", prompts, "", SettingOf::kCondition}};
  }
  ASSERT_TRUE(imported.runs[2].facts.state(ImportField::kScenario, "c4", "file"));
  std::vector<std::string> scenarios;
  for (const RunNames& names : name_runs(imported)) {
    EXPECT_EQ(names.arm, "vllm");
    scenarios.push_back(names.scenario);
  }
  EXPECT_THAT(scenarios, ElementsAre("c2-num_prompts=16", "c2-num_prompts=32", "c4"));
}

TEST(RunNames, AModelThatOneArmHasInTwoSizesIsTwoModels) {
  Imported imported{.format = "f", .tool = {}};
  for (const char* bytes : {"10", "20"}) {
    imported.runs.push_back(named_run("a"));
    imported.runs.back().settings = {{"model_size", bytes, "", SettingOf::kModel}};
  }
  const std::vector<RunNames> names = name_runs(imported);
  EXPECT_EQ(names[0].model, "m (model_size=10)");
  EXPECT_EQ(names[1].model, "m (model_size=20)");
}

TEST(RunNames, RunsOfTwoCachesOrAnUnknownOneAreDifferentArms) {
  Imported imported{.format = "f", .tool = {}};
  imported.runs = {named_run("a"), named_run("a"), named_run("b")};
  ASSERT_TRUE(imported.runs[0].facts.state(ImportField::kCache, "static", "file"));
  EXPECT_THAT(arms_of(imported), ElementsAre("a-static", "a-unknown-cache", "b"));
}

TEST(RunNames, WithoutANameTheBackendIsTheArmAndWithoutOneTheFormat) {
  Imported imported{.format = "hyperfine", .tool = {}};
  imported.runs.resize(1);
  EXPECT_THAT(arms_of(imported), ElementsAre("hyperfine"));
  ASSERT_TRUE(imported.runs[0].facts.state(ImportField::kBackend, "torch", "file"));
  EXPECT_THAT(arms_of(imported), ElementsAre("torch"));
}

TEST(RunNames, AModelInTwoTypesOfWeightsOnOneArmIsTwoModelsOnEveryArm) {
  Imported imported{.format = "f", .tool = {}};
  imported.runs = {named_run("a"), named_run("a"), named_run("b"), named_run("a", "other")};
  ASSERT_TRUE(imported.runs[0].facts.state(ImportField::kDtype, "float16", "file"));
  ASSERT_TRUE(imported.runs[1].facts.state(ImportField::kQuantization, "q4", "file"));
  ASSERT_TRUE(imported.runs[2].facts.state(ImportField::kDtype, "fp16", "file"));
  const std::vector<RunNames> names = name_runs(imported);
  EXPECT_EQ(names[0].model, "m (fp16)");
  EXPECT_EQ(names[1].model, "m (q4)");
  EXPECT_EQ(names[2].model, "m (fp16)");
  EXPECT_EQ(names[3].model, "other");
}

TEST(RunNames, AModelThatEachArmHasInOneTypeKeepsItsName) {
  Imported imported{.format = "f", .tool = {}};
  imported.runs = {named_run("a"), named_run("b")};
  ASSERT_TRUE(imported.runs[0].facts.state(ImportField::kDtype, "fp16", "file"));
  ASSERT_TRUE(imported.runs[1].facts.state(ImportField::kQuantization, "q4", "file"));
  for (const RunNames& names : name_runs(imported)) EXPECT_EQ(names.model, "m");
}

TEST(RunNames, NamesThatClaimACompilerAndNamesThatDont) {
  for (const char* name : {"transformers-gpu-compile", "Compiled", "torch_inductor", "a.compile2",
                           "transformersCompiled", "torch.compile", "reduce-overhead",
                           "max-autotune", "TorchDynamo", "GPU_COMPILED"}) {
    EXPECT_TRUE(names_a_compiler(name)) << name;
  }
  for (const char* name :
       {"transformers-gpu", "no-compile", "not compiled", "uncompiled", "precompile", "",
        "llama.cpp", "compile=False", "noCompile", "torch.compile off", "overhead", "reduce"}) {
    EXPECT_FALSE(names_a_compiler(name)) << name;
  }
}

}  // namespace
}  // namespace assay
