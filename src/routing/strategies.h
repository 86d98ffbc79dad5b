// Ways to serve a trace, held against each other: which arm each phase of each request takes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "routing/replay_data.h"
#include "routing/route.h"

namespace assay {

// One phase of one request under one strategy. It depends on the request's shape alone, so that
// requests of a shape share it.
struct PlannedCall {
  int32_t arm = -1;       // -1: none may serve it, and the request is lost
  int32_t fallback = -1;  // of the policy's rule, or of a guarded strategy
  int32_t rule = -1;      // of the policy; -1: none
  int32_t place = -1;     // among PlannedTrace::places
  int32_t shape = -1;     // that a compiler may specialise for, among all shapes
};

struct PlannedStrategy {
  std::string name;
  std::string takes;        // in words
  std::string unavailable;  // why it can't be had; empty: it can
  std::vector<PlannedCall>
      calls;  // by request, then phase; a phase that a request lacks has no place
  std::vector<PolicyTrigger> triggers;  // over all requests, to `fallback`; the policy's are its
                                        // rules'
  std::string fallback;                 // of these triggers
};

struct PlannedTrace {
  std::vector<Phase> phases;
  std::vector<TraceRequest> requests;  // those inside
  std::vector<ReplayPlace> places;
  size_t shapes = 0;
  std::vector<PlannedStrategy> strategies;
  // Place at which every arm's call is drawn for "best possible", by request, then phase.
  std::vector<int32_t> own_places;
  std::vector<std::pair<std::string, int64_t>> outside;  // why, and how many requests
};

// eager, compiled, guarded (where the compiled arm lost rows), split, batch, padded, policy:
// docs/judgements.md has the arm that each of them takes. All but the policy also take an arm that
// lost rows.
// bad_input: no request of the trace is inside the model's measured lengths.
Result<PlannedTrace> plan_trace(const ReplayData& data, const Route& route,
                                const std::string& model, std::span<const std::string> arms,
                                std::span<const TraceRequest> trace);

}  // namespace assay
