// Time along the sizes in which a phase's strata differ.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/findings/findings.h"

namespace assay {

// A size that strata may differ in.
enum class Size { kPrompt, kBatch, kNewTokens };

// Strata of one phase that differ in one size alone.
struct GrowthLine {
  Size along = Size::kPrompt;
  std::map<int64_t, size_t> strata;  // by that size, which is above 0; two or more
};

// "prompt tokens", "sequences in a batch", "new tokens".
std::string_view size_label(Size size);
// A line for each model and the other sizes; those along prompts first, then batches.
std::vector<GrowthLine> growth_lines(const Findings& findings, Phase phase);
// The arm's mean on the stratum; null where it has none, or its output failed parity.
const Latency* mean_of(const Findings& findings, size_t stratum, const std::string& arm);
// The sizes that the line's strata share, or their model: "128 tokens n64", "b4", "gpt2-25m".
std::string line_label(const Findings& findings, const GrowthLine& line);
// "prefill: eager takes 3.65 times as long for 4.00 times as many prompt tokens (128 to 512)";
// empty where no arm has both ends.
std::string growth_finding(const Findings& findings, Phase phase, const GrowthLine& line);
// "Prefill by prompt tokens, 16, 64, 256 (16 times): eager 0.62, 1.93, 7.41 ms (12.0 times);
// compiled ...": the phase's first line along each size; empty where there is none.
std::string growth_sentence(const Findings& findings, Phase phase);

}  // namespace assay
