// The audit of published figures: the worked example, each column with a right and a wrong claim,
// one set of conventions for a row, and what a declared method binds.
#include "stats/audit/audit.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/random.h"
#include "stats/audit/published_table.h"

namespace assay::stats {
namespace {

std::vector<AuditedFigure> audit(const std::string& csv) {
  const auto table = parse_published_table(csv, "table.csv");
  EXPECT_TRUE(table) << table.error().message;
  return table ? audit_row(table->rows.at(0).figures) : std::vector<AuditedFigure>{};
}

AuditedFigure figure(const std::vector<AuditedFigure>& all, Figure which) {
  const auto found = std::ranges::find(all, which, &AuditedFigure::figure);
  EXPECT_NE(found, all.end()) << figure_name(which);
  return found == all.end() ? AuditedFigure{} : *found;
}

Verdict verdict(const std::string& csv, Figure which) {
  return figure(audit(csv), which).verdict;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

constexpr Verdict kYes = Verdict::kConsistent;
constexpr Verdict kNo = Verdict::kInconsistent;
constexpr Verdict kUnknown = Verdict::kNotDetermined;

const std::string kGroups = "mean_a,sd_a,n_a,mean_b,sd_b,n_b";
const std::string kPublished = "11.87,9.19,1620,7.12,6.73,1620";

// The source names Welch's test; p is Student's, two-sided.
TEST(Audit, OfTheWorkedExample) {
  const auto all = audit(kGroups + ",t,d,p\n" + kPublished + ",16.8,-0.59,8.87e-61\n");
  const auto t = figure(all, Figure::kT);
  EXPECT_EQ(t.verdict, kYes);
  EXPECT_EQ(t.as, "Student");
  EXPECT_NEAR(*t.recomputed, 16.784140534064676, 1e-9);
  const auto d = figure(all, Figure::kD);  // the other sign than t
  EXPECT_EQ(d.verdict, kYes);
  EXPECT_EQ(d.as, "pooled sd, b - a");
  EXPECT_NEAR(*d.recomputed, -0.5897, 1e-4);
  const auto p = figure(all, Figure::kP);
  EXPECT_EQ(p.verdict, kYes);
  EXPECT_EQ(p.as, "Student, two-sided");
  EXPECT_NEAR(*p.recomputed, 1.09066e-60, 1e-65);  // scipy.stats.ttest_ind_from_stats
  for (const std::string& other : p.also) EXPECT_FALSE(other.starts_with("Welch, two")) << other;

  const auto declared = audit(kGroups + ",method,sides,t,d,p\n" + kPublished +
                              ",Welch,two-sided,16.8,-0.59,8.87e-61\n");
  EXPECT_EQ(figure(declared, Figure::kT).verdict, kYes);
  const auto named = figure(declared, Figure::kP);
  EXPECT_EQ(named.verdict, kNo);
  EXPECT_EQ(named.as, "Welch, two-sided");
  EXPECT_NEAR(*named.recomputed, 1.79902e-60, 1e-65);
  // Scanning the rounding box by SciPy, the smallest two-sided p is 8.91e-61, at its corner.
  EXPECT_GT(named.range->low, 8.875e-61);
  EXPECT_LT(named.range->low, 8.911e-61);
}

// A right and a wrong claim of every column. The right ones are from SciPy 1.17 or by arithmetic.
struct ColumnCase {
  Figure figure;
  const char* header;
  const char* right;
  const char* wrong;
};
class AuditColumn : public testing::TestWithParam<ColumnCase> {};

TEST_P(AuditColumn, TakesTheRightAndRefusesTheWrong) {
  const ColumnCase& x = GetParam();
  const std::string header = std::string(x.header) + "\n";
  EXPECT_EQ(verdict(header + x.right + "\n", x.figure), kYes) << x.header << "\n" << x.right;
  EXPECT_EQ(verdict(header + x.wrong + "\n", x.figure), kNo) << x.header << "\n" << x.wrong;
}

using enum Figure;
const ColumnCase kCases[] = {
    {kDelta, "mean_a,mean_b,delta", "11.87,7.12,4.75", "11.87,7.12,4.57"},
    {kPercentDelta, "mean_a,mean_b,percent_delta", "11.87,7.12,-40.0 %", "11.87,7.12,-45"},
    {kPercentGain, "mean_a,mean_b,percent_gain", "11.87,7.12,66.7 %", "11.87,7.12,60.0"},
    {kRatio, "mean_a,mean_b,ratio", "11.87,7.12,1.67x", "11.87,7.12,1.76"},
    {kSe, "method,sd_a,n_a,sd_b,n_b,se", "welch,2.00,10,4.00,30,0.966",
     "student,2.00,10,4.00,30,0.966"},
    {kT, "mean_a,sd_a,n_a,mean_b,sd_b,n_b,t", "11.87,9.19,1620,7.12,6.73,1500,16.55",
     "11.87,9.19,1620,7.12,6.73,1500,15.8"},
    {kZ, "mean_a,sd_a,n_a,mean_b,sd_b,n_b,z", "11.87,9.19,1620,7.12,6.73,1620,16.78",
     "11.87,9.19,1620,7.12,6.73,1620,15.8"},
    // Welch's degrees of freedom, also rounded down.
    {kDf, "sd_a,n_a,sd_b,n_b,df", "2.00,10,4.00,30,31.6", "2.00,10,4.00,30,35.6"},
    {kDf, "method,sd_a,n_a,sd_b,n_b,df", "welch,2.00,10,4.00,30,31", "welch,2.00,10,4.00,30,38"},
    {kP, "t,df,p", "2.10,38,0.042", "2.10,38,0.12"},
    {kP, "z,p", "1.96,.05", "1.96,.5"},
    {kP, "f,df1,df2,p", "6.20,2,57,0.004", "6.20,2,57,0.04"},
    // p from d and n, and the reverse.
    {kP, "method,n_a,n_b,d,p", "student,30,30,0.500,0.0577", "student,30,30,0.500,0.30"},
    {kP, "n_a,n_b,d,p", "20,40,0.50,0.073", "20,40,0.50,0.50"},
    {kD, "method,n_a,n_b,p,d", "student,30,30,0.0577,0.50", "student,30,30,0.0577,0.27"},
    {kD, "mean_a,sd_a,n_a,mean_b,sd_b,n_b,d", "11.87,9.19,1620,7.12,6.73,1500,0.59",
     "11.87,9.19,1620,7.12,6.73,1500,0.76"},
    {kG, "n_a,n_b,d,g", "10,12,0.800,0.770", "10,12,0.800,0.800"},
    {kSdPooled, "sd_a,n_a,sd_b,n_b,sd_pooled", "2.00,10,4.00,30,3.63", "2.00,10,4.00,30,2.60"},
    // One mean: by t, by z, and neither.
    {kMeanALow, "mean_a,sd_a,n_a,mean_a_ci", "10.00,2.00,25,\"[9.17, 10.83]\"",
     "10.00,2.00,25,\"[9.50, 10.50]\""},
    {kMeanAHigh, "mean_a,sd_a,n_a,mean_a_ci", "10.00,2.00,25,\"[9.22, 10.78]\"",
     "10.00,2.00,25,\"[9.17, 10.90]\""},
    {kMeanBLow, "mean_b,sd_b,n_b,mean_b_low", "10.00,2.00,25,9.17", "10.00,2.00,25,9.50"},
    {kMeanBHigh, "mean_b,mean_b_low,mean_b_high", "10.00,9.17,10.83", "10.00,9.17,11.83"},
    {kSeA, "sd_a,n_a,se_a", "2.00,25,0.40", "2.00,25,0.50"},
    {kSeB, "sd_b,n_b,se_b", "2.00,25,0.408", "2.00,25,0.50"},
    {kSdA, "mean_a_low,mean_a_high,n_a,sd_a", "9.17,10.83,25,2.01", "9.17,10.83,25,3.01"},
    {kSdB, "mean_b_ci,n_b,sd_b", "9.17–10.83,25,2.01", "9.17–10.83,25,1.01"},
    {kCiLow, "method,mean_a,sd_a,n_a,mean_b,sd_b,n_b,ci_low",
     "welch,11.87,9.19,1620,7.12,6.73,1620,4.20", "welch,11.87,9.19,1620,7.12,6.73,1620,4.40"},
    {kCiHigh, "delta,se,df,ci_high", "4.75,0.283,3238,5.305", "4.75,0.283,3238,5.21"},
    {kTostP, "delta,se,df,margin,tost_p", "0.197,0.254,146.7,1,0.00096",
     "0.197,0.254,146.7,0.5,0.0118"},
    // A margin of 5 % of 101, and of the ratio.
    {kTostP, "mean_a,sd_a,n_a,mean_b,sd_b,n_b,margin_percent,tost_p",
     "100.0,5.00,30,101.0,5.00,30,5,0.00134", "100.0,5.00,30,101.0,5.00,30,5,0.134"},
    {kPower, "method,sides,n_a,n_b,d,power", "student,two,30,30,0.500,0.478",
     "student,two,30,30,0.500,0.80"},
    {kMdeD, "method,sides,n_a,n_b,power,mde_d", "student,two,30,30,80 %,0.736",
     "student,two,30,30,80 %,0.50"},
    {kMde, "method,sides,sd_a,n_a,sd_b,n_b,mde", "student,two,5.00,30,5.00,30,3.68",
     "student,two,5.00,30,5.00,30,2.50"},
    {kSs, "ms,df1,ss", "14396.5,2,28793", "14396.5,2,18793"},
    {kSsError, "ms_error,df2,ss_error", "2.9207,1608,4696.5", "2.9207,1608,4996.5"},
    {kSsTotal, "ss_parts,ss_total", "10.0;50.0,60.0", "10.0;50.0,61.0"},
    {kSsTotal, "ss_type,ss_parts,ss_total", "1,10.0;20.0;30.0,60.0", "1,10.0;20.0;30.0,65.0"},
    {kDfTotal, "df_parts,df_total", "1;2;56,59", "1;2;56,60"},
    {kMs, "ss,df1,ms", "28793,2,14396.5", "28793,2,14496.5"},
    {kMsError, "ss_error,df2,ms_error", "4696.5,1608,2.921", "4696.5,1608,2.821"},
    {kF, "ss,df1,ss_error,df2,f", "28793,2,4696.5,1608,4929.1", "28793,2,4696.5,1608,4829.1"},
    {kF, "t,f", "2.10,4.41", "2.10,5.41"},
    {kEtaSquared, "ss,ss_total,ss_error,f,df1,df2,eta_squared",
     "28793,99361,4696.5,4929.1,2,1608,.290", "28793,99361,4696.5,4929.1,2,1608,.390"},
    {kEtaSquared, "f,df1,df2,eta_squared", "4929.1,2,1608,.860", "4929.1,2,1608,.950"},
    {kPartialEtaSquared, "f,df1,df2,partial_eta_squared", "4929.1,2,1608,.860",
     "4929.1,2,1608,.290"},
    {kRateA, "count_a,rate_a", "240 of 300,80 %", "240 of 300,82 %"},
    {kRateB, "count_b,total_b,rate_b", "240,300,80", "240,300,0.08"},
    {kRateALow, "count_a,rate_a_ci", "240/300,\"[0.751, 0.841]\"", "240/300,\"[0.70, 0.88]\""},
    {kRateAHigh, "rate_a,total_a,rate_a_ci", "80.0 %,300,75.5 to 84.5 %", "80.0 %,300,75 to 89 %"},
    {kRateBLow, "count_b,rate_b_low", "5 of 30,0.056", "5 of 30,0.10"},
    {kRateBHigh, "count_b,rate_b_high", "0 of 30,0.114", "0 of 30,0.214"},
    {kP, "count_a,count_b,p", "5 of 30,0 of 30,0.0522", "5 of 30,0 of 30,0.5"},
    // Woolf's interval of 12 of 40 beside 5 of 38, and with halves added where a cell is empty.
    {kOddsRatio, "count_a,count_b,odds_ratio", "12 of 40,5 of 38,2.83", "12 of 40,5 of 38,2.28"},
    {kOddsRatio, "count_a,count_b,odds_ratio", "5 of 30,0 of 30,13.2", "5 of 30,0 of 30,31.2"},
    {kOddsLow, "count_a,count_b,odds_ratio_ci", "12 of 40,5 of 38,\"[0.89, 9.01]\"",
     "12 of 40,5 of 38,\"[1.02, 9.01]\""},
    {kOddsHigh, "count_a,count_b,odds_ratio_ci", "12 of 40,5 of 38,\"[0.89, 9.01]\"",
     "12 of 40,5 of 38,\"[0.89, 7.01]\""},
    {kP, "method,count_a,count_b,p", "woolf,12 of 40,5 of 38,0.0785",
     "woolf,12 of 40,5 of 38,0.0681"},
    {kP, "method,odds_ratio,odds_ratio_ci,p", "woolf,2.83,\"[0.89, 9.01]\",0.079",
     "woolf,2.83,\"[0.89, 9.01]\",0.012"},
    // 24 / 7 of whole numbers; 1 to 5; quarters.
    {kMeanA, "mean_a,n_a,step", "3.43,7,1", "3.45,7,1"},
    {kMeanA, "mean_a,n_a,step", "3.45,5,0.25", "3.47,5,0.25"},
    {kMeanB, "mean_b,n_b,step", "5.18,28,1", "5.19,28,1"},
    {kSdA, "mean_a,sd_a,n_a,step", "3.00,1.58,5,1", "3.00,1.60,5,1"},
    {kSdB, "mean_b,sd_b,n_b,step", "3.00,1.41,5,1", "3.00,1.50,5,1"},
    {kCountTotal, "count_parts,count_total", "240;300;12,552", "240;300;12,551"},
    {kTotal, "parts,total", "10.5;20.5;69.1,100.1", "10.5;20.5;69.1,101.1"},
    {kTotalMean, "part_means,part_ns,total_mean", "10.0;20.0,30;10,12.5", "10.0;20.0,30;10,14.0"},
    {kTotalN, "part_ns,total_n", "30;10,40", "30;10,41"},
    {kPAdjusted, "p_list,p_adjusted", "0.010;0.040;0.030,.03;.06;.06",
     "0.010;0.040;0.030,.02;.06;.06"},
    {kPAdjusted, "adjustment,p_list,p_adjusted", "bonferroni,0.010;0.040;0.030,.030;.120;.090",
     "holm,0.010;0.040;0.030,.120;.030;.060"},
    {kMin, "min,p50", "9,10", "11,10"},
    {kP5, "p5,p50", "9,10", "11,10"},
    {kP10, "p10,p50", "9,10", "11,10"},
    {kP25, "p25,p50", "9,10", "11,10"},
    {kP50, "p50,p90,p99", "10,12,15", "10,9,15"},
    {kP75, "p50,p75", "10,12", "10,9"},
    {kP90, "p50,p90", "10,12", "10,9"},
    {kP95, "p50,p95", "10,12", "10,9"},
    {kP99, "p95,p99", "10,12", "10,9"},
    {kP999, "p99,p999", "10,12", "10,9"},
    {kMax, "p99,max", "10,12", "10,9"},
};
INSTANTIATE_TEST_SUITE_P(All, AuditColumn, testing::ValuesIn(kCases));

TEST(Audit, HasACaseForEveryClaim) {
  for (const FigureColumn& column : figure_columns()) {
    if (column.role != Role::kClaim) continue;
    EXPECT_NE(std::ranges::find(kCases, column.figure, &ColumnCase::figure), std::end(kCases))
        << column.name;
  }
}

TEST(Audit, TakesABoundAsABound) {
  // p = .0541 and .00147, two-sided.
  EXPECT_EQ(verdict("sides,t,df,p\ntwo,1.949,100,<0.05\n", kP), kNo);
  EXPECT_EQ(verdict("sides,t,df,p\ntwo,3.270,100,<0.001\n", kP), kNo);
  EXPECT_EQ(verdict("sides,t,df,p\ntwo,1.949,100,<0.055\n", kP), kYes);
  EXPECT_EQ(verdict("sides,t,df,p\ntwo,1.949,100,>0.05\n", kP), kYes);
  EXPECT_EQ(verdict("sides,t,df,p\ntwo,1.949,100,≥ .06\n", kP), kNo);
  EXPECT_EQ(verdict("f,df1,df2,p\n6.20,2,57,<0.001\n", kP), kNo);
  // Half of it would pass, and nothing says that the test was one-sided or that it wasn't.
  const auto p = figure(audit("t,df,p\n1.949,100,<0.05\n"), kP);
  EXPECT_EQ(p.verdict, kUnknown);
  EXPECT_NE(p.as.find("one-sided"), std::string::npos) << p.as;
  EXPECT_EQ(verdict("t,df,p\n0.5,100,<0.05\n", kP), kNo);
}

// Following a known convention is no contradiction.
TEST(Audit, AccusesNobodyWhoFollowsAConvention) {
  // eta squared of a design with other factors: at most the partial one.
  const auto eta = figure(audit("f,df1,df2,eta_squared\n4929.1,2,1608,.290\n"), kEtaSquared);
  EXPECT_EQ(eta.verdict, kUnknown);
  EXPECT_NE(eta.as.find("other factors"), std::string::npos) << eta.as;
  EXPECT_EQ(
      verdict("ss,ss_total,f,df1,df2,eta_squared\n28793,99361,4929.1,2,1608,.290\n", kEtaSquared),
      kYes);
  // A paired test: its t with the correlation, possible without, excluded by another n.
  const std::string groups = "mean_a,sd_a,n_a,mean_b,sd_b,n_b";
  EXPECT_EQ(verdict(groups + ",r,t\n10.00,2.00,20,9.00,2.00,20,0.80,3.54\n", kT), kYes);
  EXPECT_EQ(verdict(groups + ",r,t\n10.00,2.00,20,9.00,2.00,20,0.80,1.58\n", kT), kNo);
  EXPECT_EQ(verdict(groups + ",t\n10.00,2.00,20,9.00,2.00,20,3.54\n", kT), kUnknown);
  EXPECT_EQ(verdict(groups + ",t\n10.00,2.00,20,9.00,2.00,21,3.54\n", kT), kNo);
  EXPECT_EQ(
      verdict(groups + ",sd_diff,t,df,p\n10.00,2.00,20,9.00,2.00,20,1.265,3.54,19,.0022\n", kP),
      kYes);
  // The differences' deviation alone: t = -1 / (2.865 / sqrt(20)).
  const std::string differences = "mean_a,n_a,mean_b,n_b,sd_diff";
  EXPECT_EQ(verdict(differences + ",t\n9.00,20,10.00,20,2.865,-1.56\n", kT), kYes);
  EXPECT_EQ(verdict(differences + ",t\n9.00,20,10.00,20,2.865,-3.55\n", kT), kNo);
  EXPECT_EQ(verdict("delta,n_a,sd_diff,t,df,p\n-1.00,20,2.865,-1.56,19,0.135\n", kP), kYes);
  EXPECT_EQ(verdict("delta,n_a,sd_diff,p\n-1.00,20,2.865,0.002\n", kP), kNo);
  EXPECT_EQ(verdict("delta,n_a,sd_diff,ci\n-1.00,20,2.865,\"[-2.34, 0.34]\"\n", kCiLow), kYes);
  EXPECT_EQ(verdict("delta,n_a,sd_diff,ci\n-1.00,20,2.865,\"[-1.64, -0.36]\"\n", kCiLow), kNo);
  // One sample against a value.
  EXPECT_EQ(verdict("mean_a,sd_a,n_a,mu,t\n10.00,2.00,16,9.00,2.00\n", kT), kYes);
  EXPECT_EQ(verdict("mean_a,sd_a,n_a,mu,t\n10.00,2.00,16,9.00,3.00\n", kT), kNo);
  // Deviations with n: sd 2 of n = 5 and 6 is 2.236 and 2.191 with n - 1.
  const auto t = figure(audit(groups + ",t\n10.000,2.000,5,8.000,2.000,6,1.494\n"), kT);
  EXPECT_EQ(t.verdict, kYes);
  EXPECT_NE(t.as.find("sd by n"), std::string::npos) << t.as;
  EXPECT_EQ(verdict("method,deviations," + groups +
                        ",t\nstudent,n-1,10.000,2.000,5,8.000,2.000,6,1.494\n",
                    kT),
            kNo);
  // d = 2 t / sqrt(df).
  const auto d = figure(audit("t,df,d\n2.50,48,0.722\n"), kD);
  EXPECT_EQ(d.verdict, kYes);
  EXPECT_EQ(d.as, "2 t / sqrt(df)");
  // p by the normal distribution.
  const auto p = figure(audit(groups + ",p\n10.000,2.000,9,8.500,2.000,10,0.1026\n"), kP);
  EXPECT_EQ(p.verdict, kYes);
  EXPECT_TRUE(p.as.starts_with("z")) << p.as;
  EXPECT_EQ(verdict("method," + groups + ",p\nstudent,10.000,2.000,9,8.500,2.000,10,0.1026\n", kP),
            kNo);
  // Sums of squares of Type II or III overlap.
  EXPECT_EQ(verdict("ss_parts,ss_total\n10.0;20.0;30.0,65.0\n", kSsTotal), kUnknown);
  EXPECT_EQ(verdict("ss_parts,ss_total\n10.0;20.0;30.0,25.0\n", kSsTotal), kNo);
}

TEST(Audit, FindsWhatCannotBe) {
  const auto all = audit(kGroups + ",delta,percent_delta,t,d,p,ci_low,ci_high\n" + kPublished +
                         ",4.75,66.7,15.8,0.76,0.03,4.20,5.30\n");
  for (const Figure which : {kDelta, kPercentDelta, kCiLow, kCiHigh}) {
    EXPECT_EQ(figure(all, which).verdict, kYes) << figure_name(which);
  }
  for (const Figure which : {kT, kD, kP}) {
    const auto found = figure(all, which);
    EXPECT_EQ(found.verdict, kNo) << figure_name(which);
    EXPECT_TRUE(found.recomputed && found.range);
  }
}

// Welch's t, Student's df, a one-sided p: each is right by itself.
TEST(Audit, HoldsARowAgainstOneSet) {
  // These groups have Welch t = 1.603, df 14.8, p one-sided .0650; Student t = 1.924, df 38. t =
  // 1.603 with 38 degrees of freedom has p = .1172, or .0586 one-sided.
  const std::string groups = "10.000,4.000,12,8.000,2.500,28";
  const std::string header = kGroups + ",t,df,p\n";
  const auto mixed = audit(header + groups + ",1.603,38,0.0650\n");
  const auto count = std::ranges::count(mixed, kNo, &AuditedFigure::verdict);
  EXPECT_GE(count, 1);
  // The row's own t and df convict its p, though the groups would give it.
  EXPECT_EQ(figure(mixed, kP).verdict, kNo);
  EXPECT_EQ(figure(mixed, kP).from, "t and df");
}

TEST(Audit, HoldsClaimsAgainstOneAnother) {
  EXPECT_EQ(verdict("t,df,p,f,df1,df2,eta_squared\n2.10,38,0.042,4.41,1,38,0.104\n", kEtaSquared),
            kYes);
  EXPECT_EQ(verdict("t,df,p\n2.33,38,0.1088\n", kP), kNo);
  EXPECT_EQ(verdict("delta,ci_low,ci_high,n_a,n_b,p\n4.75,4.20,5.30,1620,1620,0.03\n", kP), kNo);
  EXPECT_EQ(verdict("delta,se,t\n4.75,0.283,15.8\n", kT), kNo);
  // df excludes every test of these groups but Student's, and that excludes t.
  EXPECT_EQ(verdict(kGroups + ",t,df\n10.000,4.000,12,8.000,2.500,28,1.60,38\n", kT), kNo);
}

TEST(Audit, BindsWhatIsDeclared) {
  const std::string row = "2.10,38,0.0212\n";
  const auto free = figure(audit("t,df,p\n" + row), kP);
  EXPECT_EQ(free.verdict, kYes);
  EXPECT_EQ(free.as, "one-sided, a > b");
  EXPECT_EQ(verdict("sides,t,df,p\ntwo-sided," + row, kP), kNo);
  EXPECT_EQ(verdict("sides,t,df,p\none," + row, kP), kYes);
  EXPECT_EQ(verdict("sides,t,df,p\nless," + row, kP), kYes);  // t of b - a
  // A p of another test isn't determined by means.
  EXPECT_EQ(verdict("method," + kGroups + ",p\nother," + kPublished + ",0.5\n", kP), kUnknown);
  EXPECT_EQ(verdict(kGroups + ",p\n" + kPublished + ",1e-40\n", kP), kUnknown);  // paired
  EXPECT_EQ(verdict("method," + kGroups + ",p\nstudent," + kPublished + ",1e-40\n", kP), kNo);
}

// An interval by the bootstrap, Tukey's p, a percent of something else: a figure that the others
// don't determine is neither confirmed nor accused, but only if the row says that it is such.
struct OtherCase {
  Figure figure;
  const char* header;  // of the declaration, then the figures
  const char* row;
};
class AuditOther : public testing::TestWithParam<OtherCase> {};

TEST_P(AuditOther, IsNotDeterminedIfDeclared) {
  const OtherCase& x = GetParam();
  const std::string header = x.header;
  const std::string row = x.row;
  const auto declared = figure(audit(header + "\n" + row + "\n"), x.figure);
  EXPECT_EQ(declared.verdict, kUnknown) << header;
  EXPECT_FALSE(declared.recomputed);
  const auto rest = [](const std::string& line) { return line.substr(line.find(',') + 1) + "\n"; };
  EXPECT_EQ(verdict(rest(header) + rest(row), x.figure), kNo) << header;
}

const OtherCase kOtherCases[] = {
    {kMeanALow, "interval,mean_a,sd_a,n_a,mean_a_ci", "other,10.00,2.00,25,\"[9.30, 10.95]\""},
    {kMeanAHigh, "method,mean_a,sd_a,n_a,mean_a_ci", "other,10.00,2.00,25,\"[9.30, 10.95]\""},
    {kMeanBHigh, "interval,mean_b,mean_b_low,mean_b_high", "other,10.00,9.30,10.95"},
    {kCiHigh, "interval,delta,se,df,ci_low,ci_high", "other,4.75,0.283,3238,4.10,5.21"},
    {kCiHigh, "interval,delta,ci_low,ci_high", "other,4.75,4.10,5.21"},
    {kP, "interval,delta,ci_low,ci_high,n_a,n_b,p", "other,4.75,4.20,5.30,1620,1620,0.03"},
    {kP, "method,t,df,p", "other,2.10,38,0.12"},
    {kP, "method,n_a,n_b,d,p", "other,20,40,0.50,0.50"},
    {kD, "method,n_a,n_b,p,d", "other,30,31,0.0577,0.11"},
    {kRateALow, "rate_interval,count_a,rate_a_low", "other,240/300,0.70"},
    {kOddsRatio, "odds_by,count_a,count_b,odds_ratio", "other,12 of 40,5 of 38,2.28"},
    {kPAdjusted, "adjustment,p_list,p_adjusted", "other,0.010;0.040;0.030,.017;.061;.044"},
    {kPercentDelta, "percent_by,mean_a,mean_b,percent_delta", "other,11.87,7.12,45.0"},
    {kPercentGain, "gain_by,mean_a,mean_b,percent_gain", "other,11.87,7.12,45.0"},
};
INSTANTIATE_TEST_SUITE_P(All, AuditOther, testing::ValuesIn(kOtherCases));

TEST(Audit, KnowsConventionsOfCountsAndPercents) {
  // Sums of binomial chances, by hand.
  const auto mid_p = figure(audit("count_a,rate_a_ci\n5 of 30,\"[.0637, .3315]\"\n"), kRateALow);
  EXPECT_EQ(mid_p.verdict, kYes);
  EXPECT_EQ(mid_p.as, "mid-p");
  EXPECT_NEAR(*mid_p.recomputed, 0.06373798006671251, 1e-12);
  EXPECT_EQ(verdict("rate_interval,count_a,rate_a_high\nmid-p,0 of 30,0.0950\n", kRateAHigh), kYes);
  EXPECT_EQ(verdict("rate_interval,count_a,rate_a_high\nwilson,0 of 30,0.0950\n", kRateAHigh), kNo);
  // G = 3.3289, 2.3752 with Yates' correction, 3.2281 with Williams'.
  const std::string counts = "method,count_a,count_b,p\n";
  const std::string of = ",12 of 40,5 of 38,";
  EXPECT_EQ(verdict(counts + "g" + of + "0.06807\n", kP), kYes);
  EXPECT_EQ(verdict(counts + "G-test" + of + "0.0725\n", kP), kNo);
  EXPECT_EQ(verdict(counts + "g-yates" + of + "0.12328\n", kP), kYes);
  EXPECT_EQ(verdict(counts + "g-williams" + of + "0.07238\n", kP), kYes);
  EXPECT_EQ(figure(audit("count_a,count_b,p\n12 of 40,5 of 38,0.06807\n"), kP).as,
            "G-test, two-sided");
  // 50.026 of both means' mean, 51.111 by logarithms, 66.7 of b, 40.0 of a.
  const std::string means = "percent_by,mean_a,mean_b,percent_delta\n";
  EXPECT_EQ(verdict(means + "mean,11.87,7.12,50.03\n", kPercentDelta), kYes);
  EXPECT_EQ(verdict(means + "mean,11.87,7.12,-50.03\n", kPercentDelta), kYes);
  EXPECT_EQ(verdict(means + "log,11.87,7.12,51.11\n", kPercentDelta), kYes);
  EXPECT_EQ(verdict(means + "log,11.87,7.12,50.03\n", kPercentDelta), kNo);
  EXPECT_EQ(verdict(means + "b,11.87,7.12,66.7\n", kPercentDelta), kYes);
  EXPECT_EQ(verdict(means + "a,11.87,7.12,66.7\n", kPercentDelta), kNo);
  const auto free = figure(audit("mean_a,mean_b,percent_delta\n11.87,7.12,51.11\n"), kPercentDelta);
  EXPECT_EQ(free.verdict, kYes);
  EXPECT_EQ(free.as, "100 ln(a / b)");
}

// Rows without counts may have a p by any test of two counts; with them every test is known.
TEST(Audit, KnowsTheTestsBesideAnOddsRatio) {
  const std::string interval = "odds_ratio,odds_ratio_ci,p\n2.83,\"[0.89, 9.01]\",";
  EXPECT_EQ(verdict(interval + "0.079\n", kP), kYes);
  EXPECT_EQ(verdict(interval + "0.097\n", kP), kUnknown)
      << "Fisher's, of counts that nobody printed";
  const auto inverse =
      figure(audit("count_a,count_b,odds_ratio\n12 of 40,5 of 38,0.354\n"), kOddsRatio);
  EXPECT_EQ(inverse.verdict, kYes);
  EXPECT_EQ(inverse.as, "b / a, Woolf");
  // An empty cell has an odds ratio with halves added alone.
  const auto halves =
      figure(audit("count_a,count_b,odds_ratio\n5 of 30,0 of 30,13.2\n"), kOddsRatio);
  EXPECT_EQ(halves.conventions.at(Axis::kOddsBy), "Woolf, halves added");
}

// Right tables of whole numbers, drawn at random, and the same with a mean or a deviation that the
// rounding of no such numbers gives.
TEST(Audit, AccusesNoTableOfWholeNumbers) {
  Random random(5);
  int accused = 0;
  int caught = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const auto n = static_cast<int64_t>(5 + random.below(30));
    double sum = 0;
    double squares = 0;
    for (int64_t i = 0; i < n; ++i) {
      const auto value = static_cast<double>(1 + random.below(7));
      sum += value;
      squares += value * value;
    }
    const auto count = static_cast<double>(n);
    const double mean = sum / count;
    const double sd = std::sqrt(std::max(0.0, squares - sum * mean) / (count - 1));
    const auto verdicts = [&](double printed_mean, double printed_sd) {
      const auto all = audit(
          fmt::format("mean_a,sd_a,n_a,step\n{:.2f},{:.2f},{},1\n", printed_mean, printed_sd, n));
      return std::pair(figure(all, kMeanA).verdict, figure(all, kSdA).verdict);
    };
    accused += verdicts(mean, sd) != std::pair(kYes, kYes);
    caught += verdicts(mean + 0.5 / count, sd).first == kNo;
  }
  EXPECT_EQ(accused, 0);
  EXPECT_GE(caught, 390) << "half of a step away, to two digits";
}

// Other factors may make up the rest of a total, but not a negative rest, nor that of a table of
// one factor.
TEST(Audit, AddsUpSumsWhereTheyMust) {
  const std::string sums = "ss,ss_error,ss_total\n10.0,50.0,";
  EXPECT_EQ(verdict(sums + "65.0\n", kSsTotal), kUnknown);
  EXPECT_EQ(verdict(sums + "55.0\n", kSsTotal), kNo);
  EXPECT_EQ(verdict("ss_error,ss_total\n50.0,45.0\n", kSsTotal), kNo);
  EXPECT_EQ(verdict("ss_type,ss,ss_error,ss_total\none-way,10.0,50.0,65.0\n", kSsTotal), kNo);
  EXPECT_EQ(verdict("ss_type,ss,ss_error,ss_total\none-way,10.0,50.0,60.0\n", kSsTotal), kYes);
  const std::string with_df = "df1,df2,df_total,ss,ss_error,ss_total\n";
  EXPECT_EQ(verdict(with_df + "2,57,59,10.0,50.0,65.0\n", kSsTotal), kNo);
  EXPECT_EQ(verdict(with_df + "2,57,60,10.0,50.0,65.0\n", kSsTotal), kUnknown);
  EXPECT_EQ(verdict(with_df + "2,57,59,10.0,50.0,60.0\n", kDfTotal), kYes);
  // Two parts are an effect and the error.
  EXPECT_EQ(verdict("ss_parts,ss,ss_error,ss_total\n10.0;50.0,10.0,45.0,60.0\n", kSsTotal), kNo);
  EXPECT_EQ(verdict("ss_parts,df1,df2,df_total\n10.0;50.0,2,57,60\n", kDfTotal), kNo);
  // More parts than the row's two: they may not be less than those.
  EXPECT_EQ(
      verdict("ss_type,ss_parts,ss,ss_error,ss_total\n1,5.0;5.0;30.0,10.0,50.0,40.0\n", kSsTotal),
      kNo);
  EXPECT_EQ(verdict("df1,df2,df_total\n2,57,58\n", kDfTotal), kNo);
  EXPECT_EQ(verdict("ss_type,df1,df2,df_total\none-way,2,57,60\n", kDfTotal), kNo);
  EXPECT_EQ(verdict("df1,df2,df_total\n2,57,60\n", kDfTotal), kUnknown);
}

TEST(Audit, SaysWhatWasNotPublished) {
  const auto all = audit("mean_a,mean_b,t,d,delta\n11.87,7.12,16.8,0.59,4.75\n");
  EXPECT_EQ(figure(all, kDelta).verdict, kYes);
  EXPECT_EQ(figure(all, kD).verdict, kUnknown);
  EXPECT_EQ(figure(all, kT).verdict, kUnknown);  // a t of the difference alone needs its error
  EXPECT_FALSE(figure(all, kD).recomputed);
  // Without n any df may be, but not any p.
  EXPECT_EQ(verdict("t,p\n2.10,0.05\n", kP), kUnknown);
  EXPECT_EQ(verdict("t,p\n2.10,0.001\n", kP), kNo);
}

TEST(Audit, ConsidersThatRoundedMeansMayBeEqual) {
  // 1.0 and 1.1 may both be 1.05: any t near 0, so p = 1 is as possible as 0.9.
  EXPECT_EQ(verdict("method," + kGroups + ",p\nwelch,1.0,0.2,20,1.1,0.2,21,1.000\n", kP), kYes);
}

TEST(Audit, NamesTheOtherSetsThatFit) {
  const auto p = figure(audit("method," + kGroups + ",t\nwelch," + kPublished + ",16.8\n"), kT);
  EXPECT_EQ(p.as, "Welch");
  EXPECT_TRUE(contains(p.also, "Welch, sd by n"));
  const auto delta = figure(audit("mean_a,mean_b,delta\n7.12,11.87,4.75\n"), kDelta);
  EXPECT_EQ(delta.as, "b - a");
  EXPECT_EQ(figure(audit("mean_a,mean_b,delta\n11.87,7.12,4.75\n"), kDelta).as, "a - b");
}

}  // namespace
}  // namespace assay::stats
