// The section on the study's requirements: each one, and if the stack meets it.
#include "base/records/enum_words.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

std::string verdict_line(const Requirements& requirements) {
  switch (requirements.verdict) {
    case Requirements::Verdict::kPassed:
      return "PASSED: the run shows all that the study requires.";
    case Requirements::Verdict::kFailed:
      return "FAILED: this is not the stack that the study requires.";
    case Requirements::Verdict::kNotDecided:
      break;
  }
  return "NOT DECIDED: no requirement failed, but this run cannot show all of them.";
}

std::string status_text(Criterion::Status status) {
  return std::string(word_of(status, {"met", "NOT MET", "not applicable here"}));
}

}  // namespace

ReportSection requirement_section(const Findings& findings) {
  ReportSection section{"Requirements of the study", {}, {}};
  if (!findings.study.complete) section.lines.emplace_back("The run did not finish.");
  section.lines.push_back(verdict_line(*findings.requirements));
  for (const Criterion& criterion : findings.requirements->criteria) {
    section.lines.push_back(fmt::format("- {} {}: {}: {}.", criterion.name, criterion.expected,
                                        status_text(criterion.status), criterion.reason));
  }
  return section;
}

}  // namespace assay
