// A bundle to findings, step by step.
#include "analysis/analyze.h"

#include <algorithm>
#include <functional>
#include <iterator>

#include "analysis/contrast/contrast.h"
#include "analysis/contrast/resampling.h"
#include "analysis/describe/describe.h"
#include "analysis/describe/load.h"
#include "analysis/describe/model_size.h"
#include "analysis/describe/phase_split.h"
#include "analysis/describe/read_share.h"
#include "analysis/describe/requirements.h"
#include "analysis/describe/slow_calls.h"
#include "analysis/describe/tails.h"
#include "analysis/named/named.h"
#include "analysis/named/void_comparisons.h"
#include "analysis/rows/each.h"
#include "analysis/rows/quality.h"
#include "analysis/rows/sittings.h"
#include "analysis/rows/summary.h"
#include "analysis/rows/worker_facts.h"

namespace assay {
namespace {

// Each on its own; in this order whichever thread is done first.
void find_all(const Bundle& bundle, const ContrastInputs& in, stats::QuantileBootstrap& quantiles,
              Findings& findings, ThreadPool* pool) {
  const Samples& samples = in.samples;
  const AnalysisOptions& options = findings.options;
  using Named = std::vector<Finding>;
  const std::function<void(Named&)> finders[] = {
      [&](Named& named) { find_context(bundle, findings.study, samples, named); },
      [&](Named& named) { find_sittings(bundle, samples, named); },
      [&](Named& named) { find_lost_rows(samples, named); },
      [&](Named& named) { find_false_oks(bundle, samples, named); },
      [&](Named& named) { find_lost_strata(samples, findings.combined, named); },
      [&](Named& named) { find_parity(samples, named); },
      [&](Named& named) { find_varying_outputs(samples, named); },
      [&](Named& named) { find_confounds(bundle, samples, findings.qualities, named); },
      [&](Named& named) { find_unpaired_models(samples, named); },
      [&](Named& named) { find_reversals(samples, findings.combined, options, named); },
      [&](Named& named) { find_compilation(samples, named); },
      [&](Named& named) { find_recompile_tails(in, findings.tails, quantiles, named); },
      [&](Named& named) { find_too_few(samples, options, named); },
      [&](Named& named) { find_throttled(samples, named); },
      [&](Named& named) { find_gpu_neighbours(samples, named); },
      [&](Named& named) { find_clocks(samples, named); },
      [&](Named& named) { find_load_troubles(samples, findings.load, named); },
      [&](Named& named) { find_server_cost(samples, findings.contrasts, named); },
      [&](Named& named) { find_rank_disagreements(in, quantiles, named); },
      [&](Named& named) { find_sensitive_rankings(in, named); },
      [&](Named& named) {
        find_changes_between_rounds(samples, options, named);
        find_changes_in_order(samples, options, named);
        find_modes(samples, findings.latencies, options, named);
      },
      [&](Named& named) { find_one_sided_tails(samples, findings.contrasts, options, named); },
      [&](Named& named) { find_constants(samples, named); },
      [&](Named& named) {
        find_dependence(samples, findings.latencies, findings.contrasts, named);
      },
      [&](Named& named) {
        find_processes_that_differ(samples, findings.latencies, options, named);
      },
      [&](Named& named) {
        find_single_processes(samples, findings.latencies, findings.contrasts, options, named);
      },
      [&](Named& named) { find_cold_starts(samples, options, named); }};
  std::vector<Named> found(std::size(finders));
  for_each_index(found.size(), pool, [&](size_t i) { finders[i](found[i]); });
  for (Named& named : found) std::ranges::move(named, std::back_inserter(findings.named));
  std::ranges::stable_sort(findings.named, {}, &Finding::severity);
}

// Findings that are asked for: all, or contrasts alone.
enum class AnalysisExtent { kEverything, kContrasts };

std::vector<Latency> parity_of_arms(const Samples& samples) {
  std::vector<Latency> all;
  for (const Group& group : samples.groups) {
    Latency& latency = all.emplace_back();
    latency.stratum = group.stratum;
    latency.arm = samples.arms[group.arm];
    latency.parity_failed = group.parity_failed;
  }
  return all;
}

Result<Findings> analyze_to(AnalysisExtent extent, const Bundle& bundle,
                            const AnalysisOptions& options, ThreadPool* pool) {
  Findings findings;
  findings.options = options;
  findings.study = summarize(bundle);
  findings.identity = identity_lines(bundle.manifest);
  findings.sittings = summarize_sittings(bundle);

  ASSAY_TRY(const Samples samples, group_rows(bundle, findings.study.arms));
  findings.strata = samples.strata;
  findings.prompts = samples.prompts;
  findings.requirements = judge_requirements(bundle, samples);
  findings.outcomes = describe_outcomes(samples);
  const Units units(samples, !findings.study.order.empty());
  findings.blocks = blocks_of_contrasts(samples, units.blocks());
  const Resampled resampled = resample_groups(samples, units, options, pool);
  const ContrastInputs inputs{samples, units, resampled, findings.options};
  findings.latencies = extent == AnalysisExtent::kContrasts ? parity_of_arms(samples)
                                                            : describe_latencies(inputs, pool);
  stats::QuantileBootstrap quantiles(ratio_bootstrap(options));
  contrast_with_baseline(inputs, findings, pool);
  const std::vector<std::string> why_void = void_comparisons(bundle, findings.study, samples);
  if (extent == AnalysisExtent::kContrasts) {
    findings.decisions = void_decisions(inputs, why_void);
    return findings;
  }
  findings.decisions = decide(inputs, findings.contrasts, why_void, quantiles, pool);
  findings.tails = describe_tails(inputs, quantiles, pool);
  findings.slow_calls = describe_slow_calls(bundle, samples);
  findings.compile_costs = compile_costs(samples);
  findings.read_shares = read_shares(samples);
  findings.qualities = arm_qualities(samples);
  findings.load = describe_load(bundle, samples);
  findings.profiles = cell_profiles(samples);
  findings.splits = split_phases(samples, resampled, findings.contrasts, options, pool);
  const ModelSizes sizes = model_sizes(bundle, findings.strata);
  findings.size_unit = sizes.unit;
  findings.sizes =
      analyze_sizes(samples, units, resampled, findings.contrasts, sizes, options, pool);
  find_all(bundle, inputs, quantiles, findings, pool);
  return findings;
}

}  // namespace

Result<Findings> analyze(const Bundle& bundle, const AnalysisOptions& options, ThreadPool* pool) {
  return analyze_to(AnalysisExtent::kEverything, bundle, options, pool);
}

Result<Findings> analyze_contrasts(const Bundle& bundle, const AnalysisOptions& options,
                                   ThreadPool* pool) {
  return analyze_to(AnalysisExtent::kContrasts, bundle, options, pool);
}

}  // namespace assay
