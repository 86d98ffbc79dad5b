// The audit of published figures: the worked examples, each verdict, and hostile tables.
#include "stats/audit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "stats/audit_table.h"

namespace assay::stats {
namespace {

std::vector<AuditedFigure> audit(const std::string& csv) {
  const auto table = parse_published_table(csv, "table.csv");
  EXPECT_TRUE(table) << table.error().message;
  return table ? audit_row(table->rows.at(0).figures) : std::vector<AuditedFigure>{};
}

AuditedFigure figure(const std::vector<AuditedFigure>& all, Figure which) {
  const auto found = std::ranges::find(all, which, &AuditedFigure::figure);
  EXPECT_NE(found, all.end());
  return found == all.end() ? AuditedFigure{} : *found;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

std::string error_of(const std::string& csv) {
  const auto table = parse_published_table(csv, "table.csv");
  EXPECT_FALSE(table);
  return table ? "" : table.error().message;
}

const std::string kGroups = "mean_a,sd_a,n_a,mean_b,sd_b,n_b";
const std::string kPublished = "11.87,9.19,1620,7.12,6.73,1620";

TEST(Printed, IsEverythingThatRoundsToIt) {
  const auto number = parse_printed("11.87");
  EXPECT_DOUBLE_EQ(number->low, 11.865);
  EXPECT_DOUBLE_EQ(number->high, 11.875);
  EXPECT_DOUBLE_EQ(parse_printed("9e-61")->low, 8.5e-61);
  EXPECT_DOUBLE_EQ(parse_printed("-1.50E+2")->low, -150.5);
  EXPECT_DOUBLE_EQ(parse_printed("40")->high, 40.5);
  EXPECT_EQ(parse_printed("\xE2\x88\x92"
                          "0.59")
                ->value,
            -0.59);
  EXPECT_EQ(parse_printed(" 12.5% ")->value, 12.5);
  EXPECT_TRUE(parse_printed("< 0.001")->is_bound);
  for (const char* bad :
       {"", "x", "1,2", "nan", "inf", "1e999", "--1", "0x10", "1.2.3", "<", "%"}) {
    EXPECT_FALSE(parse_printed(bad)) << bad;
  }
}

TEST(Audit, OfTheWorkedExample) {
  const auto all = audit(kGroups + ",t,d,p\n" + kPublished + ",16.8,-0.59,9e-61\n");
  const auto t = figure(all, Figure::kT);
  EXPECT_EQ(t.verdict, Verdict::kConsistent);
  EXPECT_EQ(t.as, "Welch");
  EXPECT_NEAR(*t.recomputed, 16.784140534064676, 1e-9);
  // The published d has the other sign than t.
  const auto d = figure(all, Figure::kD);
  EXPECT_EQ(d.verdict, Verdict::kConsistent);
  EXPECT_EQ(d.as, "pooled sd, b - a");
  EXPECT_NEAR(*d.recomputed, -0.5897, 1e-4);
  // 9e-61 is the one-sided p of the printed inputs; the two-sided one, 1.8e-60, reaches it only
  // at a corner of their rounding.
  const auto p = figure(all, Figure::kP);
  EXPECT_EQ(p.verdict, Verdict::kConsistent);
  EXPECT_EQ(p.as, "Welch, one-sided");
  EXPECT_NEAR(*p.recomputed, 9.0e-61, 0.1e-61);
  EXPECT_TRUE(contains(p.also, "Welch, two-sided"));
}

TEST(Audit, OfThePublishedEquivalence) {
  const std::string head = "delta,se,df,margin,tost_p\n";
  EXPECT_EQ(figure(audit(head + "0.197,0.254,146.7,1,0.00096\n"), Figure::kTostP).verdict,
            Verdict::kConsistent);
  EXPECT_EQ(figure(audit(head + "0.197,0.254,146.7,0.5,0.118\n"), Figure::kTostP).verdict,
            Verdict::kConsistent);
  EXPECT_EQ(figure(audit(head + "0.197,0.254,146.7,0.5,0.0118\n"), Figure::kTostP).verdict,
            Verdict::kInconsistent);
}

TEST(Audit, FindsWhatCannotBe) {
  const auto all = audit(kGroups + ",delta,percent_delta,t,d,p,ci_low,ci_high\n" + kPublished +
                         ",4.75,66.7,15.8,0.76,0.03,4.20,5.30\n");
  EXPECT_EQ(figure(all, Figure::kDelta).verdict, Verdict::kConsistent);
  EXPECT_EQ(figure(all, Figure::kPercentDelta).verdict, Verdict::kConsistent);
  EXPECT_EQ(figure(all, Figure::kCiLow).verdict, Verdict::kConsistent);
  EXPECT_EQ(figure(all, Figure::kCiHigh).verdict, Verdict::kConsistent);
  for (const Figure which : {Figure::kT, Figure::kD, Figure::kP}) {
    const auto found = figure(all, which);
    EXPECT_EQ(found.verdict, Verdict::kInconsistent) << figure_name(which);
    EXPECT_TRUE(found.recomputed && found.range);
  }
}

TEST(Audit, SaysWhatWasNotPublished) {
  const auto all = audit("mean_a,mean_b,t,d,delta\n11.87,7.12,16.8,0.59,4.75\n");
  EXPECT_EQ(figure(all, Figure::kDelta).verdict, Verdict::kConsistent);
  EXPECT_EQ(figure(all, Figure::kD).verdict, Verdict::kNotDetermined);
  // A t of the difference alone needs its error.
  EXPECT_EQ(figure(all, Figure::kT).verdict, Verdict::kNotDetermined);
  EXPECT_FALSE(figure(all, Figure::kD).recomputed);
}

TEST(Audit, HoldsClaimsAgainstOneAnother) {
  const auto all = audit("t,df,p,f,df1,df2,eta_squared\n2.10,38,0.042,6.20,2,57,0.179\n");
  EXPECT_EQ(figure(all, Figure::kP).verdict, Verdict::kConsistent);
  EXPECT_EQ(figure(all, Figure::kEtaSquared).verdict, Verdict::kConsistent);
  const auto bound = audit("t,df,p\n2.10,38,<0.05\n");
  EXPECT_EQ(figure(bound, Figure::kP).verdict, Verdict::kConsistent);
  EXPECT_EQ(figure(audit("t,df,p\n2.10,38,<0.01\n"), Figure::kP).verdict, Verdict::kInconsistent);
}

TEST(Audit, ConsidersThatRoundedMeansMayBeEqual) {
  // 1.0 and 1.0 with rounding: any t near 0, so p = 1 is as possible as 0.9.
  const auto all = audit(kGroups + ",p\n1.0,0.2,20,1.1,0.2,20,1.000\n");
  EXPECT_EQ(figure(all, Figure::kP).verdict, Verdict::kConsistent);
}

TEST(Audit, RefusesBadTablesInOneLine) {
  EXPECT_EQ(error_of(""), "table.csv: expected a header line, found an empty file");
  EXPECT_NE(error_of("mean_a,mean_c\n1,2\n").find("line 1: expected a column of"),
            std::string::npos);
  EXPECT_NE(error_of("mean_a,mean_c\n1,2\n").find("did you mean \"mean_a\""), std::string::npos);
  EXPECT_EQ(error_of("t,t\n1,2\n"),
            "table.csv line 1: expected each column once, found \"t\" more often");
  EXPECT_EQ(error_of("t,p\n1\n"), "table.csv line 2: expected 2 fields, found 1");
  EXPECT_EQ(error_of("t,p\n1,oops\n"),
            "table.csv line 2 column p: expected a decimal number, found \"oops\"");
  EXPECT_EQ(error_of("n_a,t\n1.5,2\n"),
            "table.csv line 2 column n_a: expected a whole number of at least 1, found \"1.5\"");
  EXPECT_EQ(error_of("sd_a,t\n-1,2\n"),
            "table.csv line 2 column sd_a: expected a number of at least 0, found \"-1\"");
  EXPECT_EQ(error_of("t,p\n<1,0.5\n"),
            "table.csv line 2 column t: expected a number without \"<\", found \"<1\"");
  EXPECT_NE(error_of("mean_a\n1\n").find("at least one claimed figure"), std::string::npos);
  EXPECT_NE(error_of("t\n\"1\n").find("closing quote"), std::string::npos);
  EXPECT_EQ(error_of(std::string("t\n\x01\x02") + std::string(500, 'z') + "\n").find('\n'),
            std::string::npos);
}

TEST(Audit, TakesHandWrittenTables) {
  const auto table = parse_published_table(
      "\xEF\xBB\xBFlabel,t,df,p\r\n\"eager, warm\",2.1,38,0.042\r\n\r\nother,-,38,0.5", "t.csv");
  ASSERT_TRUE(table) << table.error().message;
  ASSERT_EQ(table->rows.size(), 2u);
  EXPECT_EQ(table->rows[0].label, "eager, warm");
  EXPECT_EQ(table->rows[1].line, 4u);
  EXPECT_EQ(audit_row(table->rows[1].figures)[1].verdict, Verdict::kNotDetermined);
}

}  // namespace
}  // namespace assay::stats
