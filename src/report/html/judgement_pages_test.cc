// Pages of judgements against their approved texts, and their figures' texts.
#include "report/html/judgement_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "base/files/files.h"
#include "base/files/folder.h"
#include "portability/regimes_fixture.h"
#include "report/figures/judgement_figures.h"
#include "report/html/page.h"
#include "report/judgements/portability_report.h"
#include "report/report.h"
#include "report/small_bundle.h"
#include "routing/routed_bundle.h"
#include "routing/simulate.h"

namespace assay {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

// Three bundles that differ on the stack: alike, and with the compiled arm slower than eager.
Portability flipped() {
  MadeRegime a = two_arm_regime("a", 10, 8);
  MadeRegime same = two_arm_regime("same", 10, 8);
  MadeRegime other = two_arm_regime("flipped", 10, 12);
  int version = 6;
  for (MadeRegime* made : {&a, &same, &other}) {
    made->identity = {{"code_generator", fmt::format("triton 3.{}", version++)}};
  }
  return judged({a, same, other});
}

// Compiled is faster up to 30 tokens, and slower at 80: between them the policy abstains.
Route routed(bool replayed) {
  RoutedStudy study = two_routed_arms(0.7);
  study.arms[1].ms = [](int64_t tokens) { return tokens < 50 ? 7.0 : 13.0; };
  RouteRequest request;
  if (replayed) {
    const TraceRecipe recipe{
        .requests = 60, .prompt_median = 25, .shortest = 10, .longest = 80, .new_median = 0};
    request.trace = TraceToReplay{"trace.csv", make_trace(recipe), "", 40};
  }
  return RoutedBundle(study).route(request);
}

TEST(JudgementPages, AreAsApproved) {
  expect_page_approved("portability.html", portability_page(flipped()));
  expect_page_approved("route.html", route_page(routed(true)));
}

TEST(JudgementPages, AskForNothing) {
  static const std::regex kReference(R"re((src|href|action|data|poster)\s*=\s*["']?([^"'\s>]*))re");
  const std::string html = portability_page(flipped()) + route_page(routed(true));
  for (auto at = std::sregex_iterator(html.begin(), html.end(), kReference);
       at != std::sregex_iterator(); ++at) {
    const std::string target = (*at)[2];
    EXPECT_TRUE(target.starts_with("#") || target == "data:,") << at->str();
  }
  EXPECT_THAT(html, Not(HasSubstr("url(")));
}

TEST(JudgementPages, EveryLinkOfTheirsLeadsSomewhere) {
  static const std::regex kLink("href=\"#([^\"]+)\"");
  for (const std::string& html :
       {portability_page(flipped()), route_page(routed(true)), route_page(routed(false))}) {
    size_t links = 0;
    for (auto at = std::sregex_iterator(html.begin(), html.end(), kLink);
         at != std::sregex_iterator(); ++at, ++links) {
      EXPECT_THAT(html, HasSubstr(fmt::format("<section id=\"{}\">", (*at)[1].str())));
    }
    EXPECT_GE(links, 6u);
  }
}

TEST(JudgementPages, NamesOfAnybodyAreText) {
  const std::string evil = "fast<script>alert(1)</script>\x1b[2J\"onload=x";
  MadeRegime a = two_arm_regime("a", 10, 8);
  MadeRegime b = two_arm_regime(evil, 10, 12);
  for (MadeRegime* made : {&a, &b}) made->arms[1].name = evil;
  RoutedStudy study = two_routed_arms(0.7);
  study.arms[1].name = evil;
  const std::string html =
      portability_page(judged({a, b})) + route_page(RoutedBundle(study).route());
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert"));
  EXPECT_THAT(html, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(html, Not(HasSubstr("\"onload")));
  EXPECT_THAT(html, Not(HasSubstr("\x1b")));
}

TEST(PortabilityPage, LoudlyFailsAndSaysWhatIsResponsible) {
  const std::string html = portability_page(flipped());
  EXPECT_THAT(html, HasSubstr("<p class=alert>FAILS: "));
  EXPECT_THAT(html, HasSubstr("<b class=\"word not-portable\">not portable</b>"));
  EXPECT_THAT(html, HasSubstr("code_generator alone differs. 1 run and 1 run don&#39;t show"));
  const std::string fine =
      portability_page(judged({two_arm_regime("a", 10, 8), two_arm_regime("b", 10, 8)}));
  EXPECT_THAT(fine, Not(HasSubstr("<p class=alert>")));
  EXPECT_THAT(fine, HasSubstr("No condition is shown to have changed."));
}

TEST(PortabilityFigures, StateWhatMovedAndWhetherTheControlDid) {
  const Portability of = flipped();
  EXPECT_THAT(moves_figure(of, 2)->finding,
              MatchesRegex("flipped: fast takes 1\\.[45].* of its time in a at [0-9]+ tokens of "
                           "prefill, which turns its direction round; the eager control stayed "
                           "within 5 %"));
  EXPECT_THAT(moves_figure(of, 1)->finding,
              HasSubstr("same: no condition is shown to have changed; 4 are shown to be similar, 0 "
                        "are undecided"));
  const Portability slower =
      judged({two_arm_regime("a", 10, 8), two_arm_regime("slow-machine", 15, 12)});
  EXPECT_THAT(moves_figure(slower, 1)->finding,
              HasSubstr("the eager control changed in 2 of 2 conditions"));
}

TEST(PortabilityFigures, StateWhereClaimsHoldAndWhatIsLeftOfThem) {
  const Portability of = flipped();
  EXPECT_EQ(claims_figure(of)->finding,
            "\"fast faster than eager in prefill\" holds in 2 of 3 bundles; it is turned round in "
            "flipped");
  EXPECT_THAT(
      robustness_figure(of)->finding,
      ContainsRegex("keeps -0\\.8[0-9]* \\[.*\\] of its effect in flipped \\(catastrophic on "
                    "the axis code_generator\\)"));
  const Portability fine = judged({two_arm_regime("a", 10, 8), two_arm_regime("b", 10, 8)});
  EXPECT_THAT(claims_figure(fine)->finding, HasSubstr("holds in 2 of 2 bundles"));
}

// Claims that differ only where a shortened label has its gap.
TEST(PortabilityFigures, NameEachClaimWhole) {
  MadeRegime a = two_arm_regime("a", 10, 8);
  MadeRegime b = two_arm_regime("b", 10, 8);
  for (MadeRegime* made : {&a, &b}) {
    made->arms.push_back(made->arms[1]);
    made->arms[1].name = "an-arm-of-a-long-name-with-a-static-cache";
    made->arms[2].name = "an-arm-of-a-long-name-with-a-dynamic-cache";
    made->arms[1].cache = "static";
  }
  const Portability of = judged({a, b});
  ASSERT_EQ(of.claims.size(), 2u);
  for (const auto& figure : {claims_figure(of), robustness_figure(of)}) {
    ASSERT_TRUE(figure);
    std::string shown;
    for (const plot::Panel& panel : figure->panels) shown += panel.body;
    EXPECT_THAT(shown, HasSubstr(">an-arm-of-a-long-name-with-a-static-cache faster<"));
    EXPECT_THAT(shown, HasSubstr(">an-arm-of-a-long-name-with-a-dynamic-cache faster<"));
    EXPECT_THAT(shown, HasSubstr(">than eager in prefill<"));
    EXPECT_THAT(
        figure->panels[0].alt,
        HasSubstr("an-arm-of-a-long-name-with-a-static-cache faster than eager in prefill"));
  }
}

TEST(PortabilityFigures, TheHeatMapStatesTheWidestRangeAndTheLosses) {
  MadeRegime a = two_arm_regime("a", 10, 8);
  MadeRegime b = two_arm_regime("b", 10, 12);
  EXPECT_THAT(
      headline_figure(judged({a, b})).finding,
      MatchesRegex("fast's gain in the prefill of gpt2 is \\+20 % in a and -20 % in b; decode "
                   "was not measured"));
  for (MadeRegime* made : {&a, &b}) made->phase = Phase::kKvDecode;
  b.arms[1].lose = 10;
  const Figure lost = headline_figure(judged({a, b}));
  EXPECT_THAT(lost.finding, HasSubstr("in decode fast lost 20/80 rows of gpt2 in b"));
  ASSERT_EQ(lost.panels.size(), 1u) << "no prefill was measured";
  EXPECT_THAT(lost.panels[0].alt, HasSubstr("Rows lost in decode"));
}

TEST(RouteFigures, StateTheChoiceItsEvidenceAndItsAbstentions) {
  const Route route = routed(false);
  EXPECT_EQ(policy_figure(route)->finding,
            "fast takes prefill at 10-30 tokens; 1 of 3 rules abstains");
  EXPECT_THAT(evidence_figure(route)->finding,
              MatchesRegex("fast takes 0\\.(69|70).*\\[.*\\] of the safe arm's time in prefill"));
  EXPECT_FALSE(strategies_figure(route));
  const std::string html = route_page(route);
  EXPECT_THAT(html, HasSubstr("No trace was replayed."));
  EXPECT_THAT(html, HasSubstr("30 prompt tokens take fast and 80 take eager"));
  RoutedStudy alike = two_routed_arms(1);
  const Route safe = RoutedBundle(alike).route();
  EXPECT_FALSE(evidence_figure(safe)) << "every rule takes the safe arm";
  EXPECT_THAT(policy_figure(safe)->finding, HasSubstr("No arm is chosen over the safe one"));
}

TEST(RoutePart, IsInABundlesReportWhereItsRowsAre) {
  const Route route = routed(false);
  const Findings findings = small_findings();
  const std::string html = render_page(findings, {}, nullptr, &route);
  EXPECT_THAT(html, HasSubstr("<a href=\"#routing\">Routing</a>"));
  EXPECT_LT(html.find("<section id=\"routing\">"), html.find("<section id=\"identity\">"));
  EXPECT_THAT(html, HasSubstr("Abstains: 30 prompt tokens take fast and 80 take eager"));
  EXPECT_THAT(render_page(findings, {}), Not(HasSubstr("routing")));

  const auto folder = std::filesystem::path(testing::TempDir()) / "assay-route-part";
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(disk().make_folder(folder));
  const auto written = write_report(findings, nullptr, nullptr, &route, folder);
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_THAT(*read_file(written->markdown), HasSubstr("## Routing"));
  EXPECT_THAT(*read_file(written->page), HasSubstr("<section id=\"routing\">"));
  std::filesystem::remove_all(folder);
}

TEST(RouteFigures, HaveTheArmThatServesBetweenTwoChoices) {
  RoutedStudy study;
  study.arms = {{"eager", false},
                {"static", true, [](int64_t tokens) { return tokens < 50 ? 6.0 : 9.0; }},
                {"dynamic", true, [](int64_t tokens) { return tokens < 50 ? 8.0 : 6.0; }}};
  study.lengths = {10, 80};
  const Route route = RoutedBundle(study).route();
  EXPECT_THAT(policy_figure(route)->finding, HasSubstr("no rule abstains"));
  // Static at 10 tokens, dynamic at 10 and at 80: evidence of two rules is there once.
  EXPECT_EQ(evidence_figure(route)->tables.front().rows.size(), 3u);
  const std::string html = route_page(route);
  EXPECT_THAT(html, HasSubstr("<section id=\"taken\">"));
  EXPECT_THAT(html, HasSubstr("Both ends show that dynamic is faster than eager"));
  EXPECT_THAT(html, HasSubstr("In prefill take dynamic for prompts of 11-80 tokens."));
}

TEST(RouteFigures, StateThePolicysRegretBesideTheOthers) {
  const Route route = routed(true);
  const Figure figure = *strategies_figure(route);
  EXPECT_THAT(figure.finding, MatchesRegex("The policy's regret is .* %.*; of the other strategies "
                                           ".* has the lowest, .* and .* the highest, .*"));
  EXPECT_EQ(figure.panels.size(), 4u);
  // Every strategy that can be had is in the alternative text with its figure.
  for (const SimulatedStrategy& strategy : route.simulation->strategies) {
    EXPECT_EQ(figure.panels[1].alt.contains(strategy.name + " "), strategy.unavailable.empty())
        << strategy.name;
  }
  EXPECT_THAT(route_page(route), HasSubstr("split can&#39;t be had"));
}

TEST(RoutePage, LoudlyFailsWhereNoArmIsSafe) {
  RoutedStudy study = two_routed_arms(0.7);
  RoutedBundle bundle(study);
  for (const char* arm : {"eager", "fast"}) {
    bundle.made.lose(bundle.cell(arm, 30), 2, RowStatus::kCrash, "SIGSEGV");
  }
  const std::string html = route_page(bundle.route());
  EXPECT_THAT(html, ContainsRegex("<p class=alert>.*FAILS: 1 measured stratum has no safe arm"));
  EXPECT_THAT(html, HasSubstr("<section id=\"why-it-fails\">"));
  EXPECT_THAT(html, HasSubstr("none (refused)"));
}

TEST(SideBySide, HasWhatWasJudgedBetweenTheBundles) {
  const Findings one = small_findings();
  const std::string html = render_side_by_side(
      {{"first", one}, {"second", one}},
      {{{.title = "Portability", .lines = {"- it <holds>", "- twice", "so"}, .id = "portability"}},
       {}});
  EXPECT_THAT(html, HasSubstr("<section id=\"portability\">\n<h2>Portability</h2>\n<ul>\n<li>it "
                              "&lt;holds&gt;</li>\n<li>twice</li>\n</ul>\n<p>so</p>"));
}

}  // namespace
}  // namespace assay
