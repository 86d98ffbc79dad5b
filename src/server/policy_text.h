// For tests: a policy of two arms.
#pragma once

#include <string_view>

namespace assay::server::test {

// The model m in fp32. Prompts of 100 to 400 by themselves take the compiled arm, as do 8 new
// tokens of one request or two; all else is eager, but that no arm is safe for 13 new tokens.
inline constexpr std::string_view kPolicyText =
    R"(# A routing policy, written by `assay route`.
policy: 2
study: "s"
measured_at: "2026-11-28T09:47:48Z"
plan_sha256: "00"
identity:
  - {axis: "arms.slow.backend", value: "native"}
  - {axis: "arms.slow.cache", value: "static"}
  - {axis: "arms.slow.dtype", value: "fp32"}
  - {axis: "arms.slow.compile_mode", value: "eager"}
  - {axis: "arms.fast.backend", value: "native"}
  - {axis: "arms.fast.cache", value: "static"}
  - {axis: "arms.fast.dtype", value: "fp32"}
  - {axis: "arms.fast.compile_mode", value: "compiled"}
fallback: "slow"
rules:
  - model: "m"
    phase: prefill
    batch: 1
    prompt_tokens: [100, 400]
    arm: "fast"
    fallback: "slow"
    triggers:
      - {on: fallback, allowed: 0, source: "none in 25 rows"}
      - {on: lost_row, allowed: 0, source: "none in 25 rows"}
      - {on: p99_ms, allowed: 1, window: 4, limit_ms: 5000, source: "p99 of 100 rows"}
  - model: "m"
    phase: kv_decode
    batch: 1
    new_tokens: 8
    prompt_tokens: [1, 400]
    arm: "fast"
    fallback: "slow"
    triggers:
      - {on: fallback, allowed: 0, source: "none in 25 rows"}
  - model: "m"
    phase: kv_decode
    batch: 2
    new_tokens: 8
    prompt_tokens: [1, 400]
    arm: "fast"
    fallback: "slow"
  - model: "m"
    phase: kv_decode
    batch: 1
    new_tokens: 13
    prompt_tokens: [1, 400]
    arm: null
    fallback: null
not_measured:
  - "all of e2e_kv"
)";

}  // namespace assay::server::test
