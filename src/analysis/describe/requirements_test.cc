// The verdict over a study's requirements: a stack that has them all, and each of them broken
// alone.
#include "analysis/describe/requirements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "analysis/rows/samples.h"
#include "analysis/rows/synthetic_bundle.h"

namespace assay {
namespace {

using testing::HasSubstr;
using Status = Criterion::Status;
using Verdict = Requirements::Verdict;

// Two arms of PyTorch on a GPU that have all that is required; `baseline` and `compiled` are their
// cells.
struct Stack {
  SyntheticBundle bundle{5};
  std::string baseline;
  std::string compiled;

  Stack() {
    bundle.raw().manifest["study"]["arms"] = {"eager", "default"};
    bundle.raw().manifest["study"]["require"] = {
        {"cuda", true},   {"triton", 3},         {"compiler_real", true}, {"graph_breaks", 0},
        {"parity", true}, {"logit_stats", true}, {"deterministic", true}};
    SyntheticCell cell{.arm = "eager", .phase = Phase::kKvDecode, .repetitions = 4};
    baseline = bundle.add(cell);
    cell.arm = "default";
    compiled = bundle.add_compiled(cell, "false");
    for (Row& row : bundle.raw().rows) {
      row.backend = "torch";
      row.output_hash = "5f2c9b0a6d1e4c37";
      if (row.cell_id == compiled) row.compile_mode = "default";
    }
    for (const std::string& id : {baseline, compiled}) {
      Json& evidence = bundle.evidence(id);
      evidence["requested"]["options"] = {{"device", "cuda"}};
      evidence["reported"]["actual"]["device"] = "cuda:0";
    }
    Json& reported = bundle.reported(compiled);
    reported["toolchain"]["triton"]["version"] = "3.6.0";
    reported["counters"] = {{"graph_breaks", 0}, {"unique_graphs", 2}};
    const Json stats = {{{"mean", 0.1}}};
    bundle.raw().parity[compiled] = {{"passed", true},
                                     {"compared_tokens", 32},
                                     {"logit_stats", {{"eager", stats}, {"default", stats}}}};
  }

  std::optional<Requirements> judge() {
    const Bundle built = bundle.build();
    const auto samples = group_rows(built, {"eager", "default"});
    EXPECT_TRUE(samples);
    return judge_requirements(built, *samples);
  }
};

const Criterion& named(const Requirements& requirements, const std::string& name) {
  return *std::ranges::find(requirements.criteria, name, &Criterion::name);
}

TEST(Requirements, AStackThatHasThemAllPasses) {
  const auto found = Stack().judge();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->criteria.size(), 7u);
  for (const Criterion& one : found->criteria) EXPECT_EQ(one.status, Status::kMet) << one.reason;
  EXPECT_EQ(found->verdict, Verdict::kPassed);
  EXPECT_EQ(requirements_verdict_name(found->verdict), "passed");
}

TEST(Requirements, WithoutAnyThereIsNoVerdict) {
  Stack stack;
  stack.bundle.raw().manifest["study"].erase("require");
  EXPECT_FALSE(stack.judge());
}

TEST(Requirements, AnUnfinishedRunPassesNothing) {
  Stack stack;
  stack.bundle.raw().complete = false;
  EXPECT_EQ(stack.judge()->verdict, Verdict::kNotDecided);
}

struct Broken {
  std::string criterion;
  std::string reason;
  std::function<void(Stack&)> defect;
};

class OneRequirement : public testing::TestWithParam<Broken> {};

// The defect fails its own criterion and no other one.
TEST_P(OneRequirement, Fails) {
  Stack stack;
  GetParam().defect(stack);
  const auto found = stack.judge();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->verdict, Verdict::kFailed);
  for (const Criterion& one : found->criteria) {
    EXPECT_EQ(one.status == Status::kNotMet, one.name == GetParam().criterion)
        << one.name << ": " << one.reason;
  }
  EXPECT_THAT(named(*found, GetParam().criterion).reason, HasSubstr(GetParam().reason));
}

INSTANTIATE_TEST_SUITE_P(
    Requirements, OneRequirement,
    testing::Values(
        Broken{"cuda", "computed on cpu",
               [](Stack& s) { s.bundle.reported(s.baseline)["actual"]["device"] = "cpu"; }},
        Broken{"cuda", "an unknown device", [](Stack& s) { s.bundle.drop_evidence(s.baseline); }},
        Broken{"triton", "found Triton 2.3.1",
               [](Stack& s) {
                 s.bundle.reported(s.compiled)["toolchain"]["triton"]["version"] = "2.3.1";
               }},
        Broken{"triton", "no Triton",
               [](Stack& s) { s.bundle.reported(s.compiled)["toolchain"].erase("triton"); }},
        Broken{"compiler_real", "label-only",
               [](Stack& s) { s.bundle.evidence(s.compiled)["compiler_real"] = "label_only"; }},
        Broken{"compiler_real", "partly eager",
               [](Stack& s) { s.bundle.row(s.compiled, 2).counts[Counter::kFallbacks] = 1; }},
        Broken{
            "graph_breaks", "found 2: a call of print",
            [](Stack& s) {
              s.bundle.reported(s.compiled)["counters"]["graph_breaks"] = 2;
              s.bundle.reported(s.compiled)["graph_breaks"] = {{{"text", "a call of print\nat"}}};
            }},
        Broken{"graph_breaks", "found 3",
               [](Stack& s) {
                 s.bundle.evidence(s.compiled)["processes"] = {
                     {{"process", 0}, {"counters", {{"graph_breaks", 3}}}},
                     {{"process", 1}, {"counters", {{"graph_breaks", 0}}}}};
               }},
        Broken{"graph_breaks", "nobody counted",
               [](Stack& s) { s.bundle.reported(s.compiled)["counters"].erase("graph_breaks"); }},
        Broken{"parity", "tokens differ",
               [](Stack& s) { s.bundle.raw().parity[s.compiled]["passed"] = false; }},
        Broken{"parity", "not compared",
               [](Stack& s) { s.bundle.raw().parity[s.compiled]["passed"] = nullptr; }},
        Broken{"parity", "not compared with the baseline's: lost",
               [](Stack& s) {
                 Json& parity = s.bundle.raw().parity[s.compiled];
                 parity["passed"] = nullptr;
                 parity["error"]["message"] = "lost";
               }},
        Broken{"parity", "no token",
               [](Stack& s) { s.bundle.raw().parity[s.compiled]["compared_tokens"] = 0; }},
        Broken{"logit_stats", "lack default",
               [](Stack& s) { s.bundle.raw().parity[s.compiled]["logit_stats"].erase("default"); }},
        Broken{"deterministic", "2 different outputs",
               [](Stack& s) { s.bundle.row(s.baseline, 3).output_hash = "0000000000000000"; }},
        Broken{"deterministic", "1 of 4 rows is lost",
               [](Stack& s) { s.bundle.lose(s.baseline, 1, RowStatus::kCrash, "SIGSEGV"); }},
        Broken{"deterministic", "one row only",
               [](Stack& s) { s.bundle.row(s.baseline, 0).prompt_id = "1"; }}));

TEST(Requirements, OnTheProcessorAGpusAreNotApplicableAndNeverPassed) {
  Stack stack;
  for (const std::string& id : {stack.baseline, stack.compiled}) {
    stack.bundle.evidence(id)["requested"]["options"]["device"] = "cpu";
    stack.bundle.reported(id)["actual"]["device"] = "cpu";
  }
  const auto found = stack.judge();
  ASSERT_TRUE(found);
  for (const Criterion& one : found->criteria) {
    const bool of_gpu = one.name == "cuda" || one.name == "triton";
    EXPECT_EQ(one.status, of_gpu ? Status::kNotApplicable : Status::kMet) << one.name;
    EXPECT_FALSE(one.reason.empty());
  }
  EXPECT_EQ(found->verdict, Verdict::kNotDecided);
}

TEST(Requirements, AnArmThatCouldNotRunFailsAllThatAppliesToIt) {
  Stack stack;
  for (int i = 0; i < 4; ++i) {
    for (const std::string& id : {stack.baseline, stack.compiled}) {
      stack.bundle.lose(id, i, RowStatus::kError, "no_cuda");
    }
  }
  for (const std::string& id : {stack.baseline, stack.compiled}) {
    stack.bundle.evidence(id)["reported"] = nullptr;
  }
  stack.bundle.raw().parity.clear();
  const auto found = stack.judge();
  ASSERT_TRUE(found);
  for (const Criterion& one : found->criteria) EXPECT_EQ(one.status, Status::kNotMet) << one.name;
  EXPECT_THAT(named(*found, "cuda").reason, HasSubstr("no row is ok (no_cuda)"));
  EXPECT_EQ(found->verdict, Verdict::kFailed);
}

}  // namespace
}  // namespace assay
