// Which arms the analysis pairs, of the rows that each order of a study leaves: plans to findings.
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/analyze.h"
#include "stats/distributions/standard_normal.h"
#include "study/plan.h"

namespace assay {
namespace {

struct OrderCase {
  RunOrder order = RunOrder::kInterleaved;
  int64_t processes = 1;
  int64_t repetitions = 10;
  BlockState state = BlockState::kWhole;
  ContrastUnit unit = ContrastUnit::kRepetitions;
};

Study study_of(const OrderCase& of) {
  Study study;
  study.name = "s";
  study.models = {{.name = "m", .path = "m", .dtype = ""}, {.name = "n", .path = "n", .dtype = ""}};
  for (const char* name : {"a", "b", "c"}) {
    study.arms.push_back(
        {.name = name, .backend = "native", .mode = "eager", .cache = "dynamic", .dynamic = ""});
  }
  study.phases = {Phase::kPrefill, Phase::kKvDecode};
  study.scenarios = {*builtin_scenario("single_micro"), *builtin_scenario("single_short")};
  study.token_lengths = {4};
  study.batch = {1};
  study.repetitions = of.repetitions;
  study.processes = of.processes;
  study.warmup = 2;
  study.order = of.order;
  study.baseline = "a";
  return study;
}

// A bundle as a run writes it: columns that say where and when a row was measured follow the plan,
// and a latency its round, which all arms share, and chance.
Bundle run(const Study& study) {
  const Plan plan = make_plan(study);
  Random random(1, 2);
  Bundle bundle;
  bundle.complete = true;
  bundle.manifest["study"] = {{"name", "s"},
                              {"baseline", "a"},
                              {"order", run_order_name(study.order)},
                              {"arms", {"a", "b", "c"}}};
  for (const Unit& unit : plan.units) {
    const Cell& cell = plan.cells[unit.cell];
    for (int64_t i = 0; i < unit.rows(); ++i) {
      Row row;
      row.cell_id = cell.id;
      row.arm = study.arms[cell.arm].name;
      row.model = study.models[cell.model].name;
      row.phase = cell.phase;
      row.scenario = study.scenarios[cell.scenario].name;
      row.new_tokens = cell.new_tokens;
      row.prompt_tokens = row.padded_tokens = 10 + static_cast<int64_t>(cell.scenario);
      row.cold = i < unit.warmups;
      row.repetition = row.cold ? unit.first_warmup + i : unit.first_repetition + i - unit.warmups;
      row.block = unit.block;
      row.process = unit.round;
      row.order_index = unit.first_order_index + i;
      row.tokens = std::max<int64_t>(1, row.new_tokens);
      row.latency_ms = 10 * (1 + 0.2 * static_cast<double>(unit.round)) *
                       std::exp(0.02 * stats::standard_normal(random));
      bundle.rows.push_back(std::move(row));
    }
  }
  return bundle;
}

class OrderPairs : public testing::TestWithParam<OrderCase> {};

TEST_P(OrderPairs, ArmsArePairedWhereBlocksHoldOneRepetitionOfEach) {
  const OrderCase& of = GetParam();
  AnalysisOptions options;
  options.resamples = 200;
  const auto findings = analyze(run(study_of(of)), options, nullptr);
  ASSERT_TRUE(findings) << findings.error().message;
  ASSERT_EQ(findings->blocks.size(), 8u) << "two models, phases and prompts";
  for (const StratumBlocks& blocks : findings->blocks) {
    EXPECT_EQ(blocks.state, of.state);
    EXPECT_EQ(blocks.blocks, blocks.paired() ? of.repetitions : of.processes);
    EXPECT_EQ(blocks.whole, blocks.paired() ? of.repetitions : 0);
  }
  ASSERT_EQ(findings->contrasts.size(), 16u);
  for (const Contrast& contrast : findings->contrasts) {
    EXPECT_EQ(contrast.paired, of.state == BlockState::kWhole);
    EXPECT_EQ(contrast.unit, of.unit);
    EXPECT_EQ(contrast.left_out, 0);
    ASSERT_TRUE(contrast.test);
    // Pairs have one error; Welch's test has both arms' degrees of freedom. Where strata share what
    // they know of processes, both have more.
    const auto units = static_cast<double>(contrast.units_arm);
    if (!contrast.shared_df) {
      EXPECT_EQ(contrast.test->df <= units - 1, contrast.paired);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Of, OrderPairs,
    testing::Values(
        OrderCase{}, OrderCase{.processes = 5, .unit = ContrastUnit::kProcesses},
        OrderCase{.order = RunOrder::kShuffled, .processes = 10, .unit = ContrastUnit::kProcesses},
        OrderCase{
            .order = RunOrder::kSequential, .processes = 10, .unit = ContrastUnit::kProcesses},
        OrderCase{.order = RunOrder::kShuffled,
                  .state = BlockState::kSeveral,
                  .unit = ContrastUnit::kRows},
        OrderCase{.order = RunOrder::kShuffled,
                  .processes = 5,
                  .state = BlockState::kSeveral,
                  .unit = ContrastUnit::kProcesses},
        OrderCase{.order = RunOrder::kSequential,
                  .state = BlockState::kSeveral,
                  .unit = ContrastUnit::kRows}),
    [](const auto& one) {
      return fmt::format("{}Of{}Processes", run_order_name(one.param.order), one.param.processes);
    });

}  // namespace
}  // namespace assay
