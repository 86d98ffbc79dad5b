// Evidence as workers write it, and as they shouldn't.
#include "analysis/evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Evidence, OfACompiledCell) {
  const auto json = parse_json(R"({"compiler_real": "yes", "reported": {
      "reasons": ["3 kernels were loaded and ran"], "fallback": false, "fallback_error": null,
      "counters": {"unique_graphs": 3, "recompiles": 2, "seconds": 0.5},
      "recompiles": [{"guard": "q_len", "expected": 16, "found": 24, "seconds": 0.4},
                     {"guard": "cache", "expected": "static", "found": "dynamic"}]}})",
                               "evidence");
  const CompileEvidence evidence = read_evidence(*json);
  EXPECT_EQ(evidence.real, CompilerReal::kYes);
  EXPECT_THAT(evidence.reasons, ElementsAre("3 kernels were loaded and ran"));
  EXPECT_EQ(evidence.fallback_error, "");
  EXPECT_EQ(evidence.counter("recompiles"), 2);
  EXPECT_EQ(evidence.counter("recompile_limit_hits"), 0);
  ASSERT_EQ(evidence.recompiles.size(), 2u);
  EXPECT_EQ(evidence.recompiles[0].expected, "16");
  EXPECT_EQ(evidence.recompiles[0].found, "24");
  EXPECT_EQ(evidence.recompiles[0].seconds, 0.4);
  EXPECT_EQ(evidence.recompiles[1].found, "dynamic");
}

TEST(Evidence, ThatSaysLittleProvesNothing) {
  for (const char* text :
       {"{}", "[]", "null", R"({"compiler_real": 1})", R"({"compiler_real": "surely"})",
        R"({"compiler_real": null, "reported": null})",
        R"({"reported": {"counters": [], "recompiles": {}, "reasons": "none"}})",
        R"({"reported": {"counters": {"a": "b"}, "recompiles": [1, {}]}})"}) {
    const CompileEvidence evidence = read_evidence(*parse_json(text, "evidence"));
    EXPECT_EQ(evidence.real, CompilerReal::kUnproven) << text;
    EXPECT_THAT(evidence.recompiles, IsEmpty());
    EXPECT_THAT(evidence.counters, IsEmpty());
  }
}

}  // namespace
}  // namespace assay
