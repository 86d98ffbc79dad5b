// Looks up the rule that covers a request, and names triggers and numbers of tokens.
#include "routing/policy.h"

#include <algorithm>

#include "base/records/enum_words.h"
#include "base/text/text.h"

namespace assay {

std::string_view trigger_name(TriggerKind kind) {
  return word_of(kind, {"recompile_after_warmup", "unique_graphs", "recompile_limit", "fallback",
                        "lost_row", "p99_ms"});
}

std::string new_tokens_text(const PolicyRule& rule) {
  if (rule.most_new_tokens() == 0) return "";
  if (rule.new_tokens_span == 0) return fmt::format("{}", rule.new_tokens);
  return fmt::format("{}-{}", rule.new_tokens, rule.most_new_tokens());
}

const PolicyRule* rule_of(const Policy& policy, const RoutedShape& shape) {
  const auto at = std::ranges::find_if(policy.rules, [&](const PolicyRule& rule) {
    return rule.phase == shape.phase && rule.batch == shape.batch &&
           rule.new_tokens <= shape.new_tokens && shape.new_tokens <= rule.most_new_tokens() &&
           rule.shortest <= shape.prompt_tokens && shape.prompt_tokens <= rule.longest &&
           rule.model == shape.model;
  });
  return at == policy.rules.end() ? nullptr : &*at;
}

std::string Policy::stated(std::string_view axis) const {
  const auto at = std::ranges::find(identity, axis, &std::pair<std::string, std::string>::first);
  return at == identity.end() ? "" : at->second;
}

std::string identity_mismatch(const Policy& policy,
                              const std::vector<std::pair<std::string, std::string>>& identity) {
  for (const auto& [axis, value] : policy.identity) {
    const auto at = std::ranges::find(identity, axis, &std::pair<std::string, std::string>::first);
    const std::string found = at == identity.end() ? "nothing" : quoted_excerpt(at->second);
    if (at == identity.end() || at->second != value) {
      return fmt::format("{}: expected {}, found {}", excerpt(axis), quoted_excerpt(value), found);
    }
  }
  return "";
}

}  // namespace assay
