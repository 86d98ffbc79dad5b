// Requirements in words.
#include "analysis/findings/requirements.h"

#include "base/records/enum_words.h"

namespace assay {

std::string_view criterion_status_name(Criterion::Status status) {
  return word_of(status, {"met", "not_met", "not_applicable"});
}

std::string_view requirements_verdict_name(Requirements::Verdict verdict) {
  return word_of(verdict, {"passed", "failed", "not_decided"});
}

}  // namespace assay
