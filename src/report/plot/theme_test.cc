// Arms are told apart by whoever looks at them, in the light and in the dark.
#include "report/plot/theme.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "report/plot/canvas.h"
#include "report/plot/xy_plot.h"

namespace assay::plot {
namespace {

using Triple = std::array<double, 3>;
using Matrix = std::array<Triple, 3>;

Triple times(const Matrix& matrix, const Triple& vector) {
  Triple out{};
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 3; ++j) out[i] += matrix[i][j] * vector[j];
  }
  return out;
}

// "#d2770f" as linear red, green and blue.
Triple linear(std::string_view hex) {
  Triple out{};
  for (size_t i = 0; i < 3; ++i) {
    const double c = std::stoi(std::string(hex.substr(1 + 2 * i, 2)), nullptr, 16) / 255.0;
    out[i] = c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  }
  return out;
}

// OKLab (Ottosson 2020), times 100.
Triple oklab(const Triple& rgb) {
  Triple lms = times({{{0.4122214708, 0.5363325363, 0.0514459929},
                       {0.2119034982, 0.6806995451, 0.1073969566},
                       {0.0883024619, 0.2817188376, 0.6299787005}}},
                     rgb);
  for (double& cone : lms) cone = 100 * std::cbrt(cone);
  return times({{{0.2104542553, 0.7936177850, -0.0040720468},
                 {1.9779984951, -2.4285922050, 0.4505937099},
                 {0.0259040371, 0.7827717662, -0.8086757660}}},
               lms);
}

// Matrices of how eyes see a colour: with all cones, and without those for red, green or blue
// (Machado, Oliveira and Fernandes 2009, severity 1).
constexpr std::array<Matrix, 4> kEyes = {{{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
                                          {{{0.152286, 1.052583, -0.204868},
                                            {0.114503, 0.786281, 0.099216},
                                            {-0.003882, -0.048116, 1.051998}}},
                                          {{{0.367322, 0.860646, -0.227968},
                                            {0.280085, 0.672501, 0.047413},
                                            {-0.011820, 0.042940, 0.968881}}},
                                          {{{1.255528, -0.076749, -0.178779},
                                            {-0.078411, 0.930809, 0.147602},
                                            {0.004733, 0.691367, 0.303900}}}}};

double distance(std::string_view a, std::string_view b, const Matrix& eyes) {
  const auto seen = [&](std::string_view hex) {
    Triple light = times(eyes, linear(hex));
    for (double& c : light) c = std::clamp(c, 0.0, 1.0);
    return oklab(light);
  };
  const Triple one = seen(a);
  const Triple other = seen(b);
  return std::hypot(one[0] - other[0], one[1] - other[1], one[2] - other[2]);
}

// The contrast ratio of WCAG 2.
double contrast(std::string_view a, std::string_view b) {
  const auto luminance = [](std::string_view hex) {
    const Triple rgb = linear(hex);
    return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2];
  };
  const double one = luminance(a) + 0.05;
  const double other = luminance(b) + 0.05;
  return std::max(one, other) / std::min(one, other);
}

TEST(Theme, TenArmsHaveColoursThatEverybodyTellsApart) {
  EXPECT_LT(distance("#d55e00", "#b97900", kEyes[2]), 1) << "the measure sees what is alike";
  for (const Palette* palette : {&kLight, &kDark}) {
    for (size_t a = 0; a < kColours; ++a) {
      EXPECT_GT(contrast(palette->arms[a], palette->paper), 3) << palette->arms[a];
      for (size_t b = a + 1; b < kColours; ++b) {
        for (size_t eyes = 0; eyes < kEyes.size(); ++eyes) {
          EXPECT_GT(distance(palette->arms[a], palette->arms[b], kEyes[eyes]), 9.5)
              << palette->arms[a] << " and " << palette->arms[b] << " by eyes " << eyes;
        }
      }
    }
  }
}

TEST(Theme, MarksAreHollowWhereColoursComeAgain) {
  XyPanel panel;
  for (const size_t arm : {size_t{1}, kColours + 1}) {
    panel.series.push_back({"", Style{arm}, Join::kNone, {{1, 2}, {2, 3, "a row"}}, {}});
    panel.series.back().marks.push_back({3, 4, Around::kNothing, ""});
    Canvas canvas;
    canvas.mark(0, 0, Style{arm}, 3, Around::kNothing, "");
    EXPECT_THAT(canvas.take(), testing::HasSubstr(arm == 1 ? "\"f a1\"" : "\"h a1\""));
  }
  const std::string both = draw(panel).body;
  panel.series.pop_back();
  const std::string first = draw(panel).body;
  for (const char* hollow : {"class=\"u\"", "class=\"q h a1\"", "class=\"h a1\""}) {
    EXPECT_THAT(both, testing::HasSubstr(hollow));
    EXPECT_THAT(first, testing::Not(testing::HasSubstr(hollow)));
  }
}

TEST(Theme, DashesAreOfArmsAlone) {
  const std::string& css = theme_css();
  size_t dashes = 0;
  for (size_t at = css.find("dasharray"); at != std::string::npos;
       at = css.find("dasharray", at + 1)) {
    const std::string rule = css.substr(css.rfind('.', at), 3);
    EXPECT_THAT(rule, testing::MatchesRegex("\\.d[0-9]"));
    ++dashes;
  }
  EXPECT_EQ(dashes, kDashes - 1);
}

TEST(Theme, ItsRulesHaveEveryColour) {
  for (const Palette* palette : {&kLight, &kDark}) {
    EXPECT_THAT(theme_css(), testing::HasSubstr(arm_colours(*palette)));
  }
  EXPECT_THAT(theme_css(), testing::HasSubstr(".a9{color:var(--c9)}"));
}

}  // namespace
}  // namespace assay::plot
