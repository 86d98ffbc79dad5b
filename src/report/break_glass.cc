// The decision rule of a policy in about ten lines, for a person without the program.
#include <algorithm>
#include <map>

#include "base/text.h"
#include "report/route_tables.h"

namespace assay {
namespace {

// Prompt lengths for which an arm is taken: of a rule, and of those that go on from it.
struct TakenRange {
  PolicyRule first;
  int64_t longest = 0;

  bool goes_on_with(const PolicyRule& rule) const {
    return longest + 1 == rule.shortest && first.model == rule.model && first.batch == rule.batch &&
           first.new_tokens == rule.new_tokens;
  }
};

// "10-80 tokens (batch 2)", each once.
std::vector<std::string> range_texts(const std::vector<TakenRange>& ranges) {
  std::vector<std::string> texts;
  for (const TakenRange& range : ranges) {
    std::string text = fmt::format("{} tokens", lengths_text(range.first.shortest, range.longest));
    if (range.first.batch != 1) text += fmt::format(" (batch {})", range.first.batch);
    if (std::ranges::find(texts, text) == texts.end()) texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace

std::vector<std::string> break_glass_lines(const Route& route) {
  constexpr size_t kMostArms = 6;
  const std::string& safe = route.policy.fallback;
  std::vector<std::string> lines;
  lines.push_back(
      safe.empty()
          ? std::string("1. In doubt refuse the request: no arm is safe on every stratum.")
          : fmt::format("1. In doubt take {}. It lost no row and failed no check of its output "
                        "on any measured stratum.",
                        safe));
  lines.emplace_back(
      "2. Check the identity first (device, code generator, framework build, commit). If it "
      "differs "
      "from the policy's, rule 1 holds.");
  // By arm and phase, where it is taken.
  std::vector<std::pair<std::string, Phase>> order;
  std::map<std::pair<std::string, Phase>, std::vector<TakenRange>> taken;
  for (const PolicyRule& rule : route.policy.rules) {
    if (rule.arm.empty() || rule.arm == safe) continue;
    const std::pair key(rule.arm, rule.phase);
    auto& ranges = taken[key];
    if (ranges.empty()) order.push_back(key);
    if (!ranges.empty() && ranges.back().goes_on_with(rule)) {
      ranges.back().longest = rule.longest;
    } else {
      ranges.push_back({rule, rule.longest});
    }
  }
  for (size_t i = 0; i < std::min(order.size(), kMostArms); ++i) {
    constexpr size_t kMostPlaces = 4;
    std::vector<std::string> places = range_texts(taken[order[i]]);
    const size_t more = places.size() > kMostPlaces ? places.size() - kMostPlaces : 0;
    places.resize(places.size() - more);
    lines.push_back(
        fmt::format("{}. In {} take {} for prompts of {}{}.", lines.size() + 1,
                    phase_name(order[i].second), order[i].first, join(places, ", "),
                    more > 0 ? fmt::format(" and {} more ranges (see the policy)", more) : ""));
  }
  if (order.size() > kMostArms) {
    lines.push_back(fmt::format("{}. {} more arms are taken: see the policy.", lines.size() + 1,
                                order.size() - kMostArms));
  }
  if (order.empty()) {
    lines.push_back(fmt::format("{}. No other arm is proven to be faster.", lines.size() + 1));
  } else {
    lines.push_back(fmt::format(
        "{}. Go back to rule 1 for good, arm by arm, at a lost request, a fall-back to eager, a "
        "recompile limit, or when the policy's limits of recompiles, graphs or p99 are passed.",
        lines.size() + 1));
  }
  lines.push_back(fmt::format(
      "{}. Lengths, batches and new tokens that the policy doesn't name weren't measured: rule 1.",
      lines.size() + 1));
  return lines;
}

}  // namespace assay
