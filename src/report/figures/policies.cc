// A routing policy as figures: the arms with the prompt lengths that they serve, and the evidence.
#include <algorithm>
#include <map>
#include <tuple>

#include "base/add_once.h"
#include "base/text/listed.h"
#include "base/text/text.h"
#include "report/answers.h"
#include "report/figures/judgement_figures.h"
#include "report/figures/parts.h"
#include "report/judgements/route_tables.h"

namespace assay {
namespace {

constexpr const char* kRefused = "none (refused)";
constexpr size_t kMostEvidence = 60;  // strata that a figure has room for

// Arms in the order in which rules take them, the fallback first.
Findings arms_of_policy(const Policy& policy) {
  Findings of;
  const auto add = [&](const std::string& arm) {
    const std::string name = arm.empty() ? kRefused : arm;
    add_once(of.study.arms, name);
  };
  if (!policy.fallback.empty()) add(policy.fallback);
  for (const PolicyRule& rule : policy.rules) add(rule.arm);
  return of;
}

// The rule's condition without its prompt lengths: "prefill of gpt2, batch 1".
std::string condition_of(const PolicyRule& rule) {
  std::string text = fmt::format("{} of {}", phase_name(rule.phase), rule.model);
  if (rule.new_tokens > 0) text += fmt::format(", {} new tokens", new_tokens_text(rule));
  return text + fmt::format(", batch {}", rule.batch);
}

// "prefill, 10-80 tokens, 8 new, batch 2"; the model stands above the panel.
std::string rule_label(const PolicyRule& rule) {
  std::string text = fmt::format("{}, {} tokens", phase_name(rule.phase),
                                 lengths_text(rule.shortest, rule.longest));
  if (rule.new_tokens > 0) text += fmt::format(", {} new", new_tokens_text(rule));
  if (rule.batch != 1) text += fmt::format(", batch {}", rule.batch);
  return row_label(text);
}

plot::RowLine line_of_rule(const Findings& all, const PolicyRule& rule) {
  const std::string arm = rule.arm.empty() ? kRefused : rule.arm;
  plot::RowLine line;
  line.style = arm_style(all, arm);
  line.bars.push_back(
      {.span = {static_cast<double>(rule.shortest), static_cast<double>(rule.longest)},
       .tint = rule.abstains ? plot::Tint::kOutline : plot::Tint::kFull,
       .tip = ""});
  if (rule.shortest == rule.longest) line.value = static_cast<double>(rule.shortest);
  line.text = rule.abstains ? "abstains" : line_text(arm);
  line.tip = fmt::format("{}, {} prompt tokens: {}{}", condition_of(rule),
                         lengths_text(rule.shortest, rule.longest), arm,
                         rule.abstains ? ", as the policy abstains: " + rule.because : "");
  return line;
}

bool takes_another(const PolicyRule& rule, const Policy& policy) {
  return !rule.arm.empty() && rule.arm != policy.fallback && !rule.fallback.empty();
}

std::string abstentions_text(const Policy& policy) {
  const auto abstains = std::ranges::count_if(policy.rules, &PolicyRule::abstains);
  if (abstains == 0) return "no rule abstains";
  return fmt::format("{} of {} {}", abstains, counted(std::ssize(policy.rules), "rule"),
                     abstains == 1 ? "abstains" : "abstain");
}

// "fast takes prefill at 10-30 tokens, and kv_decode at 10-80 tokens; 1 of 3 rules abstains".
std::string policy_finding(const Policy& policy) {
  const bool one_model = std::ranges::all_of(policy.rules, [&](const PolicyRule& rule) {
    return rule.model == policy.rules.front().model;
  });
  std::map<std::string, std::map<std::string, std::vector<std::string>>> taken;  // lengths
  for (const PolicyRule& rule : policy.rules) {
    if (!takes_another(rule, policy)) continue;
    const std::string place = fmt::format("{}{}{}", phase_name(rule.phase), one_model ? "" : " of ",
                                          one_model ? "" : rule.model);
    auto& lengths = taken[rule.arm][place];
    std::string text = lengths_text(rule.shortest, rule.longest);
    add_once(lengths, std::move(text));
  }
  if (taken.empty()) {
    return fmt::format("No arm is chosen over the safe one; {}", abstentions_text(policy));
  }
  std::vector<std::string> parts;
  for (const auto& [arm, places] : taken) {
    std::vector<std::string> where;
    for (const auto& [place, lengths] : places) {
      where.push_back(fmt::format("{} at {} tokens", place, listed(lengths, kMostListed)));
    }
    parts.push_back(fmt::format("{} takes {}", arm, listed(where, kMostListed)));
  }
  return fmt::format("{}; {}", join(parts, "; "), abstentions_text(policy));
}

// Each evidence of a rule whose arm gives way to another one.
struct RuledStratum {
  const PolicyRule* rule = nullptr;
  const RuleEvidence* evidence = nullptr;
};

std::vector<RuledStratum> evidence_of(const Policy& policy) {
  std::vector<RuledStratum> all;
  // Once a stratum and arm: a rule between two lengths may rest on its neighbour's evidence.
  const auto is_there = [&](const PolicyRule& rule, const RuleEvidence& evidence) {
    return std::ranges::any_of(all, [&](const RuledStratum& one) {
      return one.rule->arm == rule.arm && one.rule->model == rule.model &&
             one.rule->phase == rule.phase && one.rule->batch == rule.batch &&
             *one.evidence == evidence;
    });
  };
  for (const PolicyRule& rule : policy.rules) {
    if (!takes_another(rule, policy)) continue;
    for (const RuleEvidence& evidence : rule.evidence) {
      if (evidence.ratio && !is_there(rule, evidence)) all.push_back({&rule, &evidence});
    }
  }
  return all;
}

std::string evidence_finding(const std::vector<RuledStratum>& all) {
  std::map<std::tuple<Phase, std::string>, RatioRange> ranges;
  for (const RuledStratum& one : all) {
    ranges[{one.rule->phase, one.rule->arm}].add(*one.evidence->ratio, one.evidence->interval,
                                                 one.evidence->process_range);
  }
  std::vector<std::string> parts;
  for (const auto& [key, range] : ranges) {
    if (!range.values) continue;
    const auto& [phase, arm] = key;
    parts.push_back(fmt::format("{} takes {}{} in {}", arm, range.text(),
                                parts.empty() ? " of the safe arm's time" : "", phase_name(phase)));
  }
  if (parts.empty()) return "The ratios that the rules rest on have no intervals";
  return listed(parts, kMostListed);
}

plot::RowLine line_of_evidence(const Findings& all, const RuledStratum& one) {
  const RuleEvidence& evidence = *one.evidence;
  plot::RowLine line;
  line.style = arm_style(all, one.rule->arm);
  line.value = evidence.ratio;
  line.interval = ratio_span(evidence.interval);
  line.text = line_text(ratio_text(*evidence.ratio, evidence.interval, evidence.process_range));
  const bool beside = evidence.verdict == kFasterThanSafe;
  line.tip = fmt::format("{}, {}: {} on {}, {}", condition_of(*one.rule),
                         evidence_prompt(*one.rule, evidence), one.rule->arm,
                         counted(evidence.rows, "warm row"),
                         beside ? "faster than the safe arm" : evidence.verdict);
  return line;
}

Table evidence_table(const std::vector<RuledStratum>& all) {
  Table table{.columns = columns_of("<covers|<prompt|<take|<safe arm|<ratio|<decision|rows")};
  for (const RuledStratum& one : all) {
    table.rows.push_back(
        {condition_of(*one.rule), evidence_prompt(*one.rule, *one.evidence), one.rule->arm,
         one.rule->fallback,
         ratio_text(*one.evidence->ratio, one.evidence->interval, one.evidence->process_range),
         one.evidence->verdict, one.evidence->rows});
  }
  return table;
}

}  // namespace

std::optional<Figure> policy_figure(const Route& route) {
  const Policy& policy = route.policy;
  if (policy.rules.empty()) return std::nullopt;
  Findings all = arms_of_policy(policy);
  RowsFigure rows;
  rows.x_label = "prompt tokens";
  bool one_length = true;
  for (const PolicyRule& rule : policy.rules) {
    Stratum& stratum = all.strata.emplace_back();
    stratum.model = rule.model;
    rows.rows.push_back({all.strata.size() - 1, {rule_label(rule), {line_of_rule(all, rule)}}});
    one_length = one_length && rule.shortest == policy.rules.front().longest &&
                 rule.longest == rule.shortest;
  }
  // A scale about a single length would spread a token or two over the whole panel.
  if (one_length) rows.start = plot::Scale::Start::kZero;
  Figure figure;
  figure.id = "policy-ranges";
  figure.finding = policy_finding(policy);
  figure.caption =
      "Each bar is a rule: the prompt lengths that it covers, in the colour of the arm that serves "
      "them; a mark is a rule of one length. A hollow bar is a rule that abstains: the rows decide "
      "nothing there, or nobody measured where the choice changes and no arm is proven faster at "
      "both ends, and the safe arm serves. No rule covers lengths without a bar: the policy's own "
      "fallback serves them.";
  figure.legend = arm_legend(all, all.study.arms, false);
  if (std::ranges::any_of(policy.rules, &PolicyRule::abstains)) {
    figure.legend.push_back({"abstains", {}, plot::Sample::kOutlineBar});
  }
  draw_rows(all, rows, "Rules by prompt tokens", figure);
  figure.tables.push_back(rule_table(route));
  return figure;
}

std::optional<Figure> evidence_figure(const Route& route) {
  const std::vector<RuledStratum> evidence = evidence_of(route.policy);
  if (evidence.empty()) return std::nullopt;
  Findings all = arms_of_policy(route.policy);
  RowsFigure rows;
  rows.x_label = "ratio to the safe arm (below 1: faster)";
  rows.rule = plot::RuleAt{1, "as long as the safe arm"};
  std::vector<std::string> arms;
  for (const RuledStratum& one :
       std::span(evidence).first(std::min(evidence.size(), kMostEvidence))) {
    Stratum& stratum = all.strata.emplace_back();
    stratum.model = one.rule->model;
    std::string label = fmt::format("{}, {}", phase_name(one.rule->phase),
                                    evidence_prompt(*one.rule, *one.evidence));
    if (one.evidence->new_tokens > 0) label += fmt::format(", {} new", one.evidence->new_tokens);
    if (one.rule->batch != 1) label += fmt::format(", batch {}", one.rule->batch);
    rows.rows.push_back({all.strata.size() - 1, {row_label(label), {line_of_evidence(all, one)}}});
    arms.push_back(one.rule->arm);
  }
  Figure figure;
  figure.id = "policy-evidence";
  figure.finding = evidence_finding(evidence);
  figure.caption = fmt::format(
      "Each mark is the mean time of a rule's arm over the safe arm's on one measured stratum, "
      "with the 95 % interval. Rules that take the safe arm have no mark.{}",
      evidence.size() > kMostEvidence
          ? fmt::format(" The figure has the first {} of {} strata; the table has all.",
                        kMostEvidence, evidence.size())
          : "");
  figure.legend = arm_legend(all, arms, false);
  draw_rows(all, rows, "Ratios to the safe arm with intervals", figure);
  figure.tables.push_back(evidence_table(evidence));
  return figure;
}

}  // namespace assay
