#include "report/slow_calls.h"

#include <algorithm>

#include "analysis/describe/slow_calls.h"
#include "base/text/listed.h"
#include "base/text/text.h"
#include "report/screen/parts.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

struct CauseWords {
  std::string_view kind;
  std::string_view one;
  std::string_view many;
  std::string_view cell;  // in a table
};

constexpr CauseWords kWords[] = {
    {"recompile", "carries a recompile", "carry a recompile", "recompile"},
    {"ran_eager", "ran eager", "ran eager", "ran eager"},
    {"throttled", "ran at a lowered clock", "ran at a lowered clock", "throttled"},
    {"gpu_shared", "ran beside another program on the GPU", "ran beside another program on the GPU",
     "GPU shared"},
    {"others_slow", "is next to a slow call of another arm", "are next to slow calls of other arms",
     "others slow"},
    {"slow_processor", "has a slow yardstick behind it", "have a slow yardstick behind them",
     "slow processor"},
    {"first_of_process", "is the first of its process", "are the first of their process",
     "first of process"},
    {"one_process", "is of one process", "are of one process", "one process"},
};

const CauseWords& words_of(const SlowCause& cause) {
  const auto at = std::ranges::find(kWords, cause.kind, &CauseWords::kind);
  // Findings that somebody changed may name any kind.
  static constexpr CauseWords kUnknown{"", "has another cause", "have another cause", "other"};
  return at == std::end(kWords) ? kUnknown : *at;
}

std::string ms(double value) {
  return format_significant(value, 3) + " ms";
}

std::string high_name(const ArmSlowCalls& calls) {
  return calls.high_is_max ? "the slowest call" : "p99";
}

// "3 carry a recompile (0 of the other 294 calls)".
std::string causes_text(const ArmSlowCalls& calls) {
  const int64_t others = calls.n - calls.slow;
  std::vector<std::string> parts;
  for (const SlowCause& cause : calls.causes) {
    const CauseWords& words = words_of(cause);
    parts.push_back(fmt::format("{} {} ({} of the other {})", cause.slow,
                                cause.slow == 1 ? words.one : words.many, cause.others,
                                counted(others, "call")));
  }
  if (calls.unexplained() > 0) {
    parts.push_back(fmt::format("{} {} no recorded cause", calls.unexplained(),
                                calls.unexplained() == 1 ? "has" : "have"));
  }
  return listed(parts);
}

std::string place_text(const Findings& findings, const ArmSlowCalls& calls) {
  const std::string condition = condition_label(findings, calls.stratum);
  return fmt::format("{}, {} prompt tokens{}, {}", phase_name(findings.strata[calls.stratum].phase),
                     tokens_text(findings.prompts[calls.stratum]),
                     condition.empty() ? "" : ", " + condition, calls.arm);
}

std::string sentence(const Findings& findings, const ArmSlowCalls& calls) {
  std::string text =
      fmt::format("{}: {} takes {}, {} times p50 ({}). {} of {} {} slow (above {}): {}.",
                  place_text(findings, calls), high_name(calls), ms(calls.high),
                  format_significant(calls.high / calls.p50, 3), ms(calls.p50), calls.slow,
                  counted(calls.n, "call"), calls.slow == 1 ? "is" : "are", ms(calls.limit),
                  causes_text(calls));
  if (calls.high_without) {
    text += fmt::format(" Without those that have a cause it is {}.", ms(*calls.high_without));
  }
  return text;
}

std::string cause_cell(const ArmSlowCalls& calls) {
  std::vector<std::string> parts;
  for (const SlowCause& cause : calls.causes) {
    parts.push_back(fmt::format("{} {}", cause.slow, words_of(cause).cell));
  }
  if (calls.unexplained() > 0) parts.push_back(fmt::format("{} unknown", calls.unexplained()));
  return join(parts, ", ");
}

// The longest tail first.
std::vector<const ArmSlowCalls*> by_length(const Findings& findings) {
  std::vector<const ArmSlowCalls*> all;
  for (const ArmSlowCalls& calls : findings.slow_calls) all.push_back(&calls);
  std::ranges::stable_sort(all, std::greater(),
                           [](const ArmSlowCalls* calls) { return calls->high / calls->p50; });
  return all;
}

std::vector<std::string> worst_of_phases(const Findings& findings) {
  std::vector<std::string> sentences;
  std::vector<Phase> told;
  for (const ArmSlowCalls* calls : by_length(findings)) {
    const Phase phase = findings.strata[calls->stratum].phase;
    if (std::ranges::find(told, phase) != told.end()) continue;
    told.push_back(phase);
    sentences.push_back(sentence(findings, *calls));
  }
  return sentences;
}

Table slow_table(const Findings& findings) {
  Table table{.columns =
                  columns_of("<phase|<stratum|<arm|p50|high|high/p50|slow|without|=beside them")};
  for (const ArmSlowCalls* calls : by_length(findings)) {
    table.rows.push_back(
        {phase_name(findings.strata[calls->stratum].phase), stratum_label(findings, calls->stratum),
         calls->arm, TableCell(calls->p50, 3), TableCell(calls->high, 3),
         TableCell(calls->high / calls->p50, 3), fmt::format("{}/{}", calls->slow, calls->n),
         TableCell(calls->high_without, 3), cause_cell(*calls)});
  }
  return table;
}

std::string legend(const Findings& findings) {
  const bool maxima = std::ranges::any_of(findings.slow_calls, &ArmSlowCalls::high_is_max);
  return fmt::format(
      "high: {}, ms; slow: calls beyond Tukey's upper fence and {} times p50; beside them: "
      "recorded "
      "causes, or such as slow calls have more often than others; without: high when those are "
      "gone.",
      maxima ? "p99, or the slowest call where 100 rows are lacking" : "p99", kLeastSlowFactor);
}

std::string nothing_slow(const Findings& findings) {
  int64_t judged = 0;
  for (const Latency& latency : findings.latencies) {
    judged += latency.n >= kLeastForSlowCalls ? latency.n : 0;
  }
  if (judged == 0) {
    return fmt::format("No arm has the {} warm calls on a condition that tell a slow one.",
                       kLeastForSlowCalls);
  }
  return fmt::format(
      "No call is slow: of {} none lies beyond Tukey's upper fence and {} times p50.",
      counted(judged, "call"), kLeastSlowFactor);
}

}  // namespace

Document slow_calls_document(const Findings& findings) {
  Document document;
  document.title = "Why p99 is high";
  document.outcome =
      findings.slow_calls.empty() ? std::vector{nothing_slow(findings)} : worst_of_phases(findings);
  if (!findings.slow_calls.empty()) {
    document.verdicts = slow_table(findings);
    document.legend = legend(findings);
  }
  return document;
}

ReportSection slow_calls_section(const Findings& findings) {
  ReportSection section{.title = "Slow calls"};
  if (findings.slow_calls.empty()) return section;
  section.lines = worst_of_phases(findings);
  section.lines.push_back(legend(findings));
  section.tables.push_back(slow_table(findings));
  section.folded = true;
  return section;
}

}  // namespace assay
