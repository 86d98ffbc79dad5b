#include "analysis/findings/strata.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Strata, AreNamedByTheirPromptsAndByTheScenarioWhereThatIsNotEnough) {
  std::vector<Stratum> strata = {
      {.model = "a", .scenario = "short"}, {.model = "a", .scenario = "poem"},
      {.model = "a", .scenario = "code"},  {.model = "b", .scenario = "code"},
      {.model = "a", .scenario = "any"},   {.model = "a", .scenario = "command"},
      {.model = "a", .scenario = "one"}};
  name_prompts({{10, 10}, {64, 64}, {64, 64}, {64, 64}, {5, 40}, {0, 0}, {1, 1}}, strata);
  std::vector<std::string> names;
  for (const Stratum& of : strata) names.push_back(prompt_name(of));
  EXPECT_EQ(names, (std::vector<std::string>{"10 tokens", "64 tokens (poem)", "64 tokens (code)",
                                             "64 tokens", "5-40 tokens", "command", "1 token"}));
}

TEST(Strata, AreOneWhateverTheirPromptsAreCalled) {
  Stratum a{.model = "a", .scenario = "short"};
  const Stratum b = a;
  a.prompt = "10 tokens";
  EXPECT_EQ(a, b);
  EXPECT_FALSE(a < b || b < a);
}

}  // namespace
}  // namespace assay
