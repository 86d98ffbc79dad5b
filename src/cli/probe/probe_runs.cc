// Runs of a probed command, and the figures over them.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "analysis/findings/options.h"
#include "backend/command/figures.h"
#include "base/text/shown_text.h"
#include "base/text/text.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/probe/probe.h"
#include "cli/process.h"
#include "stats/hypotheses/tests.h"

namespace assay::cli {
namespace {

// A number in front of the unit, where no pattern is given: whole, with its sign and its commas, so
// that "1,234.5" and "-5" are no figures rather than 234.5 and 5.
std::string pattern_text(const ProbeOptions& options) {
  if (!options.pattern.empty()) return options.pattern;
  return fmt::format(
      R"((?<value>(?:(?<![\w.])[-+])?(?<!\d|\d[.,])\d[\d.,]*(?:[eE][-+]?\d+)?)\s*\Q{}\E(?!\w))",
      options.unit);
}

void fail(Probed& probed, const NoFigures& why, bool out_of_memory) {
  probed.status = out_of_memory ? "oom" : why.outcome.empty() ? "error" : why.outcome;
  probed.error_class = why.error_class;
  probed.message = why.message;
}

void take_values(const ProbeOptions& options, const std::vector<Figures>& figures, Probed& probed) {
  for (size_t i = static_cast<size_t>(options.skip); i < figures.size(); ++i) {
    if (figures[i].empty()) {
      probed.values.clear();
      fail(probed,
           {"bad_figure", "expected a number in each match, found one in which the group took none",
            "false_success"},
           false);
      return;
    }
    probed.values.push_back(figures[i].begin()->second);
  }
  if (!probed.values.empty()) return;
  fail(probed,
       {"too_few_samples",
        fmt::format("expected more than {} to skip, found {}", counted(options.skip, "sample"),
                    figures.size()),
        ""},
       false);
}

// Absent: the user stopped it.
Result<std::optional<Probed>> probe_once(const ProbeOptions& options, const TextPattern* pattern,
                                         int interrupt_fd) {
  InvocationSpec spec{.argv = options.command};
  spec.folder = options.workdir;
  spec.timeout_s = options.timeout_s;
  spec.interrupt_fd = interrupt_fd;
  if (options.verbose) spec.echo = [](std::string_view bytes) { tell(std::string(bytes)); };
  ASSAY_TRY(const Invocation invocation, invoke(system_spawner(), spec));
  Probed probed;
  probed.seconds = invocation.seconds;
  if (invocation.stopped == Invocation::Stopped::kInterrupted) return std::optional<Probed>();
  if (const auto failure = failure_of(invocation)) {
    fail(probed, *failure, ran_out_of_memory(invocation, *failure));
    return std::optional(std::move(probed));
  }
  if (pattern == nullptr) {
    probed.values = {invocation.seconds};
    return std::optional(std::move(probed));
  }
  const auto figures = read_figures(std::span(pattern, 1), invocation);
  if (figures) {
    take_values(options, *figures, probed);
  } else {
    fail(probed, figures.error(), false);
  }
  return std::optional(std::move(probed));
}

// A figure is above 0 (bad_figure), and so is its mean: the interval's part below 0 says nothing.
void cut_at_zero(std::optional<stats::Interval>& interval) {
  if (interval) interval->low = std::max(interval->low, 0.0);
}

}  // namespace

bool times_invocations(const ProbeOptions& options) {
  return options.pattern.empty() && options.unit.empty();
}

Result<TextPattern> probe_pattern(const ProbeOptions& options) {
  if (options.unit.find("\\E") != std::string::npos) {
    return bad_input("--unit: expected a text without \\E, found {}", quoted_excerpt(options.unit));
  }
  ASSAY_TRY(TextPattern pattern, TextPattern::compile(pattern_text(options), "--pattern"));
  if (pattern.names().size() == 1) return pattern;
  return bad_input("--pattern: expected one named group, (?<value>...), found {} in {}",
                   pattern.names().size(), quoted_excerpt(pattern.text()));
}

Result<std::optional<std::vector<Probed>>> probe_invocations(const ProbeOptions& options,
                                                             const TextPattern* pattern,
                                                             int64_t warmups, int64_t measured) {
  ASSAY_TRY(Interrupt interrupt, Interrupt::create());
  std::vector<Probed> invocations;
  const int64_t all = warmups + measured;
  for (int64_t i = 0; i < all; ++i) {
    ASSAY_TRY(auto probed, probe_once(options, pattern, interrupt.descriptor()));
    if (!probed) return std::optional<std::vector<Probed>>();
    probed->warmup = i < warmups;
    if (::isatty(STDERR_FILENO) == 1) {
      const auto mean = probed->mean();
      print_remark("note", fmt::format("{} of {}: {}", i + 1, all,
                                       mean ? format_significant(*mean) + " " + options.unit
                                            : probed->error_class));
    }
    invocations.push_back(*std::move(probed));
  }
  return std::optional(std::move(invocations));
}

ProbeResult probe_result(const ProbeOptions& options, std::vector<Probed> invocations) {
  ProbeResult result;
  result.invocations = std::move(invocations);
  for (const Probed& probed : result.invocations) {
    if (probed.warmup) continue;
    const auto mean = probed.mean();
    if (mean) result.means.push_back(*mean);
    if (!mean) ++result.lost;
  }
  // Figures that are all alike, as rounded ones may be, show no error.
  const auto spread = stats::moments(result.means);
  if (spread && spread->variance > 0) {
    const auto n = static_cast<double>(spread->n);
    result.interval = stats::t_interval(
        spread->mean, {.value = std::sqrt(spread->variance / n), .df = n - 1}, kConfidence);
  }
  if (options.target) {
    result.reproduction =
        stats::reproduction(result.means, *options.target, options.bands, kConfidence);
    cut_at_zero(result.reproduction.interval);
  }
  cut_at_zero(result.interval);
  return result;
}

}  // namespace assay::cli
