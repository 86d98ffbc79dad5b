// The engine that `assay serve` serves: opened here, or in a process of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/records/record.h"
#include "base/result.h"
#include "engine/serving/batch.h"
#include "server/engine_counts.h"
#include "server/scheduler.h"

namespace assay::cli {

struct EngineAsk {
  std::string folder;  // of the checkpoint
  std::string dtype;   // empty: as stored
  std::string device = "cpu";
  std::string mode = "compiled";
  int64_t threads = 0;
  int64_t slots = 4;
  int64_t context = 0;  // 0: as the model suggests
  int64_t chunk = 0;    // 0: as the device suggests
  bool eager_too = false;
  bool keeps_weights = false;  // CompilerOptions::keeps_weights
};

// Facts about an engine that its server tells.
struct EngineFacts {
  std::string architecture, dtype, device;
  int64_t weight_bytes = 0, cache_bytes = 0, capacity = 0, chunk = 0, vocab_size = 0, threads = 0;
  std::vector<int32_t> ends = {};       // ids that end texts
  std::string start = {};               // "ready after 0.42 s: ..."
  std::vector<std::string> notes = {};  // Device::notes()
};

struct ServedEngine {
  std::unique_ptr<server::SlotEngine> engine;
  EngineFacts facts;
};

Result<ServedEngine> open_served_engine(const EngineAsk& ask, bool reuses_prefixes);

// The same in processes of this program (server::start_engine), one of which is started anew where
// it crashes or doesn't return from a call within `call_s`; `tell` is called in the thread that
// calls the engine.
Result<ServedEngine> start_served_engine(const EngineAsk& ask, double call_s,
                                         std::function<void(const std::string&)> tell,
                                         std::shared_ptr<server::EngineCounts> counts);

// That process: reads what to open from its requests, and answers calls.
Result<int> run_engine_process();

}  // namespace assay::cli

namespace assay {

template <>
struct Record<cli::EngineAsk> {
  static constexpr auto kMembers =
      std::tuple(field("folder", &cli::EngineAsk::folder), field("dtype", &cli::EngineAsk::dtype),
                 field("device", &cli::EngineAsk::device), field("mode", &cli::EngineAsk::mode),
                 field("threads", &cli::EngineAsk::threads), field("slots", &cli::EngineAsk::slots),
                 field("context", &cli::EngineAsk::context), field("chunk", &cli::EngineAsk::chunk),
                 field("eager_too", &cli::EngineAsk::eager_too),
                 field("keeps_weights", &cli::EngineAsk::keeps_weights));
};

template <>
struct Record<cli::EngineFacts> {
  static constexpr auto kMembers = std::tuple(
      field("architecture", &cli::EngineFacts::architecture),
      field("dtype", &cli::EngineFacts::dtype), field("device", &cli::EngineFacts::device),
      field("weight_bytes", &cli::EngineFacts::weight_bytes),
      field("cache_bytes", &cli::EngineFacts::cache_bytes),
      field("capacity", &cli::EngineFacts::capacity), field("chunk", &cli::EngineFacts::chunk),
      field("vocab_size", &cli::EngineFacts::vocab_size),
      field("threads", &cli::EngineFacts::threads), field("ends", &cli::EngineFacts::ends),
      field("start", &cli::EngineFacts::start), field("notes", &cli::EngineFacts::notes));
};

}  // namespace assay
