// The plan of a study: conditions times arms make cells; the order cuts them into units.
#include "study/plan.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/random.h"
#include "study/load_study.h"

namespace assay {
namespace {

// The name with everything but letters, digits, '.', '_' and '-' replaced, and cut: an id of three
// names stays below the 255 bytes that a folder's name may have.
std::string id_part(std::string_view name) {
  constexpr size_t kLongestPart = 40;
  std::string part(name.substr(0, kLongestPart));
  std::ranges::replace_if(
      part,
      [](char c) {
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        return !letter && !(c >= '0' && c <= '9') && c != '.' && c != '_' && c != '-';
      },
      '_');
  return part;
}

std::string cell_id(const Study& study, const Cell& cell, size_t number) {
  std::string id = fmt::format("c{:03}-{}-{}-{}-{}-b{}", number, id_part(study.arms[cell.arm].name),
                               id_part(study.models[cell.model].name), phase_name(cell.phase),
                               id_part(study.scenarios[cell.scenario].name), cell.batch);
  if (cell.new_tokens > 0) id += fmt::format("-n{}", cell.new_tokens);
  return id;
}

// The conditions as cells of arm 0, in the order of the file, models outermost.
std::vector<Cell> make_conditions(const Study& study) {
  std::vector<Cell> conditions;
  for (size_t model = 0; model < study.models.size(); ++model) {
    for (const Phase phase : study.phases) {
      const std::vector<int64_t> lengths =
          decodes(phase) ? study.token_lengths : std::vector<int64_t>{0};
      for (size_t scenario = 0; scenario < study.scenarios.size(); ++scenario) {
        if (!runs_in(study.scenarios[scenario], phase)) continue;
        for (int64_t new_tokens : lengths) {
          for (int64_t batch : study.batch) {
            conditions.push_back({.id = "",
                                  .arm = 0,
                                  .model = model,
                                  .scenario = scenario,
                                  .phase = phase,
                                  .new_tokens = new_tokens,
                                  .batch = batch,
                                  .condition = conditions.size()});
          }
        }
      }
    }
  }
  return conditions;
}

std::vector<Cell> make_cells(const Study& study) {
  std::vector<Cell> cells;
  for (Cell cell : make_conditions(study)) {
    for (cell.arm = 0; cell.arm < study.arms.size(); ++cell.arm) {
      cell.id = cell_id(study, cell, cells.size());
      cells.push_back(cell);
    }
  }
  return cells;
}

// Puts units in order and keeps the counts of rows, blocks and warm-ups.
class UnitList {
 public:
  UnitList(const Study& study, Plan& plan)
      : study_(study), plan_(plan), blocks_(plan.cells.size()) {}

  // The part of the cell's repetitions, from `begin` up to `end`, that is next in its round.
  void add(size_t cell, int64_t round, int64_t begin, int64_t end) {
    const bool first = begin == round_begin(study_, round);
    const bool last = end == round_begin(study_, round + 1);
    plan_.units.push_back({.index = static_cast<int64_t>(plan_.units.size()),
                           .cell = cell,
                           .round = round,
                           .block = blocks_[cell]++,
                           .first_repetition = begin,
                           .repetitions = end - begin,
                           // The last of all is -1.
                           .first_warmup = first ? (round - rounds(study_)) * study_.warmup : 0,
                           .warmups = first ? study_.warmup : 0,
                           .first_of_round = first,
                           .last_of_round = last,
                           .last_of_cell = last && round + 1 == rounds(study_),
                           .first_order_index = plan_.rows});
    plan_.rows += plan_.units.back().rows();
  }

 private:
  const Study& study_;
  Plan& plan_;
  std::vector<int64_t> blocks_;  // of each cell so far
};

// The cells of each model, as indexes into plan.cells.
std::vector<std::vector<size_t>> cells_by_model(const Study& study, const Plan& plan) {
  std::vector<std::vector<size_t>> groups(study.models.size());
  for (size_t i = 0; i < plan.cells.size(); ++i) groups[plan.cells[i].model].push_back(i);
  return groups;
}

// Cell by cell: sequential and shuffled.
void add_whole_cells(const Study& study, Plan& plan) {
  UnitList units(study, plan);
  std::vector<std::vector<size_t>> groups = cells_by_model(study, plan);
  std::vector<Random> streams;
  for (std::vector<size_t>& group : groups) {
    std::ranges::sort(group, {},
                      [&](size_t cell) { return std::pair(plan.cells[cell].arm, cell); });
    streams.emplace_back(study.seed, streams.size());
  }
  for (int64_t round = 0; round < rounds(study); ++round) {
    for (size_t model = 0; model < groups.size(); ++model) {
      std::vector<size_t>& group = groups[model];
      if (study.order == RunOrder::kShuffled) streams[model].shuffle(std::span(group));
      for (size_t cell : group) {
        units.add(cell, round, round_begin(study, round), round_begin(study, round + 1));
      }
    }
  }
}

// The order of a block's arms: random; with two sides, the two of an arm next to one another, and
// if one block has the base before the candidate, the next one has it after. A cost that grows from
// call to call, or passes from a call to the one behind it, then meets both alike.
class BlockOrder {
 public:
  BlockOrder(const Study& study, Random& random)
      : sides_(study.sides ? 2 : 1),
        random_(random),
        groups_(study.arms.size() / sides_),
        cand_first_(groups_.size()) {}

  // Order of the next block: places of the arms in the study.
  std::vector<size_t> next() {
    std::iota(groups_.begin(), groups_.end(), size_t{0});
    random_.shuffle(std::span(groups_));
    if (sides_ == 1) return groups_;
    std::vector<size_t> order;
    for (const size_t group : groups_) {
      cand_first_[group] = again_ ? !cand_first_[group] : random_.below(2) == 1;
      const size_t first = cand_first_[group] ? 1 : 0;
      order.push_back(group * 2 + first);
      order.push_back(group * 2 + 1 - first);
    }
    again_ = !again_;
    return order;
  }

 private:
  size_t sides_;
  Random& random_;
  std::vector<size_t> groups_;  // arms, or pairs of them
  std::vector<bool> cand_first_;
  bool again_ = false;  // the block is the second of two that balance one another
};

// Blocks of every arm of a condition, within a round, each of one repetition: the shorter the time
// between two arms' calls, the more of the machine's changes cancel in their ratio.
void add_blocks(const Study& study, size_t condition, int64_t round, Random& random,
                UnitList& units) {
  const size_t arms = study.arms.size();
  const int64_t end = round_begin(study, round + 1);
  BlockOrder order(study, random);
  for (int64_t repetition = round_begin(study, round); repetition < end; ++repetition) {
    for (const size_t arm : order.next()) {
      units.add(condition * arms + arm, round, repetition, repetition + 1);
    }
  }
}

// A stream of random numbers for each condition, which goes on from round to round, so that adding
// a condition leaves the others' order alone. Conditions have their models outermost.
void add_interleaved(const Study& study, Plan& plan) {
  UnitList units(study, plan);
  const size_t conditions = plan.cells.size() / study.arms.size();
  std::vector<Random> streams;
  for (size_t i = 0; i < conditions; ++i) streams.emplace_back(study.seed, i);
  for (int64_t round = 0; round < rounds(study); ++round) {
    for (size_t i = 0; i < conditions; ++i) add_blocks(study, i, round, streams[i], units);
  }
}

Json study_to_json(const Study& study) {
  Json json;
  json["name"] = study.name;
  for (const StudyModel& model : study.models) {
    Json entry = {{"name", model.name}, {"path", model.path.string()}, {"dtype", model.dtype}};
    if (!model.arch.empty()) entry["arch"] = model.arch;
    json["models"].push_back(std::move(entry));
  }
  for (const StudyArm& arm : study.arms) {
    json["arms"].push_back({{"name", arm.name},
                            {"backend", arm.backend},
                            {"mode", arm.mode},
                            {"cache", arm.cache},
                            {"dynamic", arm.dynamic},
                            {"threads", arm.threads},
                            {"options", arm.options}});
  }
  json["phases"] = Json::array();
  for (const Phase phase : study.phases) json["phases"].push_back(phase_name(phase));
  for (const StudyScenario& scenario : study.scenarios) {
    Json entry = {{"name", scenario.name},
                  {"prompt_tokens", scenario.prompt_tokens},
                  {"text", scenario.text}};
    for (const Phase phase : scenario.phases) entry["phases"].push_back(phase_name(phase));
    if (scenario.load) entry["load"] = record_to_json(*scenario.load);
    json["scenarios"].push_back(std::move(entry));
  }
  json["token_lengths"] = study.token_lengths;
  json["batch"] = study.batch;
  json["padding"] = {{"scope", padding_scope_name(study.padding_scope)},
                     {"multiple_of", study.padding_multiple_of}};
  json["repetitions"] = study.repetitions;
  json["warmup"] = study.warmup;
  if (study.stopping) {
    json["stopping"]["max_repetitions"] = study.stopping->max_repetitions;
    if (study.stopping->decide) {
      json["stopping"]["decide"] = true;
      json["stopping"]["margin"] = study.stopping->margin;
    } else {
      json["stopping"]["relative_ci"] = study.stopping->relative_ci;
    }
  }
  json["order"] = run_order_name(study.order);
  json["baseline"] = study.baseline;
  json["timeout_s"] = study.timeout_s;
  // Later than the first schema: absent where they are at their defaults, so that plans keep their
  // hash.
  if (study.parity != ParityTime::kBefore) json["parity"] = parity_time_name(study.parity);
  if (study.processes > 1) json["processes"] = study.processes;
  if (study.compile_timeout_s != study.timeout_s) {
    json["compile_timeout_s"] = study.compile_timeout_s;
  }
  json["seed"] = study.seed;
  if (!study.require.empty()) json["require"] = study.require;
  if (study.load) json["load"] = load_to_json(*study.load);
  if (study.quality) {
    json["quality"] = {{"windows", study.quality->windows},
                       {"window", study.quality->window},
                       {"text", study.quality->text_file}};
  }
  if (study.sides) json["sides"] = {{"base", study.sides->base}, {"cand", study.sides->cand}};
  return json;
}

}  // namespace

Plan make_plan(const Study& study) {
  Plan plan;
  plan.cells = make_cells(study);
  if (study.order == RunOrder::kInterleaved) {
    add_interleaved(study, plan);
  } else {
    add_whole_cells(study, plan);
  }
  return plan;
}

Json plan_to_json(const Study& study, const Plan& plan) {
  Json json;
  json["study"] = study_to_json(study);
  json["cells"] = Json::array();
  for (const Cell& cell : plan.cells) json["cells"].push_back(cell.id);
  json["units"] = Json::array();
  for (const Unit& unit : plan.units) {
    Json entry = {{"index", unit.index},
                  {"cell", plan.cells[unit.cell].id},
                  {"block", unit.block},
                  {"first_repetition", unit.first_repetition},
                  {"repetitions", unit.repetitions},
                  {"first_of_cell", unit.first_of_round && unit.round == 0},
                  {"first_order_index", unit.first_order_index}};
    if (rounds(study) > 1) entry["round"] = unit.round;
    json["units"].push_back(std::move(entry));
  }
  json["rows"] = plan.rows;
  return json;
}

}  // namespace assay
