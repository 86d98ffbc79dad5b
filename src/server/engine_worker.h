// One process of an engine as its starter sees it: it gets ready, answers calls, and ends.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/process/subprocess.h"
#include "base/records/json.h"
#include "base/result.h"
#include "engine/serving/batch.h"
#include "server/engine_messages.h"

namespace assay::server {

// The child runs serve_batch(), or says tell_no_engine(). It is killed with this object.
class EngineWorker {
 public:
  // `call_s`: seconds that a call may take until its answer or its next token.
  EngineWorker(std::unique_ptr<Child> child, double call_s);

  // Its word that it is ready; absent: none until the deadline. An error: it has ended, or says
  // that it has no engine; it isn't asked again then.
  Result<std::optional<Json>> ready(int64_t deadline_ns);
  // True: that error was its own word.
  bool says_no() const { return says_no_; }

  // One call. `hear` is told of each token of a run. An error where has_ended() is true was its
  // end: a crash, or it was killed since it took too long.
  using Hear = std::function<engine::Onward(const EngineSlot&)>;
  Result<EngineAnswer> ask(const EngineCall& call, const Hear& hear = {});
  bool has_ended() const { return child_ == nullptr; }

  double age_s() const;

 private:
  std::unexpected<Error> end(const LineRead& read);

  std::unique_ptr<Child> child_;  // null: it has ended
  double call_s_;
  int64_t begun_ns_;
  bool says_no_ = false;
};

}  // namespace assay::server
