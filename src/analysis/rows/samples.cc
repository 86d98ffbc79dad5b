// Rows grouped by stratum and arm.
#include "analysis/rows/samples.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "base/add_once.h"
#include "base/records/lenient_json.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

struct StratumOrder {
  size_t model = 0;  // by first appearance: the study's own order
  PromptRange prompts;
  std::map<size_t, Group> by_arm;
  size_t place = 0;  // points of a load curve: by first appearance, which is the study's order
};

Stratum stratum_of(const Row& row) {
  return {row.phase, row.model, row.scenario, row.new_tokens, row.batch};
}

bool same_group(const Row& a, const Row& b) {
  return a.phase == b.phase && a.new_tokens == b.new_tokens && a.batch == b.batch &&
         a.cell_id == b.cell_id && a.arm == b.arm && a.scenario == b.scenario && a.model == b.model;
}

bool timed(const Row& row) {
  return row.status == RowStatus::kOk && row.latency_ms && std::isfinite(*row.latency_ms) &&
         *row.latency_ms > 0;
}

void add_to(Group& group, const Row& row) {
  group.rows.push_back(&row);
  if (!timed(row)) return;
  group.timed.push_back(&row);
  if (!row.cold) group.warm.push_back(&row);
}

// Parity is by cell; a group has one cell unless someone merged bundles.
Status read_parity(const Bundle& bundle, Group& group) {
  const SharedText* last = nullptr;
  for (const Row* row : group.rows) {
    if (last != nullptr && row->cell_id == *last) continue;
    last = &row->cell_id;
    const auto record = bundle.parity.find(row->cell_id);
    if (record == bundle.parity.end()) continue;
    if (!group.parity_cost) group.parity_cost = parity_cost_of(record->second);
    const auto passed_at = record->second.find("passed");
    if (passed_at != record->second.end() && passed_at->is_null()) {  // nothing to compare
      group.parity_unchecked_why =
          first_line(text_member(member(record->second, "error"), "message"));
      continue;
    }
    const std::string object = fmt::format("cells/{}/parity.json", row->cell_id);
    ASSAY_TRY(const bool passed, json_bool(record->second, "passed", object));
    group.parity_checked = true;
    group.parity_failed = group.parity_failed || !passed;
    if (!passed) {
      group.parity_error = first_line(text_member(member(record->second, "error"), "message"));
    }
  }
  return {};
}

// Evidence is by cell, too.
void read_compilation(const Bundle& bundle, Group& group) {
  const Row& any = *group.rows.front();
  const auto found = bundle.evidence.find(any.cell_id);
  if (found != bundle.evidence.end()) group.evidence = &found->second;
  if (any.compile_mode.empty() || any.compile_mode == "eager") return;
  // Else it is a frame that a split arm leaves eager.
  group.wants_compiler =
      !group.evidence || group.evidence->compiler_real != CompilerReal::kNotApplicable;
}

void finish(Group& group) {
  for (auto* rows : {&group.rows, &group.timed, &group.warm}) rows->shrink_to_fit();
  std::ranges::stable_sort(group.rows, {}, &Row::order_index);
  std::ranges::stable_sort(group.timed, {}, &Row::order_index);
  std::ranges::stable_sort(group.warm, {}, &Row::order_index);
  group.warm_ms = latencies_ms(group.warm);
  group.sorted_ms = stats::sorted(group.warm_ms);
}

}  // namespace

int64_t Group::failed() const {
  return std::ranges::count_if(rows, [](const Row* r) { return r->status != RowStatus::kOk; });
}

const WorkerReport& Group::report() const {
  static const WorkerReport kNone;
  return evidence && evidence->reported ? *evidence->reported : kNone;
}

bool Group::ran_eager(const Row& row) const {
  if (!wants_compiler) return false;
  if (const auto& counted = row.counts[Counter::kFallbacks]) return *counted > 0;
  return evidence != nullptr && !report().ran_as_other_mode() &&
         evidence->verdict_of(row.process.value_or(0)) == CompilerReal::kFallback;
}

Execution Group::execution() const {
  if (!wants_compiler) return Execution::kEager;
  const auto real = evidence ? evidence->compiler_real : CompilerReal::kUnproven;
  if (real == CompilerReal::kLabelOnly) return Execution::kLabelOnly;
  const auto eager = static_cast<size_t>(
      std::ranges::count_if(warm, [this](const Row* row) { return ran_eager(*row); }));
  if (eager > 0) return eager == warm.size() ? Execution::kFellBack : Execution::kPartly;
  if (real == CompilerReal::kYes) return Execution::kCompiled;
  if (real != CompilerReal::kFallback) return Execution::kUnproven;
  // The fallback lies beyond the timed rows.
  return report().ran_as_other_mode() ? Execution::kOtherMode : Execution::kPartly;
}

bool apart(const Group& a, const Group& b) {
  const auto [a_low, a_high] = std::ranges::minmax(a.warm_ms);
  const auto [b_low, b_high] = std::ranges::minmax(b.warm_ms);
  return a_high < b_low || b_high < a_low;
}

bool is_constant(const Group& group) {
  return group.sorted_ms.size() > 1 && group.sorted_ms.front() == group.sorted_ms.back();
}

bool carries_compilation(const Row& row) {
  return row.counts[Counter::kRecompiles].value_or(0) > 0 ||
         row.counts[Counter::kUniqueGraphs].value_or(0) > 0;
}

std::optional<PromptOutputs> most_varied_outputs(const Group& group) {
  using Prompt = std::pair<std::string_view, int64_t>;
  std::map<Prompt, std::set<std::string_view>> prompts;
  for (const Row* row : group.timed) {
    if (row->output_hash.empty()) continue;
    prompts[Prompt{row->prompt_id.str(), row->prompt_tokens}].insert(row->output_hash.str());
  }
  const auto most = std::ranges::max_element(
      prompts, {}, [](const auto& prompt) { return prompt.second.size(); });
  if (most == prompts.end()) return std::nullopt;
  const auto& [id, tokens] = most->first;
  PromptOutputs found{std::string(id), tokens, {}};
  for (const Row* row : group.timed) {
    const bool same = row->prompt_id.str() == id && row->prompt_tokens == tokens;
    if (same && !row->output_hash.empty()) {
      found.rows[row->output_hash].push_back(row);
    }
  }
  return found;
}

const Group* Samples::find(size_t stratum, size_t arm) const {
  for (size_t g = first_group[stratum]; g < first_group[stratum + 1]; ++g) {
    if (groups[g].arm == arm) return &groups[g];
  }
  return nullptr;
}

size_t Samples::place_of(const std::string& arm) const {
  return static_cast<size_t>(std::ranges::find(arms, arm) - arms.begin());
}

Result<Samples> group_rows(const Bundle& bundle, std::vector<std::string> arms) {
  Samples samples;
  samples.arms = std::move(arms);
  std::map<Stratum, StratumOrder> found;
  std::vector<std::string> models;
  const Row* last = nullptr;
  Group* group = nullptr;
  PromptRange* prompts = nullptr;
  for (const Row& row : bundle.rows) {
    if (last == nullptr || !same_group(*last, row)) {
      const auto [at, fresh] = found.try_emplace(stratum_of(row));
      StratumOrder& order = at->second;
      if (fresh) {
        order = {place_once(models, row.model.str()),
                 {row.prompt_tokens, row.prompt_tokens},
                 {},
                 row.phase == Phase::kLoad ? found.size() : 0};
      }
      prompts = &order.prompts;
      group = &order.by_arm[place_once(samples.arms, row.arm.str())];
    }
    prompts->shortest = std::min(prompts->shortest, row.prompt_tokens);
    prompts->longest = std::max(prompts->longest, row.prompt_tokens);
    add_to(*group, row);
    last = &row;
  }

  std::vector<std::pair<Stratum, StratumOrder>> order(std::make_move_iterator(found.begin()),
                                                      std::make_move_iterator(found.end()));
  std::ranges::stable_sort(order, {}, [](const auto& entry) {
    const auto& [stratum, of] = entry;
    return std::tuple(stratum.phase, of.model, of.prompts.shortest, of.place, stratum.scenario,
                      stratum.new_tokens, stratum.batch);
  });
  for (auto& [stratum, of] : order) {
    samples.first_group.push_back(samples.groups.size());
    for (auto& [arm, members] : of.by_arm) {
      members.stratum = samples.strata.size();
      members.arm = arm;
      finish(members);
      ASSAY_CHECK(read_parity(bundle, members));
      read_compilation(bundle, members);
      samples.groups.push_back(std::move(members));
    }
    samples.strata.push_back(stratum);
    samples.prompts.push_back(of.prompts);
  }
  samples.first_group.push_back(samples.groups.size());
  // A scenario of another tool's file is a load, or a value that it varied.
  if (!member(bundle.manifest, "identity").contains("imported_from")) {
    name_prompts(samples.prompts, samples.strata);
  }
  return samples;
}

bool is_lost(const Samples& samples, size_t stratum, size_t arm) {
  const Group* group = samples.find(stratum, arm);
  const Group* base = samples.find(stratum, 0);
  if (group == nullptr || base == nullptr) return false;
  return group->failed() > 0 || base->failed() > 0 || group->parity_failed || base->parity_failed;
}

std::vector<double> latencies_ms(const std::vector<const Row*>& rows) {
  std::vector<double> latencies;
  latencies.reserve(rows.size());
  for (const Row* row : rows) latencies.push_back(*row->latency_ms);
  return latencies;
}

void add_row(Finding& finding, const Row& row) {
  finding.rows[row.cell_id].push_back(row.repetition);
}

void add_rows(Finding& finding, const std::vector<const Row*>& rows) {
  for (const Row* row : rows) add_row(finding, *row);
}

}  // namespace assay
