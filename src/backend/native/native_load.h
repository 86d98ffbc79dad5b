// The engine under load in the worker's own process: the server's scheduler without HTTP, so that
// the difference to the same server from outside is what HTTP costs.
#pragma once

#include <functional>
#include <memory>

#include "backend/worker.h"
#include "engine/serving/model.h"
#include "load/offered_load.h"

namespace assay {

// As `assay serve` has them.
struct NativeSlots {
  int64_t slots = 0;    // requests that are computed at a time
  int64_t context = 0;  // tokens of a request; 0: the model's, at most 4096
  int64_t chunk = 0;    // tokens of prompts between two steps; 0: the device's default
};

class NativeLoad {
 public:
  // On a model with named rows; makes all its steps. Errors are those of Batch::create().
  static Result<std::unique_ptr<NativeLoad>> create(std::shared_ptr<engine::Model> model,
                                                    const NativeSlots& slots, bool compiled);
  virtual ~NativeLoad() = default;

  // Sends the requests of one run on their schedule, of random ids that are no special ones; each
  // is told to `take` when it has ended. Blocks until all have.
  virtual void offer(const OfferedLoad& load, const Worker::TakeRequest& take) = 0;
  virtual int64_t context() const = 0;
};

}  // namespace assay
