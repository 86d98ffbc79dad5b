// Bundles of unlike identities: refused, unless the differing axes are named.
#include "analysis/compare/identity_axes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/compare/two_arms.h"

namespace assay {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(Compare, UnlikeIdentitiesAreRefusedUnlessTheAxisIsNamed) {
  TwoArms base(11);
  TwoArms cand(12);
  cand.bundle.raw().manifest["identity"]["code_sha"] = "def";
  cand.bundle.raw().environment["threads"] = 4;
  const Bundle left = base.bundle.build();
  const Bundle right = cand.bundle.build();
  const auto refused = compare(left, right, {}, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(refused.error().message,
              HasSubstr("code_sha: expected \"abc\", found \"def\", and 1 more"));
  EXPECT_FALSE(compare(left, right, {}, {"code_sha"}));
  EXPECT_FALSE(compare(left, right, {}, {"threads"}));
  const auto allowed = compare(left, right, {}, {"code_sha", "threads"});
  ASSERT_TRUE(allowed) << allowed.error().message;
  EXPECT_EQ(allowed->varied.size(), 2u);
}

TEST(Compare, EveryAxisOfTheIdentityIsSeen) {
  const std::vector<std::pair<std::string, std::function<void(Bundle&)>>> changes = {
      {"device", [](Bundle& b) { b.manifest["identity"]["device"] = "another"; }},
      {"code_generator", [](Bundle& b) { b.manifest["identity"]["code_generator"] = "gcc 99"; }},
      {"code_generator",
       [](Bundle& b) {
         for (auto& [cell, evidence] : b.evidence) {
           evidence.reported =
               worker_report({{"toolchain", {{"name", "triton"}, {"version", "3.6.0"}}}});
         }
       }},
      {"framework_build", [](Bundle& b) { b.manifest["identity"]["framework_build"] = "Debug"; }},
      {"cache", [](Bundle& b) { b.rows.back().cache = "static"; }},
      {"compile_mode", [](Bundle& b) { b.rows.back().compile_mode = "eager"; }},
      {"quantization", [](Bundle& b) { b.rows.back().quantization = "q4"; }},
      {"dtype", [](Bundle& b) { b.rows.back().dtype = "fp16"; }},
      {"code_sha", [](Bundle& b) { b.manifest["identity"]["code_sha"] = "def"; }},
      {"model", [](Bundle& b) { b.manifest["completion"]["model_sha256"]["gpt2-25m"] = "2"; }},
      {"threads", [](Bundle& b) { b.environment["threads"] = 8; }},
      {"environment_variables",
       [](Bundle& b) {
         b.environment["environment_variables"] = {{"OMP_NUM_THREADS", "1"}};
       }},
      {"libraries",
       [](Bundle& b) {
         b.environment["libraries"] = {{{"name", "libdnnl.so.2"}, {"version", "2.8"}}};
       }},
      {"host", [](Bundle& b) { b.environment["host"]["cpu"]["governor"] = "powersave"; }},
      {"triton", [](Bundle& b) { b.manifest["identity"]["triton"] = "3.6.0"; }},
  };
  for (const auto& [axis, change] : changes) {
    SyntheticBundle made(13);
    made.add_compiled({.arm = "static", .repetitions = 5}, "false");
    Bundle base = made.build();
    base.manifest["completion"]["model_sha256"]["gpt2-25m"] = "1";
    EXPECT_THAT(identity_differences(base, base), IsEmpty());
    Bundle cand = base;
    change(cand);
    if (axis == "cache" || axis == "compile_mode" || axis == "quantization" || axis == "dtype") {
      cand.rows = {cand.rows.back()};
    }
    const auto differences = identity_differences(base, cand);
    ASSERT_EQ(differences.size(), 1u) << axis;
    EXPECT_EQ(differences[0].axis, axis);
    EXPECT_EQ(parse_axis(axis, base, cand).value_or(""), axis);
  }
}

TEST(Compare, AnArmsOwnFrameworkAndDeviceAreAxes) {
  for (const char* axis : {"framework_build", "device"}) {
    TwoArms base(17);
    TwoArms cand(18);
    for (auto [study, value] : {std::pair{&base, "torch 2.6.0"}, {&cand, "torch 2.8.0"}}) {
      study->bundle.raw().manifest["identity"]["arms"]["static"][axis] = value;
      for (Row& row : study->bundle.raw().rows) row.backend = "torch";
    }
    const auto differences = identity_differences(base.bundle.build(), cand.bundle.build());
    ASSERT_EQ(differences.size(), 1u) << axis;
    EXPECT_EQ(differences[0].axis, axis);
    EXPECT_EQ(differences[0].about, "static");
    EXPECT_EQ(differences[0].cand, "torch 2.8.0");
  }
}

// Two torch bundles of one arm that differ in nothing.
Bundle torch_bundle() {
  SyntheticBundle made(21);
  const std::string cell = made.add_compiled({.arm = "compiled", .repetitions = 5}, "false");
  for (Row& row : made.raw().rows) row.backend = "torch";
  made.evidence(cell)["worker"] = {{"name", "assay-torch"}, {"version", "3"}};
  made.reported(cell)["toolchain"] = {
      {"name", "torch"},
      {"version", "2.6.0"},
      {"packages", {{"torch", "2.6.0"}, {"transformers", "4.50.0"}, {"numpy", "2.1"}}},
      {"triton", {{"version", "3.1.0"}}},
      {"cuda", {{"device", "NVIDIA H100"}}}};
  made.raw().manifest["identity"]["arms"]["compiled"] = {
      {"device", "NVIDIA H100"}, {"framework_build", "torch 2.6.0"}, {"code_generator", "triton"}};
  made.raw().environment["arms"]["compiled"]["program"] = {{"sha256", "aa"}};
  return made.build();
}

void change_toolchain(Bundle& bundle, const std::function<void(Json&)>& change) {
  for (auto& [cell, evidence] : bundle.evidence) {
    Json whole = evidence.reported->whole;
    change(whole["toolchain"]);
    evidence.reported = worker_report(whole);
  }
}

TEST(Compare, WhatAWorkerReportsAndAProgramsHashAreAxesOfTheArm) {
  const auto own = [](Bundle& b) -> Json& { return b.manifest["identity"]["arms"]["compiled"]; };
  const std::vector<std::pair<std::string, std::function<void(Bundle&)>>> changes = {
      {"device", [&](Bundle& b) { own(b)["device"] = "NVIDIA H200"; }},
      {"code_generator", [&](Bundle& b) { own(b)["code_generator"] = "triton 3.2.0"; }},
      {"framework_build", [&](Bundle& b) { own(b)["framework_build"] = "torch 2.8.0"; }},
      {"code_sha", [&](Bundle& b) { own(b)["code_sha"] = "def"; }},
      {"device",
       [](Bundle& b) {
         change_toolchain(b, [](Json& t) { t["cuda"]["device"] = "NVIDIA H200"; });
       }},
      {"code_generator",
       [](Bundle& b) { change_toolchain(b, [](Json& t) { t["triton"]["version"] = "3.2.0"; }); }},
      {"framework_build",
       [](Bundle& b) { change_toolchain(b, [](Json& t) { t["version"] = "2.8.0"; }); }},
      {"framework_build",
       [](Bundle& b) {
         change_toolchain(b, [](Json& t) { t["packages"]["transformers"] = "5.0.0"; });
       }},
      {"framework_build",
       [](Bundle& b) {
         for (auto& [cell, evidence] : b.evidence) evidence.worker->version = "4";
       }},
      {"framework_build",
       [](Bundle& b) { b.environment["arms"]["compiled"]["program"]["sha256"] = "bb"; }},
  };
  const Bundle base = torch_bundle();
  EXPECT_THAT(identity_differences(base, torch_bundle()), IsEmpty());
  for (size_t i = 0; i < changes.size(); ++i) {
    const auto& [axis, change] = changes[i];
    Bundle cand = torch_bundle();
    change(cand);
    const auto differences = identity_differences(base, cand);
    ASSERT_EQ(differences.size(), 1u) << i;
    EXPECT_EQ(differences[0].axis, axis) << i;
    EXPECT_EQ(differences[0].about, "compiled") << i;
    EXPECT_EQ(identity_differences(identity_part(base), identity_part(cand)).size(), 1u)
        << i << ": judgements keep what identities are read from";
    EXPECT_FALSE(varied_axes(base, cand, {})) << i;
    EXPECT_TRUE(varied_axes(base, cand, {axis})) << i;
  }
}

TEST(Compare, ARevisionStandsForTheProgramThatItBuilds) {
  Bundle base = torch_bundle();
  for (Row& row : base.rows) row.backend = "command";
  base.environment["arms"]["compiled"]["command"]["code_sha"] = "abc";
  Bundle cand = base;
  cand.environment["arms"]["compiled"]["command"]["code_sha"] = "def";
  cand.environment["arms"]["compiled"]["program"]["sha256"] = "bb";
  const auto differences = identity_differences(base, cand);
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].axis, "code_sha");
}

TEST(Compare, AReportThatOnlyOneBundleHasIsNoDifference) {
  const Bundle base = torch_bundle();
  Bundle kept = base;
  kept.evidence.clear();
  kept.environment.erase("arms");
  EXPECT_THAT(identity_differences(base, kept), IsEmpty());
}

TEST(Compare, TheCommitInTheFrameworkBuildIsTheCodesMatter) {
  TwoArms base(14);
  TwoArms cand(15);
  const auto set = [](TwoArms& study, const std::string& sha) {
    Json& identity = study.bundle.raw().manifest["identity"];
    identity["code_sha"] = sha;
    identity["framework_build"] = "assay 0.1.0 " + sha.substr(0, 12) + " Release";
  };
  set(base, std::string(40, 'a'));
  set(cand, std::string(40, 'b'));
  EXPECT_TRUE(compare(base.bundle.build(), cand.bundle.build(), {}, {"code_sha"}));
}

TEST(Compare, AnAxisThatIsNoneIsRefusedWithTheNearestOne) {
  TwoArms study(16);
  const Bundle bundle = study.bundle.build();
  EXPECT_EQ(parse_axis("gpu", bundle, bundle).value_or(""), "device");
  const auto axis = parse_axis("code_shaa", bundle, bundle);
  ASSERT_FALSE(axis);
  EXPECT_THAT(axis.error().message, HasSubstr("did you mean \"code_sha\"?"));
}

}  // namespace
}  // namespace assay
