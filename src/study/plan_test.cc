// Plans: two small ones by heart, and the rules that hold for any.
#include "study/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/random.h"

namespace assay {
namespace {

Study small_study(RunOrder order) {
  Study study;
  study.name = "s";
  study.models = {{.name = "m", .path = "m", .dtype = ""}};
  study.arms = {
      {.name = "a", .backend = "native", .mode = "eager", .cache = "dynamic", .dynamic = ""},
      {.name = "b/ü", .backend = "native", .mode = "eager", .cache = "static", .dynamic = ""}};
  study.phases = {Phase::kPrefill, Phase::kKvDecode};
  study.scenarios = {*builtin_scenario("single_micro")};
  study.token_lengths = {4};
  study.batch = {1};
  study.repetitions = 7;
  study.warmup = 2;
  study.order = order;
  study.baseline = "a";
  return study;
}

// "unit: cell id block first+count @order_index *" a line; * where the cell begins in a round.
std::string shown(const Plan& plan) {
  std::string text;
  for (const Unit& unit : plan.units) {
    text += fmt::format("{} {} block {} reps {}+{} at {}{}\n", unit.index, plan.cells[unit.cell].id,
                        unit.block, unit.first_repetition, unit.repetitions, unit.first_order_index,
                        unit.first_of_round ? " *" : "");
  }
  return text;
}

TEST(Plan, SequentialGoesArmByArm) {
  EXPECT_EQ(shown(make_plan(small_study(RunOrder::kSequential))),
            "0 c000-a-m-prefill-single_micro-b1 block 0 reps 0+7 at 0 *\n"
            "1 c002-a-m-kv_decode-single_micro-b1-n4 block 0 reps 0+7 at 9 *\n"
            "2 c001-b___-m-prefill-single_micro-b1 block 0 reps 0+7 at 18 *\n"
            "3 c003-b___-m-kv_decode-single_micro-b1-n4 block 0 reps 0+7 at 27 *\n");
}

// The order of arms comes from the seeded generator, whose output is fixed for all machines: a
// change here makes bundles of older versions impossible to resume.
TEST(Plan, InterleavedAlternatesArmsARepetitionABlock) {
  Study study = small_study(RunOrder::kInterleaved);
  study.repetitions = 3;
  EXPECT_EQ(shown(make_plan(study)),
            "0 c001-b___-m-prefill-single_micro-b1 block 0 reps 0+1 at 0 *\n"
            "1 c000-a-m-prefill-single_micro-b1 block 0 reps 0+1 at 3 *\n"
            "2 c001-b___-m-prefill-single_micro-b1 block 1 reps 1+1 at 6\n"
            "3 c000-a-m-prefill-single_micro-b1 block 1 reps 1+1 at 7\n"
            "4 c000-a-m-prefill-single_micro-b1 block 2 reps 2+1 at 8\n"
            "5 c001-b___-m-prefill-single_micro-b1 block 2 reps 2+1 at 9\n"
            "6 c002-a-m-kv_decode-single_micro-b1-n4 block 0 reps 0+1 at 10 *\n"
            "7 c003-b___-m-kv_decode-single_micro-b1-n4 block 0 reps 0+1 at 13 *\n"
            "8 c003-b___-m-kv_decode-single_micro-b1-n4 block 1 reps 1+1 at 16\n"
            "9 c002-a-m-kv_decode-single_micro-b1-n4 block 1 reps 1+1 at 17\n"
            "10 c002-a-m-kv_decode-single_micro-b1-n4 block 2 reps 2+1 at 18\n"
            "11 c003-b___-m-kv_decode-single_micro-b1-n4 block 2 reps 2+1 at 19\n");
}

// "round: block first_warmup+warmups first+count" of each unit of the cell.
std::string shown_cell(const Plan& plan, size_t cell) {
  std::string text;
  for (const Unit& unit : plan.units) {
    if (unit.cell != cell) continue;
    text += fmt::format("{}: block {} warm-ups {}+{} reps {}+{}{}{}\n", unit.round, unit.block,
                        unit.first_warmup, unit.warmups, unit.first_repetition, unit.repetitions,
                        unit.last_of_round ? " |" : "", unit.last_of_cell ? "|" : "");
  }
  return text;
}

TEST(Plan, ProcessesShareTheRepetitionsInRounds) {
  Study study = small_study(RunOrder::kSequential);
  study.processes = 3;
  const std::string whole =
      "0: block 0 warm-ups -6+2 reps 0+2 |\n"
      "1: block 1 warm-ups -4+2 reps 2+2 |\n"
      "2: block 2 warm-ups -2+2 reps 4+3 ||\n";
  for (size_t cell = 0; cell < 4; ++cell) EXPECT_EQ(shown_cell(make_plan(study), cell), whole);
  study.order = RunOrder::kShuffled;
  for (size_t cell = 0; cell < 4; ++cell) EXPECT_EQ(shown_cell(make_plan(study), cell), whole);
  study.order = RunOrder::kInterleaved;
  for (size_t cell = 0; cell < 4; ++cell) {
    EXPECT_EQ(shown_cell(make_plan(study), cell),
              "0: block 0 warm-ups -6+2 reps 0+1\n"
              "0: block 1 warm-ups 0+0 reps 1+1 |\n"
              "1: block 2 warm-ups -4+2 reps 2+1\n"
              "1: block 3 warm-ups 0+0 reps 3+1 |\n"
              "2: block 4 warm-ups -2+2 reps 4+1\n"
              "2: block 5 warm-ups 0+0 reps 5+1\n"
              "2: block 6 warm-ups 0+0 reps 6+1 ||\n");
  }
}

// A round beyond the study's processes has as many repetitions as they do.
TEST(Plan, StoppingByDecisionsPlansAllRoundsThatItMayNeed) {
  Study study = small_study(RunOrder::kInterleaved);
  study.repetitions = 3;
  study.processes = 2;
  study.stopping = Stopping{.max_repetitions = 7, .decide = true};
  const Plan plan = make_plan(study);
  for (size_t cell = 0; cell < 4; ++cell) {
    EXPECT_EQ(shown_cell(plan, cell),
              "0: block 0 warm-ups -8+2 reps 0+1 |\n"
              "1: block 1 warm-ups -6+2 reps 1+1\n"
              "1: block 2 warm-ups 0+0 reps 2+1 |\n"
              "2: block 3 warm-ups -4+2 reps 3+1 |\n"
              "3: block 4 warm-ups -2+2 reps 4+1\n"
              "3: block 5 warm-ups 0+0 reps 5+1 ||\n");
  }
  EXPECT_EQ(plan.rows, count_rows(study));
  const Json json = plan_to_json(study, plan);
  EXPECT_EQ(json["study"]["stopping"],
            Json({{"max_repetitions", 7}, {"decide", true}, {"margin", 0.03}}));
}

// Every arm has served every cell of the study before any process of it is replaced.
TEST(Plan, EachRoundGoesThroughTheModels) {
  for (const RunOrder order :
       {RunOrder::kSequential, RunOrder::kShuffled, RunOrder::kInterleaved}) {
    Study study = small_study(order);
    study.models.push_back({.name = "n", .path = "n", .dtype = ""});
    study.processes = 2;
    const Plan plan = make_plan(study);
    std::vector<std::pair<size_t, int64_t>> seen;  // model, round
    std::map<std::pair<size_t, int64_t>, std::set<size_t>> cells;
    for (const Unit& unit : plan.units) {
      const std::pair at{plan.cells[unit.cell].model, unit.round};
      if (seen.empty() || seen.back() != at) seen.push_back(at);
      cells[at].insert(unit.cell);
    }
    EXPECT_EQ(seen, (std::vector<std::pair<size_t, int64_t>>{{0, 0}, {1, 0}, {0, 1}, {1, 1}}));
    for (const auto& [at, served] : cells) EXPECT_EQ(served.size(), 4u) << run_order_name(order);
  }
}

TEST(Plan, EachRoundDrawsItsOwnOrder) {
  for (const RunOrder order : {RunOrder::kShuffled, RunOrder::kInterleaved}) {
    Study study = small_study(order);
    study.token_lengths = {1, 2, 3, 4, 5, 6};
    study.processes = 4;
    std::map<int64_t, std::vector<size_t>> rounds;
    for (const Unit& unit : make_plan(study).units) rounds[unit.round].push_back(unit.cell);
    std::set<std::vector<size_t>> orders;
    for (const auto& [round, cells] : rounds) orders.insert(cells);
    EXPECT_EQ(orders.size(), 4u) << run_order_name(order);
  }
}

TEST(Plan, OneProcessIsThePlanOfAStudyThatNamesNone) {
  const Study study = small_study(RunOrder::kInterleaved);
  const std::string text = to_json_text(plan_to_json(study, make_plan(study)));
  EXPECT_EQ(text.find("processes"), std::string::npos) << "hashes of plans stay";
  EXPECT_EQ(text.find("round"), std::string::npos);
  Study two = study;
  two.processes = 2;
  EXPECT_NE(to_json_text(plan_to_json(two, make_plan(two))), text);
}

Study random_study(Random& random) {
  Study study = small_study(static_cast<RunOrder>(random.below(3)));
  study.arms.resize(1 + random.below(2));
  for (size_t i = random.below(4); i > 0; --i) {
    study.arms.push_back(study.arms[0]);
    study.arms.back().name = fmt::format("arm{}", i);
  }
  for (size_t i = random.below(3); i > 0; --i) {
    study.models.push_back({.name = fmt::format("m{}", i), .path = "m", .dtype = ""});
  }
  if (random.below(2) == 0) study.phases = {Phase::kPrefill};
  if (random.below(2) == 0) study.token_lengths = {1, 8, 64};
  if (random.below(2) == 0) study.batch = {1, 4};
  if (random.below(2) == 0) study.scenarios.push_back(*builtin_scenario("stress_single"));
  study.repetitions = 1 + static_cast<int64_t>(random.below(23));
  study.warmup = static_cast<int64_t>(random.below(4));
  study.seed = random();
  const auto most = static_cast<uint64_t>(study.repetitions);
  study.processes = random.below(2) == 0 ? 1 : 1 + static_cast<int64_t>(random.below(most));
  return study;
}

void expect_valid(const Study& study, const Plan& plan) {
  ASSERT_EQ(static_cast<int64_t>(plan.cells.size()), count_cells(study));
  EXPECT_EQ(plan.rows, count_rows(study));
  std::vector<int64_t> done(plan.cells.size(), 0);  // repetitions so far
  std::vector<int64_t> warmed(plan.cells.size(), -study.processes * study.warmup);
  std::vector<int64_t> blocks(plan.cells.size(), 0);
  std::map<std::pair<size_t, int64_t>, int64_t> shares;  // of each cell in each round
  int64_t round = 0;
  std::set<std::string> ids;
  for (const Cell& cell : plan.cells) ids.insert(cell.id);
  EXPECT_EQ(ids.size(), plan.cells.size());
  int64_t next_order_index = 0;
  size_t model = 0;
  for (size_t i = 0; i < plan.units.size(); ++i) {
    const Unit& unit = plan.units[i];
    EXPECT_EQ(unit.index, static_cast<int64_t>(i));
    EXPECT_EQ(unit.first_order_index, next_order_index);
    EXPECT_EQ(unit.first_repetition, done[unit.cell]) << "repetitions in order, none left out";
    EXPECT_EQ(unit.block, blocks[unit.cell]++);
    EXPECT_GE(unit.repetitions, 1);
    int64_t& share = shares[{unit.cell, unit.round}];
    EXPECT_EQ(unit.first_of_round, share == 0);
    EXPECT_EQ(unit.warmups, unit.first_of_round ? study.warmup : 0);
    if (unit.warmups > 0) {
      EXPECT_EQ(unit.first_warmup, warmed[unit.cell]);
    }
    warmed[unit.cell] += unit.warmups;
    share += unit.repetitions;
    next_order_index += unit.warmups + unit.repetitions;
    done[unit.cell] += unit.repetitions;
    EXPECT_EQ(unit.last_of_cell, done[unit.cell] == study.repetitions);
    EXPECT_EQ(unit.last_of_cell, unit.last_of_round && unit.round + 1 == study.processes);
    EXPECT_GE(unit.round, round) << "rounds are the outermost loop";
    if (unit.round == round) {
      EXPECT_GE(plan.cells[unit.cell].model, model) << "models the next";
    }
    round = unit.round;
    model = plan.cells[unit.cell].model;
  }
  EXPECT_EQ(shares.size(), plan.cells.size() * static_cast<size_t>(study.processes));
  for (const auto& [at, share] : shares) {
    EXPECT_GE(share, study.repetitions / study.processes) << "as even as can be";
    EXPECT_LE(share, study.repetitions / study.processes + 1);
  }
  for (const int64_t next : warmed) EXPECT_EQ(next, 0) << "the last warm-up is -1";
  EXPECT_EQ(next_order_index, plan.rows);
  for (int64_t count : done) EXPECT_EQ(count, study.repetitions);
}

// Each block of a condition: every arm once, side by side, with the same repetitions, at most 5.
void expect_balanced(const Study& study, const Plan& plan) {
  const size_t arms = study.arms.size();
  ASSERT_EQ(plan.units.size() % arms, 0u);
  int64_t smallest = INT64_MAX;
  int64_t largest = 0;
  for (size_t begin = 0; begin < plan.units.size(); begin += arms) {
    const Unit& first = plan.units[begin];
    std::set<size_t> seen;
    for (size_t i = begin; i < begin + arms; ++i) {
      const Unit& unit = plan.units[i];
      seen.insert(plan.cells[unit.cell].arm);
      EXPECT_EQ(unit.block, first.block);
      EXPECT_EQ(unit.first_repetition, first.first_repetition);
      EXPECT_EQ(unit.repetitions, first.repetitions);
      EXPECT_EQ(plan.cells[unit.cell].condition, plan.cells[first.cell].condition);
    }
    EXPECT_EQ(seen.size(), arms);
    smallest = std::min(smallest, first.repetitions);
    largest = std::max(largest, first.repetitions);
  }
  EXPECT_LE(largest, 5);
  if (study.processes == 1) {
    EXPECT_LE(largest - smallest, 1);
  }
}

TEST(Plan, HoldsForRandomStudies) {
  Random random(7);
  for (int trial = 0; trial < 300; ++trial) {
    const Study study = random_study(random);
    const Plan plan = make_plan(study);
    expect_valid(study, plan);
    if (study.order == RunOrder::kInterleaved) expect_balanced(study, plan);
    if (HasFailure()) return;
  }
}

TEST(Plan, SeedDecidesTheOrderAndNothingElse) {
  for (RunOrder order : {RunOrder::kShuffled, RunOrder::kInterleaved}) {
    Study study = small_study(order);
    study.token_lengths = {1, 2, 3, 4, 5, 6};
    const std::string once = shown(make_plan(study));
    EXPECT_EQ(shown(make_plan(study)), once);
    study.seed = 43;
    EXPECT_NE(shown(make_plan(study)), once) << run_order_name(order);
  }
  Study study = small_study(RunOrder::kSequential);
  const std::string once = shown(make_plan(study));
  study.seed = 43;
  EXPECT_EQ(shown(make_plan(study)), once);
}

TEST(Plan, JsonTellsApartWhatResumeMustNotMix) {
  const Study study = small_study(RunOrder::kSequential);
  const std::string once = to_json_text(plan_to_json(study, make_plan(study)));
  EXPECT_EQ(to_json_text(plan_to_json(study, make_plan(study))), once);
  Study other = study;
  other.timeout_s = 1;
  EXPECT_NE(to_json_text(plan_to_json(other, make_plan(other))), once);
  other = study;
  other.arms[1].threads = 1;
  EXPECT_NE(to_json_text(plan_to_json(other, make_plan(other))), once);
  other = study;
  other.scenarios[0].prompt_tokens = {11};
  EXPECT_NE(to_json_text(plan_to_json(other, make_plan(other))), once);
}

TEST(Plan, LongNamesStayBelowTheLimitOfFolders) {
  Study study = small_study(RunOrder::kSequential);
  study.arms[0].name = std::string(200, 'a');
  study.arms[1].name = std::string(200, 'a') + "b";
  study.models[0].name = "../" + std::string(197, 'm');
  study.scenarios[0].name = std::string(200, '/');
  const Plan plan = make_plan(study);
  for (const Cell& cell : plan.cells) {
    EXPECT_LT(cell.id.size(), 200u);
    EXPECT_EQ(cell.id.find('/'), std::string::npos);
  }
  EXPECT_NE(plan.cells[0].id, plan.cells[1].id);
}

}  // namespace
}  // namespace assay
