#include "analysis/rows/quality.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/records/lenient_json.h"

namespace assay {

std::string own_weights(const Group& group) {
  if (group.evidence == nullptr) return "";
  return text_member(group.evidence->requested.options, "quantization");
}

std::vector<ArmQuality> arm_qualities(const Samples& samples) {
  const auto model_of = [&](const Group& group) { return samples.strata[group.stratum].model; };
  // Products in fp8 round more than the weights.
  const auto kind_of = [&](const Group& group) {
    const std::string dtype =
        group.evidence == nullptr ? "" : text_member(group.evidence->requested.options, "dtype");
    return std::tuple(model_of(group), own_weights(group), dtype);
  };
  std::map<std::tuple<std::string, std::string, std::string>, const ModelQuality*> known;
  for (const Group& group : samples.groups) {
    if (group.evidence == nullptr || !group.evidence->quality) continue;
    const ModelQuality*& best = known[kind_of(group)];
    if (best == nullptr || !best->problem.empty()) best = &*group.evidence->quality;
  }
  std::vector<ArmQuality> all;
  for (const Group& group : samples.groups) {
    const auto at = known.find(kind_of(group));
    const std::string& arm = samples.arms[group.arm];
    const auto is_told = [&](const ArmQuality& one) {
      return one.model == model_of(group) && one.arm == arm;
    };
    if (at == known.end() || std::ranges::any_of(all, is_told)) continue;
    all.push_back({model_of(group), arm, *at->second});
  }
  return all;
}

}  // namespace assay
