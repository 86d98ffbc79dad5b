// Requests that decode together, each in a slot of its own: joined, prefilled in chunks, stepped
// and given away while the others keep theirs. Fairness and queues are its caller's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/serving/model.h"
#include "engine/serving/sampling.h"

namespace assay::engine {

struct BatchOptions {
  int64_t slots = 1;
  int64_t capacity = 1;   // positions of each slot, up to the model's
  int64_t chunk = 256;    // tokens of one run of a prompt, at most
  bool compiled = false;  // steps are compiled, for any number of rows; else operator by operator
  std::vector<int32_t> ends = {};  // ids that end a row in run()
};

// A token, and the slot that it belongs to.
struct SlotToken {
  int64_t slot = 0;
  int32_t token = 0;
};

// A slot is free or somebody's. Calls that name a slot which isn't somebody's, the same slot twice,
// ids that the vocabulary hasn't or more tokens than there is room for are bad_input, and nothing
// has run. After an error every slot has the length that it had, and may be used on.
class Batch {
 public:
  // Takes all memory that it will ever use for keys and values, and compiles its steps: their
  // failure is an error here. bad_input: options out of their range, or a model whose rows are in
  // order or which computes logits of all positions.
  static Result<Batch> create(std::shared_ptr<Model> model, const BatchOptions& options);

  Model& model() { return *model_; }
  const Model& model() const { return *model_; }
  int64_t slots() const { return std::ssize(lengths_); }
  int64_t free_slots() const;
  int64_t capacity() const { return options_.capacity; }
  // Its memory: a slot's positions from its length on mean nothing.
  KvCache& cache() { return *cache_; }

  // A free slot, which is the caller's from now on and empty; absent: none is free.
  std::optional<int64_t> join();
  // Gives a slot back; what it held is forgotten.
  Status leave(int64_t slot);

  // Says how an empty slot's tokens are chosen until it is given back; without this call they are
  // the largest logits'. Tokens that step() or run() feed count as chosen, those of extend() as the
  // prompt's.
  Status sample(int64_t slot, const Sampling& sampling);

  // Positions of the slot in use.
  int64_t length(int64_t slot) const { return lengths_[static_cast<size_t>(slot)]; }
  // Puts these tokens, a prompt or a part of one, behind those that the slot has, in chunks.
  Status extend(int64_t slot, std::span<const int32_t> ids);
  // One step of decoding: each token at its slot's next position, for any slots, in any order.
  Status step(std::span<const SlotToken> fed);
  // The token that is chosen behind the slot's last position; -1 for an empty slot.
  int32_t next(int64_t slot) const { return next_[static_cast<size_t>(slot)]; }
  // [vocab], behind the last position of a slot of the latest call; empty for other slots, after
  // run(), and once another batch or session of the model has run.
  std::span<const float> logits(int64_t slot) const;
  // False if a token of the slot was chosen by a logit of NaN or an infinity since it was joined,
  // or, in steps that a device took without the host in between, one of a slot beside it.
  bool logits_finite(int64_t slot) const { return finite_[static_cast<size_t>(slot)]; }

  // Up to `steps` steps that feed each of these slots, none of them empty, its next(): where all
  // choose the largest logit and the device feeds itself, without the host in between. `sink` gets
  // each new one and answers whether that slot goes on; it may not use the batch. A slot also ends
  // with an id of BatchOptions::ends, which `sink` gets too, and where its room ends.
  using Sink = std::function<bool(int64_t slot, int32_t token)>;
  Status run(std::span<const int64_t> slots, int64_t steps, const Sink& sink);

 private:
  Batch(std::shared_ptr<Model> model, const BatchOptions& options);
  Status compile();
  Status check_rows(std::span<const int64_t> slots, int64_t tokens) const;
  Status check_ids(std::span<const int32_t> ids) const;
  LoadedStep* step_of(int64_t rows, int64_t q_len) const;
  RunInputs inputs_of(std::span<const int32_t> ids, int64_t q_len);
  // A run of ids [rows_, q_len] behind what these slots have, which gives them no other length.
  Status run_rows(std::span<const int32_t> ids, int64_t q_len);
  // The logits of the latest run, if some row chooses by them; empty: none does.
  Result<std::span<const float>> logits_to_sample() const;
  // Chooses each row's next token; its sampler has seen what it was fed.
  void choose_next(std::span<const float> to_sample);
  bool samples(int64_t slot) const { return samplers_[static_cast<size_t>(slot)].has_value(); }
  Status step_rows(std::span<const int32_t> ids);  // one a row of rows_
  void take(size_t row, int32_t token, bool finite);
  bool goes_on(size_t row, int32_t token, const Sink& sink) const;
  // Steps of rows_ that the device takes alone, until one row ends; the rows that go on. Absent: it
  // takes none.
  Result<std::optional<std::vector<int64_t>>> run_alone(int64_t& steps, const Sink& sink);
  Result<std::vector<int64_t>> run_one(const Sink& sink);

  // In the order of their dependence.
  std::shared_ptr<Model> model_;
  BatchOptions options_;
  std::unique_ptr<KvCache> cache_;
  std::shared_ptr<LoadedStep> chunk_, one_, many_;  // null: not compiled
  // Vectors with an entry for each slot.
  std::vector<bool> taken_, finite_;
  std::vector<int64_t> lengths_;
  std::vector<int32_t> next_;
  std::vector<std::optional<Sampler>> samplers_;  // absent: the largest logit is chosen
  // Vectors with an entry for each row of the run at hand.
  std::vector<int64_t> rows_;  // its slot
  std::vector<int32_t> row_lengths_, row_slots_, no_pad_;
  const Executor* latest_ = nullptr;  // that has the logits; null: none
  uint64_t latest_run_ = 0;
};

}  // namespace assay::engine
