// A run names its slots; which positions of a slot are in use is known here alone.
#include "engine/serving/batch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text/text.h"

namespace assay::engine {

Batch::Batch(std::shared_ptr<Model> model, const BatchOptions& options)
    : model_(std::move(model)),
      options_(options),
      taken_(static_cast<size_t>(options.slots), false),
      finite_(taken_.size(), true),
      lengths_(taken_.size(), 0),
      next_(taken_.size(), -1),
      samplers_(taken_.size()),
      no_pad_(taken_.size(), 0) {}

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
  ASSAY_TRY(batch.cache_,
            batch.model_->make_cache(CacheKind::kStatic, options.slots, options.capacity));
  batch.model_->rope(options.capacity);
  if (options.compiled) ASSAY_CHECK(batch.compile());
  return batch;
}

// A size of one makes other kernels; all others are symbols, so that slots come and go without a
// compiler.
Status Batch::compile() {
  ASSAY_TRY(GraphCompiler* const compiler, model_->compiler());
  const int64_t capacity = options_.capacity, rows = slots(), chunk = options_.chunk;
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
  return {};
}

int64_t Batch::free_slots() const {
  return std::ranges::count(taken_, false);
}

std::optional<int64_t> Batch::join() {
  const auto free = std::ranges::find(taken_, false);
  if (free == taken_.end()) return std::nullopt;
  const auto slot = static_cast<size_t>(free - taken_.begin());
  taken_[slot] = true;
  finite_[slot] = true;
  lengths_[slot] = 0;
  next_[slot] = -1;
  samplers_[slot].reset();
  return static_cast<int64_t>(slot);
}

Status Batch::leave(int64_t slot) {
  ASSAY_CHECK(check_rows({&slot, 1}, 0));
  taken_[static_cast<size_t>(slot)] = false;
  return {};
}

Status Batch::sample(int64_t slot, const Sampling& sampling) {
  ASSAY_CHECK(check_rows({&slot, 1}, 0));
  const int64_t vocab = model_->config().vocab_size;
  ASSAY_CHECK(check_sampling(sampling, vocab));
  if (length(slot) > 0) {
    return bad_input("slot {}: expected it empty, found {}", slot, counted(length(slot), "token"));
  }
  auto& sampler = samplers_[static_cast<size_t>(slot)];
  sampler.reset();
  if (!sampling.is_argmax()) sampler.emplace(sampling, vocab);
  return {};
}

Status Batch::check_rows(std::span<const int64_t> slots, int64_t tokens) const {
  std::vector<bool> seen(taken_.size(), false);
  for (const int64_t slot : slots) {
    const auto at = static_cast<size_t>(slot);
    if (slot < 0 || at >= taken_.size() || !taken_[at]) {
      return bad_input("slot: expected one of join(), found {}", slot);
    }
    if (seen[at]) return bad_input("slots: expected each once, found {} twice", slot);
    seen[at] = true;
    if (tokens > options_.capacity - lengths_[at]) {
      return bad_input("slot {}: expected at most {} more, found {}", slot,
                       counted(options_.capacity - lengths_[at], "token"), tokens);
    }
  }
  return {};
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
  if (q_len > 1) return chunk_.get();
  return rows > 1 ? many_.get() : one_.get();
}

RunInputs Batch::inputs_of(std::span<const int32_t> ids, int64_t q_len) {
  row_lengths_.clear();
  row_slots_.clear();
  int64_t longest = 0;
  for (const int64_t slot : rows_) {
    longest = std::max(longest, length(slot));
    row_lengths_.push_back(static_cast<int32_t>(length(slot)));
    row_slots_.push_back(static_cast<int32_t>(slot));
  }
  return {.dims = {std::ssize(rows_), q_len, longest + q_len},
          .ids = ids,
          .lengths = row_lengths_,
          .pad = std::span(no_pad_).first(rows_.size()),
          .slots = row_slots_,
          .rope = &model_->rope(options_.capacity)};
}

void Batch::take(size_t row, int32_t token, bool finite) {
  const auto slot = static_cast<size_t>(rows_[row]);
  next_[slot] = token;
  if (!finite) finite_[slot] = false;
}

Status Batch::run_rows(std::span<const int32_t> ids, int64_t q_len) {
  latest_ = nullptr;
  latest_run_ = model_->begin_run();
  LoadedStep* const step = step_of(std::ssize(rows_), q_len);
  Executor& executor = step != nullptr ? *step : model_->eager();
  ASSAY_CHECK(executor.run(inputs_of(ids, q_len), *cache_));
  latest_ = &executor;
  return {};
}

Result<std::span<const float>> Batch::logits_to_sample() const {
  if (std::ranges::none_of(rows_, [&](int64_t slot) { return samples(slot); })) return {};
  const auto logits = latest_->output_f32(0);
  if (logits.empty()) return environment_error("logits: expected them from the device, found none");
  return logits;
}

void Batch::choose_next(std::span<const float> to_sample) {
  const auto vocab = static_cast<size_t>(model_->config().vocab_size);
  const auto largest = latest_->output_i32(1);
  const bool all_finite = latest_->chose_finite().value_or(false);
  for (size_t row = 0; row < rows_.size(); ++row) {
    const auto& sampler = samplers_[static_cast<size_t>(rows_[row])];
    if (sampler) {
      const auto logits = to_sample.subspan(row * vocab, vocab);
      const int32_t token = sampler->choose(logits);
      take(row, token, std::isfinite(logits[static_cast<size_t>(token)]));
      continue;
    }
    const size_t chosen = row * vocab + static_cast<size_t>(largest[row]);
    take(row, largest[row], all_finite || std::isfinite(latest_->element_f32(0, chosen)));
  }
}

Status Batch::extend(int64_t slot, std::span<const int32_t> ids) {
  if (ids.empty()) return bad_input("tokens: expected at least 1, found none");
  ASSAY_CHECK(check_rows({&slot, 1}, std::ssize(ids)));
  ASSAY_CHECK(check_ids(ids));
  const auto at = static_cast<size_t>(slot);
  const int64_t length = lengths_[at];
  rows_ = {slot};
  Status ran;
  for (size_t done = 0; ran && done < ids.size();) {
    const size_t count = std::min(ids.size() - done, static_cast<size_t>(options_.chunk));
    ran = run_rows(ids.subspan(done, count), static_cast<int64_t>(count));
    done += count;
    lengths_[at] += static_cast<int64_t>(count);
  }
  const auto logits = ran ? logits_to_sample() : std::unexpected(ran.error());
  if (!logits) {
    lengths_[at] = length;
    return std::unexpected(logits.error());
  }
  if (samplers_[at]) samplers_[at]->saw_prompt(ids);
  choose_next(*logits);
  return {};
}

Status Batch::step(std::span<const SlotToken> fed) {
  std::vector<int64_t> slots;
  std::vector<int32_t> ids;
  for (const SlotToken& one : fed) {
    slots.push_back(one.slot);
    ids.push_back(one.token);
  }
  if (fed.empty()) return bad_input("slots: expected at least 1, found none");
  ASSAY_CHECK(check_rows(slots, 1));
  ASSAY_CHECK(check_ids(ids));
  rows_ = std::move(slots);
  return step_rows(ids);
}

Status Batch::step_rows(std::span<const int32_t> ids) {
  ASSAY_CHECK(run_rows(ids, 1));
  ASSAY_TRY(const auto logits, logits_to_sample());
  for (size_t row = 0; row < rows_.size(); ++row) {
    const auto slot = static_cast<size_t>(rows_[row]);
    ++lengths_[slot];
    if (samplers_[slot]) samplers_[slot]->saw_chosen(ids[row]);
  }
  choose_next(logits);
  return {};
}

std::span<const float> Batch::logits(int64_t slot) const {
  const auto row = std::ranges::find(rows_, slot);
  if (latest_ == nullptr || latest_run_ != model_->latest_run() || row == rows_.end()) return {};
  const auto vocab = static_cast<size_t>(model_->config().vocab_size);
  const auto all = latest_->output_f32(0);
  if (all.empty()) return {};
  return all.subspan(static_cast<size_t>(row - rows_.begin()) * vocab, vocab);
}

bool Batch::goes_on(size_t row, int32_t token, const Sink& sink) const {
  const int64_t slot = rows_[row];
  const bool wanted = sink(slot, token);
  return wanted && length(slot) < options_.capacity &&
         std::ranges::find(options_.ends, token) == options_.ends.end();
}

Result<std::optional<std::vector<int64_t>>> Batch::run_alone(int64_t& steps, const Sink& sink) {
  LoadedStep* const step = step_of(std::ssize(rows_), 1);
  if (step == nullptr || !step->feeds_itself() ||
      std::ranges::any_of(rows_, [&](int64_t slot) { return samples(slot); })) {
    return std::nullopt;
  }
  std::vector<int32_t> ids;
  int64_t most = steps;
  for (const int64_t slot : rows_) {
    ids.push_back(next(slot));
    most = std::min(most, options_.capacity - length(slot));
  }
  std::vector<int64_t> left = rows_;
  latest_ = nullptr;
  latest_run_ = model_->begin_run();
  const auto arrived = [&](std::span<const int32_t> tokens, bool finite) {
    --steps;
    left.clear();
    for (size_t row = 0; row < rows_.size(); ++row) {
      ++lengths_[static_cast<size_t>(rows_[row])];
      take(row, tokens[row], finite);
      if (goes_on(row, tokens[row], sink)) left.push_back(rows_[row]);
    }
    return left.size() == rows_.size();
  };
  ASSAY_CHECK(step->run_greedy(inputs_of(ids, 1), most, *cache_, arrived));
  return std::optional(std::move(left));
}

Result<std::vector<int64_t>> Batch::run_one(const Sink& sink) {
  std::vector<int32_t> ids;
  for (const int64_t slot : rows_) ids.push_back(next(slot));
  ASSAY_CHECK(step_rows(ids));
  std::vector<int64_t> left;
  for (size_t row = 0; row < rows_.size(); ++row) {
    if (goes_on(row, next(rows_[row]), sink)) left.push_back(rows_[row]);
  }
  return left;
}

Status Batch::run(std::span<const int64_t> slots, int64_t steps, const Sink& sink) {
  ASSAY_CHECK(check_rows(slots, std::min<int64_t>(steps, 1)));
  for (const int64_t slot : slots) {
    if (length(slot) == 0) return bad_input("slot {}: expected a prompt in it, found none", slot);
  }
  std::vector<int64_t> left(slots.begin(), slots.end());
  while (steps > 0 && !left.empty()) {
    rows_ = std::move(left);
    ASSAY_TRY(auto alone, run_alone(steps, sink));
    if (alone) {
      left = *std::move(alone);
      continue;
    }
    ASSAY_TRY(left, run_one(sink));
    --steps;
  }
  latest_ = nullptr;
  return {};
}

}  // namespace assay::engine
