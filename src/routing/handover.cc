// Pairs of rules that one request takes.
#include "routing/handover.h"

#include <algorithm>
#include <set>

#include "base/text/text.h"

namespace assay {
namespace {

// A row of the arm; null: it has none.
const Row* row_of_arm(const Samples& samples, const std::string& arm) {
  for (const Group& group : samples.groups) {
    if (samples.arms[group.arm] == arm) return group.rows.front();
  }
  return nullptr;
}

// "cache static and dynamic, type fp32 and bf16"; empty: they are alike.
std::string unlike_text(const Row& prefill, const Row& decode) {
  std::vector<std::string> parts;
  const auto hold = [&](const char* what, const SharedText& a, const SharedText& b) {
    if (!(a == b)) parts.push_back(fmt::format("{} {} and {}", what, a.str(), b.str()));
  };
  hold("backend", prefill.backend, decode.backend);
  hold("cache", prefill.cache, decode.cache);
  hold("type", prefill.dtype, decode.dtype);
  hold("quantisation", prefill.quantization, decode.quantization);
  return join(parts, ", ");
}

}  // namespace

std::vector<std::string> unmeasured_handovers(const Samples& samples,
                                              std::span<const PolicyRule> rules) {
  std::vector<std::string> texts;
  std::set<std::pair<std::string, std::string>> seen;
  for (const PolicyRule& prompt : rules) {
    if (prompt.phase != Phase::kPrefill || prompt.arm.empty()) continue;
    for (const PolicyRule& decode : rules) {
      const bool one_request = decode.phase == Phase::kKvDecode && decode.model == prompt.model &&
                               decode.batch == prompt.batch && decode.shortest <= prompt.longest &&
                               prompt.shortest <= decode.longest;
      if (!one_request || decode.arm.empty() || decode.arm == prompt.arm) continue;
      const Row* from = row_of_arm(samples, prompt.arm);
      const Row* to = row_of_arm(samples, decode.arm);
      if (from == nullptr || to == nullptr) continue;
      const std::string unlike = unlike_text(*from, *to);
      if (unlike.empty() || !seen.emplace(prompt.arm, decode.arm).second) continue;
      texts.push_back(fmt::format(
          "requests that {} prefills and {} decodes ({}): no row says what handing over the cache "
          "costs, or that it can be done",
          prompt.arm, decode.arm, unlike));
    }
  }
  return texts;
}

}  // namespace assay
