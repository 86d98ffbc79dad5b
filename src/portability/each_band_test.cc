// Each band of robustness along each axis, on made bundles that give it and on bundles beside them,
// which differ in one number, that don't.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "portability/regimes_fixture.h"

namespace assay {
namespace {

using testing::HasSubstr;

// The time of the claimed arm where so much of its effect is left.
double ms_of_share(double share) {
  return 10 * std::pow(0.8, share);
}

struct BandCase {
  RobustnessBand band;
  double share;         // left at the other point
  double beside_share;  // and there another band is given
};
constexpr BandCase kBandCases[] = {
    {RobustnessBand::kRobust, 0.86, 0.74},    {RobustnessBand::kSensitive, 0.56, 0.44},
    {RobustnessBand::kSensitive, 0.74, 0.86}, {RobustnessBand::kFragile, 0.08, -0.08},
    {RobustnessBand::kFragile, 0.44, 0.56},   {RobustnessBand::kCatastrophic, -0.08, 0.08}};

// An axis's other point: the share of the effect that is left there, the rows that it lost, or that
// it isn't there.
struct OtherPoint {
  double share = 1;
  int64_t lose = 0;
  bool lacks = false;
};

template <typename RegimesAt>
RobustnessIndex index_at_point(const std::string& axis, const RegimesAt& regimes,
                               const OtherPoint& at) {
  return index_of(claimed_in(regimes(at)), axis);
}

// `regimes`: of an OtherPoint.
template <typename RegimesAt>
void expect_bands(const std::string& axis, const RegimesAt& regimes) {
  std::set<RobustnessBand> all = {RobustnessBand::kInvalid};  // expect_invalid()
  for (const BandCase& of : kBandCases) {
    SCOPED_TRACE(fmt::format("{} {} {}", axis, robustness_band_name(of.band), of.share));
    EXPECT_EQ(index_at_point(axis, regimes, {.share = of.share}).band, of.band);
    EXPECT_NE(index_at_point(axis, regimes, {.share = of.beside_share}).band, of.band);
    all.insert(of.band);
  }
  // At the limit of two bands the interval allows both.
  EXPECT_EQ(index_at_point(axis, regimes, {.share = 0.8}).band, RobustnessBand::kUndecided);
  all.insert(RobustnessBand::kUndecided);
  EXPECT_EQ(all.size(), static_cast<size_t>(RobustnessBand::kInvalid) + 1) << "each has a pair";
  EXPECT_EQ(index_at_point(axis, regimes, {.lose = 1}).band, RobustnessBand::kCatastrophic);
  EXPECT_EQ(index_at_point(axis, regimes, {.lose = 0}).band, RobustnessBand::kRobust);
}

template <typename RegimesAt>
void expect_invalid(const std::string& axis, const RegimesAt& regimes) {
  const RobustnessIndex invalid = index_at_point(axis, regimes, {.lacks = true});
  EXPECT_EQ(invalid.band, RobustnessBand::kInvalid) << axis;
  EXPECT_FALSE(invalid.reason.empty());
}

TEST(EachBand, OfBandsAlongAxesOfTheIdentity) {
  for (const auto& [member, axis] : {std::pair{"code_generator", "stack"},
                                     {"framework_build", "stack"},
                                     {"code_sha", "code"},
                                     {"device", "device"}}) {
    SCOPED_TRACE(member);
    const auto regimes = [&](const OtherPoint& at) {
      return regimes_of({.fast_ms = ms_of_share(at.share),
                         .lose_b = at.lose,
                         .noise = 0.005,
                         .lacks = at.lacks ? "b" : ""},
                        member);
    };
    expect_bands(axis, regimes);
    expect_invalid(axis, regimes);
    // The other axes have no point.
    const JudgedClaim claim = claimed_in(regimes_of({}, member));
    for (const char* other : {"stack", "code", "device", "cache"}) {
      if (std::string(other) == axis) continue;
      EXPECT_THAT(index_of(claim, other).reason, HasSubstr("nothing differs from a on")) << other;
    }
  }
}

TEST(EachBand, OfBandsAlongCaches) {
  const auto regimes = [](const OtherPoint& at) {
    MadeRegime made = two_arm_regime("a", 10, 8);
    made.noise = 0.005;
    if (!at.lacks) {
      made.arms.push_back({"eager-static", "eager", "static", 10});
      made.arms.push_back({"fast-static", "compiled", "static", ms_of_share(at.share), at.lose});
    }
    MadeRegime again = made;
    again.folder = "b";
    return std::vector{made, again};
  };
  expect_bands("cache", regimes);
  expect_invalid("cache", regimes);
}

TEST(EachBand, AClaimAboutCachesHasNoPointOverAnotherCache) {
  MadeRegime made{"a",
                  {{"eager", "eager", "dynamic", 10}, {"eager-static", "eager", "static", 8}},
                  Phase::kPrefill,
                  {{"code_generator", "a"}}};
  MadeRegime other = made;
  other.folder = "b";
  other.identity = {{"code_generator", "b"}};
  const Portability of = judged({made, other});
  ASSERT_EQ(of.claims.size(), 1u);
  EXPECT_EQ(index_of(of.claims[0], "stack").band, RobustnessBand::kRobust);
  // Both would be one arm over another cache, which is as fast as itself.
  EXPECT_EQ(index_of(of.claims[0], "cache").points.size(), 1u);
  EXPECT_EQ(index_of(of.claims[0], "cache").band, RobustnessBand::kInvalid);
}

TEST(EachBand, OfBandsAlongReruns) {
  expect_bands("process", [](const OtherPoint& at) {
    return regimes_of({.fast_ms = ms_of_share(at.share), .lose_b = at.lose, .noise = 0.005});
  });
}

TEST(EachBand, OfBandsAlongRoundsOfProcesses) {
  // One round of eight retains so much less that the share of the whole claim, whose mean it is a
  // part of, is the case's.
  const auto index = [](double share) {
    MadeRegime made = two_arm_regime("a", 10, 8);
    made.noise = 0.001;
    Bundle first = bundle_of(made, 1);
    const double of_round = 7 * share / (8 - share);
    for (Row& row : first.rows) {
      if (row.arm != "fast" || row.process != 3) continue;
      row.latency_ms = *row.latency_ms * std::pow(0.8, of_round - 1);
    }
    made.folder = "b";
    made.identity = {{"code_generator", "another"}};  // no rerun
    std::vector<Regime> regimes = {condense(first, {}).value(), regime_of(made, 2)};
    PortabilityRequest request;
    request.claim = parse_claim(kClaimed).value();
    return index_of(judge_portability(std::move(regimes), request).value().claims.at(0), "process");
  };
  // One round that differs makes the mean of all unsure, so that limits are further off.
  for (const auto& [band, share] : {std::pair{RobustnessBand::kRobust, 1.0},
                                    {RobustnessBand::kSensitive, 0.6},
                                    {RobustnessBand::kFragile, 0.12},
                                    {RobustnessBand::kCatastrophic, -0.3},
                                    {RobustnessBand::kUndecided, 0.8}}) {
    const RobustnessIndex found = index(share);
    EXPECT_EQ(found.band, band) << share << ": " << found.interval->low << " to "
                                << found.interval->high;
  }
  // One process has no other round.
  MadeRegime a = two_arm_regime("a", 10, 8);
  a.processes = 0;
  MadeRegime b = a;
  b.folder = "b";
  b.identity = {{"code_generator", "another"}};
  EXPECT_EQ(index_of(claimed_in({a, b}), "process").band, RobustnessBand::kInvalid);
}

TEST(EachBand, OfAnEffectThatIsNotProven) {
  // The claim isn't shown where it is made, so that nothing of it can be retained.
  std::vector<MadeRegime> made = regimes_of({}, "code_generator");
  made[0].arms[1].ms = 10;
  EXPECT_EQ(index_of(claimed_in(made), "stack").band, RobustnessBand::kInvalid);
  EXPECT_THAT(index_of(claimed_in(made), "stack").reason, HasSubstr("shows no difference"));
  made[0].arms[1].ms = 8;
  EXPECT_EQ(index_of(claimed_in(made), "stack").band, RobustnessBand::kRobust);
  made[0].arms[1].lose = 1;
  EXPECT_EQ(index_of(claimed_in(made), "stack").band, RobustnessBand::kInvalid);
  EXPECT_THAT(index_of(claimed_in(made), "stack").reason, HasSubstr("where the claim is made"));
}

}  // namespace
}  // namespace assay
