// A claim of speed as its author writes it: "compiled-static faster than eager-dynamic in
// kv_decode".
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/findings/strata.h"
#include "base/records/phase.h"
#include "base/result.h"

namespace assay {

enum class ClaimRelation {
  kFaster,      // than another arm
  kSlower,      // likewise
  kEquivalent,  // to another arm, within the margin of the findings
  kFastest,     // of all arms that were measured beside it
};
// faster | slower | equivalent | fastest
std::string_view claim_relation_name(ClaimRelation relation);

struct SpeedClaim {
  std::string arm;
  ClaimRelation relation = ClaimRelation::kFaster;
  std::string other;           // empty: kFastest
  std::optional<Phase> phase;  // absent: the claim names none, which the first gate doesn't pass
  // Empty or absent: the claim is about all of them.
  std::string model;
  std::string scenario;
  std::optional<int64_t> batch;
  std::optional<int64_t> new_tokens;
};

// "ARM faster|slower than ARM", "ARM equivalent to ARM" or "ARM fastest", then as far as wanted "in
// PHASE", "of MODEL", "at SCENARIO", "batch N", "new_tokens N" in any order. bad_input that names
// the word, the words expected in its place and the nearest known one. Names aren't looked up.
Result<SpeedClaim> parse_claim(std::string_view text);

// The claim in the words that parse_claim() reads.
std::string claim_text(const SpeedClaim& claim);

bool claim_covers(const SpeedClaim& claim, const Stratum& stratum);

// Names that some bundle has.
struct ClaimNames {
  std::vector<std::string> arms;
  std::vector<std::string> models;
  std::vector<std::string> scenarios;
};
// bad_input that names the nearest known one: an arm, a model or a scenario that no bundle has, or
// an arm held against itself.
Status check_claim_names(const SpeedClaim& claim, const ClaimNames& names);

}  // namespace assay
