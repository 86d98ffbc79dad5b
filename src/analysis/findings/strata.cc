#include "analysis/findings/strata.h"

#include <map>
#include <set>

#include "base/text/text.h"

namespace assay {

std::string tokens_text(const PromptRange& range) {
  return range.shortest == range.longest ? std::to_string(range.shortest)
                                         : fmt::format("{}-{}", range.shortest, range.longest);
}

void name_prompts(const std::vector<PromptRange>& ranges, std::vector<Stratum>& strata) {
  const auto key = [&](size_t i) {
    const Stratum& of = strata[i];
    return std::tuple(of.phase, std::string_view(of.model), of.new_tokens, of.batch,
                      ranges[i].shortest, ranges[i].longest);
  };
  // The last part of a load's scenario names the point: "4 at once".
  std::set<std::pair<int64_t, int64_t>> loaded;
  for (size_t i = 0; i < strata.size(); ++i) {
    if (strata[i].phase == Phase::kLoad) loaded.emplace(ranges[i].shortest, ranges[i].longest);
  }
  std::map<decltype(key(0)), size_t> alike;
  for (size_t i = 0; i < strata.size(); ++i) ++alike[key(i)];
  for (size_t i = 0; i < strata.size(); ++i) {
    if (ranges[i].longest == 0) continue;
    if (strata[i].phase == Phase::kLoad) {
      const size_t comma = strata[i].scenario.rfind(", ");
      const std::string point =
          strata[i].scenario.substr(comma == std::string::npos ? 0 : comma + 2);
      strata[i].prompt =
          loaded.size() == 1 ? point : fmt::format("{} tokens, {}", tokens_text(ranges[i]), point);
      continue;
    }
    strata[i].prompt = tokens_text(ranges[i]) + (ranges[i].longest == 1 ? " token" : " tokens");
    if (alike[key(i)] > 1) strata[i].prompt += fmt::format(" ({})", strata[i].scenario);
  }
}

const std::string& prompt_name(const Stratum& stratum) {
  return stratum.prompt.empty() ? stratum.scenario : stratum.prompt;
}

}  // namespace assay
