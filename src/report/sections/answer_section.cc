// The section that answers the first questions: how fast each arm is, and beside the baseline.
#include "report/phase_answers.h"
#include "report/sections/sections.h"

namespace assay {

ReportSection answer_section(const Findings& findings) {
  const std::vector<PhaseAnswer> answers = phase_answers(findings);
  ReportSection section{.title = "Answers", .tables = {arm_table(answers)}};
  if (!findings.study.complete) {
    section.lines.emplace_back(
        "INCOMPLETE RUN: these figures cover the rows committed so far and will change.");
  }
  for (const std::string& line : as_list(answer_sentences(answers))) section.lines.push_back(line);
  section.lines.push_back(arm_legend(answers, findings.study.baseline));
  return section;
}

}  // namespace assay
