// The study's demands on the stack and their verdicts, criterion by criterion.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct Criterion {
  enum class Status {
    kMet,
    kNotMet,         // `reason` names the first cell that shows it
    kNotApplicable,  // nothing in this run could show it: never counts as met
  };
  std::string name;      // cuda, triton, compiler_real, ...: as in the study
  std::string expected;  // "true", ">= 3", "<= 0"
  Status status = Status::kNotApplicable;
  std::string reason;
};
std::string_view criterion_status_name(Criterion::Status status);  // met | not_met | not_applicable

struct Requirements {
  enum class Verdict {
    kPassed,      // all are met, by a run that came to its end
    kFailed,      // one isn't
    kNotDecided,  // none fails, but not all could be shown
  };
  Verdict verdict = Verdict::kNotDecided;
  std::vector<Criterion> criteria;  // in the order of docs/artifact-schema.md
};
std::string_view requirements_verdict_name(Requirements::Verdict verdict);

}  // namespace assay
