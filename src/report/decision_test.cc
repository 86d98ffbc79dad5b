// Tests the decisions' words, and that no table calls an arm compiled that wasn't.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/analyze.h"
#include "analysis/rows/synthetic_bundle.h"
#include "base/text/text.h"
#include "report/report.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Findings analyzed(SyntheticBundle& bundle) {
  AnalysisOptions options;
  options.resamples = 500;
  return *analyze(bundle.build(), options, nullptr);
}

std::vector<std::string> lines(SyntheticBundle& bundle) {
  return decision_section(analyzed(bundle)).lines;
}

// Compiled takes this share of eager's time on each of four prompt lengths.
SyntheticBundle sweep(const std::vector<double>& shares) {
  SyntheticBundle bundle(31);
  const std::pair<const char*, int64_t> scenarios[] = {
      {"single_micro", 10}, {"single_short", 30}, {"single_medium", 80}, {"single_long", 200}};
  for (size_t i = 0; i < shares.size(); ++i) {
    SyntheticCell cell{.arm = "eager",
                       .scenario = scenarios[i].first,
                       .prompt_tokens = scenarios[i].second,
                       .noise = 0.01};
    bundle.add(cell);
    cell.arm = "static";
    cell.mean_ms *= shares[i];
    bundle.add_compiled(cell, "false");
  }
  return bundle;
}

TEST(Decision, MergesNeighbouringLengthsWithOneAnswer) {
  SyntheticBundle bundle = sweep({0.5, 0.6, 1.0, 1.3});
  const auto said = lines(bundle);
  ASSERT_EQ(said.size(), 4u);
  EXPECT_THAT(said[0], StartsWith("- prefill, 10 to 30 prompt tokens: use static. It takes 0.5"));
  EXPECT_THAT(said[0], HasSubstr(" of eager's time."));
  EXPECT_THAT(said[1], StartsWith("- prefill, 80 prompt tokens: no difference: "));
  EXPECT_THAT(said[1], HasSubstr("equivalent within 3 %"));
  EXPECT_THAT(said[2], StartsWith("- prefill, 200 prompt tokens: use eager. It takes 0.7"));
  EXPECT_THAT(said[2], HasSubstr(" of static's time."));
}

TEST(Decision, SaysWhyItCannotBeTold) {
  SyntheticBundle bundle(32);
  bundle.add({.arm = "eager", .noise = 0.3});
  bundle.add_compiled({.arm = "static", .noise = 0.3}, "false");
  const auto said = lines(bundle);
  EXPECT_THAT(said[0], HasSubstr("undecided between "));
  EXPECT_THAT(said[0], HasSubstr("These rows would show a difference of "));
}

TEST(Decision, ArmsThatCannotBeToldApartAreStillSaidToBeAheadOfTheBaseline) {
  SyntheticBundle bundle(37);
  bundle.raw().manifest["study"]["arms"] = {"eager", "static", "any"};
  bundle.add({.arm = "eager", .mean_ms = 30});
  bundle.add_compiled({.arm = "static", .noise = 0.1}, "false");
  bundle.add_compiled({.arm = "any", .noise = 0.1}, "true");
  const auto said = lines(bundle);
  EXPECT_THAT(said[0],
              ContainsRegex("(static and any|any and static) are faster than the baseline. "
                            "The fastest is undecided between "));
  EXPECT_THAT(said[0], HasSubstr(" Against the baseline, "));
  EXPECT_THAT(said[0], HasSubstr(" takes 0.3"));
  EXPECT_THAT(said[0], HasSubstr("of eager's time."));
}

// A beaten arm may lie between the leader and a noisier one that these rows can't place.
TEST(Decision, SaysOfEachArmThatCannotBeToldItsOwnRatioAndWhatWouldShow) {
  SyntheticBundle bundle(38);
  bundle.raw().manifest["study"]["arms"] = {"eager", "static", "any"};
  bundle.add({.arm = "eager", .mean_ms = 20, .noise = 1.2, .repetitions = 6});
  bundle.add_compiled({.arm = "static", .mean_ms = 5, .noise = 0.001, .repetitions = 6}, "false");
  bundle.add_compiled({.arm = "any", .mean_ms = 6, .noise = 0.001, .repetitions = 6}, "true");
  const Findings findings = analyzed(bundle);
  const Decision& decision = findings.decisions.at(0);
  ASSERT_EQ(decision.kind, Decision::Kind::kUndecided);
  EXPECT_EQ(decision.runner_up->arm, "any");
  ASSERT_EQ(decision.tied.size(), 1u);
  EXPECT_EQ(decision.tied[0].arm, "eager");
  EXPECT_LT(*decision.runner_up->minimum_detectable, 0.02);
  EXPECT_GT(*decision.tied[0].minimum_detectable, 0.5);
  EXPECT_THAT(decision_section(findings).lines[0],
              HasSubstr(fmt::format("undecided between static and eager. static takes {:.3f} [",
                                    decision.tied[0].ratio)));
  EXPECT_THAT(decision_section(findings).lines[0],
              HasSubstr(fmt::format("These rows would show a difference of {:.1f} %.",
                                    *decision.tied[0].minimum_detectable * 100)));
}

TEST(Decision, ASequentialRunNamesNoArm) {
  SyntheticBundle bundle = sweep({0.5, 0.6, 1.0, 1.3});
  bundle.raw().manifest["study"]["order"] = "sequential";
  const Findings findings = analyzed(bundle);
  const auto said = decision_section(findings).lines;
  ASSERT_EQ(said.size(), 2u) << "one answer for all lengths, and the footnote";
  EXPECT_THAT(said[0], StartsWith("- prefill, 10 to 200 prompt tokens: no decision, because the "
                                  "arms ran one after the other (order_confounded)"));
  EXPECT_EQ(findings_to_json(findings)["decisions"][0]["decision"], "void");
  EXPECT_TRUE(findings_to_json(findings)["decisions"][0]["arm"].is_null());
}

TEST(Decision, NamesTheArmThatP50OrTheTailWouldChoose) {
  SyntheticBundle bundle(33);
  bundle.add({.arm = "eager", .noise = 0.01, .repetitions = 120});
  const auto cell = bundle.add_compiled(
      {.arm = "static", .mean_ms = 5, .noise = 0.01, .repetitions = 120}, "false");
  for (int i = 0; i < 12; ++i) bundle.compile(cell, i * 9, 500);
  const auto said = lines(bundle);
  EXPECT_THAT(said[0], StartsWith("- prefill, 10 prompt tokens: use eager."));
  EXPECT_THAT(said[0], HasSubstr(" By p50 the choice is static, at 0.5"));
  EXPECT_THAT(said[0], Not(HasSubstr("p99"))) << "there the mean's choice leads as well";
}

TEST(Decision, AnArmThatFellBackCannotWinAndIsCalledSoInEveryTable) {
  SyntheticBundle bundle(34);
  bundle.raw().manifest["study"]["arms"] = {"eager", "static", "third"};
  bundle.add({.arm = "eager"});
  bundle.add({.arm = "third", .mean_ms = 12});
  const auto cell = bundle.add_compiled({.arm = "static", .mean_ms = 5, .warmup = 1}, "false");
  for (int i = 0; i < 30; ++i) bundle.row(cell, i).counts[Counter::kFallbacks] = 1;
  const Findings findings = analyzed(bundle);
  EXPECT_THAT(decision_section(findings).lines[0], HasSubstr("use eager"));
  EXPECT_EQ(decision_section(findings).lines[1],
            "Left out of the comparisons of prefill: static (fell back).");
  for (const ReportSection& section : report_sections(findings, Detail::kFull)) {
    for (const Table& table : section.tables) {
      for (const std::string& line : split(table.render(OutputFormat::kTable), '\n')) {
        if (line.find(" static ") == std::string::npos) continue;
        EXPECT_TRUE(line.find("(fell back)") != std::string::npos ||
                    line.find("fell back 30/30") != std::string::npos)
            << section.title << ": " << line;
      }
    }
  }
  EXPECT_THAT(render_report(findings, OutputFormat::kCsv),
              HasSubstr(",static,31,0,false,fell back,"));
}

TEST(Decision, TailsStandSideBySideWhereAnArmAskedForACompiler) {
  SyntheticBundle bundle(35);
  bundle.add({.arm = "eager", .repetitions = 120});
  const auto cell = bundle.add_compiled({.arm = "static", .repetitions = 120}, "false");
  for (int i = 0; i < 6; ++i) bundle.compile(cell, i, 500);
  const std::string text = render_report(analyzed(bundle), OutputFormat::kTable);
  EXPECT_THAT(text, HasSubstr("== Compilation and tails of prefill =="));
  EXPECT_THAT(text, HasSubstr("high: p99 in ms"));
  for (const std::string& line : split(text, '\n')) EXPECT_LE(line.size(), 120u) << line;
  SyntheticBundle eager(36);
  eager.add({.arm = "eager"});
  EXPECT_THAT(render_report(analyzed(eager), OutputFormat::kTable), Not(HasSubstr("tails of")));
}

}  // namespace
}  // namespace assay
