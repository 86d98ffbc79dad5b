// The first question first: each phase in a sentence, and each arm's own figures beside the
// baseline's.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/findings/findings.h"
#include "base/tables/table.h"
#include "report/answers.h"

namespace assay {

// An arm in a phase, over the strata on which it has warm rows.
struct ArmFigures {
  std::string arm;
  std::string label = {};  // the arm, and in brackets what its name doesn't tell (arm_label())
  bool is_baseline = false;
  std::optional<stats::Interval> mean_ms = {};  // the least and the largest mean of its strata
  // The mean's interval, or its processes' range, where there is one stratum.
  std::optional<stats::Interval> interval_ms = {};
  std::optional<stats::Interval> process_range_ms = {};
  // Half of the widest interval of several strata, as a share of its mean.
  std::optional<double> half_width = {};
  std::optional<stats::Interval> tokens_per_s = {};
  std::optional<stats::Interval> p99_ms = {};
  RatioRange ratio = {};                     // to the baseline
  std::map<Verdict, int64_t> verdicts = {};  // by strata that were contrasted with the baseline
  int64_t lost = 0;                          // rows
};

struct PhaseAnswer {
  Phase phase = Phase::kPrefill;
  // "Decode: compiled is slower than eager at every length (4.1 to 6.0 % more time [2.2, 7.1]);
  // eager takes 12.3 to 13.0 ms, 76.9 to 81.3 tokens/s."
  std::string sentence = {};
  std::string growth = {};            // growth_sentence() (report/growth.h)
  std::vector<ArmFigures> arms = {};  // as the study has them, the baseline first
};

// "Prefill", "Decode".
std::string_view phase_title(Phase phase);
// One a phase that has rows.
std::vector<PhaseAnswer> phase_answers(const Findings& findings);
// Their sentences, each phase's own and then how its time grows.
std::vector<std::string> answer_sentences(const std::vector<PhaseAnswer>& answers);

// Tokens produced, or of prefill the prompts' where all of a stratum have one length, over the mean
// time.
std::optional<double> tokens_per_second(const Findings& findings, const Latency& latency);

// One row an arm and phase, with absolute figures.
Table arm_table(const std::vector<PhaseAnswer>& answers);
// Explains its columns.
std::string arm_legend(const std::vector<PhaseAnswer>& answers, const std::string& baseline);
Json phase_answers_json(const std::vector<PhaseAnswer>& answers);

}  // namespace assay
