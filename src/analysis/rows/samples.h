// Rows grouped by stratum and arm, which every part of the analysis works on.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/findings/execution.h"
#include "analysis/findings/named.h"
#include "analysis/findings/strata.h"
#include "artifact/bundle.h"
#include "artifact/parity_cost.h"

namespace assay {

// One arm on one stratum. Rows point into the bundle, in order of order_index.
struct Group {
  size_t stratum = 0;
  size_t arm = 0;
  std::vector<const Row*> rows;   // every attempt
  std::vector<const Row*> timed;  // ok with a positive latency, cold ones too
  std::vector<const Row*> warm;   // those not cold
  std::vector<double> warm_ms;    // latencies of `warm`
  std::vector<double> sorted_ms;  // the same, ascending
  bool parity_failed = false;
  bool parity_checked = false;
  std::string parity_error;          // why a failed one has no tokens to compare; empty: it has
  std::string parity_unchecked_why;  // as the run recorded it; empty: it recorded nothing
  std::optional<ParityCost> parity_cost;  // of the first cell that has one
  bool wants_compiler = false;            // its mode asks for one, and so do its phase's frames
  const Evidence* evidence = nullptr;     // of its cell, in the bundle; null: there is none
  int64_t failed() const;
  // True if the arm asks for a compiler and a call of the row ran eager: as the row's counter says
  // or, where nothing counted, as its process' evidence does. Nothing else answers this question.
  bool ran_eager(const Row& row) const;
  Execution execution() const;
  // The report of its evidence; an empty one if there is no evidence.
  const WorkerReport& report() const;
};

// True if every warm latency of one lies above every one of the other; each has some.
bool apart(const Group& a, const Group& b);

// True if the group has several warm rows, of exactly one latency.
bool is_constant(const Group& group);

// True if something was compiled during the repetition.
bool carries_compilation(const Row& row);

struct Samples {
  std::vector<Stratum> strata;       // by phase, model as it first appears, prompt length
  std::vector<PromptRange> prompts;  // of each stratum
  std::vector<std::string> arms;     // baseline first, then as the study names them
  std::vector<Group> groups;         // by stratum, then arm; only those with rows
  // First group of each stratum; strata.size() + 1 entries.
  std::vector<size_t> first_group;

  // Null: that arm has no rows on that stratum.
  const Group* find(size_t stratum, size_t arm) const;
  const Group* find(size_t stratum, const std::string& arm) const {
    return find(stratum, place_of(arm));
  }
  // Place among `arms`; their number where no arm has that name.
  size_t place_of(const std::string& arm) const;
  // Place of one of `groups`.
  size_t index_of(const Group& group) const { return static_cast<size_t>(&group - groups.data()); }
};

// `arms` in the order wanted; arms that only the rows name follow. The bundle must outlive the
// result.
Result<Samples> group_rows(const Bundle& bundle, std::vector<std::string> arms);

// The prompt that the most different outputs answer among the timed rows that have an output hash;
// of equals the first by id. Absent where no row has one.
struct PromptOutputs {
  std::string prompt_id;
  int64_t prompt_tokens = 0;
  std::map<std::string, std::vector<const Row*>> rows;  // by output hash
};
std::optional<PromptOutputs> most_varied_outputs(const Group& group);

// True if arm and baseline were both measured on the stratum, and one of them lost rows there or
// gave output that isn't the reference's.
bool is_lost(const Samples& samples, size_t stratum, size_t arm);

// Latencies of rows.
std::vector<double> latencies_ms(const std::vector<const Row*>& rows);

// Names the row in a finding.
void add_row(Finding& finding, const Row& row);
void add_rows(Finding& finding, const std::vector<const Row*>& rows);

}  // namespace assay
