// Messages between an engine's process and its starter: lines of JSON. A call has one answer,
// behind the tokens of a run(), each of which gets one word: go, last or stop.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/records/json.h"
#include "base/records/record.h"
#include "engine/serving/batch.h"

namespace assay::server {

struct EnginePart {
  int64_t slot = 0;
  std::vector<int32_t> ids = {};
};

struct EngineCall {
  std::string call;  // begin, leave, extend, follow, run
  bool compiled = false;
  std::vector<EnginePart> parts = {};
  Json sampling = nullptr;  // of begin, by sampling_to_json()
  int64_t steps = 0;        // of run
  bool wants_logits = false;
};

// A slot behind a call, or behind a token of a run.
struct EngineSlot {
  int64_t slot = 0;
  int32_t token = -1;  // next(); -1: it comes with the next step
  bool finite = true;
  std::string logits = {};  // eight digits a float; empty: they weren't asked for
};

struct EngineAnswer {
  std::string kind;  // token, done, error, ready
  std::string error = {};
  bool is_bad_input = false;
  std::vector<EngineSlot> slots = {};
};

Json sampling_to_json(const engine::Sampling& sampling);
engine::Sampling sampling_from_json(const Json& json);
std::string logits_to_text(std::span<const float> logits);
std::vector<float> logits_from_text(std::string_view text);

}  // namespace assay::server

namespace assay {

template <>
struct Record<server::EnginePart> {
  static constexpr auto kMembers =
      std::tuple(field("slot", &server::EnginePart::slot), field("ids", &server::EnginePart::ids));
};

template <>
struct Record<server::EngineCall> {
  static constexpr auto kMembers = std::tuple(
      field("call", &server::EngineCall::call), field("compiled", &server::EngineCall::compiled),
      field("parts", &server::EngineCall::parts), field("sampling", &server::EngineCall::sampling),
      field("steps", &server::EngineCall::steps),
      field("wants_logits", &server::EngineCall::wants_logits));
};

template <>
struct Record<server::EngineSlot> {
  static constexpr auto kMembers = std::tuple(
      field("slot", &server::EngineSlot::slot), field("token", &server::EngineSlot::token),
      field("finite", &server::EngineSlot::finite), field("logits", &server::EngineSlot::logits));
};

template <>
struct Record<server::EngineAnswer> {
  static constexpr auto kMembers = std::tuple(
      field("kind", &server::EngineAnswer::kind), field("error", &server::EngineAnswer::error),
      field("is_bad_input", &server::EngineAnswer::is_bad_input),
      field("slots", &server::EngineAnswer::slots));
};

}  // namespace assay
