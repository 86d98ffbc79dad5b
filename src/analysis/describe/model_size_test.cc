// Arms along model size: variance explained, and the crossover.
#include "analysis/describe/model_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/analyze.h"
#include "analysis/rows/synthetic_bundle.h"

namespace assay {
namespace {

// Models of 25, 50, 100 and 400 million parameters; `ratios` of arm static at each.
Findings study(const std::vector<double>& ratios, double noise = 0.01) {
  const std::pair<const char*, double> models[] = {
      {"gpt2-25m", 1}, {"gpt2-50m", 2}, {"gpt2-100m", 4}, {"llama-0.4b", 16}};
  SyntheticBundle bundle(61);
  for (size_t i = 0; i < ratios.size(); ++i) {
    const auto& [model, ms] = models[i];
    bundle.add({.arm = "eager", .mean_ms = ms, .noise = noise, .model = model});
    bundle.add({.arm = "static", .mean_ms = ms * ratios[i], .noise = noise, .model = model});
  }
  AnalysisOptions options;
  options.resamples = 1000;
  return *analyze(bundle.build(), options, nullptr);
}

TEST(ModelSize, AnInteractionThatWasPlantedIsFoundAndOneThatWasNotIsNot) {
  const Findings planted = study({0.6, 0.8, 1.0, 1.2});
  ASSERT_EQ(planted.sizes.size(), 1u);
  const SizeAnalysis& with = planted.sizes[0];
  EXPECT_EQ(with.models.size(), 4u);
  EXPECT_LT(*with.interaction_p_holm, 1e-6);
  EXPECT_GT(*with.type2->interaction.partial_eta_squared, 0.9);
  EXPECT_GT(*with.type2->b.eta_squared, 0.9) << "the model makes most of the difference";
  const SizeAnalysis without = study({0.8, 0.8, 0.8, 0.8}).sizes.at(0);
  EXPECT_GT(*without.interaction_p_holm, 0.01);
  EXPECT_LT(*without.type2->a.p, 1e-6);
}

TEST(ModelSize, AnInteractionOfProcessesThatDifferIsSeldomClaimed) {
  constexpr int kTrials = 200;
  int claimed = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    SyntheticBundle bundle(static_cast<uint64_t>(trial) + 9000);
    for (const char* model : {"gpt2-25m", "gpt2-50m"}) {
      for (const char* arm : {"eager", "static"}) {
        bundle.add({.arm = arm, .model = model, .processes = 5, .process_shift = 0.2});
      }
    }
    AnalysisOptions options;
    options.resamples = 100;
    const Findings findings = *analyze(bundle.build(), options, nullptr);
    claimed += *findings.sizes.at(0).interaction_p_holm < 0.05;
  }
  EXPECT_LE(claimed, kTrials * 0.08) << "5 % and two standard errors";
}

TEST(ModelSize, TheCrossoverIsInterpolatedOnTheLogarithmOfSize) {
  const Findings findings = study({0.6, 0.8, 0.8, 1.25});
  EXPECT_EQ(findings.size_unit, "parameters");
  const SizeCrossover& crossover = findings.sizes.at(0).crossovers.at(0);
  // ln 0.8 = -ln 1.25: half way between ln 100e6 and ln 400e6.
  EXPECT_NEAR(*crossover.crossover, 200e6, 10e6);
  EXPECT_LT(*crossover.interval->low, 200e6);
  EXPECT_GT(*crossover.interval->high, 200e6);
  EXPECT_EQ(crossover.ratios.size(), 4u);
}

TEST(ModelSize, AnArmThatIsFasterAtEverySizeHasNoCrossover) {
  const SizeCrossover crossover = study({0.6, 0.7, 0.8, 0.9}).sizes.at(0).crossovers.at(0);
  EXPECT_FALSE(crossover.crossover);
  EXPECT_FALSE(crossover.interval);
}

TEST(ModelSize, ACrossoverThatNoiseMayTakeAwayHasNoUpperEnd) {
  const SizeCrossover crossover = study({0.6, 0.7, 0.8, 1.005}, 0.03).sizes.at(0).crossovers.at(0);
  if (crossover.crossover) {
    EXPECT_TRUE(crossover.interval->low);
    EXPECT_FALSE(crossover.interval->high);
  }
}

TEST(ModelSize, OneModelIsNoAnalysis) {
  EXPECT_TRUE(study({0.6}).sizes.empty());
}

TEST(ModelSize, RecordedSizesGoBeforeNames) {
  SyntheticBundle bundle(62);
  bundle.add({.arm = "eager", .model = "small"});
  bundle.add({.arm = "eager", .model = "gpt2-25m"});
  Bundle built = bundle.build();
  std::vector<Stratum> strata(2);
  strata[0].model = "small";
  strata[1].model = "gpt2-25m";
  EXPECT_EQ(model_sizes(built, strata).unit, "") << "one name tells nothing";
  built.manifest["completion"] = {{"model_weight_bytes", {{"small", 1000}, {"gpt2-25m", 5000}}}};
  const ModelSizes recorded = model_sizes(built, strata);
  EXPECT_EQ(recorded.unit, "weight bytes");
  EXPECT_EQ(recorded.of.at("gpt2-25m"), 5000);
}

TEST(ModelSize, NamesTellParameters) {
  const auto size = [](const std::string& name) {
    std::vector<Stratum> strata(1);
    strata[0].model = name;
    Bundle none;
    none.manifest = Json::object();
    const ModelSizes sizes = model_sizes(none, strata);
    return sizes.unit.empty() ? 0 : sizes.of.at(name);
  };
  EXPECT_DOUBLE_EQ(size("qwen2.5-0.5b"), 0.5e9);
  EXPECT_DOUBLE_EQ(size("Qwen2.5-1.5B"), 1.5e9);
  EXPECT_DOUBLE_EQ(size("llama3.2-1b-instruct"), 1e9);
  EXPECT_DOUBLE_EQ(size("gpt2-25m"), 25e6);
  EXPECT_DOUBLE_EQ(size("tiny-llama"), 0);
  EXPECT_DOUBLE_EQ(size("v3"), 0);
  EXPECT_DOUBLE_EQ(size("3bodies"), 0);
}

}  // namespace
}  // namespace assay
