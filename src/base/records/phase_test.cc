// Names of the phases, which study files, messages and bundles share.
#include "base/records/phase.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Phases, AreNamedAsInStudiesMessagesAndBundles) {
  EXPECT_THAT(phase_names(), testing::ElementsAre("prefill", "kv_decode", "e2e_kv", "load"));
  for (const Phase phase : kPhases) EXPECT_EQ(parse_phase(phase_name(phase)), phase);
  for (const char* other : {"", "decode", "Prefill", "prefill "}) {
    EXPECT_FALSE(parse_phase(other)) << other;
  }
}

TEST(Phases, AllButPrefillDecode) {
  EXPECT_FALSE(decodes(Phase::kPrefill));
  EXPECT_TRUE(decodes(Phase::kKvDecode));
  EXPECT_TRUE(decodes(Phase::kE2eKv));
}

}  // namespace
}  // namespace assay
