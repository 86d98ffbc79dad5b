// Losing rows never helps a candidate: the same bundle with and without lost rows, by analysis,
// gate and route.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/analyze.h"
#include "gates/claim_answer.h"
#include "routing/routed_bundle.h"

namespace assay {
namespace {

// Rows of the candidate that are lost on the prompts of 30 tokens.
enum class Lost { kNone, kSlowest, kFastest, kAll };

// The candidate is faster, as fast or slower, which the seed says, and mostly so little that its
// rows leave some strata open.
RoutedBundle candidate_bundle(uint64_t seed, Lost lost) {
  RoutedStudy study = two_routed_arms(0.95 + 0.01 * static_cast<double>(seed % 8));
  study.seed = seed;
  study.noise = 0.05;
  study.process_shift = 0.01;
  RoutedBundle bundle(study);
  const std::string& cell = bundle.cell("fast", 30);
  std::vector<std::pair<double, int64_t>> rows;
  for (int64_t i = 0; i < study.repetitions; ++i) {
    rows.emplace_back(*bundle.made.row(cell, i).latency_ms, i);
  }
  std::ranges::sort(rows);
  if (lost == Lost::kSlowest) std::ranges::reverse(rows);
  const size_t count = lost == Lost::kNone ? 0 : lost == Lost::kAll ? rows.size() : 1 + seed % 8;
  for (size_t i = 0; i < count; ++i) {
    bundle.made.lose(cell, rows[i].second, RowStatus::kTimeout, "");
  }
  return bundle;
}

size_t stratum_of(const Findings& findings, int64_t length) {
  for (size_t s = 0; s < findings.strata.size(); ++s) {
    if (findings.prompts[s].shortest == length) return s;
  }
  return findings.strata.size();
}

std::vector<std::string> claims() {
  std::vector<std::string> all;
  for (const std::string place : {"", " at prompt_10", " at prompt_30", " at prompt_80"}) {
    all.push_back("fast faster than eager in prefill" + place);
    all.push_back("fast equivalent to eager in prefill" + place);
    all.push_back("fast fastest in prefill" + place);
    all.push_back("eager slower than fast in prefill" + place);
  }
  return all;
}

bool covers_the_loss(const std::string& claim) {
  return !claim.ends_with("_10") && !claim.ends_with("_80");
}

bool is_for_candidate(Verdict verdict) {
  return verdict == Verdict::kFaster || verdict == Verdict::kEquivalent;
}

class LostRows : public ::testing::TestWithParam<Lost> {};

// No claim and no choice that covers the lost rows holds. The others are judged by the rest of the
// phase: dependence and spread are learnt from all strata, so that a stratum less may turn a
// neighbour's verdict either way, but no more often for the candidate than against it.
TEST_P(LostRows, NeverHelpTheCandidate) {
  AnalysisOptions options;
  options.resamples = 200;
  int64_t held = 0;  // without lost rows, of what the loss may turn
  int64_t turned_for = 0;
  int64_t turned_against = 0;
  const auto count = [&](bool before, bool after) {
    turned_for += !before && after;
    turned_against += before && !after;
  };
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    RoutedBundle whole = candidate_bundle(seed, Lost::kNone);
    RoutedBundle lossy = candidate_bundle(seed, GetParam());
    const Findings before = *analyze(whole.made.build(), options, nullptr);
    const Findings after = *analyze(lossy.made.build(), options, nullptr);
    const size_t place = stratum_of(after, 30);
    EXPECT_NE(after.decisions.at(place).arm, "fast") << seed;
    EXPECT_EQ(after.combined.at(0).lost_strata, 1) << seed << ": it has no verdict";
    for (const Contrast& contrast : after.contrasts) {
      ASSERT_NE(*contrast.stratum, place) << seed;
      const auto same = std::ranges::find(before.contrasts, contrast.stratum, &Contrast::stratum);
      count(is_for_candidate(same->verdict), is_for_candidate(contrast.verdict));
    }
    for (const std::string& claim : claims()) {
      const SpeedClaim asked = *parse_claim(claim);
      const bool holds = answer_claim(asked, StratumFindings(after)).verdict == GateVerdict::kPass;
      const bool held_before =
          answer_claim(asked, StratumFindings(before)).verdict == GateVerdict::kPass;
      if (covers_the_loss(claim)) {
        EXPECT_FALSE(holds) << seed << ": " << claim;
        held += held_before;
      } else {
        count(held_before, holds);
      }
    }
    const Route with = whole.route();
    const Route without = lossy.route();
    EXPECT_NE(rule_at(without, 30).arm, "fast") << seed;
    held += rule_at(with, 30).arm == "fast";
    for (const int64_t length : {10, 80}) {
      count(rule_at(with, length).arm == "fast", rule_at(without, length).arm == "fast");
    }
  }
  EXPECT_GT(held, 40) << "else nothing was there to lose";
  EXPECT_GT(turned_against, 0);
  EXPECT_LE(turned_for, turned_against);
  RecordProperty("turned", fmt::format("{} for, {} against", turned_for, turned_against));
}

INSTANTIATE_TEST_SUITE_P(BestWorstAndAll, LostRows,
                         ::testing::Values(Lost::kSlowest, Lost::kFastest, Lost::kAll));

}  // namespace
}  // namespace assay
