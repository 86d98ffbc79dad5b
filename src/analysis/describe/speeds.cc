// Tokens and times of the rows that the analysis calls warm.
#include "analysis/describe/speeds.h"

#include "analysis/describe/read_share.h"
#include "base/records/lenient_json.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

void add_tokens(const Stratum& stratum, const PromptRange& prompts, Speed& speed) {
  if (prompts.shortest != prompts.longest) return;
  speed.prompt_tokens = prompts.longest;
  speed.tokens =
      stratum.batch * (decodes(stratum.phase) ? stratum.new_tokens : speed.prompt_tokens);
  for (const double ms : speed.latencies_ms) {
    speed.tokens_per_s.push_back(static_cast<double>(speed.tokens) / ms * 1e3);
  }
  speed.sd_tokens_per_s = stats::standard_deviation(speed.tokens_per_s);
}

// The device and threads that computed, by the cell's evidence.
void add_worker(const Evidence& evidence, Speed& speed) {
  const std::string device = text_member(evidence.requested.options, "device");
  if (!device.empty() && device != "cpu") speed.device = device;
  if (evidence.worker) speed.threads = evidence.worker->threads;
}

}  // namespace

std::vector<Speed> speeds(const Samples& samples) {
  std::vector<Speed> all;
  for (const Group& group : samples.groups) {
    const Stratum& stratum = samples.strata[group.stratum];
    Speed& speed = all.emplace_back();
    speed.stratum = group.stratum;
    speed.arm = samples.arms[group.arm];
    speed.lost = group.failed();
    speed.latencies_ms = group.warm_ms;
    add_tokens(stratum, samples.prompts[group.stratum], speed);
    if (!group.rows.empty()) {
      speed.backend = group.rows.front()->backend;
      speed.dtype = group.rows.front()->dtype;
      speed.quantization = group.rows.front()->quantization;
    }
    if (stratum.phase == Phase::kKvDecode || on_gpu(group)) speed.bytes_per_s = read_rate(group);
    if (group.evidence != nullptr) add_worker(*group.evidence, speed);
    if (on_gpu(group)) speed.least_energy_ms = group.report().least_energy_ms;
  }
  return all;
}

}  // namespace assay
