// Rows to cells, and requests to places among them.
#include "routing/replay_data.h"

#include <algorithm>
#include <functional>
#include <set>
#include <span>

#include "analysis/rows/processes.h"
#include "base/text/text.h"
#include "routing/choice.h"

namespace assay {
namespace {

// True if the row is the first of its length in its process; `met` remembers.
bool meets_shape(const Row& row, std::set<std::pair<int64_t, int64_t>>& met) {
  return met.emplace(process_of(row), row.padded_tokens).second;
}

bool several_lengths(const Group& group) {
  return std::ranges::any_of(group.rows, [&](const Row* row) {
    return row->padded_tokens != group.rows.front()->padded_tokens;
  });
}

// Compilations in the rows of an arm in a phase.
struct CompileCounts {
  bool any = false;
  int64_t later_shapes = 0;  // first rows of a length that weren't the first of their process
  int64_t compiled_later = 0;
  std::string dynamic;
  std::optional<int64_t> limit;
};

void count_compilations(const Group& group, CompileCounts& counts) {
  std::set<std::pair<int64_t, int64_t>> met;
  std::map<int64_t, int64_t> graphs;  // by process
  for (const Row* row : group.rows) {
    const bool compiled = carries_compilation(*row);
    counts.any = counts.any || compiled;
    const int64_t process = process_of(*row);
    const bool first_of_process = !graphs.contains(process);
    graphs[process] += row->counts[Counter::kUniqueGraphs].value_or(0);
    if (meets_shape(*row, met) && !first_of_process) {
      ++counts.later_shapes;
      counts.compiled_later += compiled ? 1 : 0;
    }
    const bool hit =
        row->counts[Counter::kRecompileLimitHits].value_or(0) > 0 || group.ran_eager(*row);
    if (hit && graphs[process] > 0) {
      counts.limit = std::min(counts.limit.value_or(graphs[process]), graphs[process]);
    }
  }
  if (counts.dynamic.empty()) counts.dynamic = group.rows.front()->dynamic;
}

Specialising specialising_of(const CompileCounts& counts) {
  if (!counts.any) return Specialising::kNever;
  if (counts.later_shapes > 0) {
    return 2 * counts.compiled_later >= counts.later_shapes ? Specialising::kEachShape
                                                            : Specialising::kOnce;
  }
  if (counts.dynamic == "true") return Specialising::kOnce;
  return counts.dynamic == "auto" ? Specialising::kTwice : Specialising::kEachShape;
}

// The numbers that lost and timed rows have, ascending. A unit is a number's place among them: a
// file may name any number, and one that no row has isn't there to be drawn.
std::vector<int64_t> replayed_numbers(std::span<const Group* const> groups,
                                      const std::function<int64_t(const Row&)>& number_of) {
  std::set<int64_t> numbers;
  for (const Group* group : groups) {
    for (const Row* row : group->rows) {
      if (row->status != RowStatus::kOk) numbers.insert(number_of(*row));
    }
    for (const Row* row : group->timed) numbers.insert(number_of(*row));
  }
  return {numbers.begin(), numbers.end()};
}

}  // namespace

ReplayData::ReplayData(const Samples& samples, const std::string& model,
                       const AnalysisOptions& options)
    : arms_(samples.arms.size()), cells_(samples.strata.size() * samples.arms.size()) {
  for (size_t i = 0; i < samples.strata.size(); ++i) {
    const Stratum& stratum = samples.strata[i];
    if (stratum.model != model) continue;
    of_phase_[stratum.phase].push_back(i);
    grids_[{stratum.phase, stratum.batch}][stratum.new_tokens].push_back(
        {samples.prompts[i].shortest, samples.prompts[i].longest, i});
  }
  if (of_phase_.contains(Phase::kPrefill) && of_phase_.contains(Phase::kKvDecode)) {
    phases_ = {Phase::kPrefill, Phase::kKvDecode};
  } else if (of_phase_.contains(Phase::kE2eKv)) {
    phases_ = {Phase::kE2eKv};
  } else if (!of_phase_.empty()) {
    phases_ = {of_phase_.begin()->first};
  }
  const bool by_processes = std::ranges::any_of(samples.groups, several_processes);
  const bool by_blocks = std::ranges::any_of(samples.groups, [](const Group& group) {
    return !group.warm.empty() && group.warm.front()->block != group.warm.back()->block;
  });
  const auto number_of = [=](const Row& row) {
    const int64_t number = by_processes ? process_of(row) : by_blocks ? row.block : row.repetition;
    return std::max<int64_t>(0, number);  // a cold row goes with the first repetition
  };
  std::vector<const Group*> groups;
  for (const Group& group : samples.groups) {
    if (samples.strata[group.stratum].model == model) groups.push_back(&group);
  }
  const std::vector<int64_t> numbers = replayed_numbers(groups, number_of);
  units_ = numbers.size();
  for (const Group* group : groups) {
    add_cell(*group, options, [&](const Row& row) {
      return static_cast<size_t>(std::ranges::lower_bound(numbers, number_of(row)) -
                                 numbers.begin());
    });
  }
  describe_arms(samples);
}

void ReplayData::add_cell(const Group& group, const AnalysisOptions& options,
                          const std::function<size_t(const Row&)>& unit_of) {
  ReplayCell& cell = cells_[group.stratum * arms_ + group.arm];
  cell.allowed = reason_barred(group, options).empty();
  cell.serves = cell.allowed || barred_by_losses_alone(group, options);
  for (const Row* row : group.rows) {
    if (row->status == RowStatus::kOk) continue;
    (row->cold ? cell.lost_cold : cell.lost_warm).push_back(unit_of(*row));
  }
  const bool several = several_lengths(group);
  std::set<std::pair<int64_t, int64_t>> met;
  std::vector<ReplayRow> cold;
  for (const Row* row : group.timed) {
    ReplayRow replayed{*row->latency_ms, unit_of(*row), carries_compilation(*row)};
    const bool meets = meets_shape(*row, met);
    if (group.ran_eager(*row)) cell.fell_back.push_back(replayed);
    if (replayed.compiled && (row->cold || (several && meets))) {
      cell.first.push_back(replayed);
    } else if (row->cold) {
      if (meets) cold.push_back(replayed);
    } else {
      cell.warm.push_back(replayed);
    }
  }
  if (cell.first.empty()) cell.first = std::move(cold);
  if (cell.warm.empty()) cell.allowed = cell.serves = false;
}

void ReplayData::describe_arms(const Samples& samples) {
  std::map<std::pair<Phase, size_t>, CompileCounts> counts;
  for (const Phase phase : kPhases) {
    for (size_t arm = 0; arm < arms_; ++arm) counts[{phase, arm}];
  }
  for (const Group& group : samples.groups) {
    const Phase phase = samples.strata[group.stratum].phase;
    const auto& ours = of_phase_.find(phase);
    const bool of_model = ours != of_phase_.end() &&
                          std::ranges::find(ours->second, group.stratum) != ours->second.end();
    if (of_model) count_compilations(group, counts[{phase, group.arm}]);
  }
  for (const auto& [key, of] : counts) about_[key] = {specialising_of(of), of.limit};
}

bool ReplayData::allowed(const ReplayPlace& place, size_t arm) const {
  return !place.corners.empty() &&
         std::ranges::all_of(place.corners, [&](const ReplayCorner& corner) {
           return cell(corner.stratum, arm).allowed;
         });
}

bool ReplayData::serves(const ReplayPlace& place, size_t arm) const {
  return !place.corners.empty() &&
         std::ranges::all_of(place.corners, [&](const ReplayCorner& corner) {
           return cell(corner.stratum, arm).serves;
         });
}

ReplayPlace ReplayData::between(const std::vector<Length>& lengths, int64_t tokens) {
  ReplayPlace place;
  const Length* below = nullptr;
  const Length* above = nullptr;
  for (const Length& length : lengths) {
    if (length.shortest <= tokens && tokens <= length.longest) {
      place.corners = {{length.stratum, 1}};
      return place;
    }
    if (length.longest < tokens && (below == nullptr || length.longest > below->longest)) {
      below = &length;
    }
    if (length.shortest > tokens && (above == nullptr || length.shortest < above->shortest)) {
      above = &length;
    }
  }
  if (below == nullptr || above == nullptr) {
    place.outside = "the prompt is shorter or longer than any measured one";
    return place;
  }
  const double share = static_cast<double>(tokens - below->longest) /
                       static_cast<double>(above->shortest - below->longest);
  place.corners = {{below->stratum, 1 - share}, {above->stratum, share}};
  return place;
}

ReplayPlace ReplayData::place(Phase phase, const TraceRequest& request) const {
  const auto grid = grids_.find({phase, request.batch});
  if (grid == grids_.end()) return {{}, "the batch wasn't measured"};
  const int64_t wanted = decodes(phase) ? request.new_tokens : 0;
  const auto above = grid->second.lower_bound(wanted);
  if (above == grid->second.end()) return {{}, "more new tokens than were measured"};
  if (above->first == wanted) return between(above->second, request.prompt_tokens);
  if (above == grid->second.begin()) return {{}, "fewer new tokens than were measured"};
  const auto below = std::prev(above);
  const double share =
      static_cast<double>(wanted - below->first) / static_cast<double>(above->first - below->first);
  ReplayPlace place = between(below->second, request.prompt_tokens);
  ReplayPlace more = between(above->second, request.prompt_tokens);
  if (place.corners.empty()) return place;
  if (more.corners.empty()) return more;
  for (ReplayCorner& corner : place.corners) corner.weight *= 1 - share;
  for (ReplayCorner& corner : more.corners) {
    place.corners.push_back({corner.stratum, corner.weight * share});
  }
  return place;
}

std::optional<int64_t> ReplayData::bucket(Phase phase, const TraceRequest& request) const {
  std::optional<int64_t> found;
  const auto grid = grids_.find({phase, request.batch});
  if (grid == grids_.end()) return found;
  for (const auto& [new_tokens, lengths] : grid->second) {
    for (const Length& length : lengths) {
      if (length.longest < request.prompt_tokens) continue;
      if (!found || length.longest < *found) found = length.longest;
    }
  }
  return found;
}

}  // namespace assay
