// Findings about tails: recompilation as their cause, and arms that do without.
#include <algorithm>
#include <set>

#include "analysis/contrast/row_statistics.h"
#include "analysis/describe/tails.h"
#include "analysis/findings/spread_text.h"
#include "analysis/named/named.h"
#include "base/text/counts.h"
#include "stats/samples/intervals.h"

namespace assay {
namespace {

constexpr size_t kWorstShown = 3;

std::string ms(double value) {
  return format_significant(value) + " ms";
}

std::string high_name(const Tail& tail) {
  return tail.high_is_max ? "max" : "p99";
}

// The guard whose failure this row's compilation answers, where evidence names one that found the
// row's own length.
std::string guard_text(const Group& group, const Row& row) {
  for (const Recompile& recompile : group.report().recompiles) {
    if (recompile.found != std::to_string(row.padded_tokens)) continue;
    return fmt::format(" (guard {}: expected {}, found {})", recompile.guard, recompile.expected,
                       recompile.found);
  }
  return "";
}

std::vector<const Row*> compiling_rows(const Group& group) {
  std::vector<const Row*> rows;
  for (const Row* row : group.warm) {
    if (carries_compilation(*row)) rows.push_back(row);
  }
  std::ranges::stable_sort(
      rows, [](const Row* a, const Row* b) { return *a->latency_ms > *b->latency_ms; });
  return rows;
}

void report_tail(const Samples& samples, const Tail& tail, std::vector<Finding>& findings) {
  const Group& group = *samples.find(tail.stratum, tail.arm);
  const auto rows = compiling_rows(group);
  Finding finding = about("recompile_tail", Severity::kWarning, samples, group);
  finding.size = tail.high / tail.p50;
  finding.text = fmt::format(
      "p50 is {}, {} is {} ({} times p50): {} of the {} slower than {:.0f} times the median {} a "
      "recompile; {} would be {} without {}",
      ms(tail.p50), high_name(tail), ms(tail.high), format_significant(finding.size, 3),
      tail.slow_recompiled, counted(tail.slow, "sample"), kSlowFactor,
      tail.slow_recompiled == 1 ? "carries" : "carry", high_name(tail), ms(*tail.high_without),
      tail.slow_recompiled == 1 ? "it" : "them");
  std::vector<std::string> worst;
  for (size_t i = 0; i < std::min(rows.size(), kWorstShown); ++i) {
    worst.push_back(fmt::format("{} at {}{}", ms(*rows[i]->latency_ms),
                                counted(rows[i]->padded_tokens, "token"),
                                guard_text(group, *rows[i])));
  }
  finding.text += fmt::format("; worst: {}", join(worst, ", "));
  add_rows(finding, rows);
  findings.push_back(std::move(finding));
}

// The compiler's share of the samples that stand out by Tukey's rule.
void report_attribution(const Samples& samples, const Tail& tail, std::vector<Finding>& findings) {
  if (tail.beyond_fence_recompiled == 0) return;
  const Group& group = *samples.find(tail.stratum, tail.arm);
  Finding finding = about("tail_attribution", Severity::kNote, samples, group);
  const auto share =
      static_cast<double>(tail.beyond_fence_recompiled) / static_cast<double>(tail.beyond_fence);
  const auto interval =
      stats::wilson_interval(tail.beyond_fence_recompiled, tail.beyond_fence, kConfidence);
  finding.size = share;
  finding.text = fmt::format(
      "{} of the {} beyond Tukey's upper fence ({}) {} a recompile: {:.0f} % [{:.0f}, {:.0f}], "
      "against {} of the {}",
      tail.beyond_fence_recompiled, counted(tail.beyond_fence, "sample"), ms(*tail.fence),
      tail.beyond_fence_recompiled == 1 ? "carries" : "carry", share * 100, interval->low * 100,
      interval->high * 100, tail.recompiled - tail.beyond_fence_recompiled,
      counted(tail.n - tail.beyond_fence, "other"));
  for (const Row* row : group.warm) {
    if (carries_compilation(*row) && *row->latency_ms > *tail.fence) add_row(finding, *row);
  }
  findings.push_back(std::move(finding));
}

// The arm's remedy for prompts of several lengths, in brackets: " (12 lengths padded to 1 at 2.1
// times the tokens, dynamic false)"; empty if nothing shows in its rows.
std::string remedy_text(const Group& group) {
  std::set<int64_t> prompts;
  std::set<int64_t> padded;
  double tokens = 0;
  double computed = 0;
  for (const Row* row : group.warm) {
    prompts.insert(row->prompt_tokens);
    padded.insert(row->padded_tokens);
    tokens += static_cast<double>(row->prompt_tokens);
    computed += static_cast<double>(row->padded_tokens);
  }
  std::vector<std::string> parts;
  if (padded.size() < prompts.size()) {
    parts.push_back(fmt::format("{} lengths padded to {} at {} times the tokens", prompts.size(),
                                padded.size(), format_significant(computed / tokens, 3)));
  } else if (prompts.size() > 1) {
    parts.push_back(fmt::format("{} lengths", prompts.size()));
  }
  const std::string& dynamic = group.rows.front()->dynamic;
  if (group.wants_compiler && !dynamic.empty()) parts.push_back("dynamic " + dynamic);
  return parts.empty() ? "" : fmt::format(" ({})", join(parts, ", "));
}

void report_collapse(const ContrastInputs& in, const Tail& with, const Tail& without,
                     stats::QuantileBootstrap& quantiles, std::vector<Finding>& findings) {
  const Samples& samples = in.samples;
  const Group& group = *samples.find(without.stratum, without.arm);
  const Group& other = *samples.find(with.stratum, with.arm);
  Finding finding = about("tail_collapse", Severity::kNote, samples, group);
  finding.text =
      fmt::format("{} {} is {} times p50{}, where {}'s is {} times", high_name(without),
                  ms(without.high), format_significant(without.high / without.p50, 3),
                  remedy_text(group), with.arm, format_significant(with.high / with.p50, 3));
  const GroupPair pair{samples.index_of(group), samples.index_of(other)};
  const auto cost = quantile_ratio_by_units(in, pair, 0.5, pair_widening(in, pair), quantiles);
  if (cost) {
    finding.text += fmt::format("; its p50 is {} of {}'s{}", format_significant(cost->ratio, 3),
                                with.arm, spread_text(cost->interval, cost->process_range, 3));
  }
  findings.push_back(std::move(finding));
}

void report_no_tail(const Samples& samples, const Tail& tail, std::vector<Finding>& findings) {
  const Group& group = *samples.find(tail.stratum, tail.arm);
  const PromptRange& range = samples.prompts[tail.stratum];
  if (range.shortest == range.longest) return;
  Finding finding = about("no_recompile_tail", Severity::kNote, samples, group);
  finding.text = fmt::format(
      "the prompts have {} to {} tokens{}, and {} of {} {} a recompile: {} {} is {} times p50 {}",
      range.shortest, range.longest, remedy_text(group), tail.recompiled, counted(tail.n, "sample"),
      tail.recompiled == 1 ? "carries" : "carry", high_name(tail), ms(tail.high),
      format_significant(tail.high / tail.p50, 3), ms(tail.p50));
  findings.push_back(std::move(finding));
}

}  // namespace

void find_recompile_tails(const ContrastInputs& in, const std::vector<Tail>& tails,
                          stats::QuantileBootstrap& quantiles, std::vector<Finding>& findings) {
  const Samples& samples = in.samples;
  for (const Tail& tail : tails) {
    if (is_recompile_tail(tail)) report_tail(samples, tail, findings);
    report_attribution(samples, tail, findings);
  }
  for (const Tail& tail : tails) {
    const auto with = std::ranges::find_if(tails, [&](const Tail& other) {
      return other.stratum == tail.stratum && is_recompile_tail(other);
    });
    const bool compiled = tail.execution == Execution::kCompiled;
    if (with == tails.end()) {
      if (compiled && tail.slow_recompiled == 0) report_no_tail(samples, tail, findings);
    } else if ((compiled || tail.execution == Execution::kEager) &&
               tail.high / tail.p50 <= kTailShare * with->high / with->p50) {
      report_collapse(in, *with, tail, quantiles, findings);
    }
  }
}

}  // namespace assay
