// The measured study, its strata and the prompts of each.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
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
  // The prompts as people read them (name_prompts()). It tells no strata apart; empty: not known.
  std::string prompt = {};

  auto members() const { return std::tie(phase, model, scenario, new_tokens, batch); }
  friend auto operator<=>(const Stratum& a, const Stratum& b) {
    return a.members() <=> b.members();
  }
  friend bool operator==(const Stratum& a, const Stratum& b) { return a.members() == b.members(); }
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
  friend bool operator==(const PromptRange&, const PromptRange&) = default;
};

// "10-400", "128": prompt tokens.
std::string tokens_text(const PromptRange& range);
// Gives each stratum its `prompt`, by the range of the same place: "10 tokens", "5-40 tokens", and
// "10 tokens (poem)" where another scenario of its phase, model, new tokens and batch has that
// range. Strata without prompt tokens get none.
void name_prompts(const std::vector<PromptRange>& ranges, std::vector<Stratum>& strata);
// The stratum's `prompt`, or its scenario where that isn't known.
const std::string& prompt_name(const Stratum& stratum);

}  // namespace assay
