// An engine whose calls are computed as a policy says.
#pragma once

#include <memory>

#include "server/policy_routes.h"
#include "server/scheduler.h"

namespace assay::server {

// A prompt is computed as the rule of prefill says that covers it, in a batch of those that the
// scheduler hands over together; a request's steps as the rule of kv_decode says for the requests
// that decode at the time. A run of both ways takes turns, a step each. A compiled call that fails
// is made anew in the other way, and its requests count as fallen back; where it lost them, the
// caller makes it anew, behind restore(), and it goes the other way then. A phase that is computed
// operator by operator since nothing is compiled where its slot is, is no event of its rule. A
// request for which no arm is safe, by itself, fails in begin(); where that is so in a larger batch
// alone, it is computed as before. Triggers hear of a phase when it has ended: prefill of its time
// from begin() to the prompt's end, kv_decode of its time from the first step to leave(), by the
// rule that served it last.
std::unique_ptr<SlotEngine> make_routed_engine(std::unique_ptr<SlotEngine> engine,
                                               PolicyRoutes routes);

}  // namespace assay::server
