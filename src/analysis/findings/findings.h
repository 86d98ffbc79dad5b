// Findings of a bundle: everything that tables, reports and judgements are made of.
//
// Times are wall-clock milliseconds of warm ok rows (status ok, not cold) unless a name says
// otherwise. A figure that can't be computed is absent. docs/statistics.md gives every estimator.
#pragma once

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/findings/blocks.h"
#include "analysis/findings/contrast.h"
#include "analysis/findings/decision.h"
#include "analysis/findings/latency.h"
#include "analysis/findings/load.h"
#include "analysis/findings/model_size.h"
#include "analysis/findings/named.h"
#include "analysis/findings/options.h"
#include "analysis/findings/outcomes.h"
#include "analysis/findings/phase_split.h"
#include "analysis/findings/quality.h"
#include "analysis/findings/read_share.h"
#include "analysis/findings/requirements.h"
#include "analysis/findings/sittings.h"
#include "analysis/findings/slow_calls.h"
#include "analysis/findings/strata.h"
#include "analysis/findings/tails.h"
#include "analysis/findings/worker_facts.h"
#include "base/records/json.h"
#include "base/result.h"

namespace assay {

inline constexpr int kFindingsSchemaVersion = 23;

struct Findings {
  AnalysisOptions options;
  std::vector<std::pair<std::string, std::string>> identity;  // flattened, in the bundle's order
  StudySummary study;
  std::vector<SittingSummary> sittings;
  std::optional<Requirements> requirements;  // absent: the study has none
  std::vector<Stratum> strata;               // by phase, model, prompt length
  std::vector<PromptRange> prompts;          // of each stratum
  std::vector<OutcomeCounts> outcomes;
  std::vector<Latency> latencies;
  std::vector<Tail> tails;  // of strata where some arm asked for a compiler: all arms side by side
  std::vector<ArmSlowCalls> slow_calls;  // of groups that have one
  std::vector<CompileCost> compile_costs;
  std::vector<ReadShare> read_shares;
  std::vector<ArmQuality> qualities;  // of arms whose weights aren't the model's own
  LoadSummary load;
  std::vector<CellProfile> profiles;
  std::vector<StratumBlocks> blocks;  // of strata that several arms were measured on
  std::vector<Contrast> contrasts;
  std::vector<Contrast> combined;
  std::vector<NotComparable> not_comparable;
  std::vector<Finding> named;  // warnings first
  std::vector<Decision> decisions;
  std::vector<PhaseSplit> splits;
  std::string size_unit;  // of model sizes: "weight bytes", "parameters"; empty: not known
  std::vector<SizeAnalysis> sizes;
};

// The list's entry about that arm on that stratum; null: it has none.
template <typename Entry>
const Entry* entry_of(const std::vector<Entry>& entries, size_t stratum, const std::string& arm) {
  const auto at = std::ranges::find_if(
      entries, [&](const Entry& one) { return one.stratum == stratum && one.arm == arm; });
  return at == entries.end() ? nullptr : &*at;
}

Json findings_to_json(const Findings& findings);
// `object` names the JSON in errors. bad_input: another schema version; a member that is missing,
// of another type, or about a stratum that isn't there. Members that aren't known are skipped.
Result<Findings> findings_from_json(const Json& json, std::string_view object);
// Reads FOLDER/analysis/findings.json if `path` is a folder, else the file that it names.
Result<Findings> read_findings(const std::filesystem::path& path);

}  // namespace assay
