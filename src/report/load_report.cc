#include "report/load_report.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/text/counts.h"
#include "base/text/text.h"
#include "load/load_run.h"
#include "report/answers.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

std::string number(double value) {
  return format_significant(value, 3);
}

// "3.20 [3.01, 3.40]", or its runs' range where there is no interval.
std::string with_interval(const OverRuns& of) {
  if (of.interval)
    return fmt::format("{} [{}, {}]", number(of.mean), number(of.interval->low),
                       number(of.interval->high));
  if (of.least == of.most) return number(of.mean);
  return fmt::format("{} ({} to {})", number(of.mean), number(of.least), number(of.most));
}

// "98 % [95, 100]"
std::string share_text(const OverRuns& of) {
  const auto percent = [](double share) { return format_significant(100 * share, 3); };
  if (!of.interval) return percent(of.mean) + " %";
  return fmt::format("{} % [{}, {}]", percent(of.mean), percent(of.interval->low),
                     percent(of.interval->high));
}

// "12.1 ±0.3"
std::string with_half(const OverRuns& of) {
  if (!of.interval) return number(of.mean);
  return fmt::format("{} \u00b1{}", number(of.mean),
                     format_significant((of.interval->high - of.interval->low) / 2, 2));
}

const std::string& point_name(const Findings& findings, const LoadFigures& of) {
  return prompt_name(findings.strata[of.stratum]);
}

std::string point_label(const Findings& findings, const LoadFigures& of) {
  const std::string condition = condition_label(findings, of.stratum);
  return point_name(findings, of) + (condition.empty() ? "" : " " + condition);
}

// The point with the least load that keeps the bounds no more, above `than`.
const LoadFigures* next_beyond(const LoadSeries& points, double than) {
  const LoadFigures* next = nullptr;
  for (const LoadFigures* one : points) {
    if (one->kept == BoundsKept::kYes || one->offered_per_s.mean <= than) continue;
    if (!next || one->offered_per_s.mean < next->offered_per_s.mean) next = one;
  }
  return next;
}

std::string kept_sentence(const Findings& findings, const std::string& arm,
                          const LoadSeries& points) {
  const LoadFigures* const best = best_kept(points);
  const auto share_at = [&](const LoadFigures& of) {
    std::string text = fmt::format("{}: {} of requests keep them", point_label(findings, of),
                                   share_text(*of.within_bounds));
    return text + (of.growing_runs > 0                 ? ", and the queue grows"
                   : of.kept == BoundsKept::kUndecided ? ", which is open"
                                                       : "");
  };
  std::string text =
      fmt::format("Under load, within {}: {} serves ", bounds_text(findings.load.slo), arm);
  if (!best) {
    const auto least =
        std::ranges::min(points, {}, [](const auto* one) { return one->offered_per_s.mean; });
    return text + fmt::format("no load for certain; {}.", share_at(*least));
  }
  text += fmt::format("{} requests/s at {} ({} keep them)", with_interval(best->requests_per_s),
                      point_label(findings, *best), share_text(*best->within_bounds));
  const LoadFigures* const next = next_beyond(points, best->offered_per_s.mean);
  if (next) return text + fmt::format("; at {}.", share_at(*next));
  return text + "; no more was offered.";
}

std::string speed_sentence(const Findings& findings, const std::string& arm,
                           const LoadSeries& points) {
  const auto rate = [](const LoadFigures* one) { return one->tokens_per_s.mean; };
  const LoadFigures& least = **std::ranges::min_element(
      points, {}, [](const auto* one) { return one->offered_per_s.mean; });
  const LoadFigures& most = **std::ranges::max_element(points, {}, rate);
  std::string text = fmt::format("Under load: {} gives {} tokens/s at {}", arm,
                                 with_interval(least.tokens_per_s), point_label(findings, least));
  if (&most != &least) {
    text += fmt::format(" and at most {}, at {}", with_interval(most.tokens_per_s),
                        point_label(findings, most));
  }
  if (const LoadFigures* const full = saturation(points)) {
    text += full->point.rate ? fmt::format("; it doesn't follow {}", point_label(findings, *full))
                             : fmt::format("; {} gives hardly more than less load",
                                           point_label(findings, *full));
  }
  return text + ".";
}

// The highest quantile that every point tells.
struct HighQuantile {
  const char* name;
  std::optional<OverRuns> LatencyOverRuns::*of;
};
std::optional<HighQuantile> tail_of(const Findings& findings) {
  for (const HighQuantile& tail :
       {HighQuantile{"p99", &LatencyOverRuns::p99}, HighQuantile{"p95", &LatencyOverRuns::p95}}) {
    const bool all = std::ranges::all_of(findings.load.points, [&](const LoadFigures& one) {
      return (one.latency_ms.*tail.of).has_value();
    });
    if (all) return tail;
  }
  return std::nullopt;
}

TableCell latency_cell(const LatencyOverRuns& of, const std::optional<HighQuantile>& tail) {
  if (!of.p50) return TableCell::absent();
  std::string text = number(of.p50->mean);
  if (tail) text += " / " + ((of.*tail->of) ? number((of.*tail->of)->mean) : std::string("-"));
  return TableCell(std::move(text));
}

int64_t failed_of(const LoadFigures& of) {
  int64_t failed = 0;
  for (const auto& [error_class, count] : of.failed) failed += count;
  return failed;
}

bool any_failed(const Findings& findings) {
  return std::ranges::any_of(findings.load.points,
                             [](const LoadFigures& of) { return !of.failed.empty(); });
}

// The arm's mean latency over the baseline's, and the verdict.
TableCell ratio_to_baseline(const Findings& findings, const LoadFigures& of) {
  const Contrast* contrast = entry_of(findings.contrasts, of.stratum, of.arm);
  if (contrast == nullptr) return TableCell::absent();
  RatioRange range;
  range.add(*contrast);
  return TableCell(fmt::format("{} {}", range.short_text(), verdict_name(contrast->verdict)));
}

// One row a point and arm of one latency.
void add_latency_rows(const Findings& findings, const char* name, LatencyOverRuns LoadFigures::*of,
                      Table& table) {
  for (const LoadFigures& one : findings.load.points) {
    const LatencyOverRuns& latency = one.*of;
    if (!latency.mean) continue;
    table.rows.push_back({point_label(findings, one), one.arm, std::string(name),
                          cell_of(latency.mean, with_interval), cell_of(latency.p50, with_interval),
                          cell_of(latency.p95, with_interval),
                          cell_of(latency.p99, with_interval)});
  }
}

}  // namespace

std::string bounds_text(const ServiceBounds& bounds) {
  std::vector<std::string> parts;
  const auto add = [&](const char* name, const std::optional<double>& bound) {
    if (bound) parts.push_back(fmt::format("{} {:g} ms", name, *bound));
  };
  add("ttft", bounds.ttft_ms);
  add("itl", bounds.itl_ms);
  add("latency", bounds.latency_ms);
  return join(parts, ", ");
}

std::vector<std::string> load_sentences(const Findings& findings) {
  std::vector<std::string> sentences;
  for (const std::string& arm : findings.study.arms) {
    for (const LoadSeries& points : load_series(findings.load, findings.strata, arm)) {
      sentences.push_back(findings.load.slo.any() ? kept_sentence(findings, arm, points)
                                                  : speed_sentence(findings, arm, points));
    }
  }
  for (const LostLoadPoint& lost : findings.load.lost) {
    int64_t runs = 0;
    std::vector<std::string> classes;
    for (const auto& [error_class, count] : lost.runs) {
      runs += count;
      classes.push_back(fmt::format("{} {}", count, error_class));
    }
    sentences.push_back(fmt::format("Under load: {} gives no figure at {}; {} lost ({}).", lost.arm,
                                    prompt_name(findings.strata[lost.stratum]),
                                    counted(runs, "run"), join(classes, ", ")));
  }
  return sentences;
}

Table load_table(const Findings& findings) {
  const auto tail = tail_of(findings);
  Table table{.columns =
                  columns_of("<load|<arm|requests/s|tokens/s|TTFT ms|ITL ms|latency ms|kept|failed|"
                             "=latency ratio")};
  for (const LoadFigures& one : findings.load.points) {
    table.rows.push_back(
        {point_label(findings, one), one.arm, with_half(one.requests_per_s),
         with_half(one.tokens_per_s), latency_cell(one.ttft_ms, tail),
         latency_cell(one.itl_ms, tail), latency_cell(one.latency_ms, tail),
         cell_of(one.within_bounds, [](const OverRuns& of) { return percent_cell(of.mean); }),
         failed_of(one), ratio_to_baseline(findings, one)});
  }
  if (findings.study.arms.size() <= 1) {
    for (const char* name : {"arm", "latency ratio"}) drop_column(name, table);
  }
  if (!findings.load.slo.any()) drop_column("kept", table);
  if (!any_failed(findings)) drop_column("failed", table);
  return table;
}

std::string load_legend(const Findings& findings) {
  const auto tail = tail_of(findings);
  int64_t runs = INT64_MAX, most = 0;
  for (const LoadFigures& one : findings.load.points) {
    runs = std::min(runs, one.runs);
    most = std::max(most, one.runs);
  }
  const std::string of_runs =
      runs == most ? counted(runs, "run") : fmt::format("{} to {} runs", runs, most);
  std::string text = fmt::format(
      "Times: p50{} from each request's scheduled time, mean of {}; TTFT: to the first token; ITL: "
      "between tokens",
      tail ? fmt::format(" / {}", tail->name) : "", of_runs);
  if (findings.load.slo.any())
    text += fmt::format("; kept: requests within {}", bounds_text(findings.load.slo));
  if (findings.study.arms.size() > 1)
    text += fmt::format("; ratio: of mean latencies to {}'s", findings.study.baseline);
  return text + "; \u00b1: half the 95 % interval over runs.";
}

ReportSection load_section(const Findings& findings) {
  ReportSection section{"Under load", {}, {}};
  section.figures = {"load-curve", "load-latency", "load-timeline"};
  section.lines = load_sentences(findings);
  section.lines.push_back(fmt::format(
      "A request's times count from its scheduled time, so that waiting in a queue is part of "
      "them. "
      "The first and the last {:.0f} % of a run's schedule are cut, and of a closed loop what came "
      "before its first round had ended. Runs are the unit that repeats: intervals are Student's "
      "over "
      "runs, those of shares at least Wilson's of all requests.",
      100 * kCutShare));
  section.lines.emplace_back(
      "requests/s and tokens/s count what ended, or came, within the window; in flight: scheduled "
      "and "
      "not ended, mean over the window, and the most of any run; cached: share of the prompts' "
      "tokens "
      "that came from the server's cache; late: the time by which 99 % of a "
      "run's requests were sent after their schedule, of the worst run.");
  Table rates{.columns =
                  columns_of("<load|<arm|runs|requests|failed|offered/s|requests/s|tokens/s|kept|"
                             "good/s|in flight|most|cached|late ms")};
  for (const LoadFigures& one : findings.load.points) {
    rates.rows.push_back(
        {point_label(findings, one), one.arm, one.runs, one.requests, failed_of(one),
         with_interval(one.offered_per_s), with_interval(one.requests_per_s),
         with_interval(one.tokens_per_s), cell_of(one.within_bounds, share_text),
         cell_of(one.good_per_s, with_interval), TableCell(one.in_flight.mean, 3),
         one.most_in_flight, cell_of(one.cached, share_text), TableCell(one.late_p99_ms, 3)});
  }
  section.tables.push_back(std::move(rates));
  Table latencies{.columns = columns_of("<load|<arm|<ms|mean|p50|p95|p99")};
  add_latency_rows(findings, "to the first token", &LoadFigures::ttft_ms, latencies);
  add_latency_rows(findings, "a further token", &LoadFigures::tpot_ms, latencies);
  add_latency_rows(findings, "between tokens", &LoadFigures::itl_ms, latencies);
  add_latency_rows(findings, "whole request", &LoadFigures::latency_ms, latencies);
  section.tables.push_back(std::move(latencies));
  return section;
}

}  // namespace assay
