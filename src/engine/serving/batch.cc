// Slots, steps and runs; batch_prompts.cc has the prompts.
#include "engine/serving/batch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text/text.h"
#include "engine/serving/run_sizes.h"

namespace assay::engine {
namespace {

constexpr int64_t kAhead = 2;  // steps that a device is ahead of the host, which waits for no more

}  // namespace

int64_t default_capacity(const ModelConfig& config) {
  constexpr int64_t kMost = 4096;
  return std::min(kMost, config.max_positions);
}

// A GPU takes little longer for so many tokens than for a few.
int64_t default_chunk(const Device& device) {
  constexpr int64_t kOfProcessor = 256, kOfGpu = 1024;
  return device.prefers_few_sizes() ? kOfGpu : kOfProcessor;
}

Batch::Batch(std::shared_ptr<Model> model, const BatchOptions& options)
    : model_(std::move(model)),
      options_(options),
      taken_(static_cast<size_t>(options.slots), false),
      finite_(taken_.size(), true),
      awaits_(taken_.size(), false),
      lengths_(taken_.size(), 0),
      next_(taken_.size(), -1),
      samplers_(taken_.size()),
      drawn_(taken_.size()) {}

Result<Batch> Batch::create(std::shared_ptr<Model> model, const BatchOptions& options) {
  const int64_t most = model->config().max_positions;
  if (options.slots < 1) return bad_input("slots: expected at least 1, found {}", options.slots);
  if (options.chunk < 1) return bad_input("chunk: expected at least 1, found {}", options.chunk);
  if (options.capacity < 1 || options.capacity > most) {
    return bad_input("capacity: expected 1 to {} positions (the model's), found {}", most,
                     options.capacity);
  }
  if (model->options().rows != CacheRows::kNamed ||
      model->options().logits != LogitsOf::kLastPosition) {
    return bad_input("model: expected one with named rows and logits of the last position");
  }
  Batch batch(std::move(model), options);
  batch.options_.chunk = std::min(options.chunk, options.capacity);
  batch.few_sizes_ = options.compiled && batch.model_->device().prefers_few_sizes();
  const int64_t rows = options.slots + (batch.few_sizes_ ? 1 : 0);  // the last one is no slot
  ASSAY_TRY(batch.cache_, batch.model_->make_cache(CacheKind::kStatic, rows, options.capacity));
  batch.model_->rope(options.capacity);
  if (options.compiled) ASSAY_CHECK(batch.compile());
  if (!options.compiled || options.eager_too) ASSAY_CHECK(batch.model_->eager().make_ready());
  if (options.compiled && !options.eager_too) {
    ASSAY_TRY(batch.device_sampling_, batch.model_->device().make_sampling(
                                          rows, std::max(wider_step(options.slots), kMostPrompts),
                                          batch.model_->config().vocab_size));
  }
  if (batch.few_sizes_) ASSAY_CHECK(batch.warm_up());
  return batch;
}

// A size of one makes other kernels; all others are symbols, so that slots come and go without a
// compiler.
Status Batch::compile() {
  ASSAY_TRY(GraphCompiler* const compiler, model_->compiler());
  const int64_t capacity = options_.capacity, chunk = options_.chunk;
  const int64_t rows = few_sizes_ ? wider_step(slots()) : slots();
  ASSAY_TRY(one_, compiler->compile({1, 1, std::nullopt, capacity}));
  ASSAY_CHECK(one_->reserve({1, 1, capacity}));
  if (rows > 1) {
    ASSAY_TRY(many_, compiler->compile({std::nullopt, 1, std::nullopt, capacity}));
    ASSAY_CHECK(many_->reserve({rows, 1, capacity}));
  }
  if (chunk > 1) {
    ASSAY_TRY(chunk_, compiler->compile({1, std::nullopt, std::nullopt, capacity}));
    ASSAY_CHECK(chunk_->reserve({1, chunk, capacity}));
  }
  if (const int64_t prompts = std::min({slots(), kMostPrompts, chunk / 2});
      few_sizes_ && prompts > 1) {
    ASSAY_TRY(chunks_, compiler->compile({std::nullopt, std::nullopt, std::nullopt, capacity}));
    ASSAY_CHECK(chunks_->reserve({power_of_two(prompts), chunk / 2, capacity}));
  }
  return {};
}

// Kernels are compiled, a library's algorithms chosen, and launches recorded. Memory comes first:
// recordings hold its addresses.
Status Batch::warm_up() {
  std::vector<int64_t> steps, chunks;
  for (int64_t rows = 1; rows <= wider_step(slots()); rows = wider_step(rows + 1)) {
    steps.push_back(rows);
    ASSAY_CHECK(step_of(rows, 1)->reserve({rows, 1, options_.capacity}));
  }
  for (int64_t tokens = std::min(kFewestTokens, options_.chunk); chunk_ != nullptr;
       tokens = std::min(wider(tokens + 1), options_.chunk)) {
    chunks.push_back(tokens);
    ASSAY_CHECK(chunk_->reserve({1, tokens, options_.capacity}));
    if (tokens == options_.chunk) break;
  }
  const auto run = [&](int64_t rows, int64_t q_len, bool draws = false) {
    rows_.clear();
    ids_.assign(static_cast<size_t>(rows * q_len), 0);
    return run_rows(rows, q_len, draws);
  };
  // A size's second run records it. Several prompts' is left for later: it takes the host less time
  // than the device.
  for (const int64_t rows : steps) {
    for (const bool draws : {false, true}) {
      ASSAY_CHECK(run(rows, 1, draws));
      ASSAY_CHECK(run(rows, 1, draws));
    }
  }
  for (const int64_t tokens : chunks) {
    ASSAY_CHECK(run(1, tokens));
    ASSAY_CHECK(run(1, tokens));
    for (int64_t rows = 2; rows <= most_prompts(tokens); rows *= 2) ASSAY_CHECK(run(rows, tokens));
  }
  cache_->reset();
  return {};
}

int64_t Batch::free_slots() const {
  return std::ranges::count(taken_, false);
}

std::optional<int64_t> Batch::join(std::optional<int64_t> wanted) {
  const auto free =
      wanted && is_free(*wanted) ? taken_.begin() + *wanted : std::ranges::find(taken_, false);
  if (free == taken_.end()) return std::nullopt;
  const auto slot = static_cast<size_t>(free - taken_.begin());
  taken_[slot] = true;
  finite_[slot] = true;
  lengths_[slot] = 0;
  next_[slot] = -1;
  awaits_[slot] = false;
  samplers_[slot].reset();
  drawn_[slot] = {};
  return static_cast<int64_t>(slot);
}

Status Batch::leave(int64_t slot) {
  ASSAY_CHECK(check_slots({&slot, 1}));
  taken_[static_cast<size_t>(slot)] = false;
  return draw_nothing(slot);
}

// The device draws wherever a slot wishes it, whoever has the slot now.
Status Batch::draw_nothing(int64_t slot) {
  if (!std::exchange(drawn_[static_cast<size_t>(slot)], {}).on_device) return {};
  model_->device().enter_thread();
  return device_sampling_->begin(slot, {}, {});
}

Status Batch::sample(int64_t slot, const Sampling& sampling) {
  ASSAY_CHECK(check_slots({&slot, 1}));
  const int64_t vocab = model_->config().vocab_size;
  ASSAY_CHECK(check_sampling(sampling, vocab));
  ASSAY_CHECK(check_empty(slot));
  auto& sampler = samplers_[static_cast<size_t>(slot)];
  Drawn& drawn = drawn_[static_cast<size_t>(slot)];
  sampler.reset();
  ASSAY_CHECK(draw_nothing(slot));
  if (sampling.is_argmax()) return {};
  if (device_sampling_ == nullptr ||
      std::ssize(sampling.logit_bias) > device_sampling_->most_biases()) {
    sampler.emplace(sampling, vocab);
    return {};
  }
  model_->device().enter_thread();
  const bool penalties = sampling.has_penalties();
  const SampledSlot wishes{.samples = 1,
                           .penalties = penalties ? 1 : 0,
                           .temperature = sampling.temperature,
                           .repetition = sampling.repetition_penalty,
                           .presence = sampling.presence_penalty,
                           .frequency = sampling.frequency_penalty,
                           .top_p = sampling.top_p,
                           .top_k = sampling.top_k,
                           .least = least_weight(sampling.min_p),
                           .seed = sampling.seed};
  ASSAY_CHECK(device_sampling_->begin(slot, wishes, sampling.logit_bias));
  drawn = {.on_device = true,
           .penalties = penalties,
           .sees = sampling.repetition_penalty != 1,
           .prompt_tokens = 0};
  return {};
}

Status Batch::check_empty(int64_t slot) const {
  if (next(slot) < 0 && length(slot) == 0) return {};
  return bad_input("slot {}: expected it empty, found {}", slot,
                   counted(length(slot) + (awaits_end(slot) ? 1 : 0), "token"));
}

Status Batch::check_slots(std::span<const int64_t> slots) const {
  std::vector<bool> seen(taken_.size(), false);
  for (const int64_t slot : slots) {
    const auto at = static_cast<size_t>(slot);
    if (slot < 0 || at >= taken_.size() || !taken_[at]) {
      return bad_input("slot: expected one of join(), found {}", slot);
    }
    if (seen[at]) return bad_input("slots: expected each once, found {} twice", slot);
    seen[at] = true;
  }
  return {};
}

Status Batch::check_room(int64_t slot, int64_t tokens) const {
  const int64_t room = options_.capacity - length(slot) - (awaits_end(slot) ? 1 : 0);
  if (tokens <= room) return {};
  return bad_input("slot {}: expected at most {} more, found {}", slot, counted(room, "token"),
                   tokens);
}

Status Batch::check_ids(std::span<const int32_t> ids) const {
  const int64_t vocab = model_->config().vocab_size;
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocab) {
      return bad_input("tokens: expected ids from 0 to {}, found {}", vocab - 1, id);
    }
  }
  return {};
}

LoadedStep* Batch::step_of(int64_t rows, int64_t q_len) const {
  if (!uses_compiled_) return nullptr;
  if (q_len > 1) return rows > 1 ? chunks_.get() : chunk_.get();
  return rows > 1 ? many_.get() : one_.get();
}

int64_t Batch::padded_rows() const {
  const int64_t rows = std::ssize(rows_);
  return few_sizes_ ? wider_step(rows) : rows;
}

bool Batch::step_draws() const {
  return std::ranges::any_of(rows_, [&](int64_t slot) { return is_drawn(slot); });
}

RunInputs Batch::inputs_of(int64_t rows, int64_t q_len, bool draws) {
  row_lengths_.assign(static_cast<size_t>(rows), 0);
  row_slots_.assign(static_cast<size_t>(rows), static_cast<int32_t>(slots()));
  no_pad_.resize(std::max(no_pad_.size(), static_cast<size_t>(rows)), 0);
  int64_t longest = 0;
  for (size_t row = 0; row < rows_.size(); ++row) {
    longest = std::max(longest, length(rows_[row]));
    row_lengths_[row] = static_cast<int32_t>(length(rows_[row]));
    row_slots_[row] = static_cast<int32_t>(rows_[row]);
  }
  return {.dims = {rows, q_len, longest + q_len},
          .ids = ids_,
          .lengths = row_lengths_,
          .pad = std::span(no_pad_).first(static_cast<size_t>(rows)),
          .slots = row_slots_,
          .rope = &model_->rope(options_.capacity),
          .sampling = draws ? device_sampling_.get() : nullptr};
}

void Batch::take(int64_t slot, int32_t token, bool finite) {
  const auto at = static_cast<size_t>(slot);
  next_[at] = token;
  awaits_[at] = false;
  if (!finite) finite_[at] = false;
}

Status Batch::run_rows(int64_t rows, int64_t q_len, bool draws) {
  latest_ = nullptr;
  latest_run_ = model_->begin_run();
  LoadedStep* const step = step_of(rows, q_len);
  Executor& executor = step != nullptr ? *step : model_->eager();
  ASSAY_CHECK(executor.run(inputs_of(rows, q_len, draws), *cache_));
  latest_ = &executor;
  return {};
}

Result<std::span<const float>> Batch::logits_to_sample(std::span<const size_t> rows) const {
  if (std::ranges::none_of(rows, [&](size_t row) { return samples(rows_[row]); })) return {};
  const auto logits = latest_->output_f32(0);
  if (logits.empty()) return environment_error("logits: expected them from the device, found none");
  return logits;
}

void Batch::choose_next(size_t row, std::span<const float> to_sample) {
  const auto vocab = static_cast<size_t>(model_->config().vocab_size);
  const int64_t slot = rows_[row];
  if (const auto& sampler = samplers_[static_cast<size_t>(slot)]) {
    const auto logits = to_sample.subspan(row * vocab, vocab);
    const int32_t token = sampler->choose(logits);
    return take(slot, token, std::isfinite(logits[static_cast<size_t>(token)]));
  }
  const int32_t largest = latest_->output_i32(1)[row];
  const size_t chosen = row * vocab + static_cast<size_t>(largest);
  take(slot, largest,
       latest_->chose_finite().value_or(false) || std::isfinite(latest_->element_f32(0, chosen)));
}

Status Batch::step(std::span<const SlotToken> fed) {
  std::vector<int64_t> slots;
  std::vector<int32_t> ids;
  for (const SlotToken& one : fed) {
    slots.push_back(one.slot);
    ids.push_back(one.token);
  }
  if (fed.empty()) return bad_input("slots: expected at least 1, found none");
  ASSAY_CHECK(check_slots(slots));
  ASSAY_CHECK(check_ids(ids));
  for (const auto& [slot, token] : fed) {
    if (awaits_end(slot) && token != next(slot)) {
      return bad_input("slot {}: expected its prompt's last token, {}, found {}", slot, next(slot),
                       token);
    }
    if (!awaits_end(slot)) ASSAY_CHECK(check_room(slot, 1));
  }
  rows_ = std::move(slots);
  ids_ = std::move(ids);
  return step_rows();
}

Status Batch::follow(int64_t slot, std::span<const int32_t> tokens) {
  ASSAY_CHECK(check_slots({&slot, 1}));
  ASSAY_CHECK(check_ids(tokens));
  if (tokens.empty() || next(slot) < 0)
    return bad_input("slot {}: expected a prompt and tokens behind it, found none", slot);
  const auto feed = [&](int32_t token) {
    const SlotToken one{slot, token};
    return step({&one, 1});
  };
  const auto fed = tokens.first(tokens.size() - 1);
  ASSAY_CHECK(check_room(slot, std::ssize(fed)));
  if (is_drawn(slot)) {
    if (awaits_end(slot)) ASSAY_CHECK(feed(next(slot)));
    for (const int32_t token : fed) ASSAY_CHECK(feed(token));
  } else {
    const SlotPrompt part{slot, fed};
    if (!fed.empty()) ASSAY_CHECK(extend_all({&part, 1}, true));
    if (awaits_end(slot)) ASSAY_CHECK(feed(next(slot)));
  }
  next_[static_cast<size_t>(slot)] = tokens.back();
  return {};
}

Status Batch::step_rows() {
  const int64_t rows = padded_rows();
  ids_.resize(static_cast<size_t>(rows), 0);
  ASSAY_CHECK(run_rows(rows, 1, step_draws()));
  std::vector<size_t> all(rows_.size());
  for (size_t row = 0; row < all.size(); ++row) all[row] = row;
  ASSAY_TRY(const auto logits, logits_to_sample(all));
  for (const size_t row : all) {
    const auto slot = static_cast<size_t>(rows_[row]);
    ++lengths_[slot];
    if (samplers_[slot] && !awaits_[slot]) samplers_[slot]->saw_chosen(ids_[row]);
    choose_next(row, logits);
  }
  return {};
}

std::span<const float> Batch::logits(int64_t slot) const {
  const auto row = std::ranges::find(rows_, slot);
  if (latest_ == nullptr || latest_run_ != model_->latest_run() || row == rows_.end() ||
      awaits_end(slot)) {
    return {};
  }
  const auto vocab = static_cast<size_t>(model_->config().vocab_size);
  const auto all = latest_->output_f32(0);
  if (all.empty()) return {};
  return all.subspan(static_cast<size_t>(row - rows_.begin()) * vocab, vocab);
}

Onward Batch::answer(int64_t slot, int32_t token, const Sink& sink) const {
  const Onward onward = sink(slot, token);
  const bool ends = std::ranges::find(options_.ends, token) != options_.ends.end();
  return ends || length(slot) == options_.capacity ? Onward::kStop : onward;
}

void Batch::feed_next(std::span<const int64_t> slots) {
  rows_.assign(slots.begin(), slots.end());
  ids_.clear();
  for (const int64_t slot : slots) ids_.push_back(next(slot));
}

Result<std::optional<Batch::Going>> Batch::run_alone(int64_t steps, const Sink& sink) {
  const int64_t rows = padded_rows();
  LoadedStep* const step = step_of(rows, 1);
  if (step == nullptr || !step->feeds_itself() ||
      std::ranges::any_of(rows_, [&](int64_t slot) { return samples(slot); })) {
    return std::nullopt;
  }
  ids_.resize(static_cast<size_t>(rows), 0);
  int64_t most = steps;
  for (const int64_t slot : rows_) most = std::min(most, options_.capacity - length(slot));
  Going going{rows_, steps};
  bool is_last = false;
  latest_ = nullptr;
  latest_run_ = model_->begin_run();
  const auto arrived = [&](std::span<const int32_t> tokens, bool finite) {
    --going.steps;
    for (size_t row = 0; row < rows_.size(); ++row) {
      const int64_t slot = rows_[row];
      const auto at = std::ranges::find(going.slots, slot);
      if (at == going.slots.end()) continue;  // ended in a step before
      ++lengths_[static_cast<size_t>(slot)];
      take(slot, tokens[row], finite);
      const Onward onward = answer(slot, tokens[row], sink);
      if (onward == Onward::kStop) going.slots.erase(at);
      is_last |= onward == Onward::kLast;
    }
    if (going.slots.empty()) return Onward::kStop;
    return is_last || going.slots.size() < rows_.size() ? Onward::kLast : Onward::kGo;
  };
  // A device that counts tokens mustn't count those of steps that nobody takes.
  const bool counts = std::ranges::any_of(
      rows_, [&](int64_t slot) { return drawn_[static_cast<size_t>(slot)].penalties; });
  ASSAY_CHECK(step->run_greedy(inputs_of(rows, 1, step_draws()), most, counts ? 1 : kAhead, *cache_,
                               arrived));
  if (is_last) going.steps = 0;
  return std::optional(std::move(going));
}

Result<Batch::Going> Batch::run_one(int64_t steps, const Sink& sink) {
  ASSAY_CHECK(step_rows());
  Going going{{}, steps - 1};
  for (const int64_t slot : rows_) {
    const Onward onward = answer(slot, next(slot), sink);
    if (onward != Onward::kStop) going.slots.push_back(slot);
    if (onward == Onward::kLast) going.steps = 0;
  }
  return going;
}

Status Batch::run(std::span<const int64_t> slots, int64_t steps, const Sink& sink,
                  bool wants_logits) {
  ASSAY_CHECK(check_slots(slots));
  for (const int64_t slot : slots) {
    if (next(slot) < 0) return bad_input("slot {}: expected a prompt in it, found none", slot);
    if (steps > 0 && !awaits_end(slot)) ASSAY_CHECK(check_room(slot, 1));
  }
  Going going{{slots.begin(), slots.end()}, steps};
  while (going.steps > 0 && !going.slots.empty()) {
    feed_next(going.slots);
    std::optional<Going> alone;
    if (!wants_logits) {
      ASSAY_TRY(alone, run_alone(going.steps, sink));
    }
    if (alone) {
      going = *std::move(alone);
    } else {
      ASSAY_TRY(going, run_one(going.steps, sink));
    }
  }
  latest_ = nullptr;
  return {};
}

}  // namespace assay::engine
