// Axes of the measured strata, and their gaps.
#include "routing/unmeasured.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

#include "base/text/listed.h"
#include "base/text/text.h"

namespace assay {
namespace {

// "1, 2 and 4".
std::string numbers_text(const std::set<int64_t>& numbers) {
  std::vector<std::string> texts;
  for (const int64_t number : numbers) texts.push_back(fmt::format("{}", number));
  return listed(texts);
}

// Lengths, batches and new tokens of one model's phase.
struct MeasuredAxes {
  std::map<int64_t, int64_t> lengths;  // shortest to longest
  std::set<int64_t> batches;
  std::set<int64_t> new_tokens;
};

std::string outside_text(const MeasuredAxes& axes, bool with_new_tokens) {
  std::vector<std::string> gaps;
  const int64_t shortest = axes.lengths.begin()->first;
  int64_t longest = shortest;
  for (const auto& [from, to] : axes.lengths) {
    if (from > longest + 1) gaps.push_back(fmt::format("{}-{}", longest + 1, from - 1));
    longest = std::max(longest, to);
  }
  std::string text = shortest == longest
                         ? fmt::format("prompts of other lengths than {} tokens", shortest)
                         : fmt::format("prompts below {} and above {} tokens", shortest, longest);
  if (!gaps.empty()) text += fmt::format(", and between measured lengths: {}", join(gaps, ", "));
  text += fmt::format("; batches other than {}", numbers_text(axes.batches));
  if (with_new_tokens) {
    text += fmt::format("; new tokens other than {}", numbers_text(axes.new_tokens));
  }
  return text;
}

// A sentence for models of a phase that were measured alike.
struct OutsideOfModels {
  Phase phase;
  std::string text;
  std::vector<std::string> models;
};

// Texts by phase and model, in the order in which the strata have them.
std::vector<OutsideOfModels> outside_of_models(const Samples& samples) {
  std::vector<std::pair<Phase, std::string>> order;
  std::map<std::pair<Phase, std::string>, MeasuredAxes> axes;
  for (size_t i = 0; i < samples.strata.size(); ++i) {
    const Stratum& stratum = samples.strata[i];
    if (stratum.phase == Phase::kLoad) continue;
    const std::pair key(stratum.phase, stratum.model);
    const auto [at, fresh] = axes.try_emplace(key);
    if (fresh) order.push_back(key);
    int64_t& longest = at->second.lengths[samples.prompts[i].shortest];
    longest = std::max(longest, samples.prompts[i].longest);
    at->second.batches.insert(stratum.batch);
    at->second.new_tokens.insert(stratum.new_tokens);
  }
  std::vector<OutsideOfModels> outside;
  for (const auto& key : order) {
    const auto& [phase, model] = key;
    const std::string text = outside_text(axes[key], decodes(phase));
    auto alike = std::ranges::find_if(outside, [&](const OutsideOfModels& one) {
      return one.phase == phase && one.text == text;
    });
    if (alike == outside.end()) alike = outside.insert(outside.end(), {phase, text, {}});
    alike->models.push_back(model);
  }
  return outside;
}

// "fast on 2 strata (prefill 200 tokens, ...)"; empty: the arm has every stratum.
std::string lacking_text(const Samples& samples, size_t arm) {
  std::vector<std::string> missing;
  for (size_t i = 0; i < samples.strata.size(); ++i) {
    if (samples.find(i, arm) != nullptr) continue;
    missing.push_back(
        fmt::format("{} {}", phase_name(samples.strata[i].phase), prompt_name(samples.strata[i])));
  }
  if (missing.empty()) return "";
  return fmt::format("{} on {} ({}{})", samples.arms[arm],
                     counted(std::ssize(missing), "stratum", "strata"), missing.front(),
                     missing.size() > 1 ? ", ..." : "");
}

}  // namespace

std::vector<std::string> unmeasured(const Samples& samples) {
  std::vector<std::string> out;
  for (const OutsideOfModels& one : outside_of_models(samples)) {
    out.push_back(
        fmt::format("{} of {}: {}", phase_name(one.phase), join(one.models, ", "), one.text));
  }
  for (const Phase phase : kRequestPhases) {
    if (std::ranges::find(samples.strata, phase, &Stratum::phase) != samples.strata.end()) continue;
    out.push_back(fmt::format("all of {}", phase_name(phase)));
  }
  for (size_t arm = 0; arm < samples.arms.size(); ++arm) {
    std::string lacking = lacking_text(samples, arm);
    if (!lacking.empty()) out.push_back(std::move(lacking));
  }
  return out;
}

}  // namespace assay
