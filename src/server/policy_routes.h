// A routing policy at work: which arm serves a phase of a request, and the events that send a
// rule's later requests to its fallback. docs/judgements.md, "The file", has the policy.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "routing/policy.h"
#include "routing/trigger_watch.h"

namespace assay::server {

// A rule gave way: its requests go to `to` from now on.
struct RouteSwitch {
  size_t rule = 0;         // its number in the policy, from 1
  std::string shape = {};  // "kv_decode, batch 1, 64 new tokens, prompts of 10-80"
  std::string from, to;    // arms
  TriggerKind trigger = TriggerKind::kLostRow;
  int64_t requests = 0;  // that the rule had served or passed on
};

// The way that one phase of a request is computed.
struct RouteChoice {
  std::optional<size_t> rule = {};  // its index; absent: no rule covers the request
  bool compiled = false;
};

// Any thread may use it.
class PolicyRoutes {
 public:
  // Is called once for each rule that gives way, by the thread that told of the event.
  using Tell = std::function<void(const RouteSwitch&)>;

  // `dtype`: of the weights that are served, "bf16". bad_input names the arm of a rule about this
  // model, or of the policy's fallback, that a server can't be: it isn't native, has another type,
  // a cache that grows, or no mode that is known; or the policy has no rule about the model.
  static Result<PolicyRoutes> make(Policy policy, const std::string& model, std::string_view dtype,
                                   Tell tell);

  std::vector<std::string> arms() const;  // that may serve

  // Absent: no arm is safe for it. `batch`: requests that are computed together; `new_tokens`: that
  // the request asks for, 0 in prefill.
  std::optional<RouteChoice> choose(Phase phase, int64_t batch, int64_t prompt_tokens,
                                    int64_t new_tokens) const;
  // A request's phase has ended, so or so. `stood_in`: the rule's arm couldn't serve it, since the
  // process that has it was starting: it counts as a loss or as nothing.
  void ended(const RouteChoice& choice, const CallEvents& events, bool stood_in = false);

  // For Prometheus: requests, events and switches by rule.
  std::string metrics() const;

 private:
  struct State;
  explicit PolicyRoutes(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace assay::server
