// The measured study, its strata and the prompts of each.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "artifact/row.h"

namespace assay {

// Rows that differ by arm and repetition alone.
struct Stratum {
  Phase phase = Phase::kPrefill;
  std::string model;
  std::string scenario;
  int64_t new_tokens = 0;
  int64_t batch = 1;
  friend auto operator<=>(const Stratum&, const Stratum&) = default;
};

struct StudySummary {
  std::string name;
  std::string baseline;
  std::vector<std::string> arms;  // baseline first
  std::string order;              // sequential | shuffled | interleaved; empty: not recorded
  std::optional<int64_t> seed;
  std::optional<int64_t> warmup;
  std::optional<int64_t> repetitions;
  std::string started_at;
  bool complete = false;  // the run was sealed
  int64_t rows = 0;
};

// Prompt tokens of a stratum's rows.
struct PromptRange {
  int64_t shortest = 0;
  int64_t longest = 0;
};

}  // namespace assay
