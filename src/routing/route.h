// Routing: a policy that names the arm to ship, from the rows of one study, with the arms that it
// may not choose and the conditions that it doesn't know.
//
// It reads rows, not findings.json: thresholds need single rows, and the parts of a bundle that a
// policy is tested on have no findings of their own. The decisions are those of `assay analyze`.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "analysis/findings/findings.h"
#include "artifact/bundle.h"
#include "base/process/thread_pool.h"
#include "base/records/json.h"
#include "routing/choice.h"
#include "routing/policy.h"
#include "routing/trace.h"
#include "routing/validation.h"

namespace assay {

struct Simulation;

inline constexpr int kRouteSchemaVersion = 2;

// A trace to replay.
struct TraceToReplay {
  std::string name;
  std::vector<TraceRequest> requests;
  std::string model;  // of the requests; empty: the only one that was measured
  int64_t replays = 200;
};

struct RouteRequest {
  AnalysisOptions analysis;
  std::optional<Policy> policy = {};  // in the place of the one that the rows give
  std::optional<TraceToReplay> trace = {};
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
  std::set<std::string> compiled_arms;  // proven to have run compiled on some stratum
  Policy policy;
  bool policy_given = false;
  // A given policy only, a sentence each: its parts that the rows prove wrong, and those for which
  // the rows choose otherwise.
  std::vector<std::string> refuted;
  std::vector<std::string> differs;
  std::optional<Optimism> validation;            // absent: the policy was given, or it isn't judged
  std::shared_ptr<const Simulation> simulation;  // null: no trace

  // Reasons why the judgement fails: one sentence a stratum on which no arm is safe, then
  // `refuted`; empty: it passes.
  std::vector<std::string> failures() const;
};

// bad_input: a parity record without a verdict; a given policy of another identity, or one that the
// rows rule out (given_policy.h); a trace of another model, or without a request inside the
// measured lengths.
Result<Route> judge_route(const Bundle& bundle, const RouteRequest& request, ThreadPool* pool);

// The policy that a bundle's findings give, as judge_route() gives it from the rows: without its
// judgement out of sample. `samples`: of the bundle's rows.
Route route_of_findings(const Bundle& bundle, const Samples& samples, const Findings& findings);

Json route_to_json(const Route& route);

}  // namespace assay
