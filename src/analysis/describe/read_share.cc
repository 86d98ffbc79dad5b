// The limit is the harness's of native arms, and the worker's own of others.
#include "analysis/describe/read_share.h"

#include "stats/samples/summary.h"

namespace assay {
namespace {

// 0: nobody measured it.
double limit_of(const Evidence& evidence) {
  if (evidence.read_limit && evidence.read_limit->bytes_per_s > 0) {
    return evidence.read_limit->bytes_per_s;
  }
  const auto& report = evidence.reported;
  return report ? std::max(0.0, report->read_bytes_per_s.value_or(0)) : 0;
}

std::vector<double> rates(const Group& group) {
  std::vector<double> all;
  if (group.evidence == nullptr) return all;
  for (const Row* row : group.warm) {
    const auto bytes = group.evidence->read_bytes.find(row->padded_tokens);
    if (bytes == group.evidence->read_bytes.end() || bytes->second <= 0) continue;
    all.push_back(static_cast<double>(bytes->second) / (*row->latency_ms / 1e3));
  }
  return all;
}

}  // namespace

std::optional<double> read_rate(const Group& group) {
  return stats::median(stats::sorted(rates(group)));
}

std::vector<ReadShare> read_shares(const Samples& samples) {
  std::vector<ReadShare> shares;
  for (const Group& group : samples.groups) {
    if (samples.strata[group.stratum].phase != Phase::kKvDecode) continue;
    if (!group.evidence) continue;
    const double limit = limit_of(*group.evidence);
    const auto rate = read_rate(group);
    if (limit <= 0 || !rate) continue;
    shares.push_back({group.stratum, samples.arms[group.arm], *rate, limit});
  }
  return shares;
}

}  // namespace assay
