// For tests: the named findings of one kind.
#pragma once

#include <string>
#include <vector>

#include "analysis/analyze.h"
#include "analysis/rows/synthetic_bundle.h"

namespace assay {

inline std::vector<Finding> of_kind(const Findings& findings, const std::string& kind) {
  std::vector<Finding> found;
  for (const Finding& finding : findings.named) {
    if (finding.kind == kind) found.push_back(finding);
  }
  return found;
}

// Findings of the bundle's analysis with so many resamples.
inline std::vector<Finding> of_kind(SyntheticBundle& bundle, const std::string& kind,
                                    int64_t resamples = 300) {
  AnalysisOptions options;
  options.resamples = resamples;
  return of_kind(*analyze(bundle.build(), options, nullptr), kind);
}

}  // namespace assay
