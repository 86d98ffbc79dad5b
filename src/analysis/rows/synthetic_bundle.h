// Bundles made by code, for tests: cells with a chosen latency law, arms interleaved, and defects
// put in row by row.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "artifact/bundle.h"
#include "base/random.h"
#include "stats/distributions/standard_normal.h"

namespace assay {

using stats::standard_normal;

struct SyntheticCell {
  std::string arm;
  Phase phase = Phase::kPrefill;
  std::string scenario = "single_micro";
  int64_t prompt_tokens = 10;
  double mean_ms = 10;
  double noise = 0.03;    // sigma of the logarithm
  double spike_rate = 0;  // share of samples that take `spike_factor` times as long
  double spike_factor = 3;
  int64_t repetitions = 30;
  int64_t warmup = 0;  // cold rows, `cold_factor` times as slow
  double cold_factor = 1.5;
  double autocorrelation = 0;  // of neighbouring repetitions' noise
  double drift = 0;            // share of the mean by which the last repetition is slower
  std::string model = "gpt2-25m";
  int64_t new_tokens = 64;    // of the decoding phases
  int64_t processes = 0;      // that share the repetitions, each in one piece; 0: rows name none
  double process_shift = 0;   // sd of ln of the factor of a process' life
  double neighbour_rate = 0;  // of processes that take 1.7 times as long: beside a busy neighbour
  double run_shift = 0;       // sd of ln of the cell's factor in this bundle
  // The machine's moods, which all cells share: sd of the logarithm between bundles, and between
  // the rounds of processes of one. Rows have yardsticks then, which show it but for `missed`.
  double run_mood = 0;
  double process_mood = 0;
  double missed = 0;  // as a share of both
};

// A slowdown for a while: latencies get the sum of all shares, the two yardsticks each its own.
struct SyntheticMood {
  double core = 0;   // a neighbour on the same core
  double clock = 0;  // a lower clock
  double missed = 0;
};

class SyntheticBundle {
 public:
  explicit SyntheticBundle(uint64_t seed) : random_(seed) {
    bundle_.complete = true;
    bundle_.manifest = {
        {"schema_version", 1},
        {"started_at", "2026-11-20T10:00:00Z"},
        {"identity",
         {{"gpu", nullptr}, {"cpu", "Example CPU 2.0"}, {"codegen", "none"}, {"code_sha", "abc"}}},
        {"study",
         {{"name", "synthetic"},
          {"baseline", "eager"},
          {"seed", 42},
          {"order", "interleaved"},
          {"warmup", 3},
          {"repetitions", 30},
          {"arms", {"eager", "static"}}}}};
    bundle_.environment = {{"warnings", Json::array()}};
  }

  // Adds the cell's rows and returns its id. Every arm's parity is recorded as passed.
  std::string add(const SyntheticCell& cell) {
    const int64_t number = cells_++;
    const std::string id =
        fmt::format("c{:03}-{}-{}-{}", number, cell.arm, phase_name(cell.phase), cell.scenario);
    // No number is drawn for a shift that isn't asked for: bundles of a seed stay as they were.
    const auto shift = [&](double sd) {
      return sd > 0 ? std::exp(sd * standard_normal(random_)) : 1.0;
    };
    const auto neighbour = [&](const SyntheticCell& of) {
      return of.neighbour_rate > 0 && random_.uniform() < of.neighbour_rate ? 1.7 : 1.0;
    };
    const double of_run = shift(cell.run_shift);
    const bool moody = cell.run_mood > 0 || cell.process_mood > 0;
    double of_process = 1;
    int64_t last = -1;
    for (int64_t repetition = -cell.warmup; repetition < cell.repetitions; ++repetition) {
      Row row = make_row(cell, id, number, repetition);
      if (cell.processes > 0) {
        row.process = std::max<int64_t>(0, repetition) * cell.processes / cell.repetitions;
        if (*row.process != last) of_process = shift(cell.process_shift) * neighbour(cell);
        last = *row.process;
      }
      *row.latency_ms *= of_run * of_process;
      *row.tokens_per_s /= of_run * of_process;
      if (moody) add_mood(cell, row);
      bundle_.rows.push_back(std::move(row));
    }
    bundle_.parity[id] = {{"passed", true}};
    return id;
  }

  // Adds a cell as add() does, of an arm that asked for a compiler, has evidence that it got one,
  // and counts: nothing compiled so far.
  std::string add_compiled(const SyntheticCell& cell, const std::string& dynamic) {
    const std::string id = add(cell);
    for (Row& row : bundle_.rows) {
      if (row.cell_id != id) continue;
      row.compile_mode = "compiled";
      row.dynamic = dynamic;
      row.counts[Counter::kUniqueGraphs] = row.counts[Counter::kRecompiles] =
          row.counts[Counter::kFallbacks] = 0;
    }
    evidence_[id] = {{"compiler_real", "yes"},
                     {"reported",
                      {{"reasons", Json::array()},
                       {"fallback_error", nullptr},
                       {"counters", Json::object()},
                       {"recompiles", Json::array()}}}};
    return id;
  }

  // The repetition specialises for its length, and takes so long; 0: as long as it took. The first
  // one of a cell is no recompile.
  void compile(const std::string& cell_id, int64_t repetition, double ms) {
    Row& compiled = row(cell_id, repetition);
    Json& counters = reported(cell_id)["counters"];
    const int64_t graphs = counters.value("unique_graphs", int64_t{0});
    counters["unique_graphs"] = graphs + 1;
    compiled.counts[Counter::kUniqueGraphs] = 1;
    if (ms > 0) compiled.latency_ms = ms;
    if (graphs == 0) return;
    compiled.counts[Counter::kRecompiles] = 1;
    reported(cell_id)["recompiles"].push_back({{"guard", "q_len"},
                                               {"expected", compiled.padded_tokens - 8},
                                               {"found", compiled.padded_tokens},
                                               {"seconds", 0.4}});
  }

  void set_length(const std::string& cell_id, int64_t repetition, int64_t tokens) {
    row(cell_id, repetition).prompt_tokens = tokens;
    row(cell_id, repetition).padded_tokens = tokens;
  }

  // The cell's evidence as its file has it; a cell without one gets an empty one.
  Json& evidence(const std::string& cell_id) { return evidence_[cell_id]; }
  void drop_evidence(const std::string& cell_id) { evidence_.erase(cell_id); }
  Json& reported(const std::string& cell_id) { return evidence(cell_id)["reported"]; }

  // The row to put a defect into.
  Row& row(const std::string& cell_id, int64_t repetition) {
    return *std::ranges::find_if(bundle_.rows, [&](const Row& row) {
      return row.cell_id == cell_id && row.repetition == repetition;
    });
  }

  // Leaves the rows as an order by whole cells does: a block is a process's share of a cell.
  void run_by_cells(const std::string& order) {
    bundle_.manifest["study"]["order"] = order;
    for (Row& row : bundle_.rows) row.block = row.process.value_or(0);
  }

  void lose(const std::string& cell_id, int64_t repetition, RowStatus status, std::string error) {
    Row& lost = row(cell_id, repetition);
    lost.status = status;
    lost.error_class = std::move(error);
    lost.latency_ms.reset();
    lost.tokens_per_s.reset();
  }

  Bundle& raw() { return bundle_; }
  Bundle build() {
    std::ranges::stable_sort(bundle_.rows, {}, &Row::order_index);
    bundle_.evidence.clear();
    for (const auto& [cell, json] : evidence_) {
      bundle_.evidence[cell] = evidence_from_json(json, cell).value();
    }
    return bundle_;
  }

 private:
  void add_mood(const SyntheticCell& cell, Row& row) {
    const auto draw = [&](double sd) {
      constexpr double kOfClock = 0.3;
      return SyntheticMood{sd * standard_normal(random_), kOfClock * sd * standard_normal(random_),
                           cell.missed * sd * standard_normal(random_)};
    };
    if (!run_mood_) run_mood_ = draw(cell.run_mood);
    const auto [at, fresh] = process_moods_.try_emplace(row.process.value_or(0));
    if (fresh) at->second = draw(cell.process_mood);
    const double core = run_mood_->core + at->second.core;
    const double clock = run_mood_->clock + at->second.clock;
    const double slower = std::exp(core + clock + run_mood_->missed + at->second.missed);
    *row.latency_ms *= slower;
    *row.tokens_per_s /= slower;
    row.yardstick_lookups_us = 30 * std::exp(0.9 * core + clock + 0.02 * standard_normal(random_));
    row.yardstick_multiplies_us =
        14 * std::exp(0.4 * core + clock + 0.02 * standard_normal(random_));
  }

  Row make_row(const SyntheticCell& cell, const std::string& id, int64_t number,
               int64_t repetition) {
    constexpr int64_t kCells = 1000;  // arms alternate within a repetition
    Row row;
    row.cell_id = id;
    row.backend = "native";
    row.arm = cell.arm;
    row.model = cell.model;
    row.dtype = "fp32";
    row.cache = "dynamic";
    row.compile_mode = "eager";
    row.padding = "none";
    row.phase = cell.phase;
    row.scenario = cell.scenario;
    row.prompt_id = "0";
    row.prompt_tokens = cell.prompt_tokens;
    row.padded_tokens = cell.prompt_tokens;
    row.new_tokens = cell.phase == Phase::kPrefill ? 0 : cell.new_tokens;
    row.repetition = repetition;
    row.block = std::max<int64_t>(0, repetition);
    row.order_index = (repetition + cell.warmup) * kCells + number;
    row.cold = repetition < 0;
    const double fresh = standard_normal(random_);
    const double rho = repetition == -cell.warmup ? 0 : cell.autocorrelation;
    noise_ = rho * noise_ + std::sqrt(1 - rho * rho) * fresh;  // of variance 1 from the first on
    const auto way = static_cast<double>(repetition) / static_cast<double>(cell.repetitions);
    double latency = cell.mean_ms * std::exp(cell.noise * noise_) * (1 + cell.drift * way);
    if (random_.uniform() < cell.spike_rate) latency *= cell.spike_factor;
    if (row.cold) latency *= cell.cold_factor;
    row.latency_ms = latency;
    row.tokens = std::max<int64_t>(1, row.new_tokens);
    row.tokens_per_s = static_cast<double>(*row.tokens) / latency * 1000;
    return row;
  }

  Random random_;
  Bundle bundle_;
  std::map<std::string, Json> evidence_;  // by cell_id
  int64_t cells_ = 0;
  double noise_ = 0;  // of the row before
  std::optional<SyntheticMood> run_mood_;
  std::map<int64_t, SyntheticMood> process_moods_;  // by process number
};

}  // namespace assay
