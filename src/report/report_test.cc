// The report of a small bundle against its approved text, and the statements that every report
// makes.
#include "report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "analysis/analyze.h"
#include "base/tables/csv.h"
#include "base/text/text.h"
#include "report/screen/screen.h"
#include "report/sections/sections.h"
#include "report/small_bundle.h"

namespace assay {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Report, TheScreenIsAsApproved) {
  expect_approved("screen.txt", render_screen(small_findings(), "bundles/small"));
}

TEST(Report, TheTerminalSummaryIsAsApproved) {
  expect_approved("summary.txt", render_report(small_findings(), OutputFormat::kTable));
}

TEST(Report, TheMarkdownReportIsAsApproved) {
  expect_approved("report.md", render_report(small_findings(), OutputFormat::kMarkdown));
}

TEST(Report, TheParityChecksCompilingIsAColumnWhereSomeWorkerTellsIt) {
  Findings findings = small_findings();
  ASSERT_GE(findings.compile_costs.size(), 2u);
  const auto column = [&](size_t row) -> std::string {
    const ReportSection section = compile_cost_section(findings);
    const Table& table = section.tables.at(0);
    const auto at = std::ranges::find(table.columns, "parity_s", &Column::name);
    if (at == table.columns.end()) return "no column";
    return table.rows.at(row).at(static_cast<size_t>(at - table.columns.begin())).text;
  };
  const auto explained = [&] {
    return std::ranges::any_of(compile_cost_section(findings).lines, [](const std::string& line) {
      return line.starts_with("parity: ");
    });
  };
  EXPECT_EQ(column(0), "no column");
  EXPECT_FALSE(explained());
  findings.compile_costs[1].parity_compile_s = 4.56;
  EXPECT_EQ(column(0), "") << "absent, not 0";
  EXPECT_EQ(column(1), "4.56");
  EXPECT_TRUE(explained());
}

TEST(Report, CsvHasOneLineAStratumAndArm) {
  const std::string csv = render_report(small_findings(), OutputFormat::kCsv);
  CsvReader reader(csv, "csv");
  const auto header = *reader.next();
  size_t lines = 0;
  while (!reader.done()) {
    const auto fields = reader.next();
    ASSERT_TRUE(fields);
    ASSERT_EQ(fields->size(), header.size());
    const std::string& arm = (*fields)[5];
    const bool contrasted = (arm == "static" && (*fields)[7] == "0") || arm == "compiled";
    EXPECT_EQ(fields->back().empty(), !contrasted) << (*fields)[5];
    ++lines;
  }
  EXPECT_EQ(lines, 16u);
}

TEST(Report, TheSummaryFitsATerminal) {
  for (const std::string& line :
       split(render_report(small_findings(), OutputFormat::kTable), '\n')) {
    EXPECT_LE(line.size(), 120u) << line;
  }
}

TEST(Report, TheTerminalHasEveryTableOfTheReport) {
  const Findings findings = small_findings();
  const auto full = report_sections(findings, Detail::kFull);
  const auto tables = report_sections(findings, Detail::kTables);
  const std::string text = render_report(findings, OutputFormat::kTable);
  ASSERT_EQ(full.size(), tables.size());
  for (size_t i = 0; i < full.size(); ++i) {
    ASSERT_EQ(full[i].tables.size(), tables[i].tables.size()) << full[i].title;
    for (const Table& table : full[i].tables) {
      EXPECT_THAT(text, HasSubstr(table.render(OutputFormat::kTable))) << table.title;
    }
  }
}

TEST(Report, TheCombinedTypicalRatioStandsBesideThatOfMeans) {
  Findings findings = small_findings();
  Contrast& combined = findings.combined.at(0);
  ASSERT_TRUE(combined.typical);
  combined.typical = SpreadRatio{0.4321, stats::Interval{0.4123, 0.4567}};
  for (const OutputFormat format : {OutputFormat::kTable, OutputFormat::kMarkdown}) {
    const std::string text = render_report(findings, format);
    const size_t at = text.find("0.4321");
    ASSERT_NE(at, std::string::npos);
    EXPECT_EQ(text.find("0.4321", at + 1), std::string::npos) << "in one table";
    const size_t line = text.rfind('\n', at);
    EXPECT_THAT(
        text.substr(line, text.find('\n', at) - line),
        testing::ContainsRegex("static.*\\[0.*0\\.4321.*\\[0\\.4123, 0\\.4567\\].*equivalent"));
  }
  combined.typical.reset();
  EXPECT_THAT(render_report(findings, OutputFormat::kTable), Not(HasSubstr("0.4321")));
}

TEST(Report, AnswersComeFirstAndCrashRatesBeforeAnyLatency) {
  const std::string text = render_report(small_findings(), OutputFormat::kTable);
  EXPECT_TRUE(text.starts_with("== Answers ==\n- Prefill: "));
  EXPECT_LT(text.find("Answers"), text.find("Identity"));
  EXPECT_LT(text.find("Crash rates"), text.find("Latency of"));
  EXPECT_LT(text.find("Findings =="), text.find("Decision =="));
}

TEST(Report, SittingsAreInTheIdentityWhereThereAreSeveral) {
  Findings findings = small_findings();
  findings.sittings = {{"2026-11-21T18:50:11Z", 0, 310, {}}};
  EXPECT_THAT(render_report(findings, OutputFormat::kTable), Not(HasSubstr("sitting")));
  findings.sittings.push_back({"2026-11-21T22:04:02Z", 310, 32, {{"gpus.uuid", "GPU-1", "GPU-2"}}});
  findings.sittings.push_back({"2026-11-22T08:00:00Z", 342, 0, {}});
  const std::string text = render_report(findings, OutputFormat::kMarkdown);
  EXPECT_THAT(text, HasSubstr("| sitting 1   | 2026-11-21T18:50:11Z: rows 0..309 "));
  EXPECT_THAT(text, HasSubstr("| sitting 2   | 2026-11-21T22:04:02Z: rows 310..341; differs from "
                              "the first in gpus.uuid |"));
  EXPECT_THAT(text, HasSubstr("| sitting 3   | 2026-11-22T08:00:00Z: no rows "));
}

TEST(Report, AnIncompleteRunIsSaidLoudly) {
  Findings findings = small_findings();
  findings.study.complete = false;
  EXPECT_THAT(render_report(findings, OutputFormat::kTable),
              testing::StartsWith("== Answers ==\nINCOMPLETE RUN"));
}

TEST(Report, AStudysRequirementsHaveOneVerdict) {
  Findings findings = small_findings();
  EXPECT_THAT(render_report(findings, OutputFormat::kTable), Not(HasSubstr("Requirements")));
  findings.requirements = {
      .verdict = Requirements::Verdict::kFailed,
      .criteria = {{"triton", ">= 3", Criterion::Status::kNotApplicable, "no arm is on a GPU"},
                   {"parity", "true", Criterion::Status::kNotMet, "not in 1 of 3 cells"}}};
  const std::string text = render_report(findings, OutputFormat::kTable);
  EXPECT_THAT(text, HasSubstr("== Requirements of the study ==\n"
                              "FAILED: this is not the stack that the study requires.\n"
                              "- triton >= 3: not applicable here: no arm is on a GPU.\n"
                              "- parity true: NOT MET: not in 1 of 3 cells.\n"));
}

TEST(Report, JsonIsTheFindingsWithTheirVersion) {
  const auto json = parse_json(render_report(small_findings(), OutputFormat::kJson), "findings");
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["schema_version"], kFindingsSchemaVersion);
  EXPECT_EQ((*json)["latencies"].size(), 16u);
}

TEST(Report, JoulesATokenAreThereWhereSomebodyCountedThem) {
  EXPECT_THAT(render_report(small_findings(), OutputFormat::kMarkdown), Not(HasSubstr("J/token")));
  Bundle bundle = small_bundle();
  for (Row& row : bundle.rows) {
    const bool counted = row.phase == Phase::kKvDecode && row.arm == "eager" && row.repetition < 10;
    if (counted) row.energy_j = 0.5 * static_cast<double>(row.tokens.value_or(0));
  }
  AnalysisOptions options;
  options.resamples = 200;
  const auto findings = analyze(bundle, options, nullptr);
  ASSERT_TRUE(findings);
  int with = 0;
  for (const Latency& latency : findings->latencies) {
    if (!latency.joules_per_token) continue;
    ++with;
    EXPECT_EQ(latency.arm, "eager");
    EXPECT_EQ(findings->strata[latency.stratum].phase, Phase::kKvDecode);
    EXPECT_DOUBLE_EQ(*latency.joules_per_token, 0.5);
    EXPECT_EQ(latency.energy_n, 10);
    ASSERT_TRUE(latency.joules_interval) << "rows of one process are the units";
    EXPECT_DOUBLE_EQ(latency.joules_interval->low, 0.5) << "they are all alike";
  }
  EXPECT_EQ(with, 2);
  EXPECT_THAT(render_report(*findings, OutputFormat::kMarkdown), HasSubstr("J/token"));
}

// A summary as both workers give it, of kernels on a GPU.
Json gpu_profile(int64_t kernels, int64_t launches, int64_t busy_ns, const std::string& longest) {
  return {{"device", "cuda"},
          {"wall_ns", 2 * busy_ns},
          {"counts", "kernels on the device"},
          {"kernels_launched", kernels},
          {"distinct_kernels", 7},
          {"launch_calls", launches},
          {"gpu_busy_ns", busy_ns},
          {"gpu_gap_ns", 250'000},
          {"copies", 0},
          {"synchronizations", 3},
          {"top", {{{"name", longest}, {"calls", kernels}, {"total_ns", busy_ns}}}}};
}

TEST(Report, ProfilesOfNativeAndTorchStandBesideOneAnother) {
  SyntheticBundle bundle(7);
  bundle.raw().manifest["study"]["arms"] = {"eager", "torch-eager", "torch-cpu"};
  SyntheticCell cell{.arm = "eager", .phase = Phase::kKvDecode};
  const std::string native = bundle.add(cell);
  bundle.evidence(native)["profile"]["summary"] = gpu_profile(80, 4, 1'500'000, "assay_run");
  for (const bool on_gpu : {true, false}) {
    cell.arm = on_gpu ? "torch-eager" : "torch-cpu";
    const std::string torch = bundle.add(cell);
    for (Row& row : bundle.raw().rows) {
      if (row.cell_id == torch) row.backend = "torch";
    }
    // On a processor the torch worker counts something else, and has no times of a GPU.
    const Json of_host = {{"device", "cpu"},
                          {"wall_ns", 9'000'000},
                          {"counts", "leaf operators"},
                          {"kernels_launched", 300},
                          {"distinct_kernels", 20}};
    bundle.evidence(torch)["profile"]["summary"] =
        on_gpu ? gpu_profile(900, 900, 4'500'000, "gemv2T") : of_host;
  }
  AnalysisOptions options;
  options.resamples = 200;
  const auto findings = analyze(bundle.build(), options, nullptr);
  ASSERT_TRUE(findings);
  const std::string text = render_report(*findings, OutputFormat::kMarkdown);
  const auto fields_of = [&](const std::string& arm, const std::string& holds) {
    for (const std::string& line : split(text.substr(text.find("## Profile")), '\n')) {
      std::vector<std::string> fields = split(line, '|');
      for (std::string& field : fields) {
        field.erase(0, field.find_first_not_of(' '));
        field.erase(field.find_last_not_of(' ') + 1);
      }
      if (fields.size() > 4 && fields[3] == arm && line.find(holds) != std::string::npos) {
        return std::vector(fields.begin() + 4, fields.end());
      }
    }
    return std::vector<std::string>{};
  };
  using testing::ElementsAre;
  EXPECT_THAT(fields_of("eager", ""),
              ElementsAre("3.000", "80", "7", "4", "1.500", "0.2500", "0", "3", ""));
  EXPECT_THAT(fields_of("torch-eager", ""),
              ElementsAre("9.000", "900", "7", "900", "4.500", "0.2500", "0", "3", ""));
  EXPECT_THAT(fields_of("torch-cpu", ""),
              ElementsAre("9.000", "300", "20", "-", "-", "-", "-", "-", ""));
  EXPECT_THAT(fields_of("eager", "assay_run"), ElementsAre("assay_run", "80", "1.500", ""));
  EXPECT_THAT(fields_of("torch-eager", "gemv2T"), ElementsAre("gemv2T", "900", "4.500", ""));
  EXPECT_THAT(text, HasSubstr("kernels: kernels on the device."));
  EXPECT_THAT(text, HasSubstr("kernels: leaf operators."));
}

TEST(Report, ABundleWithoutRowsStillReports) {
  Bundle bundle;
  bundle.manifest = Json::object();
  bundle.environment = Json::object();
  const Findings findings = *analyze(bundle, {}, nullptr);
  EXPECT_THAT(render_report(findings, OutputFormat::kTable), HasSubstr("the bundle has no rows"));
  EXPECT_THAT(render_report(findings, OutputFormat::kMarkdown), HasSubstr("## Decision"));
  const std::string screen = render_screen(findings, "b");
  EXPECT_THAT(screen, HasSubstr("- no_rows: the bundle has no rows\n"));
  EXPECT_THAT(screen, Not(HasSubstr("verdict"))) << "a table without rows";
}

constexpr OutputFormat kFormats[] = {OutputFormat::kTable, OutputFormat::kMarkdown,
                                     OutputFormat::kCsv, OutputFormat::kJson};

TEST(Report, OfFindingsReadBackIsTheSame) {
  const Findings findings = small_findings();
  const auto read = findings_from_json(findings_to_json(findings), "findings.json");
  ASSERT_TRUE(read) << read.error().message;
  for (const OutputFormat format : kFormats) {
    EXPECT_EQ(render_report(*read, format), render_report(findings, format));
  }
  EXPECT_EQ(render_screen(*read, "b"), render_screen(findings, "b"));
}

// Every so many of the values below `json` in turn, as long as `use` of it lasts.
void each_value(Json& json, size_t& count, const std::function<void(Json&)>& use) {
  constexpr size_t kStep = 13;
  if (++count % kStep == 0) use(json);
  if (!json.is_structured()) return;
  for (Json& element : json) each_value(element, count, use);
}

TEST(Report, OfFindingsThatSomebodyChangedIsMadeOrRefused) {
  Json json = findings_to_json(small_findings());
  size_t count = 0, refused = 0, made = 0;
  each_value(json, count, [&](Json& value) {
    for (const Json& other : {Json(), Json("eager"), Json(-1), Json::array(), Json::object()}) {
      const Json before = std::exchange(value, other);
      const auto read = findings_from_json(json, "findings.json");
      if (read) {
        for (const OutputFormat format : kFormats) made += !render_report(*read, format).empty();
      } else {
        ++refused;
        EXPECT_FALSE(read.error().message.contains('\n')) << read.error().message;
      }
      value = before;
    }
  });
  EXPECT_GT(refused, 100u);
  EXPECT_GT(made, 100u);
}

}  // namespace
}  // namespace assay
