// The screen never grows past its lines and columns and leaves nothing out in silence, whatever was
// found; also tests its rows' texts.
#include "report/screen/screen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <charconv>

#include "analysis/analyze.h"
#include "analysis/rows/synthetic_bundle.h"
#include "base/text/text.h"
#include "report/fitting.h"
#include "report/screen/parts.h"
#include "report/sections/finding_groups.h"
#include "report/small_bundle.h"

namespace assay {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// Size of the findings that a screen has to hold.
struct Load {
  size_t arms = 2;
  size_t strata = 1;
  size_t kinds = 0;  // of warnings
  size_t name_length = 8;
  size_t models = 1;
  std::string path = "bundle";
  std::string filler = "-very";  // of names that aren't as long by themselves
};

// A name of `length` columns or a few more.
std::string long_name(const std::string& start, size_t number, size_t length,
                      const std::string& filler = "-very") {
  std::string name = fmt::format("{}{}", start, number);
  while (display_width(name) < length) name += filler;
  return name;
}

Rival rival(const std::string& arm, Random& random) {
  const double ratio = 0.5 + random.uniform();
  return {arm, ratio, stats::Interval{ratio * 0.9, ratio * 1.1}, random.uniform()};
}

void add_decision(const Load& load, size_t stratum, Random& random, Findings& findings) {
  const std::vector<std::string>& arms = findings.study.arms;
  const auto any = [&](size_t most) {
    return static_cast<size_t>(random.uniform() * static_cast<double>(most));
  };
  Decision decision;
  decision.stratum = stratum;
  decision.kind = static_cast<Decision::Kind>(any(7));
  if (decision.kind == Decision::Kind::kVoid)
    decision.void_because = long_name("because", any(3), 300, load.filler);
  if (decision.kind != Decision::Kind::kNone && decision.kind != Decision::Kind::kVoid) {
    decision.arm = arms[any(arms.size())];
  }
  for (size_t i = any(arms.size()); i > 0; --i) decision.tied.push_back(rival(arms[i], random));
  if (load.arms > 1) decision.runner_up = rival(arms[1], random);
  decision.alternatives.push_back({"p99", arms[any(arms.size())], 0.5, stats::Interval{0.4, 0.6}});
  decision.left_out.push_back(
      {arms[any(arms.size())], long_name("reason", any(50), 200, load.filler)});
  findings.decisions.push_back(std::move(decision));
}

void add_cell(size_t stratum, const std::string& arm, Random& random, Findings& findings) {
  Latency& latency = findings.latencies.emplace_back();
  latency.stratum = stratum;
  latency.arm = arm;
  OutcomeCounts& outcome = findings.outcomes.emplace_back();
  outcome.phase = findings.strata[stratum].phase;
  outcome.stratum = stratum;
  outcome.arm = arm;
  outcome.attempted = 100;
  outcome.failed = 7;
  if (arm == findings.study.baseline) return;
  Contrast& contrast = findings.contrasts.emplace_back();
  contrast.phase = outcome.phase;
  contrast.stratum = stratum;
  contrast.arm = arm;
  contrast.ratio = 0.5 + random.uniform();
  contrast.ratio_interval = stats::Interval{contrast.ratio * 0.9, contrast.ratio * 1.1};
  PhaseSplit& split = findings.splits.emplace_back();
  split.arm = arm;
  split.breaks_even = 100 + random.uniform();
}

// Findings in all phases; each stratum has other prompt lengths.
Findings made(const Load& load, uint64_t seed) {
  Random random(seed);
  Findings findings;
  findings.study.name = long_name("study", 1, load.name_length, load.filler);
  findings.study.rows = 123'456'789;
  findings.study.started_at = "2026-11-23T10:00:00Z";
  for (size_t i = 0; i < load.arms; ++i) {
    findings.study.arms.push_back(long_name("arm", i, load.name_length, load.filler));
  }
  findings.study.baseline = findings.study.arms[0];
  findings.identity = {{"device", long_name("cpu", 1, load.name_length * 2, load.filler)}};
  for (size_t i = 0; i < load.strata; ++i) {
    Stratum stratum;
    stratum.phase = kRequestPhases[i * std::size(kRequestPhases) / load.strata];
    stratum.model = long_name("model", i % load.models, load.name_length, load.filler);
    stratum.scenario = long_name("scenario", i, load.name_length, load.filler);
    findings.strata.push_back(stratum);
    const auto tokens = static_cast<int64_t>(i * 1000);
    findings.prompts.push_back({tokens, tokens + 999});
    for (const std::string& arm : findings.study.arms) add_cell(i, arm, random, findings);
    add_decision(load, i, random, findings);
  }
  for (size_t i = 0; i < load.kinds; ++i) {
    Finding finding;
    finding.kind = long_name("kind", i, 12);
    finding.severity = Severity::kWarning;
    finding.phase = findings.strata[0].phase;
    finding.stratum = i % load.strata;
    finding.arm = findings.study.arms[i % load.arms];
    finding.text =
        "it says \x1b[2J" + join(std::vector<std::string>(1 + i * 3, "some" + load.filler), " ");
    findings.named.push_back(finding);
    findings.named.push_back(finding);
  }
  return findings;
}

std::vector<std::string> lines_of(const std::string& screen) {
  EXPECT_TRUE(screen.ends_with('\n'));
  return split(screen.substr(0, screen.size() - 1), '\n');
}

// The lines between a heading and the next empty line.
std::vector<std::string> part(const std::vector<std::string>& lines, const std::string& heading) {
  const auto begin = std::ranges::find(lines, heading);
  if (begin == lines.end()) return {};
  return {begin + 1, std::find(begin, lines.end(), "")};
}

// Number of things that a part shows, plus the number that it says it left out.
size_t told(const std::vector<std::string>& lines, std::string_view start) {
  size_t things = 0;
  for (const std::string& line : lines) {
    if (line.starts_with(start)) ++things;
    if (!line.starts_with("  and ") || !line.ends_with(": --full")) continue;
    size_t more = 0;
    std::from_chars(line.data() + 6, line.data() + line.size(), more);
    things += more;
  }
  return things;
}

size_t rows_told(const std::vector<std::string>& lines) {
  const auto rule =
      std::ranges::find_if(lines, [](const auto& l) { return l.contains("  take "); });
  const auto legend = std::find_if(rule, lines.end(), [](const auto& l) {
    return l.starts_with("lead:") || l.starts_with("lost:");
  });
  size_t rows = 0;
  for (const Phase phase : kRequestPhases) {
    rows += told({rule, legend}, fmt::format("{} ", phase_name(phase)));
  }
  const auto more =
      std::find_if(rule, legend, [](const auto& l) { return l.starts_with("  and "); });
  // told() counted the rows left out once a phase.
  return more == legend ? rows : rows - 2 * told({more, more + 1}, "-");
}

void expect_size(const std::string& screen) {
  const std::vector<std::string> lines = lines_of(screen);
  EXPECT_LE(lines.size(), kScreenLines) << screen;
  for (const std::string& line : lines) EXPECT_LE(display_width(line), kScreenColumns) << line;
}

void expect_in_bounds(const Load& load, uint64_t seed) {
  const Findings findings = made(load, seed);
  expect_size(render_screen(findings, load.path, ScreenOf::kFindingsFile));
  const std::string screen = render_screen(findings, load.path);
  expect_size(screen);
  const std::vector<std::string> lines = lines_of(screen);
  EXPECT_THAT(screen, Not(HasSubstr("\x1b")));
  EXPECT_EQ(told(part(lines, "What voids or weakens this:"), "- "), load.kinds) << screen;
  EXPECT_EQ(told(part(lines, "What changes the choice:"), "- "), change_lines(findings).size())
      << screen;
  const size_t rows = rows_told(lines);
  EXPECT_TRUE(rows == answers(findings, SameAnswer::kArms).size() ||
              rows == answers(findings, SameAnswer::kArmOfPhase).size())
      << rows << "\n"
      << screen;
  EXPECT_THAT(screen, HasSubstr("--full"));
}

TEST(Screen, NeverGrowsPastItsLinesAndColumnsNorLeavesAnythingOutInSilence) {
  for (const size_t strata : {1, 2, 9, 30, 400}) {
    for (const size_t kinds : {0, 1, 7, 30}) {
      for (const size_t name_length : {1, 16, 90}) {
        expect_in_bounds({.arms = 7, .strata = strata, .kinds = kinds, .name_length = name_length},
                         strata * 100 + kinds + name_length);
      }
    }
  }
  expect_in_bounds({.arms = 1}, 1);
  expect_in_bounds({.arms = 7, .strata = 400, .kinds = 30, .name_length = 90, .models = 20}, 2);
  const std::string path(4000, 'p');
  expect_in_bounds({.arms = 7, .strata = 400, .kinds = 30, .name_length = 90, .path = path}, 3);
}

// A character of East Asia takes two columns and three bytes, and a combining accent none.
TEST(Screen, NamesOfWideCharactersStayWithinItsLinesAndColumns) {
  for (const char* filler : {"\u6e2c\u5b9a", "\u901f", "e\u0301-\ud55c\uae00", "\uff21"}) {
    for (const size_t strata : {1, 9, 40}) {
      for (const size_t name_length : {9, 40, 91, 250}) {
        const Load load{.arms = 5,
                        .strata = strata,
                        .kinds = 9,
                        .name_length = name_length,
                        .models = 3,
                        .path = long_name("bundle", 1, name_length, filler),
                        .filler = filler};
        expect_in_bounds(load, strata * 1000 + name_length);
      }
    }
  }
}

TEST(Screen, AGpuOfSeveralBackendsIsNamedOnce) {
  Findings findings;
  findings.study.name = "gpu";
  findings.study.arms = {"native", "torch", "processor"};
  findings.identity = {{"device", "Some(R) CPU x 2"},
                       {"arms.native.device", "NVIDIA H200, compute capability 9.0, CUDA 13.0"},
                       {"arms.torch.device", "NVIDIA H200"}};
  EXPECT_EQ(measured_line(findings, 100), "gpu: 3 arms, 0 rows; NVIDIA H200 and Some CPU x 2");
}

TEST(Screen, WideNamesAreShortenedByColumnsAndStayApart) {
  const Load load{.arms = 3, .name_length = 60, .filler = "\u6e2c"};
  const Findings findings = made(load, 11);
  const Table table =
      answer_table(findings, answers(findings, SameAnswer::kArms), SameAnswer::kArms, 80);
  for (const std::string& line : split(table.render(OutputFormat::kTable), '\n')) {
    EXPECT_LE(display_width(line), 80u) << line;
  }
  const std::string first = measured_line(findings, 100);
  EXPECT_LE(display_width(first), 100u) << first;
  EXPECT_THAT(first, HasSubstr("\u6e2c...\u6e2c")) << "both ends of a name are kept";
  EXPECT_THAT(first, HasSubstr("3 arms"));
}

TEST(Screen, ShortNamesStayApart) {
  const Load load{.arms = 7, .strata = 40, .name_length = 90};
  Findings findings = made(load, 5);
  for (size_t i = 0; i < findings.decisions.size(); ++i) {
    Decision& decision = findings.decisions[i];
    decision.kind = Decision::Kind::kOnlyOne;
    decision.arm = findings.study.arms[i % 7];
    decision.tied.clear();
    decision.runner_up.reset();
  }
  const Table table = answer_table(findings, answers(findings, SameAnswer::kLeaderOfPhase),
                                   SameAnswer::kLeaderOfPhase, 100);
  std::map<std::string, int> shown;
  for (const auto& row : table.rows) {
    if (row[0].value == "prefill") ++shown[row[3].value.get<std::string>()];
  }
  EXPECT_EQ(shown.size(), 7u);
}

TEST(Screen, RequirementsAreBesideWhatWasMeasured) {
  Findings findings = made({}, 6);
  findings.requirements = {
      .verdict = Requirements::Verdict::kFailed,
      .criteria = {{"triton", ">= 3", Criterion::Status::kNotApplicable, "no arm is on a GPU"},
                   {"parity", "true", Criterion::Status::kNotMet, "not in 1 of 3 cells"},
                   {"cuda", "true", Criterion::Status::kNotMet, "there is none"}}};
  const auto second = [&] { return lines_of(render_screen(findings, "b"))[1]; };
  EXPECT_EQ(second(),
            "Requirements FAILED: parity true is not met: not in 1 of 3 cells. 1 more is not met.");
  findings.requirements->criteria.resize(1);
  findings.requirements->verdict = Requirements::Verdict::kNotDecided;
  findings.study.complete = true;
  EXPECT_EQ(second(),
            "Requirements NOT DECIDED: none failed, but this run cannot show triton >= 3.");
  findings.requirements->verdict = Requirements::Verdict::kPassed;
  EXPECT_EQ(second(), "Requirements PASSED: the only one holds.");
}

// Five prompt lengths: static is faster on the first three, about the same on the others.
TEST(Screen, BreakEvenLengthsAreWholeTokens) {
  Findings findings = small_findings();
  findings.splits.resize(2);
  for (PhaseSplit& split : findings.splits) split.arm = "static";
  findings.splits[0].breaks_even = 9.77;
  findings.splits[1].breaks_even.reset();
  EXPECT_THAT(
      change_lines(findings),
      testing::Contains("By the means, static gains in prefill and loses in decoding: it is "
                        "slower in total from 10 new tokens on."));
  findings.splits[1].breaks_even = 30;
  EXPECT_THAT(change_lines(findings),
              testing::Contains(HasSubstr("from 10 new tokens on where it turns first, and "
                                          "from 30 new tokens on where it turns last.")));
}

TEST(Screen, PromptLengthsWithOneDecisionAreOneRow) {
  SyntheticBundle bundle(31);
  for (const auto& [tokens, share] :
       {std::pair{10, 0.5}, {30, 0.55}, {80, 0.6}, {200, 0.99}, {400, 0.99}}) {
    SyntheticCell cell{.arm = "eager",
                       .scenario = fmt::format("single_{}", tokens),
                       .prompt_tokens = tokens,
                       .noise = 0.01};
    bundle.add(cell);
    cell.arm = "static";
    cell.mean_ms *= share;
    bundle.add(cell);
  }
  AnalysisOptions options;
  options.resamples = 500;
  const std::string screen = render_screen(*analyze(bundle.build(), options, nullptr), "b");
  EXPECT_THAT(screen, HasSubstr("synthetic: gpt2-25m, 2 arms, 10-400 prompt tokens, 300 rows; "));
  EXPECT_THAT(screen, ContainsRegex("\nprefill +10-80  static +0.50-0.60 \\[0.[0-9]+, 0.[0-9]+\\] +"
                                    "eager +6[0-9]-[0-9]+ % +0  faster\n"));
  EXPECT_THAT(screen,
              ContainsRegex("\nprefill +200-400  static +0.9.*eager +[0-9.% -]+ +0  equivalent\n"));
  EXPECT_THAT(screen, ContainsRegex("faster: than every\\s+other arm. equivalent: to the"));
}

// Names that an ordinary study has, where lines are left.
TEST(Screen, LongNamesGoOnInAFurtherLineAndAreWhole) {
  Findings findings = made({.arms = 4, .strata = 3}, 12);
  const std::vector<std::string> names = {"eager-dynamic-cache-fp32", "compiled-dynamic-cache-fp32",
                                          "compiled-static-cache-fp32", "eager-static-cache-fp32"};
  std::map<std::string, std::string> renamed;
  for (size_t i = 0; i < 4; ++i) renamed[findings.study.arms[i]] = names[i];
  findings.study.arms = names;
  findings.study.baseline = names[0];
  for (Contrast& contrast : findings.contrasts) contrast.arm = renamed[contrast.arm];
  for (Decision& decision : findings.decisions) {
    decision.kind = Decision::Kind::kBest;
    decision.arm = names[2];
    decision.tied.clear();
    decision.runner_up = Rival{names[1], 0.8, stats::Interval{0.7, 0.9}, 0.1};
  }
  const std::string screen = render_screen(findings, "b");
  expect_size(screen);
  EXPECT_THAT(screen, Not(HasSubstr("compil...")));
  EXPECT_THAT(screen, ContainsRegex("\nprefill .*compiled-.* 25 % +[0-9]+  faster\n +[a-z]"))
      << screen;
}

// Six arms of long names on both sides of a long ratio: whole names are worth more than a column of
// zeros, and than the lead.
TEST(Screen, ColumnsGiveWayToWholeNames) {
  Findings findings = made({.arms = 4, .strata = 3}, 12);
  const std::vector<std::string> names = {"reduceoverhead-dynamic", "reduceoverhead-static",
                                          "symbolicautotune-dynamic", "symbolicautotune-static"};
  std::map<std::string, std::string> renamed;
  for (size_t i = 0; i < 4; ++i) renamed[findings.study.arms[i]] = names[i];
  findings.study.arms = names;
  findings.study.baseline = names[0];
  for (Contrast& contrast : findings.contrasts) {
    contrast.arm = renamed[contrast.arm];
    contrast.ratio_interval = stats::Interval{0.123456, 12.3456};
  }
  for (OutcomeCounts& outcome : findings.outcomes) outcome.failed = 0;
  for (Decision& decision : findings.decisions) {
    decision.kind = Decision::Kind::kUndecided;
    decision.arm = names[2];
    decision.tied.assign(2, Rival{names[1], 0.8, stats::Interval{0.7, 0.9}, 0.1});
    decision.runner_up = Rival{names[1], 0.8, stats::Interval{0.7, 0.9}, 0.1};
  }
  const std::string without_losses = render_screen(findings, "b");
  expect_size(without_losses);
  EXPECT_THAT(without_losses, Not(HasSubstr("...#")));
  EXPECT_THAT(without_losses, Not(HasSubstr("  lost  "))) << without_losses;

  findings.outcomes.front().failed = 1;
  const std::string with_losses = render_screen(findings, "b");
  expect_size(with_losses);
  EXPECT_THAT(with_losses, HasSubstr("  lost  ")) << with_losses;
  EXPECT_THAT(with_losses, HasSubstr("lost: rows of all arms"));
}

TEST(Screen, KindsThatHaveNoRoomAreNamed) {
  const Findings findings = made({.arms = 7, .strata = 30, .kinds = 12}, 13);
  const std::string screen = render_screen(findings, "b");
  expect_size(screen);
  EXPECT_THAT(screen, ContainsRegex("\n  and [0-9]+ more kinds of warnings \\(kind[0-9]+"));
}

// Figures of few processes are ranges, whose columns are the widest.
TEST(Screen, RangesFitBesideLongNames) {
  Findings findings = made({.arms = 3, .strata = 3, .name_length = 40}, 7);
  for (OutcomeCounts& outcome : findings.outcomes) outcome.failed = 0;
  for (Latency& latency : findings.latencies) {
    latency.mean = 0.01717;
    latency.mean_process_range = stats::Interval{0.01681, 0.01752};
  }
  for (Contrast& contrast : findings.contrasts) {
    contrast.ratio = 0.9961;
    contrast.ratio_interval.reset();
    contrast.ratio_process_range = stats::Interval{0.9941, 0.9981};
  }
  const std::string screen = render_screen(findings, "b", ScreenOf::kBundle, 80);
  EXPECT_THAT(screen, HasSubstr("range 0.0168-0.0175"));
  EXPECT_THAT(screen, HasSubstr("range 0.99-0.998  undecided")) << "verdicts are whole";
  EXPECT_THAT(screen, HasSubstr("prefill    a...#2  ")) << "arms stay apart";
  for (const std::string& line : lines_of(screen)) EXPECT_LE(display_width(line), 80u) << screen;
}

// A ratio that isn't 1 doesn't read as 1 beside its verdict.
TEST(Screen, AnIntervalThatEndsBelowOneReadsSo) {
  Findings findings = made({}, 7);
  Decision& decision = findings.decisions[0];
  decision.kind = Decision::Kind::kBest;
  decision.arm = findings.study.arms[1];
  decision.tied.clear();
  findings.contrasts[0].ratio = 0.96;
  findings.contrasts[0].ratio_interval = stats::Interval{0.92, 0.9981};
  EXPECT_THAT(render_screen(findings, "b"), HasSubstr("0.96 [0.92, 0.998]"));
}

TEST(FindingGroups, AreOfOneKindOverPhasesAndArmsAndNameTheWorst) {
  Findings findings = made({.arms = 2, .strata = 3}, 8);
  const auto add = [&](const std::string& kind, std::optional<size_t> stratum, size_t arm,
                       double size) {
    Finding finding;
    finding.kind = kind;
    finding.severity = Severity::kWarning;
    finding.stratum = stratum;
    if (stratum) finding.phase = findings.strata[*stratum].phase;
    if (stratum) finding.arm = findings.study.arms[arm];
    finding.text = fmt::format("by {}", size);
    finding.size = size;
    findings.named.push_back(finding);
  };
  add("drift", 0, 1, 0.1);
  add("drift", 1, 0, 0.5);
  add("drift", 1, 0, 0.2);  // the same cell
  add("environment", std::nullopt, 0, 0);
  add("environment", std::nullopt, 0, 0);
  findings.named.back().text = "loaded";
  add("throttled", 2, 0, 0);
  EXPECT_THAT(
      warning_lines(findings),
      testing::ElementsAre(fmt::format("drift (2 of 6 cells, worst: kv_decode {} {}): by 0.5",
                                       findings.strata[1].scenario, findings.study.arms[0]),
                           "environment (2 times, first): by 0",
                           fmt::format("throttled (e2e_kv {} {}): by 0",
                                       findings.strata[2].scenario, findings.study.arms[0])));
  findings.named.back().severity = Severity::kNote;
  EXPECT_EQ(warning_lines(findings).size(), 2u) << "notes are for --full";
}

TEST(Fitting, KeepsBothEndsOfANameAndCountsCharacters) {
  EXPECT_EQ(shortened("compiled-static", 15), "compiled-static");
  EXPECT_EQ(shortened("compiled-static", 10), "comp...tic");
  EXPECT_EQ(shortened("\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9", 5), "\u00e9...\u00e9");
  EXPECT_EQ(shortened_apart(std::vector<std::string>{"prefix-1-suffix", "prefix-2-suffix"}, 8),
            (std::vector<std::string>{"pre...#1", "pre...#2"}));
}

TEST(Fitting, WrapsAtSpacesAndBreaksLongWords) {
  EXPECT_EQ(wrapped_lines("one two three", 8, 2), (std::vector<std::string>{"one two", "  three"}));
  EXPECT_EQ(wrapped_lines("abcdefghij k", 6, 2),
            (std::vector<std::string>{"abcdef", "  ghij", "  k"}));
  EXPECT_EQ(wrapped_lines("one abcdefghij k", 6, 2),
            (std::vector<std::string>{"one ab", "  cdef", "  ghij", "  k"}));
  EXPECT_EQ(wrapped_lines("one tw abcdefghij", 6, 2),
            (std::vector<std::string>{"one tw", "  abcd", "  efgh", "  ij"}));
  EXPECT_EQ(wrapped_lines("one two three four", 8, 0, 2),
            (std::vector<std::string>{"one two", "three..."}));
}

}  // namespace
}  // namespace assay
