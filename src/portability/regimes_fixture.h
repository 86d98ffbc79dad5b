// Bundles made by code for the tests of portability: arms on two prompt lengths in several regimes.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "analysis/rows/synthetic_bundle.h"
#include "portability/portability.h"

namespace assay {

// One arm of a made regime, alike on both prompt lengths.
struct MadeArm {
  std::string name;
  std::string mode = "eager";
  std::string cache = "dynamic";
  double ms = 10;
  int64_t lose = 0;  // the last rows of each cell
  std::string model = "gpt2-25m";
};

struct MadeRegime {
  std::string folder;
  std::vector<MadeArm> arms;
  Phase phase = Phase::kPrefill;
  std::vector<std::pair<std::string, std::string>> identity = {};  // members that differ
  int64_t processes = 8;
  double noise = 0.02;
  int64_t repetitions = 40;
  std::vector<std::string> unstated = {};  // axes that the identity names as unknown
};

// `made` as a bundle. Compiled arms have evidence that they are.
inline Bundle bundle_of(const MadeRegime& made, uint64_t seed) {
  SyntheticBundle bundle(seed);
  for (const auto& [scenario, tokens] : {std::pair{"single_micro", 10}, {"single_long", 200}}) {
    for (const MadeArm& arm : made.arms) {
      SyntheticCell cell{.arm = arm.name, .phase = made.phase, .scenario = scenario};
      cell.prompt_tokens = tokens;
      cell.mean_ms = arm.ms;
      cell.noise = made.noise;
      cell.repetitions = made.repetitions;
      cell.processes = made.processes;
      cell.process_shift = made.processes > 0 ? 0.003 : 0;
      cell.model = arm.model;
      const bool compiled = arm.mode != "eager";
      const std::string id = compiled ? bundle.add_compiled(cell, "false") : bundle.add(cell);
      for (Row& row : bundle.raw().rows) {
        if (row.cell_id != id) continue;
        row.compile_mode = arm.mode;
        row.cache = arm.cache;
      }
      for (int64_t i = 0; i < arm.lose; ++i) {
        bundle.lose(id, made.repetitions - 1 - i, RowStatus::kCrash, "SIGSEGV");
      }
    }
  }
  Json& manifest = bundle.raw().manifest;
  for (const auto& [key, value] : made.identity) manifest["identity"][key] = value;
  manifest["study"]["baseline"] = made.arms.front().name;
  for (const MadeArm& arm : made.arms) {
    if (!made.unstated.empty()) manifest["identity"]["arms"][arm.name]["unknown"] = made.unstated;
  }
  manifest["study"]["arms"] = Json::array();
  for (const MadeArm& arm : made.arms) manifest["study"]["arms"].push_back(arm.name);
  bundle.raw().folder = made.folder;
  return bundle.build();
}

inline Regime regime_of(const MadeRegime& made, uint64_t seed, const RegimeOptions& options = {}) {
  auto regime = condense(bundle_of(made, seed), options);
  EXPECT_TRUE(regime) << regime.error().message;
  return *std::move(regime);
}

inline Portability judged(const std::vector<MadeRegime>& made, PortabilityRequest request = {},
                          uint64_t seed = 1) {
  std::vector<Regime> regimes;
  for (const MadeRegime& one : made) regimes.push_back(regime_of(one, seed++, request.regimes));
  auto result = judge_portability(std::move(regimes), request);
  EXPECT_TRUE(result) << result.error().message;
  return *std::move(result);
}

// Eager and compiled over a DynamicCache, with these times.
inline MadeRegime two_arm_regime(const std::string& folder, double eager_ms, double compiled_ms) {
  return {folder,
          {{"eager", "eager", "dynamic", eager_ms}, {"fast", "compiled", "dynamic", compiled_ms}}};
}

// Two regimes of eager and compiled, of which the first has 10 and 8 ms. Times and noise are the
// second one's.
struct MadePair {
  double eager_ms = 10;
  double fast_ms = 8;
  int64_t lose_a = 0;
  int64_t lose_b = 0;
  double noise = 0.02;
  std::string lacks = {};  // the bundle without the arm
};

inline std::vector<MadeRegime> regimes_of(const MadePair& pair, const std::string& axis = "") {
  std::vector<MadeRegime> both = {two_arm_regime("a", 10, 8),
                                  two_arm_regime("b", pair.eager_ms, pair.fast_ms)};
  both[0].arms[1].lose = pair.lose_a;
  both[1].arms[1].lose = pair.lose_b;
  both[1].noise = pair.noise;
  for (MadeRegime& made : both) {
    if (made.folder == pair.lacks) made.arms.pop_back();
    if (!axis.empty()) made.identity = {{axis, "of " + made.folder}};
  }
  return both;
}

inline constexpr const char* kClaimed = "fast faster than eager in prefill";
// With these seeds no rounds are alike by chance, which would widen their error.
inline JudgedClaim claimed_in(const std::vector<MadeRegime>& made) {
  PortabilityRequest request;
  request.claim = parse_claim(kClaimed).value();
  return judged(made, request, 7).claims.at(0);
}

// Verdict on the arm's conditions beside the first regime, all alike.
inline PortabilityVerdict verdict_of(const Portability& of, const std::string& arm,
                                     size_t regime = 1) {
  std::optional<PortabilityVerdict> found;
  for (const ConditionVerdict& verdict : of.verdicts) {
    if (verdict.b != regime || of.conditions[verdict.condition].arm() != arm) continue;
    if (found) {
      EXPECT_EQ(portability_verdict_name(*found), portability_verdict_name(verdict.verdict));
    }
    found = verdict.verdict;
  }
  EXPECT_TRUE(found) << arm;
  return found.value_or(PortabilityVerdict::kUndecided);
}

// Attribution of the arm's first verdict beside the first regime.
inline const Attribution& attribution_of(const Portability& of, const std::string& arm,
                                         size_t regime = 1) {
  for (size_t i = 0; i < of.verdicts.size(); ++i) {
    if (of.verdicts[i].b == regime && of.conditions[of.verdicts[i].condition].arm() == arm) {
      return of.attributions[i];
    }
  }
  ADD_FAILURE() << arm;
  return of.attributions.front();
}

inline const RobustnessIndex& index_of(const JudgedClaim& claim, const std::string& axis) {
  for (const RobustnessIndex& index : claim.indexes) {
    if (index.axis == axis) return index;
  }
  ADD_FAILURE() << axis;
  return claim.indexes.front();
}

}  // namespace assay
