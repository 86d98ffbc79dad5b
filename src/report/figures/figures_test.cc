// Figures that the small bundle of report_test.cc doesn't have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/figures/parts.h"

namespace assay {
namespace {

using testing::HasSubstr;
using testing::Not;

// Two arms on `strata` strata of one phase, and nothing else.
Findings findings_of(Phase phase, size_t strata) {
  Findings findings;
  findings.study.baseline = "eager";
  findings.study.arms = {"eager", "compiled"};
  for (size_t i = 0; i < strata; ++i) {
    findings.strata.push_back({phase, "m", fmt::format("s{:03}", i), 64, 1});
    findings.prompts.push_back({10, 10});
  }
  return findings;
}

Contrast contrast(size_t stratum, double ratio) {
  Contrast made;
  made.phase = Phase::kKvDecode;
  made.stratum = stratum;
  made.arm = "compiled";
  made.baseline = "eager";
  made.ratio = ratio;
  made.ratio_interval = {ratio * 0.9, ratio * 1.1};
  made.verdict = ratio < 1 ? Verdict::kFaster : Verdict::kSlower;
  return made;
}

TEST(RatioFigure, ManyStrataAreSmallPanelsOfOneScale) {
  Findings findings = findings_of(Phase::kKvDecode, 45);
  for (size_t i = 0; i < 45; ++i) findings.contrasts.push_back(contrast(i, 0.5 + 0.01 * i));
  // The last panel has short texts, and would have more room for its axis.
  for (size_t i = 36; i < 45; ++i) findings.contrasts[i].ratio_interval.reset();
  const auto figure = ratio_figure(findings, Phase::kKvDecode);
  ASSERT_TRUE(figure);
  EXPECT_EQ(figure->panels.size(), 5u);
  const auto rule_of = [](const plot::Panel& panel) {
    const size_t at = panel.body.find("class=\"r\"");
    const size_t begin = panel.body.rfind("d=\"M", at);
    return panel.body.substr(begin, panel.body.find(' ', begin + 3) - begin);
  };
  for (const plot::Panel& panel : figure->panels) {
    EXPECT_EQ(rule_of(panel), rule_of(figure->panels[0])) << "1 lies at one place";
    EXPECT_LT(panel.height, 500);
  }
}

TEST(RatioFigure, ArmsThatCannotBeComparedAreThere) {
  Findings findings = findings_of(Phase::kKvDecode, 2);
  findings.not_comparable.push_back({0, "compiled", {"lost 5 of 30 rows"}});
  EXPECT_FALSE(ratio_figure(findings, Phase::kKvDecode)) << "no ratio, no scale to draw it on";
  findings.contrasts.push_back(contrast(1, 0.5));
  const auto figure = ratio_figure(findings, Phase::kKvDecode);
  ASSERT_TRUE(figure);
  EXPECT_THAT(figure->panels[0].body, HasSubstr("lost 5 of 30 rows"));
  EXPECT_THAT(figure->panels[0].alt, HasSubstr("s000 compiled: not comparable"));
  EXPECT_FALSE(ratio_figure(findings, Phase::kPrefill));
}

TEST(RatioFigure, IntervalsOfTooFewProcessesAreWordsAndStretchNoAxis) {
  Findings findings = findings_of(Phase::kKvDecode, 2);
  findings.contrasts = {contrast(0, 0.5), contrast(1, 0.6)};
  findings.contrasts[1].ratio_interval = {0.0001, 5160};
  findings.contrasts[1].verdict = Verdict::kInconclusive;
  const auto figure = ratio_figure(findings, Phase::kKvDecode);
  ASSERT_TRUE(figure);
  EXPECT_EQ(figure->finding,
            "kv_decode: compiled takes 0.500 [0.450, 0.550] of eager's time (faster) and compiled "
            "0.600 [too few to tell] (inconclusive)");
  EXPECT_THAT(figure->panels[0].body, HasSubstr(">0.600 [too few to tell]<"));
  EXPECT_THAT(figure->panels[0].body, Not(HasSubstr("log scale")));
  EXPECT_THAT(figure->caption, HasSubstr("too few to tell"));
  findings.contrasts[1].ratio_interval = {0.001, 0.5};
  EXPECT_THAT(ratio_figure(findings, Phase::kKvDecode)->panels[0].body,
              HasSubstr("0.600 [0.00100, 0.500]"))
      << "wide, and decided";
}

TEST(GrowthFigure, FollowsTheSizeInWhichStrataDifferAlone) {
  Findings findings = findings_of(Phase::kPrefill, 3);
  EXPECT_FALSE(growth_figure(findings, Phase::kPrefill)) << "three prompts of one length";
  constexpr int64_t kTokens[] = {10, 40, 160};
  for (size_t i = 0; i < 3; ++i) {
    findings.strata[i].new_tokens = 0;
    findings.prompts[i] = {kTokens[i], kTokens[i]};
    for (const std::string& arm : findings.study.arms) {
      Latency latency;
      latency.stratum = i;
      latency.arm = arm;
      latency.mean = static_cast<double>(kTokens[i]) / (arm == "eager" ? 10 : 20);
      findings.latencies.push_back(latency);
    }
  }
  const auto figure = growth_figure(findings, Phase::kPrefill);
  ASSERT_TRUE(figure);
  EXPECT_EQ(figure->finding,
            "prefill: eager takes 16.0 times as long for 16.0 times as many prompt tokens (10 to "
            "160)");
  ASSERT_EQ(figure->panels.size(), 2u) << "time, and tokens a second";
  EXPECT_THAT(figure->panels[0].alt, HasSubstr("compiled from 0.500 to 8.00"));
  EXPECT_THAT(figure->panels[1].alt, HasSubstr("eager from 10000 to 10000"));
  EXPECT_EQ(figure->tables.at(0).rows.size(), 6u);
  findings.strata[2].model = "larger";
  EXPECT_THAT(growth_figure(findings, Phase::kPrefill)->finding, HasSubstr("(10 to 40)"));
}

TEST(DistributionFigure, AnArmThatLostRowsDoesNotLead) {
  Findings findings = findings_of(Phase::kKvDecode, 1);
  PlottedRows plotted;
  for (const auto& [arm, ms] : {std::pair{"eager", 3.0}, {"compiled", 0.5}}) {
    Latency latency;
    latency.arm = arm;
    latency.n = 20;
    latency.median = latency.p95 = ms;
    findings.latencies.push_back(latency);
    OutcomeCounts outcome;
    outcome.phase = Phase::kKvDecode;
    outcome.stratum = 0;
    outcome.arm = arm;
    outcome.attempted = 22;
    findings.outcomes.push_back(outcome);
    PlottedGroup& group = plotted.groups.emplace_back();
    group.arm = arm;
    group.cells = {"c000"};
    group.rows = group.warm = 20;
    group.ecdf = {{ms, 0.5}, {ms, 1}};
    group.slowest.emplace().latency_ms = ms;
  }
  const auto title = [&] {
    return distribution_figure(findings, plotted, Phase::kKvDecode)->finding;
  };
  EXPECT_THAT(title(), HasSubstr("compiled has the lowest median"));
  // The median of an even number of rows lies between two steps.
  findings.latencies[0].median = 2.875;
  EXPECT_THAT(distribution_figure(findings, plotted, Phase::kKvDecode)->panels[0].alt,
              HasSubstr("Medians in ms: eager 2.875, compiled 0.5000."));
  findings.outcomes[1].failed = 2;
  EXPECT_THAT(title(), HasSubstr("eager has the lowest median on 1 of 1 stratum"));
  findings.outcomes[0].failed = 1;
  EXPECT_EQ(title(), "kv_decode: no arm has warm rows and lost none");
  findings.outcomes[0].failed = 0;
  findings.study.arms = {"eager"};
  EXPECT_EQ(title(), "kv_decode: the spread of eager's rows");
}

PlottedRow plotted_row(int64_t rank, int64_t repetition, std::optional<double> ms,
                       RowMark mark = RowMark::kWarm) {
  PlottedRow row;
  row.rank = rank;
  row.place = 100 + rank;
  row.repetition = repetition;
  row.latency_ms = ms;
  row.mark = mark;
  return row;
}

TEST(OrderFigure, ItsTableHasEveryMark) {
  const Findings findings = findings_of(Phase::kKvDecode, 2);
  PlottedRows plotted;
  for (size_t stratum = 0; stratum < 2; ++stratum) {
    for (const char* arm : {"eager", "compiled"}) {
      PlottedGroup& group = plotted.groups.emplace_back();
      group.stratum = stratum;
      group.arm = arm;
      group.cells = {"c000"};
    }
  }
  plotted.groups[0].order = {plotted_row(1, -1, 9.87654, RowMark::kCold), plotted_row(2, 0, 3)};
  plotted.groups[1].order = {plotted_row(0, -1, 4, RowMark::kRecompiled),
                             plotted_row(3, 0, std::nullopt, RowMark::kLost),
                             plotted_row(4, 1, 0.25)};
  plotted.groups[1].order[1].error_class = "OutOfMemoryError";
  plotted.groups[3].order = {plotted_row(0, 0, 1)};
  plotted.groups[3].cells = {"c003", "c007"};  // of bundles that somebody merged
  plotted.groups[3].order.push_back(plotted_row(1, 0, 2));
  plotted.groups[3].order.back().cell = 1;
  const auto figure = order_figure(findings, plotted, Phase::kKvDecode);
  ASSERT_TRUE(figure && figure->points);
  EXPECT_THAT(figure->points->columns, testing::ElementsAre("repetition", "eager", "compiled"));
  ASSERT_EQ(figure->points->groups.size(), 2u);
  using testing::ElementsAre;
  EXPECT_EQ(figure->points->groups[0].title, "s000");
  EXPECT_THAT(figure->points->groups[0].rows,
              ElementsAre(ElementsAre("-1", "1: 9.877 cold", "0: 4.000 recompiled"),
                          ElementsAre("0", "2: 3.000", "3: lost (OutOfMemoryError)"),
                          ElementsAre("1", "", "4: 0.2500")));
  EXPECT_THAT(figure->points->groups[1].rows,
              ElementsAre(ElementsAre("0", "", "0: 1.000"), ElementsAre("0 (2)", "", "1: 2.000")));
}

TEST(OrderFigure, SaysHowManyRowsAreMarkedInASentence) {
  const Findings findings = findings_of(Phase::kKvDecode, 1);
  PlottedRows plotted;
  PlottedGroup& group = plotted.groups.emplace_back();
  group.arm = "eager";
  group.cells = {"c000"};
  group.rows = 9;
  group.order = {plotted_row(0, 0, 1)};
  const auto title = [&] { return order_figure(findings, plotted, Phase::kKvDecode)->finding; };
  EXPECT_THAT(title(), HasSubstr("; of 9 rows, none is marked"));
  group.marked = {{RowMark::kCold, 1}, {RowMark::kLost, 2}};
  EXPECT_THAT(title(), HasSubstr("; of 9 rows, 1 is cold and 2 lost"));
  group.marked = {{RowMark::kCold, 3}};
  EXPECT_THAT(title(), HasSubstr("; of 9 rows, 3 are cold"));
}

TEST(OrderFigure, OfLostRowsAloneThereIsNone) {
  const Findings findings = findings_of(Phase::kKvDecode, 1);
  PlottedRows plotted;
  PlottedGroup& group = plotted.groups.emplace_back();
  group.arm = "eager";
  group.rows = 2;
  group.cells = {"c000"};
  group.order.resize(2);
  for (PlottedRow& row : group.order) row.mark = RowMark::kLost;
  group.marked = {{RowMark::kLost, 2}};
  EXPECT_FALSE(order_figure(findings, plotted, Phase::kKvDecode));
  group.order[1].mark = RowMark::kWarm;
  group.order[1].latency_ms = 3;
  const auto figure = order_figure(findings, plotted, Phase::kKvDecode);
  ASSERT_TRUE(figure);
  EXPECT_THAT(figure->finding, HasSubstr("kv_decode: no drift or change of level is found"));
}

TEST(ReadShareFigure, SaysHowNearTheLimitEachArmIs) {
  Findings findings = findings_of(Phase::kKvDecode, 2);
  findings.read_shares = {{0, "eager", 4e9, 10e9},
                          {0, "compiled", 7e9, 10e9},
                          {1, "eager", 5e9, 10e9},
                          {1, "compiled", 7e9, 10e9}};
  const auto figure = read_share_figure(findings);
  ASSERT_TRUE(figure);
  EXPECT_EQ(
      figure->finding,
      "Of the memory's read bandwidth, decoding runs eager at 40 to 50 % and compiled at 70 %");
  EXPECT_THAT(figure->panels[0].body, HasSubstr("the limit, as measured"));
  EXPECT_THAT(figure->panels[0].body, HasSubstr(">70 %, 7.00 GB/s<"));
}

TEST(SplitFigure, NamesTheLengthAtWhichAnArmBreaksEven) {
  Findings findings = findings_of(Phase::kPrefill, 1);
  PhaseSplit split;
  split.arm = "compiled";
  split.at = {{1, false, 0.5, 0.6, stats::Interval{0.5, 0.7}}, {512, true, 0.1, 1.4, {}}};
  split.breaks_even = 40.4;
  findings.splits = {split};
  const auto figure = split_figure(findings);
  ASSERT_TRUE(figure);
  EXPECT_EQ(figure->finding, "By the means, compiled is slower in total from 41 new tokens on")
      << "at 40 it is still ahead";
  EXPECT_THAT(figure->panels[0].alt, HasSubstr("compiled breaks even at 41 tokens"));
  EXPECT_THAT(figure->panels[0].body, HasSubstr("512 new tokens: 1.40, extrapolated"));
  EXPECT_THAT(figure->panels[0].body, HasSubstr("compiled, 1 new token: 0.600 [0.500, 0.700]"));
  findings.splits[0].breaks_even.reset();
  EXPECT_THAT(split_figure(findings)->finding, HasSubstr("No break-even length"));
  findings.splits[0].stops_mattering = 0.2;
  EXPECT_THAT(split_figure(findings)->finding, HasSubstr("No break-even length")) << "none to lose";
  findings.splits[0].stops_mattering = 30;
  EXPECT_EQ(split_figure(findings)->finding,
            "The gain in prefill stops mattering at 30 new tokens for compiled");
  PhaseSplit other = findings.splits[0];
  other.arm = "static";
  other.stops_mattering = 7.2;
  findings.study.arms.push_back("static");
  findings.splits.push_back(other);
  EXPECT_EQ(
      split_figure(findings)->finding,
      "The gain in prefill stops mattering at 30 new tokens for compiled and 8 new tokens for "
      "static");
  findings.splits[0].breaks_even = 20;
  EXPECT_EQ(
      split_figure(findings)->finding,
      "By the means, compiled is slower in total from 20 new tokens on; the gain in prefill stops "
      "mattering at 8 new tokens for static");
}

TEST(SizeFigure, NamesTheSizeAtWhichArmsChangePlaces) {
  Findings findings = findings_of(Phase::kPrefill, 1);
  findings.size_unit = "parameters";
  SizeAnalysis size;
  size.scenario = "s000";
  size.crossovers = {{"compiled",
                      {{"small", 25e6, 1.3, stats::Interval{1.2, 1.4}}, {"large", 1e9, 0.7, {}}},
                      120e6,
                      {}}};
  findings.sizes = {size};
  const auto figure = size_figure(findings);
  ASSERT_TRUE(figure);
  EXPECT_THAT(figure->finding, HasSubstr("Along model size (parameters)"));
  EXPECT_THAT(figure->panels[0].alt, HasSubstr("compiled crosses at 120M"));
  EXPECT_THAT(figure->panels[0].body, HasSubstr("parameters, log scale"));
}

TEST(TimelineFigure, PutsArmsOnOneScale) {
  Findings findings = findings_of(Phase::kPrefill, 1);
  CellProfile eager;
  eager.arm = "eager";
  eager.kernels = 900;
  eager.launch_calls = 900;
  CellProfile compiled = eager;
  compiled.arm = "compiled";
  compiled.launch_calls = 3;
  eager.wall_ns = 8'000'000;
  eager.gpu_busy_ns = 800'000;
  compiled.wall_ns = 2'000'000;
  compiled.gpu_busy_ns = 1'500'000;
  findings.profiles = {eager, compiled};
  PlottedRows plotted;
  plotted.timelines = {
      {0, "eager", "c000-eager", 8, {{"kernels", {{0, 8, 0.8, "gemm", 900}}, 0.8, 900}}},
      {0, "compiled", "c001-compiled", 2, {{"kernels", {{0.5, 2, 1.5, "fused", 900}}, 1.5, 900}}}};
  const auto figure = timeline_figure(findings, plotted);
  ASSERT_TRUE(figure);
  ASSERT_EQ(figure->panels.size(), 1u);
  EXPECT_EQ(figure->finding,
            "On prefill s000, eager runs 900 kernels in 900 launches (busy 10 % of the traced "
            "time) and compiled runs 900 kernels in 3 launches (busy 75 %)");
  EXPECT_THAT(figure->panels[0].alt, HasSubstr("compiled: 900 kernels, busy 75 %"));
  EXPECT_THAT(figure->panels[0].body, HasSubstr("c000-eager kernels: gemm at 0"));
  EXPECT_THAT(figure->panels[0].body, HasSubstr("busy 10 % of that time"));
  EXPECT_THAT(figure->panels[0].body, HasSubstr(">900 kernels, 10 %<"));
  const Table& lanes = figure->tables.back();
  EXPECT_EQ(cell_text(lanes.rows[0][5]), "0.8000");
  EXPECT_EQ(cell_text(lanes.rows[0][7]), "10.0");
  for (CellProfile& profile : findings.profiles) {
    profile.launch_calls.reset();
    profile.gpu_busy_ns.reset();
    profile.counts = "leaf operators, and runs of compiled graphs";
  }
  plotted.timelines[0].lanes[0].name = "operators";
  plotted.timelines[1].lanes = {{"compiled graphs", {{0, 2, 2, "f", 1}}, 2, 1},
                                {"copies", {{0, 1, 1, "c", 1}}, 1, 1}};
  const auto on_cpu = timeline_figure(findings, plotted);
  ASSERT_TRUE(on_cpu);
  EXPECT_EQ(on_cpu->finding,
            "On prefill s000, eager runs 900 and compiled runs 900 (leaf operators, and runs of "
            "compiled graphs)");
  EXPECT_THAT(on_cpu->panels[0].alt,
              HasSubstr("compiled: 1 compiled graph, busy 100 %; compiled: 1 copy, busy 50 %"));
  plotted.timelines.clear();
  EXPECT_FALSE(timeline_figure(findings, plotted)) << "neither traces nor a GPU";
  findings.profiles = {eager, compiled};
  const auto busy = timeline_figure(findings, plotted);
  ASSERT_TRUE(busy) << "how long, where there are no traces that show when";
  EXPECT_THAT(busy->finding, HasSubstr("900 launches (busy 10 % of the traced time)"));
  EXPECT_THAT(busy->panels[0].body, HasSubstr(">10 % of 8.000 ms<"));
}

TEST(TimelineFigure, BarsAreAsHighAsTheShareThatIsBusy) {
  Findings findings = findings_of(Phase::kPrefill, 1);
  PlottedRows plotted;
  TimelineLane lane{"kernels", {}, 0, 0};
  for (int i = 0; i < 100; ++i) {
    lane.spans.push_back({i * 10.0, i * 10.0 + 5, i < 50 ? 5.0 : 1.25, "k", 2});
  }
  plotted.timelines = {{0, "eager", "c000-eager", 1000, {lane}}};
  const std::string body = timeline_figure(findings, plotted)->panels[0].body;
  EXPECT_THAT(body, HasSubstr("v8h-")) << "busy throughout";
  EXPECT_THAT(body, HasSubstr("v2h-")) << "a quarter of it";
  EXPECT_THAT(body, Not(HasSubstr("at 0 ms"))) << "bars without room for tips are one element";
}

TEST(CompileCostFigure, SaysWhoDidNotRunCompiled) {
  Findings findings = findings_of(Phase::kPrefill, 2);
  CompileCost cost;
  cost.arm = "compiled";
  cost.compiler_real = CompilerReal::kYes;
  cost.prepare_s = 3.25;
  cost.later_prepare_s = 0.25;
  cost.later_processes = 4;
  findings.compile_costs = {cost, cost};
  findings.compile_costs[1].stratum = 1;
  auto figure = compile_cost_figure(findings);
  ASSERT_TRUE(figure);
  EXPECT_EQ(figure->finding,
            "The first process of a compiled arm takes up to 3.25 s until its first sample "
            "(compiled on s000; its later ones 250 ms)");
  EXPECT_THAT(figure->panels[0].body, HasSubstr(">3.25 s, then 250 ms<"));
  EXPECT_THAT(figure->panels[0].body, HasSubstr("250 ms in a later process (median of 4)"));
  EXPECT_THAT(figure->panels[0].body, HasSubstr("seconds, log scale"));
  findings.compile_costs[1].compiler_real = CompilerReal::kFallback;
  EXPECT_THAT(compile_cost_figure(findings)->finding,
              HasSubstr("compiled did not run compiled everywhere"));
  findings.compile_costs[0].first_loaded = true;
  findings.compile_costs[1].prepare_s = 1;
  EXPECT_THAT(compile_cost_figure(findings)->finding, HasSubstr("takes up to 1.00 s until its"))
      << "the one that compiled";
  findings.compile_costs[1].first_loaded = true;
  EXPECT_THAT(compile_cost_figure(findings)->finding,
              HasSubstr("What compiling cost isn't known, because no process of a cell compiled: "
                        "with kernels from disk the first takes up to 3.25 s"));
  EXPECT_TRUE(compile_cost_figure(findings)->panels.empty()) << "a sentence alone";
  for (CompileCost& one : findings.compile_costs) one.prepare_s.reset();
  EXPECT_FALSE(compile_cost_figure(findings)) << "a figure that says nothing is left out";
}

TEST(LossFigure, OfNoLossSaysSo) {
  Findings findings = findings_of(Phase::kPrefill, 1);
  OutcomeCounts all;
  all.arm = "eager";
  all.attempted = 40;
  findings.outcomes = {all};
  EXPECT_EQ(loss_figure(findings)->finding, "No row was lost: all 40 attempts are ok");
  const std::vector<FigureGroup> groups = figure_groups(findings, nullptr);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_TRUE(groups[0].figures.empty());
  EXPECT_THAT(groups[0].lines, testing::ElementsAre("No row was lost: all 40 attempts are ok."));
  findings.outcomes[0].failed = 4;
  EXPECT_EQ(loss_figure(findings)->finding, "eager lost 4 of 40 rows of prefill (10.0 %)");
  EXPECT_THAT(loss_figure(findings)->panels[0].body, HasSubstr("all of prefill"));
}

TEST(TailFigure, OfNoSlowRowIsASentenceAndItsLightPartIsWhatRecompilesAdd) {
  Findings findings = findings_of(Phase::kPrefill, 1);
  Tail tail;
  tail.arm = "compiled";
  tail.n = 40;
  tail.p50 = 2;
  tail.high = 5;
  findings.tails = {tail};
  EXPECT_EQ(tail_figure(findings, Phase::kPrefill)->finding,
            "prefill: none of 40 rows takes over 3 times its arm's median");
  EXPECT_TRUE(tail_figure(findings, Phase::kPrefill)->panels.empty());
  findings.tails[0].high = 20;
  findings.tails[0].slow = 2;
  const auto legend = [&] { return tail_figure(findings, Phase::kPrefill)->legend.back().name; };
  EXPECT_EQ(legend(), "compiled");
  findings.tails[0].recompiled = findings.tails[0].slow_recompiled = 2;
  findings.tails[0].high_without = 3;
  EXPECT_EQ(legend(), "what recompiles add");
  const std::string body = tail_figure(findings, Phase::kPrefill)->panels[0].body;
  EXPECT_THAT(body, HasSubstr("class=\"b\""));
  EXPECT_THAT(body, HasSubstr("class=\"b2\""));
  EXPECT_THAT(body, HasSubstr("of the rows without a recompile, 3.000 ms"));
}

TEST(Figures, OfNothingAreNone) {
  EXPECT_TRUE(figure_groups(Findings{}, nullptr).empty());
  const PlottedRows none;
  EXPECT_TRUE(figure_groups(Findings{}, &none).empty());
}

}  // namespace
}  // namespace assay
