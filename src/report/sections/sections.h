// The parts of the report, one function each, and how they write strata and intervals.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/report.h"

namespace assay {

// A sentence a phase, and each arm's figures.
ReportSection answer_section(const Findings& findings);
ReportSection identity_section(const Findings& findings);
// Only for a study that has requirements.
ReportSection requirement_section(const Findings& findings);
ReportSection outcome_section(const Findings& findings, Detail detail);
// "No row was lost: all 240 attempts are ok"; empty where some were, or a process died.
std::string no_loss(const Findings& findings);
ReportSection latency_section(const Findings& findings, Phase phase, Detail detail);
ReportSection contrast_section(const Findings& findings, Phase phase, Detail detail);
// d, g, U and A of each contrast of the phase; among contrast_section()'s tables but in a summary.
Table effect_table(const Findings& findings, Phase phase);
// True if some arm asked for a compiler in the phase.
bool has_tails(const Findings& findings, Phase phase);
ReportSection tail_section(const Findings& findings, Phase phase);
bool has_compile_costs(const Findings& findings);
ReportSection compile_cost_section(const Findings& findings);
// Only if some worker tells the bytes that it reads and somebody measured the limit.
ReportSection read_section(const Findings& findings);
// Only if some arm's weights aren't the model's own, and were held against it.
ReportSection quality_section(const Findings& findings);
ReportSection profile_section(const Findings& findings, Detail detail);
// Only if some arm has comparable prefill and decode strata.
ReportSection split_section(const Findings& findings);
// Only for studies of several models.
ReportSection size_section(const Findings& findings);
ReportSection findings_section(const Findings& findings, Detail detail);
ReportSection decision_section(const Findings& findings);

// The stratum by the members that tell it from the others of its phase: always the prompt ("10
// tokens"); model, new tokens and batch where they differ.
std::string stratum_label(std::span<const Stratum> strata, size_t stratum);
std::string stratum_label(const Findings& findings, size_t stratum);
// The part of that label that isn't about the prompt: "llama n64 b2"; empty where the phase has one
// condition.
std::string condition_label(const Findings& findings, size_t stratum);
// The arm, and in brackets what its name doesn't tell: how far its predictions are from the model's
// (quality_text()), that its output differs from the baseline's, or that it asked for a compiler
// and didn't run compiled. With a phase: on any of its strata.
std::string arm_label(const Findings& findings, const std::string& arm, size_t stratum);
std::string arm_label(const Findings& findings, const std::string& arm, Phase phase);
// The condition of an analysis along model sizes: "kv_decode 10 tokens n64 b2".
std::string size_place(const Findings& findings, const SizeAnalysis& size);
// The condition that all strata of the phase share: "model gpt2-25m, 64 new tokens, batch 1".
std::string shared_label(const Findings& findings, Phase phase);
bool has_phase(const Findings& findings, Phase phase);

// Lengths of decoding are whole: the first one at which `tokens` is reached, "10" of 9.2.
std::string whole_tokens(double tokens);
// "10 new tokens"; of a range "2 to 31 new tokens".
std::string new_tokens_text(double from, double to);

// "[1.02, 1.08]".
TableCell interval_cell(const std::optional<stats::Interval>& interval, int digits = 4);
// The same, or "range 0.84-0.86" of processes that are too few for an interval.
TableCell spread_cell(const std::optional<stats::Interval>& interval,
                      const std::optional<stats::Interval>& process_range);
TableCell spread_cell(const std::optional<SpreadRatio>& ratio);
// The interval's ends alone.
TableCell low_cell(const std::optional<stats::Interval>& interval);
TableCell high_cell(const std::optional<stats::Interval>& interval);
// p below the smallest double by its logarithm: "1e-4211".
TableCell p_cell(double p, double log_p);
// An adjusted p, which may be too small for a double.
TableCell p_holm_cell(const std::optional<double>& p_holm);
// A share as a percentage.
TableCell percent_cell(std::optional<double> share);

}  // namespace assay
