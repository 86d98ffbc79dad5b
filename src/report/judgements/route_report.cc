// A policy as a screen, Markdown, CSV and JSON.
#include "report/judgements/route_report.h"

#include <algorithm>
#include <map>

#include "base/text/shown_text.h"
#include "base/text/text.h"
#include "report/judgements/replay_tables.h"
#include "report/judgements/route_tables.h"
#include "report/screen/document_screen.h"

namespace assay {
namespace {

constexpr size_t kListLines = 5;
constexpr size_t kStrategyLines = 9;

void add_list(const char* title, const char* id, const std::vector<std::string>& items,
              std::vector<ReportSection>& sections) {
  sections.push_back(
      {.title = title, .lines = as_list(items), .id = id, .screen_lines = kListLines});
}

ReportSection replay_section(const Route& route) {
  ReportSection section{.title = "Replay of a trace",
                        .figures = {"strategies"},
                        .id = "replay",
                        .screen_lines = kStrategyLines};
  if (route.simulation == nullptr) {
    section.screen_lines = 0;
    section.lines = {
        "No trace was replayed. With --simulate TRACE.csv strategies stand beside each other here: "
        "always eager, always compiled, the split, by batch, padded, and this policy."};
    return section;
  }
  section.lines = {replay_sentence(*route.simulation)};
  section.tables = {strategy_table(*route.simulation, true)};
  return section;
}

ReportSection strategies_section(const Route& route) {
  return {.title = "Strategies, each figure with its interval",
          .lines = {"Means over the replays, with 95 % intervals. regret: of the mean latency, to "
                    "that of the best possible choice."},
          .tables = {strategy_table(*route.simulation, false)},
          .id = "strategies",
          .folded = true};
}

ReportSection trigger_section(const Route& route) {
  ReportSection section{.title = "Triggers that force the fallback",
                        .lines = {fallback_sentence(route)},
                        .tables = {trigger_table(route)},
                        .id = "fallback"};
  section.lines.emplace_back(
      section.tables.front().rows.empty()
          ? "No rule takes another arm than the safe one, so none has a trigger."
          : "A rule hands its later requests to its fallback as soon as more than `allowed` of its "
            "`window` requests did what the trigger names; counting starts anew after each "
            "window.");
  return section;
}

std::string validation_text(const Route& route) {
  return route.validation ? validation_sentence(*route.validation)
                          : "The policy was given, so that there is no half to judge it on.";
}

}  // namespace

Document route_document(const Route& route) {
  Document document{.title = fmt::format("Routing policy of {}", route.study),
                    .failed = !route.failures().empty(),
                    .outcome = {fmt::format("{}: {}.", route.study, route_outcome(route)),
                                fallback_sentence(route), validation_text(route)},
                    .verdicts = rule_screen_table(route),
                    .legend = rule_screen_legend(route)};
  std::vector<ReportSection>& sections = document.sections;
  add_list("Why it fails", "why-it-fails", route.failures(), sections);
  add_list("Where these rows choose otherwise", "differs", route.differs, sections);
  sections.push_back(replay_section(route));
  if (route.simulation != nullptr) {
    add_list("What the replay left out or met", "replay-remarks", replay_lines(route), sections);
  }
  add_list("Where it abstains", "abstentions", abstention_lines(route), sections);
  add_list("Taken as faster than the safe arm", "taken", taken_lines(route), sections);
  add_list("Faster on average, slower in the tail", "tails", tail_lines(route), sections);
  add_list("Never chosen", "never-chosen", barred_lines(route), sections);
  add_list("Not measured", "not-measured", route.policy.not_measured, sections);
  sections.push_back(
      {.title = "Break glass", .lines = break_glass_lines(route), .id = "break-glass"});
  sections.push_back(
      {.title = "Evidence",
       .lines = {"Times of warm rows, of the arm and of the one that it gives way to; p99 from 100 "
                 "rows on. compile_ms: the slowest row of the arm that carries a compilation."},
       .tables = {evidence_table(route)},
       .figures = {"policy-ranges", "policy-evidence"},
       .id = "policy"});
  sections.push_back({.title = "Rules in full",
                      .lines = {"ratio: mean time of the arm over the safe arm's, with its 95 % "
                                "interval, of each stratum of the rule."},
                      .tables = {rule_table(route)},
                      .id = "rules",
                      .folded = true});
  sections.push_back(trigger_section(route));
  if (route.simulation != nullptr) sections.push_back(strategies_section(route));
  sections.push_back({.title = "Identity that must hold",
                      .lines = {"The policy holds for this identity alone."},
                      .tables = {identity_table(route)},
                      .id = "identity",
                      .folded = true});
  return document;
}

std::string break_glass_text(const Route& route) {
  std::string out = fmt::format("{}\n\n", kBreakGlassHeading);
  for (const std::string& line : break_glass_lines(route)) out += markdown_line(line) + "\n";
  return out;
}

ReportSection route_section(const Route& route) {
  ReportSection section{"Routing", {}, {rule_screen_table(route)}};
  section.lines = {
      route_outcome(route) + ".", fallback_sentence(route), rule_screen_legend(route),
      "`assay route` writes this policy with its triggers and its evidence, judges it out of "
      "sample, and replays traces under it."};
  const auto add = [&](std::string_view what, const std::vector<std::string>& items) {
    for (const std::string& item : items) {
      section.lines.push_back(fmt::format("- {}: {}", what, item));
    }
  };
  add("Why it fails", route.failures());
  add("Abstains", abstention_lines(route));
  add("Taken as faster than the safe arm", taken_lines(route));
  add("Faster on average, slower in the tail", tail_lines(route));
  add("Never chosen", barred_lines(route));
  return section;
}

std::string render_route(const Route& route, OutputFormat format, size_t columns) {
  return render_document({[&] { return route_document(route); }, [&] { return rule_table(route); },
                          [&] { return route_to_json(route); }},
                         format, columns);
}

}  // namespace assay
