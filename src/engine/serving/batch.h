// Requests that decode together, each in a slot of its own: joined, prefilled in chunks, stepped
// and given away while the others keep theirs. Fairness and queues are its caller's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/serving/model.h"
#include "engine/serving/sampling.h"

namespace assay::engine {

struct BatchOptions {
  int64_t slots = 1;
  int64_t capacity = 1;   // positions of each slot, up to the model's
  int64_t chunk = 256;    // tokens of one run of prompts, at most
  bool compiled = false;  // steps are compiled, for any number of rows; else operator by operator
  // A compiled batch may be asked for runs operator by operator, by use_compiled(). The host draws
  // all tokens then.
  bool eager_too = false;
  std::vector<int32_t> ends = {};  // ids that end a row in run()
};

// A slot's positions, and tokens of a run of prompts, that suit a server unless somebody says
// otherwise.
int64_t default_capacity(const ModelConfig& config);
int64_t default_chunk(const Device& device);

// A token, and the slot that it belongs to.
struct SlotToken {
  int64_t slot = 0;
  int32_t token = 0;
};

// A prompt, or a part of one, and the slot that it is for.
struct SlotPrompt {
  int64_t slot = 0;
  std::span<const int32_t> ids = {};
};

// A slot is free or somebody's. Calls that name a slot which isn't somebody's, the same slot twice,
// ids that the vocabulary hasn't or more tokens than there is room for are bad_input, and nothing
// has run. After an error every slot has the length that it had, and may be used on.
//
// On a device that prefers few sizes, compiled runs have some sizes alone, and rows or positions
// that nobody has asked for: such rows write to a row of the cache that is no slot's, such
// positions behind a slot's length.
class Batch {
 public:
  // Takes all memory that it will ever use for keys and values, compiles its steps, and where few
  // sizes are preferred makes a run of each: a failure is an error here. bad_input: options out of
  // their range, or a model whose rows are in order or which computes logits of all positions.
  static Result<Batch> create(std::shared_ptr<Model> model, const BatchOptions& options);

  Model& model() { return *model_; }
  const Model& model() const { return *model_; }
  int64_t slots() const { return options_.slots; }
  int64_t free_slots() const;
  int64_t capacity() const { return options_.capacity; }
  // Its memory: a slot's positions from its length on mean nothing.
  KvCache& cache() { return *cache_; }

  // A free slot, which is the caller's from now on and empty: `wanted`, if that is free. Absent:
  // none is.
  std::optional<int64_t> join(std::optional<int64_t> wanted = {});
  bool is_free(int64_t slot) const { return !taken_[static_cast<size_t>(slot)]; }
  // Gives a slot back. Its positions keep their values until it is joined and fed.
  Status leave(int64_t slot);

  // Says how an empty slot's tokens are chosen until it is given back; without this call they are
  // the largest logits'. Tokens that step() or run() feed count as chosen, those of extend() as the
  // prompt's. The device chooses by itself where it can, else the host.
  Status sample(int64_t slot, const Sampling& sampling);

  // Gives an empty slot, behind sample() if that is called, a prompt's beginning that isn't
  // computed: its first positions hold it since these tokens were fed there by whoever had the slot
  // last.
  Status reuse(int64_t slot, std::span<const int32_t> ids);

  // Runs from here on are compiled, or operator by operator, where the batch can be both: the same
  // tokens in fp32.
  void use_compiled(bool compiled) { uses_compiled_ = compiled || !options_.eager_too; }

  // Positions of the slot in use.
  int64_t length(int64_t slot) const { return lengths_[static_cast<size_t>(slot)]; }
  // Puts these tokens, prompts or parts of them, behind those that their slots have, in chunks.
  Status extend(std::span<const SlotPrompt> parts);
  Status extend(int64_t slot, std::span<const int32_t> ids);
  // One step of decoding: each token at its slot's next position, for any slots, in any order. To a
  // slot that awaits its prompt's end, no other token may be fed: bad_input.
  Status step(std::span<const SlotToken> fed);
  // Makes these tokens those behind what the slot has, whatever it would choose: the last one is
  // next(), the others are fed, in chunks where the host draws, and count as chosen. Another call
  // goes on from next(), which it names first. After an error the slot can only be left.
  Status follow(int64_t slot, std::span<const int32_t> tokens);
  // The token that is chosen behind the slot's last position, or is to be fed there to end its
  // prompt; -1 for an empty slot.
  int32_t next(int64_t slot) const { return next_[static_cast<size_t>(slot)]; }
  // True if next() is the last token of a prompt, which a run that was longer than the prompt left
  // out: it goes with the next step, or before the prompt's next part.
  bool awaits_end(int64_t slot) const { return awaits_[static_cast<size_t>(slot)]; }
  // [vocab], behind the last position of a slot of the latest run; empty for other slots, after
  // run(), and once another batch or session of the model has run.
  std::span<const float> logits(int64_t slot) const;
  // False if a token of the slot was chosen by a logit of NaN or an infinity since it was joined,
  // or, in steps that a device took without the host in between, one of a slot beside it.
  bool logits_finite(int64_t slot) const { return finite_[static_cast<size_t>(slot)]; }

  // Up to `steps` steps that feed each of these slots, none of them empty, its next(): where all
  // choose the largest logit and the device feeds itself, without the host in between. `sink` gets
  // each new one; of the batch it may ask for logits_finite() alone. It answers kStop where the
  // slot ends, and kLast where the slot goes on but no further step shall be begun. A slot also
  // ends with an id of BatchOptions::ends, which `sink` gets too, and where its room ends.
  // `wants_logits`: it may ask for the slot's logits() too, which the host then waits for.
  using Sink = std::function<Onward(int64_t slot, int32_t token)>;
  Status run(std::span<const int64_t> slots, int64_t steps, const Sink& sink,
             bool wants_logits = false);

 private:
  // The rest of a prompt's part, or of what follow() feeds.
  struct Part {
    int64_t slot = 0;
    std::span<const int32_t> ids = {};  // all of it
    bool chosen = false;                // these count as chosen
    std::vector<int32_t> left = {};
  };
  // A slot's state that extend() changes.
  struct Before {
    int64_t slot = 0, length = 0, prompt_tokens = 0;
    int32_t next = -1;
    bool awaits = false;
  };
  // A slot's draws by the device.
  struct Drawn {
    bool on_device = false;
    bool penalties = false, sees = false;  // it counts tokens; the prompt's too
    int64_t prompt_tokens = 0;
  };
  // The rest of a run(): the slots that go on, and how many steps may follow.
  struct Going {
    std::vector<int64_t> slots = {};
    int64_t steps = 0;
  };

  Batch(std::shared_ptr<Model> model, const BatchOptions& options);
  Status compile();
  Status warm_up();
  Status draw_nothing(int64_t slot);
  Status check_empty(int64_t slot) const;
  Status check_slots(std::span<const int64_t> slots) const;
  Status check_room(int64_t slot, int64_t tokens) const;
  Status check_ids(std::span<const int32_t> ids) const;
  LoadedStep* step_of(int64_t rows, int64_t q_len) const;
  int64_t padded_rows() const;  // of a step of rows_
  RunInputs inputs_of(int64_t rows, int64_t q_len, bool draws);
  // A run of ids_ [rows, q_len] behind what the slots of rows_ have, which gives them no other
  // length; rows behind these are nobody's. `draws`: the device does so for some slot.
  Status run_rows(int64_t rows, int64_t q_len, bool draws);
  bool step_draws() const;  // a step of rows_
  Status extend_all(std::span<const SlotPrompt> parts, bool chosen = false);
  // Runs the next chunk of some parts; those that are done are gone then.
  Status run_parts(std::vector<Part>& left);
  Status hold_back(const Part& part);
  void saw(const Part& part);
  // The number of parts, from the first one on, that the next run is of, and its tokens a row.
  std::pair<size_t, int64_t> next_run(std::vector<Part>& left) const;
  // The logits of the latest run, if one of these rows chooses by them; empty: none does.
  Result<std::span<const float>> logits_to_sample(std::span<const size_t> rows) const;
  // Chooses the row's next token; its sampler has seen what it was fed.
  void choose_next(size_t row, std::span<const float> to_sample);
  bool samples(int64_t slot) const { return samplers_[static_cast<size_t>(slot)].has_value(); }
  bool is_drawn(int64_t slot) const { return drawn_[static_cast<size_t>(slot)].on_device; }
  // Tells a device that draws the slot's tokens of the prompt's part, which is all in by the run
  // ahead, but for the last token if that is left for a step; a run of one token is like a step.
  Status tell_device(const Part& part, bool held_back);
  int64_t most_prompts(int64_t q_len) const;  // of a run
  Status step_rows();                         // ids_ has one a row of rows_
  void take(int64_t slot, int32_t token, bool finite);
  Onward answer(int64_t slot, int32_t token, const Sink& sink) const;
  void feed_next(std::span<const int64_t> slots);  // into ids_ and rows_
  // Steps that the device takes alone, until one row ends. Absent: it takes none.
  Result<std::optional<Going>> run_alone(int64_t steps, const Sink& sink);
  Result<Going> run_one(int64_t steps, const Sink& sink);

  // In the order of their dependence.
  std::shared_ptr<Model> model_;
  BatchOptions options_;
  std::unique_ptr<KvCache> cache_;
  std::shared_ptr<LoadedStep> chunk_, chunks_, one_, many_;  // null: not compiled
  std::unique_ptr<SlotSampling> device_sampling_;            // null: the host samples
  bool few_sizes_ = false;
  bool uses_compiled_ = true;  // where there are compiled steps
  // Vectors with an entry for each slot.
  std::vector<bool> taken_, finite_, awaits_;
  std::vector<int64_t> lengths_;
  std::vector<int32_t> next_;
  std::vector<std::optional<Sampler>> samplers_;  // of the host; absent: it chooses nothing
  std::vector<Drawn> drawn_;
  // Vectors with an entry for each row of the run at hand.
  std::vector<int64_t> rows_;  // its slot
  std::vector<int32_t> ids_, row_lengths_, row_slots_, no_pad_;
  const Executor* latest_ = nullptr;  // that has the logits; null: none
  uint64_t latest_run_ = 0;
};

}  // namespace assay::engine
