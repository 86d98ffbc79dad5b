// Which arm to ship: a routing policy from the rows of one study, with what it may not choose and
// what it doesn't know.
//
// It reads rows, not findings.json: thresholds need single rows, and the parts of a bundle that a
// policy is tested on have no findings of their own. The decisions are those of `assay analyze`.
#pragma once

#include <string>
#include <vector>

#include "analysis/findings/findings.h"
#include "artifact/bundle.h"
#include "base/json.h"
#include "base/thread_pool.h"
#include "routing/choice.h"
#include "routing/policy.h"

namespace assay {

inline constexpr int kRouteSchemaVersion = 1;

struct RouteRequest {
  AnalysisOptions analysis;
  std::optional<Policy> policy;  // in the place of the one that the rows give
};

// An arm that no strategy may choose on a stratum.
struct BarredArm {
  size_t stratum = 0;
  std::string arm;
  std::string reason;
};

struct Route {
  AnalysisOptions options;
  std::string study;
  std::string baseline;
  int64_t rows = 0;
  std::vector<Stratum> strata;
  std::vector<PromptRange> prompts;  // of each stratum
  std::vector<StratumChoice> choices;
  std::vector<BarredArm> barred;
  Policy policy;
  bool policy_given = false;

  // Why the judgement fails, one sentence a stratum on which no arm is safe; empty: it passes.
  std::vector<std::string> failures() const;
};

// bad_input: a parity record without a verdict; a given policy of another identity, or one that
// names an arm that isn't there or that is barred on a stratum which its rule covers.
Result<Route> judge_route(const Bundle& bundle, const RouteRequest& request, ThreadPool* pool);

Json route_to_json(const Route& route);

}  // namespace assay
