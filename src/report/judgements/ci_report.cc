#include "report/judgements/ci_report.h"

#include <algorithm>

#include "base/text/shown_text.h"
#include "base/text/text.h"
#include "report/judgements/compare_cells.h"
#include "report/judgements/compare_verdict.h"

namespace assay {
namespace {

constexpr size_t kLongestOutput = 20'000;  // bytes

struct TestCase {
  std::string suite;
  std::string name;
  double seconds = 0;
  std::vector<std::string> failures = {};
  std::string skipped = {};
  std::string output = {};
};

// Demands that name the cell.
std::vector<std::string> failures_of(const std::vector<std::string>& unmet, const std::string& arm,
                                     const Stratum& stratum) {
  const std::string name = fmt::format("{} on {}", arm, stratum_text(stratum));
  std::vector<std::string> found;
  std::ranges::copy_if(unmet, std::back_inserter(found), [&](const std::string& one) {
    const size_t at = one.find(": " + name);
    const size_t end = at + 2 + name.size();
    return at != std::string::npos && (end == one.size() || one[end] == ':');
  });
  return found;
}

std::vector<TestCase> test_cases(const Comparison& c, const CompareDemands& demands) {
  const std::vector<std::string> unmet = unmet_demands(c, demands);
  std::vector<TestCase> cases;
  const auto add = [&](size_t stratum, const std::string& arm) -> TestCase& {
    const Stratum& s = c.strata[stratum];
    return cases.emplace_back(std::string(phase_name(s.phase)),
                              fmt::format("{} on {}", arm, stratum_text(s)), 0.0,
                              failures_of(unmet, arm, s));
  };
  for (const ComparedCell& cell : c.cells) {
    TestCase& one = add(*cell.stratum, cell.arm);
    one.seconds = cell.cand->mean_ms / 1e3;
    if (!cell.verdict) one.skipped = c.caveat.empty() ? kNotDecidedReason : c.caveat;
  }
  for (const auto* reasons : {&c.missing, &c.lost, &c.not_comparable}) {
    for (const CellReason& cell : *reasons) add(cell.stratum, cell.arm).skipped = cell.reason;
  }
  TestCase& verdict = cases.emplace_back("verdict", "every demand is met");
  verdict.failures = unmet;
  verdict.output = join(verdict_top(c, demands), "\n");
  if (compare_outcome(c, demands) == CompareOutcome::kNothingJudged) {
    (demands.any() ? verdict.failures.emplace_back() : verdict.skipped) = "no cell was judged";
  }
  return cases;
}

std::string case_xml(const TestCase& one) {
  std::string out = fmt::format("    <testcase classname=\"assay.{}\" name=\"{}\" time=\"{:.9f}\">",
                                html_text(one.suite), html_text(one.name), one.seconds);
  for (const std::string& failure : one.failures) {
    out += fmt::format("<failure message=\"{}\"/>", html_text(failure));
  }
  if (one.failures.empty() && !one.skipped.empty()) {
    out += fmt::format("<skipped message=\"{}\"/>", html_text(one.skipped));
  }
  if (!one.output.empty()) {
    out += fmt::format("<system-out>{}</system-out>", html_text(one.output, kLongestOutput));
  }
  return out + "</testcase>\n";
}

// One line that a runner takes for the text of a command, and not for a command of its own.
std::string command_text(std::string_view text) {
  std::string out;
  for (const char c : shown_line(text)) {
    out += c == '%' ? "%25" : std::string(1, c);
  }
  return out;
}

}  // namespace

std::string render_junit(const Comparison& c, const CompareDemands& demands) {
  const std::vector<TestCase> cases = test_cases(c, demands);
  const auto counts = [&](const auto& in_suite) {
    int64_t tests = 0;
    int64_t failures = 0;
    int64_t skipped = 0;
    for (const TestCase& one : cases) {
      if (!in_suite(one)) continue;
      ++tests;
      failures += one.failures.empty() ? 0 : 1;
      skipped += one.failures.empty() && !one.skipped.empty() ? 1 : 0;
    }
    return fmt::format("tests=\"{}\" failures=\"{}\" skipped=\"{}\"", tests, failures, skipped);
  };
  std::string out = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"assay compare\" {}>\n",
      counts([](const TestCase&) { return true; }));
  std::vector<std::string> suites;
  for (const TestCase& one : cases) {
    if (std::ranges::find(suites, one.suite) == suites.end()) suites.push_back(one.suite);
  }
  for (const std::string& suite : suites) {
    const auto in_suite = [&](const TestCase& one) { return one.suite == suite; };
    out += fmt::format("  <testsuite name=\"{}\" {}>\n", html_text(suite), counts(in_suite));
    for (const TestCase& one : cases) {
      if (in_suite(one)) out += case_xml(one);
    }
    out += "  </testsuite>\n";
  }
  return out + "</testsuites>\n";
}

std::string render_workflow_commands(const Comparison& c, const CompareDemands& demands) {
  std::string out;
  const auto add = [&](std::string_view kind, std::string_view text) {
    out += fmt::format("::{} title=assay compare::{}\n", kind, command_text(text));
  };
  for (const std::string& unmet : unmet_demands(c, demands)) add("error", unmet);
  const CompareOutcome outcome = compare_outcome(c, demands);
  const std::string said =
      fmt::format("{}: {}{}{}", verdict_word(c, demands), verdict_sentences(c, demands).front(),
                  c.caveat.empty() ? "" : " ", c.caveat);
  const bool unseen = outcome == CompareOutcome::kNothingJudged;
  add(outcome == CompareOutcome::kPasses ? "notice"
      : unseen && !demands.any()         ? "warning"
                                         : "error",
      said);
  return out;
}

}  // namespace assay
