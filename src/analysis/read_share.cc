// The limit is the harness's of native arms, and the worker's own of others.
#include "analysis/read_share.h"

#include "analysis/lenient.h"
#include "analysis/samples.h"
#include "stats/summary.h"

namespace assay {
namespace {

double positive(const Json& value) {
  return value.is_number() && value.get<double>() > 0 ? value.get<double>() : 0;
}

double limit_of(const Json& evidence) {
  const double judged = positive(member(member(evidence, "read_limit"), "bytes_per_s"));
  if (judged > 0) return judged;
  const Json& own = member(member(evidence, "reported"), "read_bandwidth");
  return positive(member(own, "bytes_per_s"));
}

std::vector<double> rates(const Group& group, const Json& bytes_by_length) {
  std::vector<double> all;
  for (const Row* row : group.warm) {
    const std::string length = std::to_string(row->padded_tokens);
    const double bytes = positive(member(bytes_by_length, length.c_str()));
    if (bytes > 0) all.push_back(bytes / (*row->latency_ms / 1e3));
  }
  return all;
}

}  // namespace

std::vector<ReadShare> read_shares(const Bundle& bundle, const Samples& samples) {
  std::vector<ReadShare> shares;
  for (const Group& group : samples.groups) {
    if (samples.strata[group.stratum].phase != Phase::kKvDecode) continue;
    const auto evidence = bundle.evidence.find(group.rows.front()->cell_id);
    if (evidence == bundle.evidence.end()) continue;
    const double limit = limit_of(evidence->second);
    const auto rate =
        stats::median(stats::sorted(rates(group, member(evidence->second, "read_bytes"))));
    if (limit <= 0 || !rate) continue;
    shares.push_back({group.stratum, samples.arms[group.arm], *rate, limit});
  }
  return shares;
}

Json read_share_json(const ReadShare& share) {
  return {{"arm", share.arm},
          {"bytes_per_s", share.bytes_per_s},
          {"limit_bytes_per_s", share.limit_bytes_per_s},
          {"share", share.share()}};
}

}  // namespace assay
