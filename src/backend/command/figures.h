// From a command's output to samples: figures by named patterns, and their meaning for a cell.
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
#include "base/text/text_pattern.h"

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
// if stdout has no match. Classes: no_match; unequal_matches; bad_figure, if a group's text is no
// positive number; pattern_limit, if a pattern backtracks without end.
std::expected<std::vector<Figures>, NoFigures> read_figures(std::span<const TextPattern> patterns,
                                                            const Invocation& invocation);

// The tokens that a cell asks a command for, with one prompt.
struct AskedTokens {
  Phase phase = Phase::kPrefill;
  int64_t batch = 1;
  int64_t prompt_tokens = 0;
  int64_t new_tokens = 0;
};

// A sample's time is its first latency, else its tokens divided by its rate, else, in prefill, its
// ttft. Tokens are those printed, or those asked for. The class bad_figure if there is no time
// among them.
std::expected<SampleReply, NoFigures> sample_of(const Figures& figures, const AskedTokens& asked);

// Why an invocation that didn't end well has no samples; absent for one that ended with 0.
std::optional<NoFigures> failure_of(const Invocation& invocation);
bool ran_out_of_memory(const Invocation& invocation, const NoFigures& failure);

}  // namespace assay
