// The one-screen verdict as HTML.
#include <algorithm>

#include "base/files/hash.h"
#include "base/text/counts.h"
#include "report/html/elements.h"
#include "report/html/page_parts.h"
#include "report/load_report.h"
#include "report/phase_answers.h"
#include "report/screen/parts.h"

namespace assay {
namespace {

constexpr size_t kNoLimit = 4000;    // columns: names are whole
constexpr size_t kMostChoices = 12;  // rows; else those of whole phases
constexpr size_t kMostLines = 20;    // of a list

// The choices as on the screen: rows of whole phases if those of prompt lengths are too many.
std::string choices_html(const Findings& findings) {
  SameAnswer same = SameAnswer::kArms;
  std::vector<Answer> rows = answers(findings, same);
  std::string all;
  if (rows.size() > kMostChoices) {
    all = fmt::format(
        "<details><summary>Each of the {} answers by prompt length</summary>{}</details>\n",
        rows.size(),
        table_html(answer_table(findings, rows, same, kNoLimit), "answers by prompt length"));
    same = SameAnswer::kLeaderOfPhase;
    rows = answers(findings, same);
  }
  if (rows.empty()) return element("p", "The bundle has no rows from which to choose an arm.");
  return choice_html(answer_table(findings, rows, same, kNoLimit)) +
         element("p", answer_legend(findings), "class=mute") + all;
}

std::vector<std::string> limited(std::vector<std::string> lines) {
  if (lines.size() <= kMostLines) return lines;
  const size_t more = lines.size() - kMostLines;
  lines.resize(kMostLines);
  lines.push_back(fmt::format("and {} more: report.md", more));
  return lines;
}

std::string alerts_html(const Findings& findings) {
  std::string out;
  if (!findings.study.complete) {
    out += element("p",
                   "INCOMPLETE RUN: these figures cover the rows committed so far and will change.",
                   "class=alert");
  }
  const std::string requirements = requirement_line(findings);
  if (!requirements.empty()) {
    const bool passed = findings.requirements->verdict == Requirements::Verdict::kPassed;
    out += element("p", requirements, passed ? "" : "class=alert");
  }
  return out;
}

// Each phase's sentence, and the arms' figures.
std::string answers_html(const Findings& findings) {
  const std::vector<PhaseAnswer> answers = phase_answers(findings);
  std::string out;
  for (const std::string& sentence : answer_sentences(answers)) {
    out += element("p", sentence, "class=said");
  }
  const bool loads_alone = std::ranges::all_of(
      findings.strata, [](const Stratum& of) { return of.phase == Phase::kLoad; });
  if (loads_alone && !findings.load.points.empty()) {
    return out + choice_html(load_table(findings), "arms under load") +
           element("p", load_legend(findings), "class=mute");
  }
  const Table table = arm_table(answers);
  if (table.rows.empty()) return out;
  return out + choice_html(table, "arms beside the baseline") +
         element("p", arm_legend(answers, findings.study.baseline), "class=mute");
}

}  // namespace

std::string verdict_html(const Findings& findings) {
  return element("p", measured_line(findings, kNoLimit), "class=mute") + alerts_html(findings) +
         answers_html(findings) +
         (findings.study.arms.size() > 1 || findings.load.points.empty()
              ? element("h3", "The arm to take") + choices_html(findings)
              : "") +
         list_html("What voids or weakens this", limited(warning_lines(findings))) +
         list_html("What changes the choice", limited(change_lines(findings)));
}

std::string short_verdict_html(const Findings& findings) {
  const std::vector<std::string> warnings = warning_lines(findings);
  return element("p", measured_line(findings, kNoLimit), "class=mute") + alerts_html(findings) +
         choices_html(findings) +
         (warnings.empty()
              ? ""
              : fmt::format("<details><summary>{}</summary>{}</details>\n",
                            counted(warnings.size(), "kind of warning", "kinds of warnings"),
                            list_html("What voids or weakens this", warnings)));
}

std::string identity_hash(const Findings& findings) {
  std::string lines;
  for (const auto& [name, value] : findings.identity) lines += fmt::format("{}={}\n", name, value);
  return sha256_hex(lines);
}

}  // namespace assay
