// Bundles made by code, for tests of gates: one that passes the first four, to put one defect in.
#pragma once

#include <string>
#include <vector>

#include "analysis/rows/synthetic_bundle.h"
#include "gates/facts.h"

namespace assay {

inline constexpr const char* kHonestSha = "0123456789abcdef0123456789abcdef01234567";

inline std::string hash_of(char digit) {
  return std::string(64, digit);
}

struct HonestStudy {
  uint64_t seed = 1;
  double compiled_share = 0.7;  // of the eager arm's time in kv_decode
  std::vector<Phase> phases = {Phase::kPrefill, Phase::kKvDecode};
  std::string device = "Example CPU (family 6 model 1 stepping 1) x 2";
  std::string code_sha = kHonestSha;
  double noise = 0.01;
  int64_t processes = 5;
};

// Two native arms, eager-dynamic (the baseline) and compiled-static, on two prompt lengths.
class HonestBundle {
 public:
  explicit HonestBundle(const HonestStudy& study = {}) : made(study.seed) {
    made.raw().manifest["identity"] = {
        {"device", study.device},
        {"code_generator", "gcc 12.2.0"},
        {"framework_build", fmt::format("assay 0.1.0 {} Release", study.code_sha.substr(0, 12))},
        {"code_sha", study.code_sha},
        {"arms",
         {{"eager-dynamic", {{"cache", "dynamic"}, {"compile_mode", "eager"}}},
          {"compiled-static", {{"cache", "static"}, {"compile_mode", "compiled"}}}}}};
    made.raw().manifest["study"]["baseline"] = "eager-dynamic";
    made.raw().manifest["study"]["arms"] = {"eager-dynamic", "compiled-static"};
    made.raw().environment["program_sha256"] = hash_of('a');
    for (const Phase phase : study.phases) {
      for (const auto& [scenario, tokens] : {std::pair{"single_micro", 10}, {"single_long", 200}}) {
        add_arms(study, phase, scenario, tokens);
      }
    }
  }

  // The last cell of this arm and phase.
  const std::string& cell(const std::string& arm, Phase phase) const {
    return cells_.at({arm, phase});
  }
  Json& identity() { return made.raw().manifest["identity"]; }

  BundleFacts facts(const std::optional<SpeedClaim>& claim = {},
                    std::vector<VerifyProblem> problems = {}) {
    const Bundle bundle = made.build();
    const Samples samples = group_rows(bundle, {"eager-dynamic", "compiled-static"}).value();
    return facts_of(bundle, samples, findings_of_bundle(bundle, samples, nullptr).value(),
                    std::move(problems), claim, nullptr)
        .value();
  }

  SyntheticBundle made;

 private:
  void add_arms(const HonestStudy& study, Phase phase, const char* scenario, int64_t tokens) {
    SyntheticCell cell{.arm = "eager-dynamic",
                       .phase = phase,
                       .scenario = scenario,
                       .prompt_tokens = tokens,
                       .mean_ms = 10 + 0.1 * static_cast<double>(tokens),
                       .noise = study.noise,
                       .warmup = 2,
                       .processes = study.processes};
    note(cell, made.add(cell), "dynamic");
    cell.arm = "compiled-static";
    cell.mean_ms *= phase == Phase::kPrefill ? 0.8 : study.compiled_share;
    note(cell, made.add_compiled(cell, "false"), "static");
  }

  // Evidence as a native worker gives it.
  void note(const SyntheticCell& cell, const std::string& id, const std::string& cache) {
    cells_[{cell.arm, cell.phase}] = id;
    Json& evidence = made.evidence(id);
    const bool compiled = cell.arm == "compiled-static";
    if (!compiled) evidence["compiler_real"] = "not_applicable";
    evidence["worker"] = {{"name", "assay-native"}, {"version", "0.1.0"}, {"dtype", "fp32"}};
    evidence["reported_by"] = cell.processes - 1;
    evidence["processes"] = Json::array();
    for (int64_t i = 0; i < cell.processes; ++i) evidence["processes"].push_back({{"process", i}});
    Json& reported = made.reported(id);
    reported["actual"] = {{"cache", cache}, {"device", {{"kind", "cpu"}}}};
    reported["toolchain"] = {{"compiler", "gcc"}, {"version", "12.2.0"}};
    if (compiled) {
      reported["toolchain"] = {{"name", "c++"}, {"version", "12.2.0"}, {"sha256", hash_of('b')}};
    }
    for (Row& row : made.raw().rows) {
      if (row.cell_id == id) row.cache = cache;
    }
  }

  std::map<std::pair<std::string, Phase>, std::string> cells_;
};

}  // namespace assay
