// The screen keeps to its lines and columns, and counts what it leaves out; names from bundles are
// shown, not obeyed.
#include "report/judgements/portability_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/fit_text.h"
#include "base/text/text.h"
#include "portability/regimes_fixture.h"
#include "report/html/judgement_pages.h"
#include "report/judgements/portability_tables.h"
#include "report/screen/fitter.h"

namespace assay {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

void expect_fits(const std::string& screen) {
  EXPECT_LE(std::ranges::count(screen, '\n'), static_cast<long>(kScreenLines)) << screen;
  for (const std::string& line : split(screen, '\n')) {
    EXPECT_LE(display_width(line), kScreenColumns) << line;
  }
}

std::vector<MadeRegime> many_regimes(size_t count) {
  std::vector<MadeRegime> all;
  for (size_t i = 0; i < count; ++i) {
    MadeRegime made{fmt::format("a-bundle-with-a-very-long-name-{}", i), {}};
    made.identity = {{"code_generator", fmt::format("triton 3.{}", i)}};
    for (const char* model :
         {"gpt2-25m", "gpt2-100m", "qwen2.5-0.5b", "llama3.2-1b", "tiny-llama"}) {
      for (const auto& [arm, mode, ms] :
           {std::tuple{"eager-dynamic", "eager", 10.0},
            {"compiled-with-a-long-name", "compiled", i % 2 == 0 ? 8.0 : 12.0},
            {"reduce-overhead", "reduce-overhead", 7.0}}) {
        made.arms.push_back({arm, mode, "dynamic", ms, mode[0] == 'r' && i == 3 ? 35 : 0, model});
      }
    }
    all.push_back(std::move(made));
  }
  return all;
}

TEST(PortabilityScreen, KeepsToItsLinesAndCountsTheRest) {
  for (const size_t count : {2u, 4u, 9u}) {
    const Portability of = judged(many_regimes(count));
    const std::string screen = render_portability(of, OutputFormat::kTable);
    expect_fits(screen);
    EXPECT_THAT(screen, HasSubstr("FAILS"));
    EXPECT_THAT(screen, HasSubstr("x the time): "));
    if (count > 6) {
      EXPECT_THAT(screen, ContainsRegex("and [0-9]+ more rows?: -o md"));
      EXPECT_THAT(screen, ContainsRegex("What changed, and what is responsible"));
    }
    PortabilityRequest request;
    request.claim =
        parse_claim("compiled-with-a-long-name faster than eager-dynamic in prefill").value();
    expect_fits(render_portability(judged(many_regimes(count), request), OutputFormat::kTable));
  }
}

TEST(PortabilityScreen, AMatrixOfNothingIsASentence) {
  MadeRegime a = two_arm_regime("a", 10, 8);
  const Portability prefill = judged({a, two_arm_regime("b", 10, 8)});
  EXPECT_THAT(render_portability(prefill, OutputFormat::kMarkdown),
              HasSubstr("| prefill gain, decode lost |"));
  a.phase = Phase::kE2eKv;
  MadeRegime b = a;
  b.folder = "b";
  const Portability of = judged({a, b});
  const std::string markdown = render_portability(of, OutputFormat::kMarkdown);
  EXPECT_THAT(markdown,
              HasSubstr("No arm beside the baseline was measured in prefill or kv_decode."));
  EXPECT_THAT(markdown, Not(HasSubstr("| prefill gain, decode lost |")));
}

TEST(PortabilityScreen, OneAxisOfAKindIsNamedAndSeveralGoByTheirKind) {
  MadeRegime a = two_arm_regime("a", 10, 8);
  MadeRegime b = two_arm_regime("b", 10, 8);
  Portability of = judged({a, b});
  of.pairs[0].differences = {{"threads", "", "1", "2"}};
  EXPECT_EQ(cell_text(regime_table(of).rows.at(0).at(1)), "threads");
  of.pairs[0].differences = {{"code_generator", "", "triton 3.6", "triton 3.7"},
                             {"framework_build", "", "torch 2.11", "torch 2.12"},
                             {"threads", "", "1", "2"}};
  EXPECT_EQ(cell_text(regime_table(of).rows.at(0).at(1)), "stack, threads");
  of.pairs[0].differences.clear();
  EXPECT_EQ(cell_text(regime_table(of).rows.at(0).at(1)), "nothing");
}

TEST(PortabilityScreen, AnIndexNamesTheOneAxisBehindItsKind) {
  MadeRegime a = two_arm_regime("a", 10, 8);
  MadeRegime b = two_arm_regime("b", 10, 8);
  b.identity = {{"code_generator", "triton 3.7"}};
  a.identity = {{"code_generator", "triton 3.6"}};
  PortabilityRequest request;
  request.claim = parse_claim("fast faster than eager in prefill").value();
  Portability of = judged({a, b}, request);
  EXPECT_THAT(render_portability(of, OutputFormat::kTable), HasSubstr("stack (code_generator)"));
  of.pairs[0].differences.push_back({"framework_build", "", "torch 2.11", "torch 2.12"});
  EXPECT_THAT(render_portability(of, OutputFormat::kTable), Not(HasSubstr("stack (")));
}

TEST(PortabilityScreen, DecidedClaimsComeFirstAndTheIndexSaysOfWhat) {
  Portability of = judged(many_regimes(2));
  ASSERT_GT(of.claims.size(), 1u);
  for (JudgedClaim& claim : of.claims) claim.verdict = ClaimVerdict::kNotDecided;
  of.claims.back().verdict = ClaimVerdict::kPortable;
  const std::string screen = render_portability(of, OutputFormat::kTable);
  EXPECT_LT(screen.find(" portable "), screen.find(" not decided ")) << screen;
  EXPECT_THAT(screen, HasSubstr("log ratio that remains in any bundle."));
}

TEST(PortabilityScreen, ShowsNamesAndDoesNotObeyThem) {
  MadeRegime a = two_arm_regime("a", 10, 8);
  MadeRegime b = two_arm_regime("\x1b[2J|<b>", 10, 12);
  for (MadeRegime* made : {&a, &b}) made->arms[1].name = "fast|<img src=x>\x1b[31m";
  const Portability of = judged({a, b});
  for (const OutputFormat format : {OutputFormat::kTable, OutputFormat::kMarkdown}) {
    const std::string text = render_portability(of, format);
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
    if (format == OutputFormat::kMarkdown) {
      EXPECT_THAT(text, Not(HasSubstr("<img")));
    }
  }
  EXPECT_THAT(portability_page(of), Not(HasSubstr("<img")));
  const std::string map = portability_heat_map(of);
  EXPECT_THAT(map, Not(HasSubstr("<img")));
  EXPECT_THAT(map, Not(HasSubstr("\x1b")));
}

TEST(PortabilityReport, ADifferenceOfSeveralArmsIsOneLine) {
  Portability of = judged({two_arm_regime("a", 10, 8), two_arm_regime("b", 10, 8)});
  of.pairs[0].differences = {{"framework_build", "eager", "torch 2.11", "torch 2.6"},
                             {"framework_build", "compiled", "torch 2.11", "torch 2.6"},
                             {"framework_build", "", "assay 1", "assay 2"},
                             {"host", "governor", "", "performance"}};
  const std::string markdown = render_portability(of, OutputFormat::kMarkdown);
  EXPECT_THAT(markdown,
              HasSubstr("- b: framework_build of eager; compiled: torch 2.11 -> torch 2.6\n"));
  EXPECT_THAT(markdown, HasSubstr("- b: framework_build: assay 1 -> assay 2\n"));
  EXPECT_THAT(markdown, HasSubstr("- b: host of governor: nothing -> performance\n"));
}

TEST(PortabilityReport, ThatNoClaimIsDecidedIsInTheVerdict) {
  Portability of = judged({two_arm_regime("a", 10, 8), two_arm_regime("b", 10, 8)});
  of.claim_named = false;
  for (ConditionVerdict& verdict : of.verdicts) verdict.verdict = PortabilityVerdict::kUndecided;
  for (JudgedClaim& claim : of.claims) claim.verdict = ClaimVerdict::kNotDecided;
  EXPECT_THAT(render_portability(of, OutputFormat::kTable),
              HasSubstr("passes, but decides no claim: 0 of 1 claim portable"));
  of.claims[0].verdict = ClaimVerdict::kPortable;
  EXPECT_THAT(render_portability(of, OutputFormat::kTable), HasSubstr("passes: 1 of 1 claim"));
}

TEST(PortabilityReport, MeansThatDifferWithoutAVerdictAreToldLast) {
  // The compiled arm takes four times as long, and isn't faster any more than eager, which takes
  // twice as long: the larger change has no proven verdict.
  const Portability of = judged({two_arm_regime("a", 10, 5), two_arm_regime("b", 20, 20)});
  const std::string screen = render_portability(of, OutputFormat::kTable);
  const size_t shift = screen.find("- portable_latency_shift (");
  const size_t open = screen.find("- undecided (");
  ASSERT_NE(shift, std::string::npos) << screen;
  ASSERT_NE(open, std::string::npos) << screen;
  EXPECT_LT(shift, open);
  EXPECT_THAT(screen, HasSubstr("the means differ"));
  EXPECT_THAT(render_portability(of, OutputFormat::kMarkdown), HasSubstr("- undecided ("));
  EXPECT_THAT(portability_page(of),
              testing::ContainsRegex("b: fast takes 4.[0-9. ,]* *.* of its "
                                     "time in a .*, the largest change, "
                                     "though its direction against the baseline is undecided"));
}

TEST(PortabilityHeatMap, HasAFieldForEachBundleArmAndClass) {
  const Portability of = judged(many_regimes(4));
  const std::string map = portability_heat_map(of);
  EXPECT_THAT(map, HasSubstr("Prefill gain"));
  EXPECT_THAT(map, Not(HasSubstr("Rows lost in decode"))) << "none was";
  EXPECT_THAT(map, HasSubstr("tiny-llama"));
  size_t tips = 0;
  for (size_t at = map.find("<title>gain "); at != std::string::npos;
       at = map.find("<title>gain ", at + 1)) {
    ++tips;
  }
  size_t gains = 0;
  for (const HeadlineCell& cell : of.matrix) gains += cell.prefill_gain.has_value();
  EXPECT_EQ(tips, gains);
  EXPECT_GT(gains, 20u);
}

TEST(PortabilityReport, ALossTooSmallToShowHasNoSign) {
  EXPECT_EQ(gain_text(-0.0004), "0.0 %");
  EXPECT_EQ(gain_text(-0.0006), "-0.1 %");
}

}  // namespace
}  // namespace assay
