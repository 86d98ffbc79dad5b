// The session: checks its caller's requests, then lets a frame or the eager executor run the graph.
#include "engine/session/session.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/text/text.h"
#include "engine/compiled/frame.h"

namespace assay::engine {

struct Session::Impl {
  Impl(std::shared_ptr<Model> session_model, CacheKind kind, const FrameOptions& options)
      : model(std::move(session_model)), cache_kind(kind), frames(options) {}

  Status check_prompts(const PromptBatch& prompts) const;
  Status check_ids(std::span<const int32_t> ids) const;
  Status build_frames();
  // Runs on the frame if there is one, else eager; gives the executor that has the outputs.
  Result<Executor*> run(Frame* frame, Executor& eager, std::span<const int32_t> ids, int64_t q_len);
  Result<Executor*> execute(Frame* frame, Executor& eager, const RunInputs& inputs);
  // Inputs of a run of ids [batch, q_len] at the cache's end, valid until the next one.
  RunInputs inputs_of(std::span<const int32_t> ids, int64_t q_len);
  void forget_run();  // called after a run that failed
  // Runs as many of these steps as go on the device alone: none, as a rule, or all.
  Status run_greedy(int64_t steps, const TokenSink& sink);
  void forget_logits() {
    latest = nullptr;
    logits.clear();
  }
  void start(const PromptBatch& prompts);
  // Padding that a bucket adds to prompts of this length.
  int64_t bucket_padding(int64_t padded_len) const;
  // Checks that the logits of the run at hand that chose tokens are finite: by the run itself, or
  // one load a row.
  void note_chosen_logits();
  // Copies those of each row's last position, of [batch, count, vocab].
  void keep_last_logits(std::span<const float> all, size_t count);

  // In the order of their dependence: a later member refers to earlier ones.
  std::shared_ptr<Model> model;
  CacheKind cache_kind;
  FrameOptions frames;
  GraphCompiler* compiler = nullptr;   // null: nothing is to be compiled
  std::optional<Frame> prefill_frame;  // absent: that phase is eager
  std::optional<Frame> decode_frame;
  std::unique_ptr<KvCache> cache;  // absent before prepare()
  int64_t capacity = 0;            // as prepared; the cache has room for a bucket's padding beside
  std::vector<int32_t> pad;        // [batch] of the prompts in the cache
  int64_t bucket_pad = 0;          // of which each row has this much for the bucket
  PromptBatch bucketed;            // prompts as a bucket pads them
  std::vector<int32_t> lengths;    // [batch] before the run at hand
  std::vector<int32_t> slots;      // [batch]: each row has the cache row of its number
  std::vector<int32_t> next;       // [batch]
  bool finite = true;              // as Session::logits_finite()
  const Executor* latest = nullptr;  // that has the logits
  uint64_t latest_run = 0;           // the model's number of it
  size_t latest_positions = 1;       // of each row
  std::vector<float> logits;         // [batch, vocab], only after prefill_all_logits
};

ModelOptions SessionOptions::model() const {
  return {.dtype = dtype,
          .fp8 = fp8,
          .fp8_fast_sums = fp8_fast_sums,
          .fp8_always = fp8_always,
          .logits = logits,
          .rows = CacheRows::kInOrder,
          .threads = threads,
          .gpu = gpu,
          .reference_ops = reference_ops,
          .compiler = compile};
}

Status Session::Impl::build_frames() {
  if (frames.recompile_limit < 1) {
    return bad_input("compile: expected a recompile limit of at least 1, found {}",
                     frames.recompile_limit);
  }
  if (frames.bucket < 0 || frames.bucket > kMostBucket) {
    return bad_input("compile: expected a bucket from 0 to {}, found {}", kMostBucket,
                     frames.bucket);
  }
  if (!frames.prefill || !frames.decode) ASSAY_CHECK(model->eager().make_ready());
  if (!frames.prefill && !frames.decode) return {};
  ASSAY_TRY(compiler, model->compiler());
  if (frames.prefill) prefill_frame.emplace(FrameKind::kPrefill, cache_kind, frames, *compiler);
  if (frames.decode) decode_frame.emplace(FrameKind::kDecode, cache_kind, frames, *compiler);
  return {};
}

Result<Session> Session::open(const std::filesystem::path& folder, const SessionOptions& options) {
  ASSAY_TRY(Checkpoint checkpoint, Checkpoint::open(folder));  // before a device is looked for
  ASSAY_TRY(auto device, open_device(options.model()));
  ASSAY_TRY(auto model, Model::load(std::move(checkpoint), options.model(), std::move(device)));
  return on(std::move(model), options.cache, options.compile);
}

Result<Session> Session::open(const std::filesystem::path& folder, const SessionOptions& options,
                              std::shared_ptr<Device> device) {
  ASSAY_TRY(Checkpoint checkpoint, Checkpoint::open(folder));
  ASSAY_TRY(auto model, Model::load(std::move(checkpoint), options.model(), std::move(device)));
  return on(std::move(model), options.cache, options.compile);
}

Result<Session> Session::on(std::shared_ptr<Model> model, CacheKind cache,
                            const FrameOptions& frames) {
  auto impl = std::make_unique<Impl>(std::move(model), cache, frames);
  ASSAY_CHECK(impl->build_frames());
  return Session(std::move(impl));
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

const std::shared_ptr<Model>& Session::shared_model() const {
  return impl_->model;
}
int64_t Session::kv_len() const {
  return impl_->cache ? std::max<int64_t>(impl_->cache->length() - impl_->bucket_pad, 0) : 0;
}
std::span<const int32_t> Session::next_tokens() const {
  return impl_->next;
}
bool Session::logits_finite() const {
  return impl_->finite;
}
std::span<const float> Session::logits() const {
  if (impl_->latest == nullptr) return impl_->logits;
  if (impl_->latest_run != impl_->model->latest_run()) return {};
  const auto all = impl_->latest->output_f32(0);
  if (impl_->latest_positions == 1) return all;
  impl_->keep_last_logits(all, impl_->latest_positions);
  return impl_->logits;
}

Status Session::prepare(int64_t batch, int64_t capacity) {
  const ModelConfig& c = config();
  if (batch < 1) return bad_input("batch: expected at least 1 row, found {}", batch);
  if (capacity < 1 || capacity > c.max_positions) {
    return bad_input("capacity: expected 1 to {} positions (the model's), found {}",
                     c.max_positions, capacity);
  }
  // A bucket can add all but one of its positions.
  const int64_t positions = capacity + std::max<int64_t>(impl_->frames.bucket - 1, 0);
  Model& model = *impl_->model;
  impl_->capacity = capacity;
  impl_->bucket_pad = 0;
  impl_->next.clear();
  impl_->forget_logits();
  if (impl_->cache && impl_->cache->shape() == model.cache_shape(batch, positions)) {
    impl_->cache->reset();
    return {};
  }
  impl_->cache.reset();  // before the new one: the two need not fit side by side
  model.device().memory().forget_most();
  ASSAY_TRY(impl_->cache, model.make_cache(impl_->cache_kind, batch, positions));
  model.rope(capacity);  // now, not in the first run
  return {};
}

Status Session::Impl::check_ids(std::span<const int32_t> ids) const {
  const int64_t vocab = model->config().vocab_size;
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocab) {
      return bad_input("tokens: expected ids from 0 to {}, found {}", vocab - 1, id);
    }
  }
  return {};
}

Status Session::Impl::check_prompts(const PromptBatch& prompts) const {
  if (!cache) return bad_input("prefill: expected prepare() before it, found no cache");
  const CacheShape& shape = cache->shape();
  if (prompts.batch != shape.batch) {
    return bad_input("prompts: expected the prepared batch of {}, found {}", shape.batch,
                     prompts.batch);
  }
  if (prompts.padded_len < 1) return bad_input("prompts: expected at least 1 token, found none");
  if (prompts.padded_len > capacity) {
    return bad_input("prompts: expected at most {} (the prepared capacity), found {}",
                     counted(capacity, "token"), prompts.padded_len);
  }
  const auto rows = static_cast<size_t>(prompts.batch);
  if (prompts.ids.size() != rows * static_cast<size_t>(prompts.padded_len) ||
      prompts.pad.size() != rows) {
    return bad_input("prompts: expected {} x {} ids and {} paddings, found {} and {}",
                     prompts.batch, prompts.padded_len, prompts.batch, prompts.ids.size(),
                     prompts.pad.size());
  }
  for (const int32_t padding : prompts.pad) {
    if (padding < 0 || padding >= prompts.padded_len) {
      return bad_input("prompts: expected a padding from 0 to {}, found {}", prompts.padded_len - 1,
                       padding);
    }
  }
  return check_ids(prompts.ids);
}

// Feeds ids [batch, q_len] at the cache's end, which is every row's.
RunInputs Session::Impl::inputs_of(std::span<const int32_t> ids, int64_t q_len) {
  const int64_t batch = cache->shape().batch;
  lengths.assign(static_cast<size_t>(batch), static_cast<int32_t>(cache->length()));
  slots.resize(lengths.size());
  std::iota(slots.begin(), slots.end(), 0);
  return {.dims = {batch, q_len, cache->length() + q_len},
          .ids = ids,
          .lengths = lengths,
          .pad = pad,
          .slots = slots,
          .rope = &model->rope(capacity)};
}

void Session::Impl::forget_run() {
  cache->reset();
  next.clear();
  forget_logits();
}

Result<Executor*> Session::Impl::run(Frame* frame, Executor& eager, std::span<const int32_t> ids,
                                     int64_t q_len) {
  latest_run = model->begin_run();
  auto ran = execute(frame, eager, inputs_of(ids, q_len));
  if (!ran) forget_run();
  return ran;
}

Status Session::Impl::run_greedy(int64_t steps, const TokenSink& sink) {
  if (!decode_frame) return {};
  const std::vector<int32_t> first = next;
  latest_run = model->begin_run();
  const auto ran = decode_frame->run_greedy(inputs_of(first, 1), steps, *cache, sink);
  if (!ran) {
    forget_run();
    return std::unexpected(ran.error());
  }
  if (*ran != nullptr) {
    latest = *ran;
    latest_positions = 1;
  }
  return {};
}

Result<Executor*> Session::Impl::execute(Frame* frame, Executor& eager, const RunInputs& inputs) {
  if (frame != nullptr) return frame->run(inputs, *cache, eager);
  ASSAY_CHECK(eager.run(inputs, *cache));
  return &eager;
}

void Session::Impl::start(const PromptBatch& prompts) {
  cache->reset();
  pad = prompts.pad;
  finite = true;
}

int64_t Session::Impl::bucket_padding(int64_t padded_len) const {
  const int64_t bucket = frames.bucket;
  return bucket == 0 ? 0 : (bucket - padded_len % bucket) % bucket;
}

void Session::Impl::note_chosen_logits() {
  if (const auto known = latest != nullptr ? latest->chose_finite() : std::nullopt) {
    finite &= *known;
    return;
  }
  const auto vocab = static_cast<size_t>(model->config().vocab_size);
  for (size_t row = 0; row < next.size(); ++row) {
    const auto token = static_cast<size_t>(next[row]);
    const size_t position = latest != nullptr ? (row + 1) * latest_positions - 1 : row;
    const size_t chosen = position * vocab + token;
    finite &= std::isfinite(latest != nullptr ? latest->element_f32(0, chosen) : logits[chosen]);
  }
}

void Session::Impl::keep_last_logits(std::span<const float> all, size_t count) {
  const auto vocab = static_cast<size_t>(model->config().vocab_size);
  logits.clear();
  for (size_t end = count; end * vocab <= all.size(); end += count) {
    const auto last = all.subspan((end - 1) * vocab, vocab);
    logits.insert(logits.end(), last.begin(), last.end());
  }
}

Status Session::make_ready(int64_t padded_len, bool decode) {
  if (!impl_->cache) {
    return bad_input("make_ready: expected prepare() before it, found no cache");
  }
  if (padded_len < 1 || padded_len > impl_->capacity) {
    return bad_input("make_ready: expected a length from 1 to {}, found {}", impl_->capacity,
                     padded_len);
  }
  const CacheShape& shape = impl_->cache->shape();
  const int64_t length = padded_len + impl_->bucket_padding(padded_len);
  const auto ready = [&](std::optional<Frame>& frame, int64_t q_len, int64_t kv_len) {
    return frame ? frame->make_ready({shape.batch, q_len, kv_len}, shape) : Status();
  };
  ASSAY_CHECK(ready(impl_->prefill_frame, length, length));
  decode = decode && padded_len < impl_->capacity;
  if (decode) ASSAY_CHECK(ready(impl_->decode_frame, 1, length + 1));
  const bool replays = impl_->compiler != nullptr && model().device().launches();
  return replays ? run_until_replayed(padded_len, decode) : Status();
}

// The first run of a step launches it, and its recording may have to be made again: a cache that
// grows gets its lasting addresses when all of its first ones have come back.
Status Session::run_until_replayed(int64_t padded_len, bool decode) {
  constexpr int kMostRuns = 4;
  // Over a static cache a device may record several steps at a time, once the first ones have run
  // and 16 more are wanted.
  const bool several = decode && impl_->decode_frame && impl_->cache_kind == CacheKind::kStatic;
  const int64_t steps = several ? std::min<int64_t>(24, impl_->capacity - padded_len) : 1;
  const auto batch = static_cast<size_t>(impl_->cache->shape().batch);
  const std::vector<std::vector<int32_t>> rows(
      batch, std::vector<int32_t>(static_cast<size_t>(padded_len)));
  const PromptBatch prompts = PromptBatch::of(rows);
  for (int run = 0; run < kMostRuns; ++run) {
    const LaunchCounts before = *model().device().launches();
    ASSAY_CHECK(prefill(prompts));
    if (decode) ASSAY_CHECK(decode_greedy(steps, [](auto) { return true; }));
    const LaunchCounts after = *model().device().launches();
    if (after.kernels == before.kernels && after.captures == before.captures) break;
  }
  impl_->forget_run();
  return {};
}

Status Session::prefill(const PromptBatch& prompts) {
  ASSAY_CHECK(impl_->check_prompts(prompts));
  impl_->bucket_pad = impl_->bucket_padding(prompts.padded_len);
  const PromptBatch* batch = &prompts;
  if (impl_->bucket_pad > 0) {
    impl_->bucketed = prompts.padded_by(impl_->bucket_pad);
    batch = &impl_->bucketed;
  }
  impl_->start(*batch);
  ASSAY_TRY(const Executor* const ran,
            impl_->run(impl_->prefill_frame ? &*impl_->prefill_frame : nullptr, model().eager(),
                       batch->ids, batch->padded_len));
  impl_->latest = ran;
  impl_->latest_positions = static_cast<size_t>(model().logits_of_prompt(batch->padded_len));
  const auto next = ran->output_i32(1);
  impl_->next.assign(next.begin(), next.end());
  impl_->note_chosen_logits();
  return {};
}

Result<std::vector<float>> Session::prefill_all_logits(const PromptBatch& prompts) {
  ASSAY_CHECK(impl_->check_prompts(prompts));
  ASSAY_TRY(Executor* const executor,
            model().eager(LogitsOf::kAllPositions, model().options().fp8));
  return all_logits(prompts, *executor);
}

Result<std::vector<float>> Session::all_logits(const PromptBatch& prompts, Executor& executor) {
  impl_->bucket_pad = 0;
  impl_->start(prompts);
  ASSAY_CHECK(impl_->run(nullptr, executor, prompts.ids, prompts.padded_len));
  const auto all = executor.output_f32(0);
  const auto next = executor.output_i32(1);
  impl_->next.assign(next.begin(), next.end());
  impl_->keep_last_logits(all, static_cast<size_t>(prompts.padded_len));
  impl_->latest = nullptr;
  impl_->note_chosen_logits();
  return std::vector<float>(all.begin(), all.end());
}

Result<LogitsError> Session::fp8_error(const PromptBatch& prompts) {
  if (model().options().fp8 == Fp8::kNone) {
    return bad_input("fp8_error: expected a session of dtype fp8, found {}",
                     dtype_name(model().dtype()));
  }
  if (!impl_->cache) return bad_input("fp8_error: expected prepare() before it, found no cache");
  ASSAY_TRY(Executor* const wide, model().eager(LogitsOf::kAllPositions, Fp8::kNone));
  ASSAY_TRY(auto own,
            model().make_cache(CacheKind::kDynamic, prompts.batch, impl_->cache->shape().capacity));
  // Recorded steps keep the addresses of the session's own cache.
  auto kept = std::exchange(impl_->cache, std::move(own));
  model().device().note_products(false);
  const auto all = prefill_all_logits(prompts);
  const auto all_wide = all ? all_logits(prompts, *wide) : all;
  model().device().note_products(true);
  impl_->cache = std::move(kept);
  impl_->forget_run();
  ASSAY_CHECK(all);
  ASSAY_CHECK(all_wide);
  const std::vector<float>&found = *all, &reference = *all_wide;
  const auto vocab = static_cast<size_t>(config().vocab_size);
  LogitsError error;
  for (int64_t row = 0; row < prompts.batch; ++row) {
    const int64_t padding = prompts.pad[static_cast<size_t>(row)];
    for (int64_t at = padding; at + 1 < prompts.padded_len; ++at) {
      const auto place = static_cast<size_t>(row * prompts.padded_len + at);
      add_position(std::span(reference).subspan(place * vocab, vocab),
                   std::span(found).subspan(place * vocab, vocab), prompts.ids[place + 1], error);
    }
  }
  finish(error);
  return error;
}

Status Session::decode(std::span<const int32_t> tokens) {
  if (kv_len() == 0) return bad_input("decode: expected a prefill before it, found an empty cache");
  const CacheShape& shape = impl_->cache->shape();
  if (static_cast<int64_t>(tokens.size()) != shape.batch) {
    return bad_input("decode: expected {}, one a row, found {}", counted(shape.batch, "token"),
                     tokens.size());
  }
  if (kv_len() == impl_->capacity) {
    return bad_input("decode: expected a position below the capacity of {}, found the cache full",
                     impl_->capacity);
  }
  ASSAY_CHECK(impl_->check_ids(tokens));
  ASSAY_TRY(const Executor* const ran,
            impl_->run(impl_->decode_frame ? &*impl_->decode_frame : nullptr, model().eager(),
                       tokens, 1));
  impl_->latest = ran;
  impl_->latest_positions = 1;
  std::ranges::copy(ran->output_i32(1), impl_->next.begin());
  impl_->note_chosen_logits();
  return {};
}

Status Session::decode_greedy(int64_t steps,
                              const std::function<bool(std::span<const int32_t> tokens)>& sink) {
  if (kv_len() == 0) {
    return bad_input("decode_greedy: expected a prefill before it, found an empty cache");
  }
  if (steps < 0 || steps > impl_->capacity - kv_len()) {
    return bad_input("decode_greedy: expected 0 to {} steps (the prepared capacity), found {}",
                     impl_->capacity - kv_len(), steps);
  }
  int64_t left = steps;
  bool goes_on = true;
  const auto arrived = [&] {
    --left;
    goes_on = sink(impl_->next);
    return goes_on;
  };
  const TokenSink keep = [&](std::span<const int32_t> tokens, bool finite) {
    std::ranges::copy(tokens, impl_->next.begin());
    impl_->finite &= finite;
    return arrived() ? Onward::kGo : Onward::kStop;
  };
  // The first steps compile and record, or fall back to eager, one by one.
  while (left > 0 && goes_on) {
    ASSAY_CHECK(impl_->run_greedy(left, keep));
    if (left == 0 || !goes_on) break;
    ASSAY_CHECK(decode(std::vector<int32_t>(impl_->next)));
    arrived();
  }
  if (!goes_on) impl_->forget_logits();  // a device may be ahead
  return {};
}

CompileEvidence Session::compile_evidence() const {
  CompileEvidence evidence;
  if (impl_->prefill_frame) evidence.prefill = impl_->prefill_frame->evidence();
  if (impl_->decode_frame) evidence.decode = impl_->decode_frame->evidence();
  if (impl_->prefill_frame) evidence.prefill.code = impl_->prefill_frame->code();
  if (impl_->decode_frame) evidence.decode.code = impl_->decode_frame->code();
  if (impl_->compiler == nullptr) return evidence;
  const Device& device = model().device();
  evidence.toolchain = device.toolchain();
  evidence.kernels = device.stats();
  evidence.passes = impl_->compiler->passes();
  evidence.packed_bytes = device.packed_bytes();
  evidence.notes = device.notes();
  if (evidence.kernels.refused > 0) evidence.notes.push_back(evidence.kernels.refused_reason);
  return evidence;
}

FrameRuns Session::prefill_runs() const {
  return impl_->prefill_frame ? impl_->prefill_frame->evidence().runs : FrameRuns();
}
FrameRuns Session::decode_runs() const {
  return impl_->decode_frame ? impl_->decode_frame->evidence().runs : FrameRuns();
}

CompileCounters Session::counters() const {
  CompileCounters counters;
  for (const std::optional<Frame>* frame : {&impl_->prefill_frame, &impl_->decode_frame}) {
    if (!*frame) continue;
    const FrameEvidence& evidence = (*frame)->evidence();
    const auto graphs = static_cast<int64_t>(evidence.graphs.size());
    counters.unique_graphs += graphs;
    counters.recompiles += std::max<int64_t>(graphs - 1, 0);
    counters.recompile_limit_hits += evidence.limit_hit ? 1 : 0;
    counters.fallbacks += evidence.runs.fallbacks;
  }
  const Device& device = model().device();
  const auto launches = device.launches();
  // A GPU's eager kernels are compiled too.
  if (impl_->compiler != nullptr || launches) {
    counters.kernels_compiled = device.stats().compiled;
    counters.kernels_loaded = device.stats().loaded;
  }
  if (launches) {
    counters.graph_captures = launches->captures;
    counters.graph_replays = launches->replays;
    counters.kernel_launches = launches->kernels;
  }
  return counters;
}

}  // namespace assay::engine
