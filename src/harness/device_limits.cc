// Arms of one device share what was measured for the first.
#include "harness/device_limits.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

namespace assay {

std::map<size_t, ReadLimit> measure_read_limits(const Study& study, uint64_t largest,
                                                RunContext& context) {
  std::map<size_t, ReadLimit> limits;
  std::vector<std::pair<const StudyArm*, std::optional<ReadLimit>>> measured;
  for (size_t arm = 0; arm < study.arms.size(); ++arm) {
    const StudyArm& study_arm = study.arms[arm];
    auto known = std::ranges::find_if(
        measured, [&](const auto& one) { return share_processor(*one.first, study_arm); });
    if (known == measured.end()) {
      measured.emplace_back(&study_arm,
                            context.backends.at(study_arm.backend)->read_limit(study_arm, largest));
      known = std::prev(measured.end());
    }
    if (known->second) limits.emplace(arm, *known->second);
  }
  return limits;
}

MatrixLimits measure_matrix_limits(const Study& study, RunContext& context) {
  MatrixLimits limits;
  if (std::ranges::find(study.phases, Phase::kPrefill) == study.phases.end()) return limits;
  std::set<std::string> types;
  for (const StudyModel& model : study.models) {
    if (!model.dtype.empty()) types.insert(model.dtype);
    if (model.dtype.empty()) types.insert({"fp32", "fp16", "bf16"});
  }
  for (size_t arm = 0; arm < study.arms.size(); ++arm) {
    const StudyArm& of = study.arms[arm];
    for (const std::string& type : types) {
      const auto same = std::ranges::find_if(limits, [&](const auto& known) {
        return known.first.second == type && share_processor(study.arms[known.first.first], of);
      });
      const auto limit = same != limits.end()
                             ? std::optional(same->second)
                             : context.backends.at(of.backend)->matrix_limit(of, type);
      if (limit) limits[{arm, type}] = *limit;
    }
  }
  return limits;
}

}  // namespace assay
