// A policy as a screen, Markdown, CSV and JSON.
#include "report/judgements/route_report.h"

#include <algorithm>
#include <map>

#include "base/text/shown_text.h"
#include "base/text/text.h"
#include "report/fitting.h"
#include "report/judgements/replay_tables.h"
#include "report/judgements/route_tables.h"
#include "report/report.h"

namespace assay {
namespace {

constexpr size_t kScreenRules = 14;
constexpr size_t kFewerScreenRules = 8;

using RouteLines = std::vector<std::string>;

void add_route_text(const std::string& text, size_t indent, size_t most, RouteLines& lines) {
  for (std::string& line : wrapped_lines(shown_line(text), kRouteScreenColumns, indent, most)) {
    lines.push_back(std::move(line));
  }
}

void add_route_table(const Table& table, size_t most, const char* what, RouteLines& lines) {
  if (table.rows.empty()) return;
  Table part = table;
  const bool fits = part.rows.size() <= most;
  if (!fits) part.rows.resize(most - 1);
  lines.emplace_back();
  RouteLines all = split(part.render(OutputFormat::kTable, kRouteScreenColumns), '\n');
  all.pop_back();  // behind the last line's end
  lines.insert(lines.end(), all.begin(), all.end());
  if (!fits) {
    lines.push_back(
        fmt::format("  and {} more {}: -o md", table.rows.size() - part.rows.size(), what));
  }
}

// A titled list that takes `room` lines at most, its title and an empty line before it included.
void add_route_list(const std::string& title, const std::vector<std::string>& items, size_t room,
                    RouteLines& lines) {
  if (items.empty() || room < 3) return;
  lines.insert(lines.end(), {"", title});
  room -= 2;
  for (size_t i = 0; i < items.size(); ++i) {
    const RouteLines item = wrapped_lines(shown_line("- " + items[i]), kRouteScreenColumns, 2, 3);
    const size_t spare = i + 1 < items.size() ? 1 : 0;
    if (item.size() + spare > room) {
      lines.push_back(fmt::format("  and {} more: -o md", items.size() - i));
      return;
    }
    lines.insert(lines.end(), item.begin(), item.end());
    room -= item.size();
  }
}

std::string route_screen(const Route& route) {
  RouteLines lines;
  add_route_text(route_headline(route), 2, 2, lines);
  add_route_text(fallback_sentence(route), 2, 2, lines);
  if (route.validation) add_route_text(validation_sentence(*route.validation), 2, 3, lines);
  const bool replayed = route.simulation != nullptr;
  add_route_table(rule_screen_table(route), replayed ? kFewerScreenRules : kScreenRules, "rules",
                  lines);
  add_route_text(rule_screen_legend(route), 2, 4, lines);
  if (replayed) {
    lines.emplace_back();
    add_route_text(replay_sentence(*route.simulation), 2, 2, lines);
    add_route_table(strategy_table(*route.simulation, true), kScreenRules, "strategies", lines);
  }
  const auto room = [&] { return kRouteScreenLines - std::min(kRouteScreenLines, lines.size()); };
  add_route_list("Why it fails:", route.failures(), std::min<size_t>(room(), 7), lines);
  add_route_list("Where these rows choose otherwise:", route.differs, std::min<size_t>(room(), 9),
                 lines);
  if (replayed) {
    add_route_list("Of the replay:", replay_lines(route), std::min<size_t>(room(), 7), lines);
  }
  add_route_list("Where it abstains:", abstention_lines(route), std::min<size_t>(room(), 9), lines);
  add_route_list("Taken as faster than the safe arm:", taken_lines(route),
                 std::min<size_t>(room(), 7), lines);
  add_route_list("Faster on average, slower in the tail:", tail_lines(route),
                 std::min<size_t>(room(), 6), lines);
  add_route_list("Never chosen:", barred_lines(route), std::min<size_t>(room(), 7), lines);
  add_route_list("Not measured:", route.policy.not_measured, room(), lines);
  return join(lines, "\n") + "\n";
}

std::vector<ReportSection> route_sections(const Route& route) {
  std::vector<ReportSection> sections;
  ReportSection policy{"Policy", {route_headline(route) + "."}, {rule_table(route)}};
  policy.lines.push_back(fallback_sentence(route));
  policy.lines.emplace_back(
      "ratio: mean time of the arm over the safe arm's, with its 95 % interval, of each stratum of "
      "the rule.");
  if (route.validation) policy.lines.push_back(validation_sentence(*route.validation));
  sections.push_back(std::move(policy));
  const auto add_list = [&](const char* title, const std::vector<std::string>& items) {
    if (items.empty()) return;
    ReportSection section{title, {}, {}};
    for (const std::string& item : items) section.lines.push_back("- " + item);
    sections.push_back(std::move(section));
  };
  add_list("Why it fails", route.failures());
  add_list("Where these rows choose otherwise", route.differs);
  add_list("Where it abstains", abstention_lines(route));
  add_list("Taken as faster than the safe arm", taken_lines(route));
  add_list("Faster on average, slower in the tail", tail_lines(route));
  sections.push_back(
      {"Evidence",
       {"Times of warm rows, of the arm and of the one that it gives way to; p99 from 100 rows on. "
        "compile_ms: the slowest row of the arm that carries a compilation."},
       {evidence_table(route)}});
  sections.push_back({"Triggers",
                      {"A rule gives way to its fallback as soon as more than `allowed` of its "
                       "`window` requests did what is named; counting starts anew after each."},
                      {trigger_table(route)}});
  if (route.simulation != nullptr) {
    sections.push_back(
        {"Replay of a trace",
         {replay_sentence(*route.simulation),
          "Means over the replays, with 95 % intervals. regret: of the mean latency, "
          "to that of the best possible choice."},
         {strategy_table(*route.simulation, false)}});
    add_list("Of the replay", replay_lines(route));
  }
  add_list("Never chosen", barred_lines(route));
  add_list("Not measured", route.policy.not_measured);
  sections.push_back({"Identity that must hold", {}, {identity_table(route)}});
  return sections;
}

}  // namespace

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
  const auto add_list = [&](std::string_view what, const std::vector<std::string>& items) {
    for (const std::string& item : items) {
      section.lines.push_back(fmt::format("- {}: {}", what, item));
    }
  };
  add_list("Why it fails", route.failures());
  add_list("Abstains", abstention_lines(route));
  add_list("Taken as faster than the safe arm", taken_lines(route));
  add_list("Faster on average, slower in the tail", tail_lines(route));
  add_list("Never chosen", barred_lines(route));
  return section;
}

std::string render_route(const Route& route, OutputFormat format) {
  switch (format) {
    case OutputFormat::kJson:
      return to_json_text(route_to_json(route));
    case OutputFormat::kCsv:
      return rule_table(route).render(OutputFormat::kCsv);
    case OutputFormat::kMarkdown:
      return break_glass_text(route) + "\n" +
             render_markdown("assay route: " + route.study, route_sections(route));
    case OutputFormat::kTable:
      break;
  }
  return route_screen(route);
}

}  // namespace assay
