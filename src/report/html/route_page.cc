// A routing policy as a page.
#include "report/figures/judgement_figures.h"
#include "report/html/judgement_page.h"
#include "report/judgements/replay_tables.h"
#include "report/judgements/route_tables.h"
#include "routing/simulate.h"

namespace assay {
namespace {

std::vector<std::string> as_items(const std::vector<std::string>& lines) {
  std::vector<std::string> items;
  for (const std::string& line : lines) items.push_back("- " + line);
  return items;
}

void put(std::optional<Figure> figure, JudgementPart& part) {
  if (figure) part.figures.push_back(*std::move(figure));
}

JudgementPart policy_part(const Route& route) {
  JudgementPart part{.id = "policy", .title = "Policy"};
  put(policy_figure(route), part);
  put(evidence_figure(route), part);
  part.tables.push_back(evidence_table(route));
  return part;
}

JudgementPart trigger_part(const Route& route) {
  JudgementPart part{.id = "fallback", .title = "What forces the fallback"};
  part.lines.push_back(fallback_sentence(route));
  part.tables.push_back(trigger_table(route));
  if (part.tables.front().rows.empty()) {
    part.lines.emplace_back("No rule takes another arm than the safe one, so none has a trigger.");
  } else {
    part.lines.emplace_back(
        "A rule hands its later requests to its fallback as soon as more than \"allowed\" of a "
        "window's requests did what the trigger names; counting starts anew after each window.");
  }
  return part;
}

JudgementPart replay_part(const Route& route) {
  JudgementPart part{.id = "replay", .title = "Strategies beside each other"};
  if (route.simulation == nullptr) {
    part.lines.emplace_back(
        "No trace was replayed. With --simulate TRACE.csv the page has six strategies beside each "
        "other: always eager, always compiled, the split, by batch, padded, and this policy.");
    return part;
  }
  put(strategies_figure(route), part);
  part.lines.push_back(replay_sentence(*route.simulation));
  for (std::string& line : as_items(replay_lines(route))) part.lines.push_back(std::move(line));
  return part;
}

JudgementPart listed_part(const char* id, const char* title, const std::vector<std::string>& lines,
                          const char* otherwise) {
  JudgementPart part{.id = id, .title = title};
  part.lines = lines.empty() ? std::vector<std::string>{otherwise} : as_items(lines);
  return part;
}

JudgementPart validation_part(const Route& route) {
  JudgementPart part{.id = "out-of-sample", .title = "Out of sample"};
  if (!route.validation) {
    part.lines.emplace_back("The policy was given, so that there is no half to judge it on.");
    return part;
  }
  part.lines.push_back(validation_sentence(*route.validation));
  if (route.validation->absent.empty()) {
    part.lines.emplace_back(
        "The optimism says how much better a policy looks on the rows that it was made of than on "
        "others. An interval that reaches above 0 allows for a policy that is worse than it "
        "looks.");
  }
  return part;
}

}  // namespace

std::string route_page(const Route& route) {
  JudgementPage page;
  page.title = fmt::format("Routing policy of {}", route.study);
  page.failed = !route.failures().empty();
  page.outcome.push_back(route_outcome(route) + ".");
  page.outcome.push_back(fallback_sentence(route));
  page.verdicts = rule_screen_table(route);
  page.parts.push_back(
      listed_part("why-it-fails", "Why it fails", route.failures(), "Nothing fails."));
  if (!page.failed) page.parts.pop_back();
  if (!route.differs.empty()) {
    page.parts.push_back(
        listed_part("differs", "Where these rows choose otherwise", route.differs, ""));
  }
  page.parts.push_back(policy_part(route));
  page.parts.push_back(trigger_part(route));
  page.parts.push_back(listed_part("abstentions", "Where it abstains, and why",
                                   abstention_lines(route), "No rule abstains."));
  if (const auto taken = taken_lines(route); !taken.empty()) {
    page.parts.push_back(listed_part("taken", "Taken as faster than the safe arm", taken, ""));
  }
  if (const auto tails = tail_lines(route); !tails.empty()) {
    page.parts.push_back(listed_part("tails", "Faster on average, slower in the tail", tails, ""));
  }
  page.parts.push_back(listed_part("never-chosen", "Never chosen", barred_lines(route),
                                   "No arm is barred on any stratum."));
  page.parts.push_back(replay_part(route));
  page.parts.push_back(validation_part(route));
  page.parts.push_back(listed_part("not-measured", "What was not measured",
                                   route.policy.not_measured, "Nothing is listed."));
  page.parts.push_back(
      {.id = "break-glass", .title = "Break glass", .lines = break_glass_lines(route)});
  page.parts.push_back({.id = "identity",
                        .title = "Identity",
                        .lines = {"The policy holds for this identity alone."},
                        .tables = {identity_table(route)},
                        .folded = true});
  return judgement_page(page);
}

}  // namespace assay
