// JSON of figures that may be absent, of intervals, tests and strata, as all judgements write them.
#pragma once

#include <optional>

#include "analysis/findings/findings.h"

namespace assay {

template <typename T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

inline Json text_json(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

inline Json stratum_json(const Stratum& stratum) {
  return {{"phase", phase_name(stratum.phase)},
          {"model", stratum.model},
          {"scenario", stratum.scenario},
          {"new_tokens", stratum.new_tokens},
          {"batch", stratum.batch}};
}

inline Json interval_json(const std::optional<stats::Interval>& interval) {
  if (!interval) return nullptr;
  return Json::array({interval->low, interval->high});
}

inline Json test_json(const std::optional<stats::TestResult>& test,
                      const std::optional<double>& p_holm) {
  if (!test) return nullptr;
  return {{"t", test->statistic},
          {"df", optional_json(test->df)},
          {"p", test->p},
          {"ln_p", test->log_p},
          {"p_holm", optional_json(p_holm)}};
}

inline Json family_json(const TestFamily& family) {
  return {{"name", family.name},
          {"method", "holm"},
          {"alpha", family.alpha},
          {"members", family.members}};
}

}  // namespace assay
