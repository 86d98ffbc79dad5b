// The page of a small bundle against its approved text, and the rules that every page keeps.
#include "report/html/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "analysis/plot_rows.h"
#include "base/files/files.h"
#include "base/files/folder.h"
#include "report/report.h"
#include "report/small_bundle.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

struct SmallPage {
  Findings findings = small_findings();
  Bundle bundle = small_bundle();
  PlottedRows plotted = plot_rows(bundle, *group_rows(bundle, findings.study.arms));
  std::vector<FigureGroup> groups = figure_groups(findings, &plotted);
  std::string html() const { return render_page(findings, groups); }
};

const Figure& figure_of(const SmallPage& page, const std::string& id) {
  for (const FigureGroup& group : page.groups) {
    for (const Figure& figure : group.figures) {
      if (figure.id == id) return figure;
    }
  }
  ADD_FAILURE() << "no figure " << id;
  return page.groups.front().figures.front();
}

TEST(Page, IsAsApproved) {
  expect_page_approved("report.html", SmallPage().html());
}

TEST(Page, TheStyleSheetOfEveryPageIsAsApproved) {
  expect_approved("page.css", plot::theme_css() + page_css());
}

TEST(Page, AsksForNothing) {
  const std::string html = SmallPage().html();
  static const std::regex kReference(R"re((src|href|action|data|poster)\s*=\s*["']?([^"'\s>]*))re");
  for (auto at = std::sregex_iterator(html.begin(), html.end(), kReference);
       at != std::sregex_iterator(); ++at) {
    const std::string target = (*at)[2];
    EXPECT_TRUE(target.starts_with("#") || target == "data:,") << at->str();
  }
  EXPECT_THAT(html, Not(HasSubstr("url(")));
  EXPECT_THAT(html, Not(HasSubstr("@import")));
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
}

TEST(Page, TheVerdictComesFirstAndTheIdentityLast) {
  const std::string html = SmallPage().html();
  const char* order[] = {"id=verdict",   "id=\"prefill\"",  "id=\"kv_decode\"",
                         "id=\"study\"", "id=\"findings\"", "id=\"identity\""};
  size_t last = 0;
  for (const char* part : order) {
    const size_t at = html.find(part);
    ASSERT_NE(at, std::string::npos) << part;
    EXPECT_GT(at, last) << part;
    last = at;
  }
}

TEST(Page, FiguresStateWhatTheyShow) {
  const SmallPage page;
  EXPECT_THAT(figure_of(page, "kv_decode-ratios").finding,
              HasSubstr("kv_decode: compiled takes 0.6"));
  EXPECT_THAT(figure_of(page, "losses").finding,
              HasSubstr("static lost 5 of 64 rows of kv_decode (7.8 %)"));
  EXPECT_THAT(figure_of(page, "prefill-tails").finding, HasSubstr("with a recompile"));
  EXPECT_THAT(figure_of(page, "prefill-order").finding, HasSubstr("4 recompiled"));
  EXPECT_THAT(figure_of(page, "kv_decode-order").finding, HasSubstr("5 lost"));
}

TEST(Page, EveryMarkOverOrderIsInTheTableBehindIt) {
  const SmallPage page;
  size_t points = 0;
  for (const PlottedGroup& group : page.plotted.groups) points += group.order.size();
  const std::string html = page.html();
  static const std::regex kPoint("<td>[0-9]+: ");
  const auto found =
      std::distance(std::sregex_iterator(html.begin(), html.end(), kPoint), std::sregex_iterator());
  EXPECT_EQ(static_cast<size_t>(found), points);
  EXPECT_GT(points, 300u);
  EXPECT_THAT(html, HasSubstr("<tbody><tr><th scope=rowgroup colspan=5>"));
}

TEST(Page, EffectSizesAndCombinedTypicalRatiosStandBehindTheRatios) {
  const SmallPage page;
  const auto columns_of = [&](const std::string& title) -> std::vector<std::string> {
    for (const Table& table : figure_of(page, "kv_decode-ratios").tables) {
      if (!table.title.starts_with(title)) continue;
      EXPECT_FALSE(table.rows.empty()) << title;
      std::vector<std::string> names;
      for (const Column& column : table.columns) names.push_back(column.name);
      return names;
    }
    return {};
  };
  EXPECT_THAT(columns_of("Effect sizes"),
              testing::ElementsAre("stratum", "arm", "d", "g", "U", "A"));
  EXPECT_THAT(columns_of("Combined over strata"), testing::Contains("typical"));
  const std::string html = page.html();
  const size_t figure = html.find("id=\"kv_decode-ratios\"");
  EXPECT_NE(html.find("Effect sizes of single rows", figure), std::string::npos);
}

TEST(Page, EveryFigureHasPanelsWordsAndNumbers) {
  const SmallPage page;
  std::set<std::string> ids;
  for (const FigureGroup& group : page.groups) {
    for (const Figure& figure : group.figures) {
      EXPECT_TRUE(ids.insert(figure.id).second) << figure.id;
      EXPECT_FALSE(figure.panels.empty()) << figure.id;
      EXPECT_GT(figure.finding.size(), 20u) << figure.id;
      EXPECT_GT(figure.caption.size(), 40u) << figure.id;
      EXPECT_FALSE(figure.legend.empty()) << figure.id;
      ASSERT_TRUE(figure.points || !figure.tables.empty()) << figure.id;
      for (const plot::Panel& panel : figure.panels) EXPECT_GT(panel.alt.size(), 20u) << figure.id;
    }
  }
  EXPECT_EQ(ids.count("prefill-distributions"), 1u);
}

TEST(Page, RowsCanBeFoundByTheirTips) {
  const std::string html = SmallPage().html();
  EXPECT_THAT(html, HasSubstr("kv_decode-single_long repetition 25, lost (SIGSEGV)</title>"));
  EXPECT_THAT(html, HasSubstr("ms, recompiled</title>"));
}

TEST(Page, FindingsAloneMakeOneWithoutRows) {
  SmallPage page;
  page.groups = figure_groups(page.findings, nullptr);
  const std::string html = page.html();
  EXPECT_THAT(html, Not(HasSubstr("prefill-order")));
  EXPECT_THAT(html, HasSubstr("prefill-ratios"));
}

// A bundle of somebody who would like to run a script in the reader's browser.
TEST(Page, NamesOfAnybodyAreText) {
  const std::string evil = "</title><script>alert('1')</script>\x1b[2J\"onload=x";
  SyntheticBundle made(3);
  made.raw().manifest["study"]["name"] = evil;
  made.raw().manifest["identity"]["cpu"] = evil;
  made.raw().manifest["study"]["arms"] = {"eager", evil};
  made.add({.arm = "eager", .scenario = evil, .model = evil});
  const std::string id = made.add({.arm = evil, .scenario = evil, .model = evil});
  made.lose(id, 3, RowStatus::kError, evil);
  const Bundle bundle = made.build();
  const Findings findings = *analyze(bundle, {}, nullptr);
  const PlottedRows plotted = plot_rows(bundle, *group_rows(bundle, findings.study.arms));
  const std::string page = render_page(findings, figure_groups(findings, &plotted)) +
                           render_side_by_side({{evil, findings}, {"other", findings}});
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, Not(HasSubstr("\"onload")));
  EXPECT_THAT(page, Not(HasSubstr("\x1b")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;\\x1b[2J"));
}

TEST(Page, OfABundleWithoutRowsSaysSo) {
  Bundle bundle;
  bundle.manifest = bundle.environment = Json::object();
  const Findings findings = *analyze(bundle, {}, nullptr);
  const PlottedRows plotted = plot_rows(bundle, *group_rows(bundle, findings.study.arms));
  EXPECT_THAT(render_page(findings, figure_groups(findings, &plotted)), HasSubstr("no rows"));
}

TEST(Page, TheIdentitysHashIsOfAllItsLines) {
  SmallPage page;
  static const std::regex kHash("data-copy=\"([0-9a-f]{64})\"");
  const auto hash = [&] {
    const std::string html = page.html();
    std::smatch found;
    return std::regex_search(html, found, kHash) ? found[1].str() : "";
  };
  const std::string before = hash();
  EXPECT_EQ(before.size(), 64u);
  page.findings.identity.back().second += "x";
  EXPECT_NE(hash(), before);
}

TEST(SideBySide, MeansOfTooFewProcessesAreWordsAndStretchNoAxis) {
  Findings one = small_findings();
  Findings other = one;
  size_t wide = 0;
  for (Latency& latency : other.latencies) {
    if (!latency.mean_interval) continue;
    latency.mean_interval = {1e-22, 0.9 * *latency.mean};  // whether or not it contains 1 ms
    ++wide;
  }
  ASSERT_GT(wide, 4u);
  const std::string html = render_side_by_side({{"first", one}, {"second", other}});
  EXPECT_THAT(html, Not(HasSubstr("e-22")));
  EXPECT_THAT(html, Not(HasSubstr("e-12<")));
  EXPECT_THAT(html, HasSubstr(" [too few to tell]"));
  EXPECT_THAT(html, HasSubstr("prefill: too few processes or rows ran to compare mean times"));
  EXPECT_THAT(html, HasSubstr("wider than tenfold"));
}

TEST(SideBySide, ShowsEachBundlesVerdictAndWhatDiffers) {
  const Findings one = small_findings();
  Findings other = one;
  other.identity.front().second = "another";
  for (Latency& latency : other.latencies) {
    if (latency.mean) *latency.mean *= 3;
    if (latency.mean_interval) {
      latency.mean_interval = {latency.mean_interval->low * 3, latency.mean_interval->high * 3};
    }
  }
  const std::string html = render_side_by_side({{"first", one}, {"second", other}});
  EXPECT_THAT(html, HasSubstr("<h2>first</h2>"));
  EXPECT_THAT(html, HasSubstr("<h2>second</h2>"));
  EXPECT_THAT(html, ContainsRegex("prefill: mean times in ms differ most for [^,]+, [0-9.]+ "
                                  "\\[[^]]+\\] in first and [0-9.]+ \\[[^]]+\\] in second; "
                                  "intervals are apart on 6 of 8 rows"));
  EXPECT_THAT(html, HasSubstr("Every bundle has 8 of the 8 rows."));
  EXPECT_THAT(html, HasSubstr("DIFFERS"));
  const std::string same = render_side_by_side({{"first", one}, {"second", one}});
  EXPECT_THAT(same,
              HasSubstr("prefill: mean times in ms are not shown to differ: intervals overlap "
                        "on all 8 rows"));
  EXPECT_THAT(same, Not(HasSubstr("DIFFERS")));
}

TEST(Index, HasEachResultsSentenceAndLinks) {
  const Findings findings = small_findings();
  const std::string html = render_index(
      {{"first", findings, "first/report.html", {{"rows of prefill", "first/prefill/metrics.csv"}}},
       {"second", findings, "", {}}});
  EXPECT_THAT(html, HasSubstr("<h2><a href=\"./first/report.html\">first</a></h2>"));
  EXPECT_THAT(html, HasSubstr("<a href=\"./first/prefill/metrics.csv\">rows of prefill</a>"));
  EXPECT_THAT(html, HasSubstr("<h2>second</h2>"));
  EXPECT_THAT(html, HasSubstr("No page was made of this result."));
  EXPECT_THAT(html, HasSubstr("kv_decode: compiled is"));
  EXPECT_THAT(html, HasSubstr("512 rows, 5 lost"));
}

TEST(Index, HasTheNewestFirst) {
  Findings older = small_findings();
  Findings newer = older;
  older.study.started_at = "2026-11-21T22:25:21Z";
  newer.study.started_at = "2026-11-22T01:00:00Z";
  const std::string html =
      render_index({{"b", older, "", {}}, {"a", older, "", {}}, {"c", newer, "", {}}});
  const size_t c = html.find("<h2>c</h2>");
  const size_t a = html.find("<h2>a</h2>");
  const size_t b = html.find("<h2>b</h2>");
  EXPECT_LT(c, a);
  EXPECT_LT(a, b);
  EXPECT_NE(b, std::string::npos);
}

TEST(Index, LeadsToFilesAlone) {
  const std::string html = render_index(
      {{"\"><script>", small_findings(), "javascript:alert(1)", {{"<b>", "a \"b\"#?%/\xc3\xa4"}}}});
  EXPECT_THAT(html, HasSubstr("href=\"./javascript%3Aalert%281%29\""));
  EXPECT_THAT(html, HasSubstr("href=\"./a%20%22b%22%23%3F%25/%C3%A4\">&lt;b&gt;</a>"));
  EXPECT_THAT(html, HasSubstr(">&quot;&gt;&lt;script&gt;</a>"));
}

TEST(WriteReport, LeavesPageMarkdownAndItsFigures) {
  const SmallPage page;
  const fs::path folder = fs::path(testing::TempDir()) / "assay-write-report";
  fs::remove_all(folder);
  ASSERT_TRUE(disk().make_folder(folder / "plots"));
  ASSERT_TRUE(write_file(folder / "plots" / "of-before.svg", "x"));
  const auto written = write_report(page.findings, &page.plotted, nullptr, nullptr, folder);
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(*read_file(written->page), page.html());
  EXPECT_FALSE(fs::exists(folder / "plots" / "of-before.svg"));
  const std::string markdown = *read_file(written->markdown);
  size_t figures = 0;
  for (const FigureGroup& group : page.groups) {
    for (const Figure& figure : group.figures) {
      ++figures;
      EXPECT_THAT(markdown, HasSubstr("](plots/" + figure.id + ".svg)"));
      EXPECT_TRUE(fs::exists(folder / "plots" / (figure.id + ".svg"))) << figure.id;
    }
  }
  EXPECT_GE(figures, 9u);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace assay
