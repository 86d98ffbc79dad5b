// The processes of an engine: which one is ready, which one starts, and where slots are begun.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/engine_process.h"
#include "server/engine_worker.h"

namespace assay::server {

class EngineChildren {
 public:
  // Is told that a process has ended, and why, before it is gone: its slots are lost.
  using Lose = std::function<void(const EngineWorker&, const std::string& why)>;
  // `has_slots`: whether somebody's slot is there.
  using HasSlots = std::function<bool(const EngineWorker&)>;
  EngineChildren(EngineProcess process, Lose lose, HasSlots has_slots);

  // Waits until the first one is ready: what it says.
  Result<Json> open();

  // The process that slots are begun in. Waits for one of operators to start, and for one with both
  // ways where there is no room for two.
  Result<EngineWorker*> place();
  // One call; of a process that ends by it, the slots are lost.
  Result<EngineAnswer> ask(EngineWorker& worker, const EngineCall& call,
                           const EngineWorker::Hear& hear = {});
  // Takes what has become ready, starts what is due and ends what has no slots. Waits for a process
  // that ended to be gone alone.
  // `within_call`: no slot is lost by this.
  void look(bool within_call = false);
  // The same while no slot is anybody's. True: one with both ways isn't there yet.
  bool rest();

  // The one with both ways, if it is ready.
  const EngineWorker* whole() const { return whole_.get(); }
  EngineCounts& counts() const { return *process_.counts; }

 private:
  Status begin_start();
  void begin_start_if_due();
  void put_off(const Error& error);
  void take_whole();
  Status start_stand_in();
  void start_alone(const Error& error);
  Result<EngineWorker*> wait_for_whole();
  void end(EngineWorker& worker, const std::string& why);
  Error not_ready() const;
  void note_ready();

  EngineProcess process_;
  Lose lose_;
  HasSlots has_slots_;
  std::unique_ptr<EngineWorker> whole_, stand_in_;  // ready; null: none is
  std::unique_ptr<EngineWorker> starting_;          // with both ways, not ready yet
  std::optional<Error> refusal_ = {};               // of one that can't be beside the other
  bool is_alone_ = false;                           // there is room for one alone
  double pause_s_ = 0;                              // behind the latest start, if that failed
  int64_t next_start_ns_ = 0;
};

}  // namespace assay::server
