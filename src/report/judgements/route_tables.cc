// Tables and sentences of a routing policy.
#include "report/judgements/route_tables.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/compare/compare.h"
#include "analysis/findings/record_entries.h"
#include "base/add_once.h"
#include "base/text/text.h"
#include "report/answers.h"

namespace assay {
namespace {

constexpr const char* kPromptColumn = "prompt";  // tokens, beside those that are new

// "best", "ahead, undecided": each verdict of the rule's strata once.
std::string verdicts_text(const PolicyRule& rule) {
  std::vector<std::string> words;
  for (const RuleEvidence& evidence : rule.evidence) {
    add_once(words, evidence.verdict);
  }
  return join(words, ", ");
}

// Number of strata in the rule's evidence that were measured.
int64_t measured_strata(const PolicyRule& rule) {
  return std::ssize(rule.evidence) -
         std::ranges::count(rule.evidence, kNotMeasured, &RuleEvidence::verdict);
}

// "faster, ahead" in the words of the other screens; why a rule abstains stands below the table.
std::string screen_verdict(const PolicyRule& rule) {
  if (rule.abstains) return "abstains";
  const int64_t measured = measured_strata(rule);
  if (measured == 0) return "not measured";
  if (measured < std::ssize(rule.evidence)) return "not measured in part";
  std::vector<std::string_view> words;
  for (const RuleEvidence& evidence : rule.evidence) {
    // This verdict is the rule's as a whole, whatever the other strata say.
    if (evidence.verdict == kNotChosen) return "not chosen by the rows";
    if (evidence.verdict == kFasterThanSafe) return "faster than safe";
    for (const Decision::Kind kind : EnumWords<Decision::Kind>::kAll) {
      if (decision_name(kind) != evidence.verdict) continue;
      const std::string_view word = decision_word(kind);
      add_once(words, word);
    }
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

// "0.86 [0.84, 0.88]"; of several strata the lowest and the highest, and the widest interval.
std::string ratio_text(const PolicyRule& rule, int digits) {
  RatioRange all;
  std::optional<stats::Interval> ratios;  // also of those that have no interval
  for (const RuleEvidence& evidence : rule.evidence) {
    if (!evidence.ratio) continue;
    if (!ratios) ratios = stats::Interval{*evidence.ratio, *evidence.ratio};
    ratios = stats::Interval{std::min(ratios->low, *evidence.ratio),
                             std::max(ratios->high, *evidence.ratio)};
    all.add(*evidence.ratio, evidence.interval, evidence.process_range);
  }
  if (!ratios) return "";
  std::string text = format_significant(ratios->low, digits);
  const std::string most = format_significant(ratios->high, digits);
  if (most != text) text += "-" + most;
  return text + spread_text(all.intervals, all.ranges, digits);
}

// True if every rule that gives way does so to the policy's own fallback.
bool falls_back_alike(const Policy& policy) {
  return std::ranges::all_of(policy.rules, [&](const PolicyRule& rule) {
    return rule.fallback.empty() || rule.fallback == policy.fallback;
  });
}

// Rules that differ in their numbers of new tokens alone, and go on from one another, as one.
std::vector<PolicyRule> joined_over_new_tokens(const Policy& policy) {
  std::vector<PolicyRule> joined;
  for (const PolicyRule& rule : policy.rules) {
    const auto at = std::ranges::find_if(joined, [&](const PolicyRule& one) {
      return one.phase == rule.phase && one.model == rule.model && one.batch == rule.batch &&
             one.shortest == rule.shortest && one.longest == rule.longest && one.arm == rule.arm &&
             one.fallback == rule.fallback && one.abstains == rule.abstains &&
             one.because == rule.because && one.most_new_tokens() + 1 == rule.new_tokens;
    });
    if (at == joined.end()) {
      joined.push_back(rule);
      continue;
    }
    at->new_tokens_span = rule.most_new_tokens() - at->new_tokens;
    at->evidence.insert(at->evidence.end(), rule.evidence.begin(), rule.evidence.end());
  }
  return joined;
}

}  // namespace

std::string lengths_text(int64_t from, int64_t to) {
  return from == to ? fmt::format("{}", from) : fmt::format("{}-{}", from, to);
}

std::string evidence_prompt(const PolicyRule& rule, const RuleEvidence& evidence) {
  const std::string text = lengths_text(evidence.shortest, evidence.longest) +
                           (evidence.longest == 1 ? " token" : " tokens");
  const bool alone = std::ranges::none_of(rule.evidence, [&](const RuleEvidence& other) {
    return other.shortest == evidence.shortest && other.longest == evidence.longest &&
           other.scenario != evidence.scenario;
  });
  return alone ? text : fmt::format("{} ({})", text, evidence.scenario);
}

std::string rule_place(const PolicyRule& rule) {
  std::string text = fmt::format("{} of {}, {} prompt tokens", phase_name(rule.phase), rule.model,
                                 lengths_text(rule.shortest, rule.longest));
  if (rule.most_new_tokens() == 1) text += ", 1 new token";
  if (rule.most_new_tokens() > 1) text += fmt::format(", {} new tokens", new_tokens_text(rule));
  if (rule.batch != 1) text += fmt::format(", batch {}", rule.batch);
  return text;
}

std::string route_outcome(const Route& route) {
  const auto& rules = route.policy.rules;
  const auto abstains = std::ranges::count_if(rules, &PolicyRule::abstains);
  const auto failures = std::ssize(route.failures());
  const auto refuted = std::ssize(route.refuted);
  const std::string policy = fmt::format(
      "{}{}, {} of them {}", route.policy_given ? "a given policy of " : "",
      counted(std::ssize(rules), "rule"), abstains, abstains == 1 ? "abstains" : "abstain");
  std::string safety = failures == 0 ? "every measured stratum has a safe arm" : "FAILS: ";
  if (failures > refuted) {
    safety += fmt::format("{} no safe arm", counted(failures - refuted, "measured stratum has",
                                                    "measured strata have"));
  }
  if (refuted > 0) {
    safety += fmt::format("{}the rows prove {} slower than the safe arm",
                          failures > refuted ? ", and " : "", counted(refuted, "choice"));
  }
  return fmt::format("{}; {}", policy, safety);
}

std::string fallback_sentence(const Route& route) {
  const std::string& arm = route.policy.fallback;
  if (arm.empty()) {
    return fmt::format(
        "A request that no rule covers has to be refused: {}.",
        route.policy_given ? "the policy names no fallback" : "no arm is safe on every stratum");
  }
  return fmt::format(
      "{} is safe on every stratum: a request that no rule covers goes there{}.", arm,
      falls_back_alike(route.policy) ? ", and so does one whose rule gives way" : "");
}

Table rule_table(const Route& route) {
  Table table{.columns =
                  columns_of("<phase|<model|batch|new_tokens|from_tokens|to_tokens|<take|<fallback|"
                             "<ratio|<verdict|strata|rows|<abstains_because|<taken_because")};
  for (const PolicyRule& rule : route.policy.rules) {
    int64_t rows = 0;
    for (const RuleEvidence& evidence : rule.evidence) rows += evidence.rows;
    const std::string ratio = ratio_text(rule, 3);
    table.rows.push_back(
        {phase_name(rule.phase), rule.model, rule.batch, TableCell::if_any(new_tokens_text(rule)),
         rule.shortest, rule.longest, TableCell::if_any(rule.arm), TableCell::if_any(rule.fallback),
         TableCell::if_any(ratio), TableCell::if_any(verdicts_text(rule)), measured_strata(rule),
         rows, TableCell::if_any(rule.abstains ? rule.because : ""),
         TableCell::if_any(rule.abstains ? "" : rule.because)});
  }
  return table;
}

Table rule_screen_table(const Route& route) {
  const std::vector<PolicyRule> rules = joined_over_new_tokens(route.policy);
  std::set<std::string> models;
  std::set<int64_t> batches;
  std::map<Phase, std::set<int64_t>> new_tokens;
  for (const PolicyRule& rule : rules) {
    models.insert(rule.model);
    batches.insert(rule.batch);
    new_tokens[rule.phase].insert(rule.new_tokens);
  }
  const bool several_new =
      std::ranges::any_of(new_tokens, [](const auto& of) { return of.second.size() > 1; }) ||
      std::ranges::any_of(rules, [](const auto& rule) { return rule.new_tokens_span > 0; });
  Table table{.columns =
                  columns_of("<phase|<model|batch|prompt|new|<take|<fallback|=ratio|<verdict")};
  for (const PolicyRule& rule : rules) {
    table.rows.push_back({phase_name(rule.phase), rule.model, rule.batch,
                          lengths_text(rule.shortest, rule.longest),
                          TableCell::if_any(new_tokens_text(rule)),
                          rule.arm.empty() ? "NONE" : rule.arm, TableCell::if_any(rule.fallback),
                          TableCell::if_any(ratio_text(rule, 2)), screen_verdict(rule)});
  }
  if (models.size() <= 1) drop_column("model", table);
  if (batches.size() <= 1) drop_column("batch", table);
  if (falls_back_alike(route.policy)) drop_column("fallback", table);
  if (!several_new) {
    drop_column("new", table);
    std::ranges::find(table.columns, kPromptColumn, &Column::name)->name = "tokens";
  }
  return table;
}

std::string rule_screen_legend(const Route& route) {
  const Table table = rule_screen_table(route);
  std::string verdicts;
  for (const auto& row : table.rows) verdicts += cell_text(row.back()) + ", ";
  std::string text =
      "ratio: mean time of that arm over the safe arm's, 95 % interval; of several lengths, the "
      "range.";
  const auto is_prompt = [](const Column& column) { return column.name == kPromptColumn; };
  if (std::ranges::any_of(table.columns, is_prompt)) text += " prompt, new: tokens.";
  const auto explain = [&](Decision::Kind kind, std::string_view meaning) {
    const std::string word(decision_word(kind));
    if (verdicts.contains(word + ",")) text += fmt::format(" {}: {}.", word, meaning);
  };
  explain(Decision::Kind::kBest, "than every other arm");
  explain(Decision::Kind::kAhead, "faster than the baseline, open against the runner-up");
  explain(Decision::Kind::kNoDifference,
          "to the other fastest arms; the safe arm is taken if it is one of them");
  explain(Decision::Kind::kOnlyOne, "no other arm is comparable");
  return text;
}

Table evidence_table(const Route& route) {
  Table table{.columns =
                  columns_of("<rule|<arm|<prompt|new_tokens|<verdict|<ratio|rows|mean_ms|p99_ms|"
                             "<fallback|fallback_mean_ms|fallback_p99_ms|compile_ms")};
  for (const PolicyRule& rule : route.policy.rules) {
    for (const RuleEvidence& evidence : rule.evidence) {
      const auto ms = [](const std::optional<double>& value) {
        return value ? TableCell(format_significant(*value, 4)) : TableCell::absent();
      };
      PolicyRule alone = rule;
      alone.evidence = {evidence};
      table.rows.push_back(
          {rule_place(rule), TableCell::if_any(rule.arm), evidence_prompt(rule, evidence),
           evidence.new_tokens > 0 ? TableCell(evidence.new_tokens) : TableCell::absent(),
           evidence.verdict, TableCell::if_any(ratio_text(alone, 3)), evidence.rows,
           ms(evidence.mean_ms), ms(evidence.p99_ms), TableCell::if_any(rule.fallback),
           ms(evidence.fallback_mean_ms), ms(evidence.fallback_p99_ms), ms(evidence.compile_ms)});
    }
  }
  return table;
}

Table trigger_table(const Route& route) {
  Table table{.columns = columns_of("<rule|<arm|<trigger|allowed|window|limit_ms|<source")};
  for (const PolicyRule& rule : route.policy.rules) {
    for (const PolicyTrigger& trigger : rule.triggers) {
      table.rows.push_back({rule_place(rule), rule.arm, trigger_name(trigger.kind), trigger.allowed,
                            trigger.window > 0 ? TableCell(trigger.window) : TableCell::absent(),
                            trigger.limit_ms, trigger.source});
    }
  }
  return table;
}

Table identity_table(const Route& route) {
  Table table{.columns = columns_of("<axis|<value")};
  for (const auto& [axis, value] : route.policy.identity) {
    table.rows.push_back({axis, value});
  }
  return table;
}

}  // namespace assay
