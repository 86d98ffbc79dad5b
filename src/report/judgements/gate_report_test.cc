// Gates as people see them: the screen's limits, tables for an appendix, the checklist of a report.
#include "report/judgements/gate_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/text.h"
#include "gates/honest_bundle.h"
#include "report/html/page.h"
#include "report/screen/screen.h"

namespace assay {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

BundleFacts gated_facts(const std::string& name, const HonestStudy& study = {}) {
  HonestBundle bundle(study);
  BundleFacts facts = bundle.facts();
  facts.name = name;
  return facts;
}

Judgement unproven() {
  HonestBundle bundle;
  bundle.made.evidence(bundle.cell("compiled-static", Phase::kKvDecode))["compiler_real"] =
      "label_only";
  BundleFacts facts = bundle.facts();
  facts.name = "bundles/made";
  return judge_facts({facts}, std::nullopt, "");
}

void expect_screen(const std::string& text) {
  const std::vector<std::string> lines = split(text, '\n');
  EXPECT_LE(lines.size(), kScreenLines + 1) << text;
  for (const std::string& line : lines) EXPECT_LE(line.size(), kScreenColumns) << line;
}

TEST(GateReport, TheScreenSaysWhatFailsFirst) {
  const std::string screen = render_judgement(unproven(), OutputFormat::kTable);
  expect_screen(screen);
  EXPECT_THAT(screen, StartsWith("FAIL: 1 of 5 gates fails, 1 is not decided.\n"));
  EXPECT_THAT(screen, HasSubstr("Bundle: bundles/made (synthetic, 256 rows)"));
  EXPECT_LT(screen.find("- FAIL: Artifact evidence, compiled_cells"),
            screen.find("- not decided: Cross-regime reproducibility"));
  EXPECT_LT(screen.find("- not decided:"), screen.find("- pass:"));
}

TEST(GateReport, SeveralBundlesHaveATableAndNoMoreLines) {
  std::vector<BundleFacts> facts;
  for (uint64_t i = 0; i < 30; ++i) {
    facts.push_back(gated_facts(fmt::format("bundles/{}{}", i, std::string(120, 'x')),
                                {.seed = i, .phases = {Phase::kKvDecode}}));
  }
  const std::string screen =
      render_judgement(judge_facts(facts, std::nullopt, ""), OutputFormat::kTable);
  expect_screen(screen);
  EXPECT_THAT(screen, HasSubstr("more rows: -o md"));
}

TEST(GateReport, WhatDecidesIsNotSaidTwice) {
  const std::vector<BundleFacts> one_regime = {gated_facts("one"), gated_facts("two", {.seed = 2})};
  const std::string screen =
      render_judgement(judge_facts(one_regime, std::nullopt, ""), OutputFormat::kTable);
  const std::string why = "no axis differs, so they are one regime";
  ASSERT_THAT(screen, HasSubstr(why));
  EXPECT_EQ(screen.find(why), screen.rfind(why)) << screen;
  EXPECT_THAT(render_judgement(unproven(), OutputFormat::kTable),
              testing::ContainsRegex("decided\\s+by cells/"));
}

TEST(GateReport, MarkdownHasATableOfGatesDemandsAndClaims) {
  const SpeedClaim claim =
      parse_claim("compiled-static faster than eager-dynamic in kv_decode").value();
  const Judgement judgement = judge_facts(
      {gated_facts("one"), gated_facts("two", {.seed = 2, .code_sha = std::string(40, 'f')})},
      claim, "code_sha");
  const std::string text = render_judgement(judgement, OutputFormat::kMarkdown);
  EXPECT_THAT(text,
              StartsWith("# Gates: compiled-static faster than eager-dynamic in kv_decode\n"));
  EXPECT_THAT(text, HasSubstr("Claim: compiled-static faster than eager-dynamic in kv_decode."));
  EXPECT_THAT(text, HasSubstr("| 5 Cross-regime reproducibility | pass"));
  EXPECT_THAT(text, HasSubstr("## Demands of one"));
  EXPECT_THAT(text, HasSubstr("## Demands of all bundles together"));
  EXPECT_THAT(text, testing::ContainsRegex("demand +. verdict +. looked at +. found"));
  EXPECT_THAT(text, HasSubstr("cells/CELL/evidence.json: compiler_real; fallbacks_delta of every"));
  EXPECT_THAT(text, HasSubstr("differ on code_sha alone"));
}

TEST(GateReport, APageHasTheChecklistWhereThereIsAJudgement) {
  const Findings findings = gated_facts("one").findings;
  const Judgement judgement = unproven();
  const std::string with = render_page(findings, {}, &judgement);
  EXPECT_THAT(with, HasSubstr("<section id=\"gates\">"));
  EXPECT_THAT(with, HasSubstr("<a href=\"#gates\">Gates</a>"));
  EXPECT_THAT(with, HasSubstr("compiled_cells"));
  EXPECT_LT(with.find("id=\"findings\""), with.find("id=\"gates\""));
  EXPECT_LT(with.find("id=\"gates\""), with.find("id=\"identity\""));
  EXPECT_THAT(render_page(findings, {}), Not(HasSubstr("gates")));
}

}  // namespace
}  // namespace assay
