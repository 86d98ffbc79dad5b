// Sentences of a routing policy.
#include <algorithm>
#include <map>

#include "analysis/compare/compare.h"
#include "base/text/text.h"
#include "report/judgements/route_tables.h"

namespace assay {
namespace {

// Items with one text beside them: "TEXT (FIRST; and 3 more strata)".
std::vector<std::string> grouped(const std::vector<std::pair<std::string, std::string>>& items,
                                 std::string_view one, std::string_view many) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> places;
  for (const auto& [text, place] : items) {
    auto& of = places[text];
    if (of.empty()) order.push_back(text);
    of.push_back(place);
  }
  std::vector<std::string> lines;
  for (const std::string& text : order) {
    const auto& of = places[text];
    lines.push_back(of.size() == 1 ? fmt::format("{} ({})", text, of.front())
                                   : fmt::format("{} ({}; and {} more {})", text, of.front(),
                                                 of.size() - 1, of.size() == 2 ? one : many));
  }
  return lines;
}

}  // namespace

std::string validation_sentence(const Optimism& validation) {
  if (!validation.absent.empty()) {
    return fmt::format("Out of sample: not known, because {}.", validation.absent);
  }
  std::string text = fmt::format(
      "Out of sample: a policy made of half of the {} takes {:.3f} of the safe arm's time on that "
      "half and {:.3f} on the other: {:+.2f} %",
      validation.unit == "process" ? "processes" : "blocks", validation.in_sample,
      validation.out_of_sample, validation.optimism * 100 + 0.0);
  if (validation.interval) {
    text += fmt::format(" [{:+.2f}, {:+.2f}]", validation.interval->low * 100 + 0.0,
                        validation.interval->high * 100 + 0.0);
  }
  if (validation.interval) text += " (the choices held fixed)";
  text += fmt::format("; the halves choose different arms on {} of {}", validation.differ,
                      counted(validation.strata, "stratum", "strata"));
  if (validation.broken > 0) {
    text += fmt::format("; {} an arm that the other half bars",
                        counted(validation.broken, "choice is", "choices are"));
  }
  return text + ".";
}

std::vector<std::string> abstention_lines(const Route& route) {
  std::vector<std::pair<std::string, std::string>> items;
  for (const PolicyRule& rule : route.policy.rules) {
    if (!rule.abstains) continue;
    items.emplace_back(rule.because.empty() ? "no reason is given" : rule.because,
                       rule_place(rule));
  }
  return grouped(items, "rule", "rules");
}

std::vector<std::string> taken_lines(const Route& route) {
  std::vector<std::pair<std::string, std::string>> items;
  for (const PolicyRule& rule : route.policy.rules) {
    if (rule.abstains || rule.because.empty()) continue;
    items.emplace_back(fmt::format("{}: {}", rule.arm, rule.because), rule_place(rule));
  }
  return grouped(items, "rule", "rules");
}

std::vector<std::string> tail_lines(const Route& route) {
  std::vector<std::string> lines;
  for (const PolicyRule& rule : route.policy.rules) {
    for (const RuleEvidence& evidence : rule.evidence) {
      if (!evidence.p99_ms || !evidence.fallback_p99_ms) continue;
      if (*evidence.p99_ms <= *evidence.fallback_p99_ms) continue;
      lines.push_back(fmt::format("{} ({}): p99 of {} is {} ms, and {}'s is {}", rule_place(rule),
                                  evidence_prompt(rule, evidence), rule.arm,
                                  format_significant(*evidence.p99_ms, 3), rule.fallback,
                                  format_significant(*evidence.fallback_p99_ms, 3)));
    }
  }
  return lines;
}

std::vector<std::string> barred_lines(const Route& route) {
  std::vector<std::pair<std::string, std::string>> items;
  for (const BarredArm& barred : route.barred) {
    items.emplace_back(fmt::format("{}: {}", barred.arm, barred.reason),
                       stratum_text(route.strata[barred.stratum]));
  }
  return grouped(items, "stratum", "strata");
}

}  // namespace assay
