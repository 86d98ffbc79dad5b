// The plots against their approved files, and the rules that every plot keeps.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>

#include "report/plot/rows_plot.h"
#include "report/plot/sheet.h"
#include "report/plot/theme.h"
#include "report/plot/xy_plot.h"
#include "tests/support/approved.h"

namespace assay::plot {
namespace {

using testing::HasSubstr;
using testing::Not;

RowsPanel rows_panel() {
  RowsPanel panel{"kv_decode", "ratios of two arms", "ratio to eager", RuleAt{1, "equal"}, {}};
  for (const auto& [label, ratio] : {std::pair{"single_micro", 0.7}, {"single_long", 0.95}}) {
    PlotRow row{label, {}};
    row.lines.push_back(
        {Style{1}, ratio, Span{ratio - 0.1, ratio + 0.1}, {}, {}, "0.70 [0.6, 0.8]", "static"});
    RowLine bars{Style{2}, {}, {}, {}, {}, "no interval", "compiled"};
    bars.bars.push_back({{0.5, 0.8}, Tint::kPale, "prepare"});
    bars.bars.push_back({{0.8, 0.85}, Tint::kOutline, ""});
    bars.small.push_back({0.9, "c002 repetition 4"});
    row.lines.push_back(bars);
    panel.rows.push_back(row);
  }
  return panel;
}

XyPanel xy_panel() {
  XyPanel panel{.title = "prefill single_micro",
                .alt = "two arms",
                .x_label = "ms",
                .y_label = "share of rows",
                .y_start = Scale::Start::kZero,
                .x_rule = {},
                .y_rule = RuleAt{0.5, "median"},
                .series = {}};
  Series steps{"eager", Style{0}, Join::kSteps, {{1, 0.25}, {2, 0.5}, {40, 1}}, {}};
  steps.marks.push_back({40, 1, Around::kRing, "c001 repetition 7: 40 ms", false});
  steps.marks.push_back({2, 0.5, Around::kNothing, "a length that nobody measured"});
  steps.marks.back().size = MarkSize::kNone;
  Series dots{"static", Style{3}, Join::kNone, {{3, 0.4, "c002 repetition 1"}, {5, 0.6, ""}}, {}};
  dots.marks.push_back({9, 0, Around::kCross, "c002 repetition 9: SIGSEGV", true});
  panel.series = {steps, dots, {"line", Style{5}, Join::kStraight, {{1, 0.1}, {9, 0.9}}, {}}};
  return panel;
}

Panel drawn(const RowsPanel& panel) {
  Extent extent;
  add_extent(panel, extent);
  return draw(panel, Scale::of(extent));
}

std::string sheet_of_all() {
  return sheet("static takes 0.7 of eager's time", "How to read it.",
               {{"eager", Style{0}},
                {"static", Style{1}, Sample::kMarkedLine},
                {"point", {}, Sample::kSmallMark},
                {"cold", {}, Sample::kRemark, Around::kRing},
                {"throttled", {}, Sample::kRemark, Around::kUnderline},
                {"what recompiles add", {}, Sample::kLightBar},
                {"abstains", {}, Sample::kOutlineBar},
                {"equal", {}, Sample::kRule}},
               {drawn(rows_panel()), draw(xy_panel())});
}

TEST(Plot, ASheetIsAsApproved) {
  expect_approved("plot.svg", sheet_of_all());
}

TEST(Plot, SaysInWordsWhatItShows) {
  EXPECT_THAT(sheet_of_all(), HasSubstr("role=\"img\"><title>static takes 0.7 of eager&#39;s time"
                                        "</title><desc>How to read it.</desc>"));
  EXPECT_THAT(panel_svg(draw(xy_panel())), HasSubstr("role=\"img\" aria-label=\"two arms\""));
}

TEST(Plot, ALogScaleIsSaidBesideItsUnit) {
  EXPECT_THAT(draw(xy_panel()).body, HasSubstr(">ms, log scale</text>"));
  XyPanel narrow = xy_panel();
  narrow.series[0].points = {{1, 0.2}, {2, 1}};
  narrow.series[0].marks.clear();
  EXPECT_THAT(draw(narrow).body, Not(HasSubstr("log scale")));
}

TEST(Plot, NamesOfAnybodyBeginNoElement) {
  RowsPanel rows = rows_panel();
  rows.title = rows.alt = rows.x_label = rows.rows[0].label = "<script>\x1b</script>\"";
  rows.rows[0].lines[0].text = rows.rows[0].lines[0].tip = rows.title;
  rows.rows[0].lines[1].bars[0].tip = rows.rows[0].lines[1].small[0].tip = rows.title;
  XyPanel xy = xy_panel();
  xy.title = xy.alt = xy.x_label = xy.y_label = xy.series[0].name = rows.title;
  xy.series[0].marks[0].tip = xy.series[1].points[0].tip = xy.y_rule->label = rows.title;
  const std::string text =
      sheet(rows.title, rows.title, {{rows.title, Style{0}}}, {drawn(rows), draw(xy)}) +
      panel_svg(drawn(rows)) + panel_svg(draw(xy));
  EXPECT_THAT(text, Not(HasSubstr("<script")));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("</script>\"\"")));
}

// Every number after a path's M or a text's x.
std::vector<double> x_coordinates(const std::string& svg) {
  static const std::regex kPlace(R"re((?:[" ]M| x=")(-?[0-9.]+))re");
  std::vector<double> found;
  for (auto at = std::sregex_iterator(svg.begin(), svg.end(), kPlace); at != std::sregex_iterator();
       ++at) {
    found.push_back(std::stod((*at)[1]));
  }
  return found;
}

TEST(Plot, NothingLiesOutsideOfThePanel) {
  for (const Panel& panel : {drawn(rows_panel()), draw(xy_panel())}) {
    const auto found = x_coordinates(panel.body);
    EXPECT_GT(found.size(), 10u);
    for (const double x : found) {
      EXPECT_GE(x, -1);
      EXPECT_LE(x, kPanelWidth + 1);
    }
  }
}

TEST(Plot, FurtherValuesDrawFurtherRight) {
  const std::string body = drawn(rows_panel()).body;
  const auto mark_of = [&](double low) {
    RowsPanel panel = rows_panel();
    panel.rows.resize(1);
    panel.rows[0].lines.resize(1);
    panel.rows[0].lines[0].value = low;
    Extent extent;
    extent.add(0.5);
    extent.add(1.2);
    const Panel one = draw(panel, Scale::of(extent));
    const size_t at = one.body.rfind("<path d=\"M");
    return std::stod(one.body.substr(at + 10));
  };
  EXPECT_LT(mark_of(0.6), mark_of(0.7));
  EXPECT_LT(mark_of(0.7), mark_of(1.1));
}

TEST(Plot, ArmsDifferByShapeAndFillWhereColoursComeAgain) {
  for (size_t a = 0; a < 40; ++a) {
    for (size_t b = a + 1; b < 40; ++b) {
      const auto looks = [](size_t arm) {
        return fmt::format("{} {} {}", style_class(Style{arm}), shape_class(Style{arm}),
                           shape_path(0, 0, Style{arm}, 4));
      };
      EXPECT_NE(looks(a), looks(b)) << a << " and " << b;
      const bool colour_again = style_class(Style{a}) == style_class(Style{b});
      if (b < 2 * kColours && colour_again) {
        EXPECT_NE(is_hollow(Style{a}), is_hollow(Style{b})) << a << " and " << b;
      }
    }
  }
}

// Small marks are relative to the one before: their places as a browser adds them up.
TEST(Plot, AThousandSmallMarksStandWhereTheyAre) {
  for (size_t shape = 0; shape < 6; ++shape) {
    DotsPath dots(Style{shape});
    for (int i = 0; i < 1000; ++i) dots.add(0.37 * i, 100 + 90 * std::sin(i));
    static const std::regex kMove("[Mm](-?[0-9.]+) ?(-?[0-9.]+)(?:h([0-9]+)|v([0-9]+)|l2 ?(-?2))");
    double x = 0;
    double y = 0;
    int i = 0;
    const std::string& d = dots.d();
    for (auto at = std::sregex_iterator(d.begin(), d.end(), kMove); at != std::sregex_iterator();
         ++at, ++i) {
      const auto number = [&](size_t group) {
        return (*at)[group].matched ? std::stod((*at)[group]) : 0.0;
      };
      x += number(1);
      y += number(2);
      const double across = (*at)[5].matched ? 2 : number(3);
      const double down = number(4) + number(5);
      EXPECT_NEAR(x + across / 2, 0.37 * i, 0.51);
      EXPECT_NEAR(y + down / 2, 100 + 90 * std::sin(i), 0.51);
      x += across;
      y += down;
    }
    EXPECT_EQ(i, 1000) << d.substr(0, 60);
  }
}

TEST(Plot, RingsAndCrossesHaveATip) {
  XyPanel panel = xy_panel();
  panel.series[1].marks.push_back({7, 0.5, Around::kRing, ""});  // one of many, without its own
  const std::string body = draw(panel).body;
  static const std::regex kRings(
      R"re(<g class="a3"><title>static</title><path d="[^"]+" class="s"/><path d="[^"]+" class="o"/>)re");
  EXPECT_TRUE(std::regex_search(body, kRings)) << "that of its arm";
  // A pointer hits the square about a cross.
  static const std::regex kCross(
      R"re(<title>c002 repetition 9: SIGSEGV</title><path d="[^"]+z" class="p"/>)re");
  EXPECT_TRUE(std::regex_search(body, kCross));
}

TEST(Plot, PanelsWithOneRoomForTextsHaveOneAxis) {
  const auto rule_at = [](const RowsPanel& panel) {
    const std::string body = drawn(panel).body;
    const size_t at = body.rfind("d=\"M", body.find("class=\"r\""));
    return body.substr(at, body.find(' ', at + 4) - at);
  };
  RowsPanel wide = rows_panel();
  RowsPanel narrow = rows_panel();
  for (PlotRow& row : narrow.rows) {
    for (RowLine& line : row.lines) line.text = "1";
  }
  EXPECT_NE(rule_at(wide), rule_at(narrow));
  narrow.value_columns = value_columns(wide);
  EXPECT_EQ(rule_at(wide), rule_at(narrow));
}

// A figure that couldn't be computed: null in findings.json.
TEST(Plot, WhatIsNoNumberIsNotDrawn) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  RowsPanel rows = rows_panel();
  rows.rows[0].lines.push_back({Style{4}, {}, {}, {}, {}, "no figure", "arm"});
  const std::string without = drawn(rows).body;
  rows.rows[0].lines.back() = {Style{4},
                               kNone,
                               Span{kNone, kNone},
                               {{{kNone, kNone}, Tint::kFull, ""}},
                               {{kNone, "mark"}},
                               "no figure",
                               "arm"};
  EXPECT_EQ(drawn(rows).body, without);
  for (const Join join : {Join::kNone, Join::kStraight, Join::kSteps}) {
    XyPanel lines = xy_panel();
    lines.series[0].join = join;
    const std::string only_numbers = draw(lines).body;
    auto& points = lines.series[0].points;
    points.insert(points.begin(), {kNone, 0.1});
    points.insert(points.begin() + 2, {1.5, kNone});
    lines.series[0].marks.push_back({kNone, 1, Around::kRing, "mark"});
    lines.series[0].marks.push_back({2, kNone, Around::kRing, "mark"});
    lines.x_rule = RuleAt{kNone, "rule"};
    EXPECT_EQ(draw(lines).body, only_numbers);
  }
}

TEST(Plot, OfNothingIsAnEmptyFrame) {
  EXPECT_THAT(draw(XyPanel{}).body, HasSubstr("<text"));
  EXPECT_THAT(drawn(RowsPanel{}).body, HasSubstr("<text"));
}

TEST(Coordinate, IsATenthOfAPixelInFewCharacters) {
  EXPECT_EQ(coordinate(12), "12");
  EXPECT_EQ(coordinate(12.345), "12.3");
  EXPECT_EQ(coordinate(0.34), ".3");
  EXPECT_EQ(coordinate(-0.06), "-.1");
  EXPECT_EQ(coordinate(-0.04), "0");
}

}  // namespace
}  // namespace assay::plot
