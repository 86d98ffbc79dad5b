// Tests which axis is responsible for a change, and if the control held.
#include "portability/attribution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "portability/regimes_fixture.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

MadeRegime with_identity(MadeRegime made,
                         std::vector<std::pair<std::string, std::string>> identity) {
  made.identity = std::move(identity);
  return made;
}

TEST(PortabilityAttribution, OneAxisIsResponsible) {
  const MadeRegime a = two_arm_regime("a", 10, 8);
  const MadeRegime b =
      with_identity(two_arm_regime("b", 10, 13), {{"code_generator", "triton 3.4.0"}});
  const Portability of = judged({a, b});
  const Attribution& found = attribution_of(of, "fast");
  EXPECT_EQ(found.basis, AttributionBasis::kOneAxis);
  EXPECT_EQ(found.suspect, "code_generator");
  EXPECT_EQ(found.control, ControlState::kHeld);
  EXPECT_TRUE(found.about_compiler);
  // The same flip between two runs of one regime is nobody's but theirs.
  const Portability reruns = judged({a, two_arm_regime("b", 10, 13)});
  EXPECT_EQ(attribution_of(reruns, "fast").basis, AttributionBasis::kNoAxis);
  EXPECT_FALSE(attribution_of(reruns, "fast").about_compiler);
}

// A run of one side that is slow for a reason of its own looks like the axis' doing.
TEST(PortabilityAttribution, OneRunOfEachSideShowsNoResponsibility) {
  const MadeRegime a = two_arm_regime("a", 10, 8);
  const auto other = [](const char* folder, double ms) {
    return with_identity(two_arm_regime(folder, 10, ms), {{"code_sha", "def"}});
  };
  const Portability alone = judged({a, other("b", 9)});
  EXPECT_EQ(attribution_of(alone, "fast").suspect, "code_sha");
  EXPECT_FALSE(attribution_of(alone, "fast").is_responsible);
  // Nor if a rerun of the first shifted as much.
  const Portability shifted =
      judged({a, other("b", 9), two_arm_regime("a2", 10, 9), other("b2", 8)});
  EXPECT_FALSE(attribution_of(shifted, "fast").is_responsible);
  EXPECT_THAT(attribution_of(shifted, "fast").text, HasSubstr("2 runs and 2 runs don't show"));
}

TEST(PortabilityAttribution, SeveralRunsOfEachSideShowIt) {
  std::vector<MadeRegime> made;
  for (const char* folder : {"a1", "a2", "a3"}) made.push_back(two_arm_regime(folder, 10, 8));
  for (const char* folder : {"b1", "b2", "b3"}) {
    made.push_back(with_identity(two_arm_regime(folder, 10, 9), {{"code_sha", "def"}}));
  }
  const Portability of = judged(made);
  for (size_t i = 0; i < of.verdicts.size(); ++i) {
    const Attribution& found = of.attributions[i];
    if (of.conditions[of.verdicts[i].condition].arm() != "fast" || of.verdicts[i].b < 3) continue;
    EXPECT_TRUE(found.is_responsible) << found.text;
    EXPECT_THAT(found.text, HasSubstr("code_sha alone differs, and is responsible: 3 runs and 3"));
  }
}

TEST(PortabilityAttribution, AxesOfOneStackChangeTogether) {
  const Portability of =
      judged({two_arm_regime("a", 10, 8),
              with_identity(two_arm_regime("b", 10, 13), {{"code_generator", "triton 3.4.0"},
                                                          {"framework_build", "torch 2.8.0"}})});
  const Attribution& found = attribution_of(of, "fast");
  EXPECT_EQ(found.basis, AttributionBasis::kOneKind);
  EXPECT_EQ(found.suspect, "stack");
  EXPECT_THAT(found.axes, ElementsAre("code_generator", "framework_build"));
}

TEST(PortabilityAttribution, SeveralAxesAreAConfoundThatIsNamed) {
  const MadeRegime a = two_arm_regime("a", 10, 8);
  const MadeRegime both = with_identity(two_arm_regime("both", 10, 13),
                                        {{"code_generator", "triton 3.4.0"}, {"device", "H100"}});
  const Portability confounded = judged({a, both});
  const Attribution& found = attribution_of(confounded, "fast");
  EXPECT_EQ(found.basis, AttributionBasis::kConfounded);
  EXPECT_THAT(found.text, HasSubstr("code_generator"));
  EXPECT_THAT(found.text, HasSubstr("device"));
  EXPECT_FALSE(found.about_compiler);
  // A third bundle, on the other device with the first one's stack, tells them apart.
  const MadeRegime device = with_identity(two_arm_regime("device", 10, 8), {{"device", "H100"}});
  const Portability told = judged({a, both, device});
  EXPECT_EQ(attribution_of(told, "fast").basis, AttributionBasis::kCleanPair);
  EXPECT_EQ(attribution_of(told, "fast").suspect, "stack");
  // More runs of the two that differ in both tell nothing of which it is.
  std::vector<MadeRegime> more = {a, both, device};
  for (const char* again : {"a2", "a3"}) more.push_back(two_arm_regime(again, 10, 8));
  for (const char* again : {"both2", "both3"}) {
    more.push_back(with_identity(two_arm_regime(again, 10, 13), both.identity));
  }
  const Portability runs = judged(more);
  EXPECT_EQ(attribution_of(runs, "fast").basis, AttributionBasis::kCleanPair);
  EXPECT_FALSE(attribution_of(runs, "fast").is_responsible);
}

TEST(PortabilityAttribution, AControlThatMovedTooIsSaid) {
  const MadeRegime a = two_arm_regime("a", 10, 8);
  const Portability of =
      judged({a, with_identity(two_arm_regime("b", 20, 16), {{"code_generator", "another"}})});
  const Attribution& found = attribution_of(of, "fast");
  EXPECT_EQ(found.control, ControlState::kMoved);
  EXPECT_FALSE(found.about_compiler);
  EXPECT_THAT(found.text, HasSubstr("no evidence about the compiler"));
  const Portability held =
      judged({a, with_identity(two_arm_regime("b", 10, 7), {{"code_generator", "another"}})});
  EXPECT_EQ(attribution_of(held, "fast").control, ControlState::kHeld);
  EXPECT_TRUE(attribution_of(held, "fast").about_compiler);
}

TEST(PortabilityAttribution, TheControlIsTheEagerArmOverTheSameCache) {
  MadeRegime a{"a",
               {{"eager-dynamic", "eager", "dynamic", 10},
                {"eager-static", "eager", "static", 11},
                {"fast-static", "compiled", "static", 7}}};
  MadeRegime b = a;
  b.folder = "b";
  b.arms[1].ms = 15;  // moves, the baseline doesn't
  b.arms[2].ms = 9;
  const Portability of = judged({a, b});
  EXPECT_EQ(attribution_of(of, "fast-static").control_arm, "eager-static");
  EXPECT_EQ(attribution_of(of, "fast-static").control, ControlState::kMoved);
}

TEST(PortabilityAttribution, AnEagerArmThatAThirdBundleAloneMeasuredIsNoControl) {
  const MadeRegime a{"a",
                     {{"eager-dynamic", "eager", "dynamic", 10}, {"fast", "compiled", "static", 7}},
                     Phase::kPrefill,
                     {{"code_generator", "one"}}};
  MadeRegime b = a;
  b.folder = "b";
  b.arms[1].ms = 9;
  b.identity = {{"code_generator", "two"}};
  MadeRegime c = b;
  c.folder = "c";
  c.arms.push_back({"eager-static", "eager", "static", 10});  // over the cache of the compiled arm
  const Portability of = judged({a, b, c});
  for (const size_t regime : {1, 2}) {
    EXPECT_EQ(attribution_of(of, "fast", regime).control_arm, "eager-dynamic");
    EXPECT_EQ(attribution_of(of, "fast", regime).control, ControlState::kHeld);
    EXPECT_TRUE(attribution_of(of, "fast", regime).about_compiler);
  }
}

TEST(PortabilityAttribution, WithoutAnEagerArmOfItsQuantisationThereIsNoControl) {
  // The third bundle has one; the other two say nothing of it.
  const auto quantised = [](const char* folder, double fast_ms, bool with_eager) {
    MadeRegime made{folder,
                    {{"eager", "eager", "dynamic", 10}, {"fast", "compiled", "dynamic", fast_ms}}};
    if (with_eager) made.arms.push_back({"eager-q8", "eager", "dynamic", 10});
    Bundle bundle = bundle_of(made, static_cast<uint64_t>(folder[0]));
    for (Row& row : bundle.rows) {
      if (row.arm != "eager") row.quantization = "q8";
    }
    bundle.manifest["identity"]["code_generator"] = folder;
    return condense(bundle, {}).value();
  };
  std::vector<Regime> regimes = {quantised("a", 8, false), quantised("b", 7, false),
                                 quantised("c", 7, true)};
  const Portability of = judge_portability(std::move(regimes), {}).value();
  const Attribution& beside = attribution_of(of, "fast", 1);
  EXPECT_EQ(verdict_of(of, "fast", 1), PortabilityVerdict::kShift);
  EXPECT_EQ(beside.control, ControlState::kNone);
  EXPECT_EQ(beside.control_arm, "");
  EXPECT_EQ(
      beside.text,
      "code_generator alone differs. 1 run and 1 run don't show that the change is its doing, and "
      "not what differs between runs of one program; three of each in one command may.");
  EXPECT_FALSE(beside.about_compiler) << "nothing shows that the machine kept its speed";
  EXPECT_EQ(attribution_of(of, "fast", 2).control, ControlState::kUnknown) << "one side of it";
  EXPECT_EQ(attribution_of(of, "fast", 2).control_arm, "eager-q8");
}

// A regime like an imported bundle, whose file doesn't state an axis of these arms.
MadeRegime with_unstated(MadeRegime made, std::vector<std::string> axes) {
  made.unstated = std::move(axes);
  return made;
}

TEST(PortabilityAttribution, AnAxisThatNobodyStatesMayBeResponsible) {
  const MadeRegime a = two_arm_regime("a", 10, 8);
  const MadeRegime b =
      with_identity(two_arm_regime("b", 10, 13), {{"code_generator", "triton 3.4.0"}});
  EXPECT_EQ(attribution_of(judged({a, b}), "fast").basis, AttributionBasis::kOneAxis);
  for (const bool first : {true, false}) {
    const Portability of = judged({first ? with_unstated(a, {"device", "code_sha"}) : a,
                                   first ? b : with_unstated(b, {"device", "code_sha"})});
    const Attribution& found = attribution_of(of, "fast");
    EXPECT_EQ(found.basis, AttributionBasis::kUnstated);
    EXPECT_EQ(found.suspect, "");
    EXPECT_FALSE(found.about_compiler);
    EXPECT_THAT(found.axes, ElementsAre("code_generator"));
    EXPECT_THAT(found.unstated, ElementsAre("device", "code_sha"));
    EXPECT_THAT(found.text, HasSubstr("don't both state device, code_sha"));
  }
  // Two that state the same aren't known to be runs of one regime either.
  const Portability alike = judged({with_unstated(a, {"device"}), two_arm_regime("b", 10, 13)});
  EXPECT_EQ(attribution_of(alike, "fast").basis, AttributionBasis::kUnstated);
  EXPECT_THAT(attribution_of(alike, "fast").text, HasSubstr("agree in what they state"));
  // Nor does such a bundle tell axes apart.
  const MadeRegime both = with_identity(two_arm_regime("both", 10, 13),
                                        {{"code_generator", "triton 3.4.0"}, {"device", "H100"}});
  const MadeRegime device = with_identity(two_arm_regime("device", 10, 8), {{"device", "H100"}});
  const Portability told = judged({a, both, with_unstated(device, {"code_sha"})});
  EXPECT_EQ(attribution_of(told, "fast").basis, AttributionBasis::kConfounded);
}

TEST(PortabilityAttribution, AClaimIsPortableOnlyOverRegimesThatStateTheirAxes) {
  const MadeRegime a = two_arm_regime("a", 10, 8);
  const MadeRegime b = with_identity(two_arm_regime("b", 10, 8), {{"code_generator", "another"}});
  EXPECT_EQ(claimed_in({a, b}).verdict, ClaimVerdict::kPortable);
  EXPECT_EQ(index_of(claimed_in({a, b}), "stack").band, RobustnessBand::kRobust);
  const JudgedClaim open = claimed_in({a, with_unstated(b, {"device"})});
  EXPECT_EQ(open.verdict, ClaimVerdict::kNotDecided);
  EXPECT_THAT(open.reason, HasSubstr("(or are known to: device isn't stated)"));
  EXPECT_THAT(open.regimes[1].unstated, ElementsAre("device"));
  EXPECT_EQ(index_of(open, "stack").band, RobustnessBand::kInvalid) << "another axis may differ";
  EXPECT_EQ(index_of(open, "all").band, RobustnessBand::kRobust);
  // An axis of the same kind doesn't matter to the index.
  EXPECT_EQ(index_of(claimed_in({a, with_unstated(b, {"framework_build"})}), "stack").band,
            RobustnessBand::kRobust);
}

TEST(PortabilityAttribution, AnotherArmsFrameworkIsNotThisOnes) {
  Bundle a = bundle_of(two_arm_regime("a", 10, 8), 1);
  Bundle b = bundle_of(two_arm_regime("b", 10, 13), 2);
  for (auto [bundle, version] : {std::pair{&a, "torch 2.6"}, {&b, "torch 2.8"}}) {
    for (Row& row : bundle->rows) row.backend = "torch";
    bundle->manifest["identity"]["arms"]["other"]["framework_build"] = version;
    bundle->manifest["identity"]["arms"]["fast"]["framework_build"] = version;
  }
  std::vector<Regime> regimes = {condense(a, {}).value(), condense(b, {}).value()};
  const auto of = judge_portability(std::move(regimes), {});
  ASSERT_TRUE(of);
  EXPECT_EQ(attribution_of(*of, "fast").suspect, "framework_build");
  EXPECT_EQ(attribution_of(*of, "eager").basis, AttributionBasis::kNoAxis);
}

TEST(PortabilityAttribution, AWorkersReportAndAProgramsHashFollowTheArmsOtherName) {
  const auto made = [](const char* folder, double ms, const char* version) {
    MadeRegime regime = two_arm_regime(folder, 10, ms);
    regime.arms[1].name = fmt::format("fast-of-{}", folder);  // matched by its configuration
    Bundle bundle = bundle_of(regime, folder[0]);
    for (Row& row : bundle.rows) row.backend = "command";
    bundle.environment["arms"][regime.arms[1].name]["program"]["sha256"] = version;
    return bundle;
  };
  std::vector<Regime> regimes = {condense(made("a", 8, "one"), {}).value(),
                                 condense(made("b", 13, "two"), {}).value()};
  const auto of = judge_portability(std::move(regimes), {});
  ASSERT_TRUE(of);
  EXPECT_EQ(attribution_of(*of, "fast-of-a").suspect, "framework_build");
  EXPECT_EQ(attribution_of(*of, "eager").basis, AttributionBasis::kNoAxis);
}

TEST(PortabilityAttribution, VaryRefusesWhatItDoesNotName) {
  const MadeRegime a = two_arm_regime("a", 10, 8);
  const MadeRegime b = with_identity(two_arm_regime("b", 10, 8),
                                     {{"code_generator", "another"}, {"device", "H100"}});
  const auto vary = [&](std::set<std::string> axes) {
    std::vector<Regime> regimes = {regime_of(a, 1), regime_of(b, 2)};
    PortabilityRequest request;
    request.vary = std::move(axes);
    return judge_portability(std::move(regimes), request);
  };
  EXPECT_FALSE(vary({"code_generator"}));
  EXPECT_TRUE(vary({"code_generator", "device"}));
  EXPECT_TRUE(vary({"stack", "device"}));
  EXPECT_THAT(vary({"stack"}).error().message,
              HasSubstr("device: expected nothing, found \"H100\""));
}

}  // namespace
}  // namespace assay
