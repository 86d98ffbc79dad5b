// The limit is the harness's of native arms, and the worker's own of others.
#include "analysis/describe/read_share.h"

#include <map>

#include "base/records/lenient_json.h"
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

// Operations of prompts by their padded length, as an arm of the stratum tells them.
std::map<int64_t, int64_t> operations_of(const Samples& samples, size_t stratum) {
  for (size_t g = samples.first_group[stratum]; g < samples.first_group[stratum + 1]; ++g) {
    const Evidence* evidence = samples.groups[g].evidence;
    if (evidence != nullptr && !evidence->operations.empty()) return evidence->operations;
  }
  return {};
}

// The limit of the group's own evidence, else of another arm's that computes on a GPU in its type.
std::optional<double> matrix_limit_of(const Samples& samples, const Group& group) {
  if (group.evidence->matrix_limit) return group.evidence->matrix_limit;
  for (size_t g = samples.first_group[group.stratum]; g < samples.first_group[group.stratum + 1];
       ++g) {
    const Group& other = samples.groups[g];
    if (!on_gpu(other) || !other.evidence->matrix_limit || other.warm.empty()) continue;
    if (!group.warm.empty() && other.warm.front()->dtype == group.warm.front()->dtype) {
      return other.evidence->matrix_limit;
    }
  }
  return std::nullopt;
}

void add_operations(const Samples& samples, const Group& group, ReadShare& share) {
  const auto operations = operations_of(samples, group.stratum);
  std::vector<double> rates;
  for (const Row* row : group.warm) {
    const auto of_row = operations.find(row->padded_tokens);
    if (of_row == operations.end() || of_row->second <= 0) continue;
    rates.push_back(static_cast<double>(of_row->second) / (*row->latency_ms / 1e3));
  }
  share.operations_per_s = stats::median(stats::sorted(rates));
  if (share.operations_per_s) share.limit_operations_per_s = matrix_limit_of(samples, group);
}

}  // namespace

std::optional<double> read_rate(const Group& group) {
  return stats::median(stats::sorted(rates(group)));
}

bool on_gpu(const Group& group) {
  return group.evidence != nullptr &&
         text_member(group.evidence->requested.options, "device").starts_with("cuda");
}

std::vector<ReadShare> read_shares(const Samples& samples) {
  std::vector<ReadShare> shares;
  for (const Group& group : samples.groups) {
    if (!group.evidence) continue;
    if (samples.strata[group.stratum].phase != Phase::kKvDecode && !on_gpu(group)) continue;
    const double limit = limit_of(*group.evidence);
    const auto rate = read_rate(group);
    if (limit <= 0 || !rate) continue;
    ReadShare& share = shares.emplace_back();
    share.stratum = group.stratum;
    share.arm = samples.arms[group.arm];
    share.bytes_per_s = *rate;
    share.limit_bytes_per_s = limit;
    if (on_gpu(group)) add_operations(samples, group, share);
  }
  return shares;
}

}  // namespace assay
