// From what a command printed to samples: figures by named patterns, and what they mean for a cell.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/command/invocation.h"
#include "backend/message.h"
#include "base/text_pattern.h"

namespace assay {

// One sample's figures, by their groups' names.
using Figures = std::map<std::string, double>;

// Why an invocation has no samples. `kind` is one of message.h's ErrorReply::outcome, or "" where
// the command isn't to blame.
struct NoFigures {
  std::string error_class;
  std::string message;
  std::string outcome;
};

// The samples of one output, in their order: the n-th match of each pattern is of the n-th sample,
// so that all patterns match equally often. A pattern is searched for in stdout, and in stderr
// where stdout has no match. Classes: no_match; unequal_matches; bad_figure, where what a group
// took is no positive number; pattern_limit, where a pattern backtracks without end.
std::expected<std::vector<Figures>, NoFigures> read_figures(std::span<const TextPattern> patterns,
                                                            const Invocation& invocation);

// What a cell asks a command for, of one prompt.
struct AskedTokens {
  Phase phase = Phase::kPrefill;
  int64_t batch = 1;
  int64_t prompt_tokens = 0;
  int64_t new_tokens = 0;
};

// A sample's time is its first latency, else what its rate makes of the tokens, else, in prefill,
// its ttft. Tokens are those printed, or those asked for. The class bad_figure where there is no
// time among them.
std::expected<SampleReply, NoFigures> sample_of(const Figures& figures, const AskedTokens& asked);

// Why an invocation that didn't end well has no samples; nothing of one that ended with 0.
std::optional<NoFigures> failure_of(const Invocation& invocation);
bool ran_out_of_memory(const Invocation& invocation, const NoFigures& failure);

}  // namespace assay
