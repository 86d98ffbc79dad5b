#include "analysis/findings/quality.h"

#include <algorithm>

#include "base/text/text.h"

namespace assay {

const ModelQuality* quality_of(const std::vector<ArmQuality>& all, const std::string& model,
                               const std::string& arm) {
  const auto at = std::ranges::find_if(all, [&](const ArmQuality& one) {
    return one.model == model && one.arm == arm && one.beside_model.problem.empty();
  });
  return at == all.end() ? nullptr : &at->beside_model;
}

std::string quality_text(const ModelQuality& quality) {
  return fmt::format("KL {}", format_significant(quality.kl_mean.value, 2));
}

}  // namespace assay
