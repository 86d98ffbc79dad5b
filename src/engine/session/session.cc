// The session: checks its caller's requests, then lets the executor run the graph.
#include "engine/session/session.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text/text.h"
#include "engine/compiled/frame.h"
#include "engine/compiled/graph_compiler.h"
#include "engine/device/cuda/cublaslt.h"
#include "engine/device/device.h"
#include "engine/graph/architectures.h"
#include "engine/model/checkpoint.h"
#include "engine/model/weights.h"

namespace assay::engine {

struct Session::Impl {
  Impl(const SessionOptions& session_options, std::shared_ptr<Device> session_device)
      : options(session_options), device(std::move(session_device)) {}

  Status build(Checkpoint checkpoint);
  DType cache_type() const { return device->cache_type(weights->dtype()); }
  Result<Graph> make_graph(LogitsOf logits_of, Fp8 fp8) const {
    return build_graph(weights->config(), weights->dtype(), logits_of, cache_type(), fp8);
  }
  // bad_input: the device doesn't multiply e4m3, or weights of this type aren't rounded to it.
  Status check_fp8() const;
  // Positions of the run at hand whose logits are there.
  size_t positions(int64_t q_len) const {
    return options.logits == LogitsOf::kAllPositions ? static_cast<size_t>(q_len) : 1;
  }
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
  SessionOptions options;
  std::shared_ptr<Device> device;
  BufferPool weight_memory;
  std::unique_ptr<Weights> weights;
  Graph graph;  // as built
  std::unique_ptr<Executor> executor;
  std::unique_ptr<Executor> all_logits_executor;  // made when first asked for
  std::unique_ptr<Executor> wide_executor;        // likewise, without fp8
  std::unique_ptr<GraphCompiler> compiler;        // absent if nothing is to be compiled
  std::optional<Frame> prefill_frame;             // absent: that phase is eager
  std::optional<Frame> decode_frame;
  std::unique_ptr<KvCache> cache;  // absent before prepare()
  RopeTables rope;
  int64_t rope_positions = 0;
  int64_t capacity = 0;          // as prepared; the cache has room for a bucket's padding beside
  std::vector<int32_t> pad;      // [batch] of the prompts in the cache
  int64_t bucket_pad = 0;        // of which each row has this much for the bucket
  PromptBatch bucketed;          // prompts as a bucket pads them
  std::vector<int32_t> lengths;  // [batch] before the run at hand
  std::vector<int32_t> next;     // [batch]
  bool finite = true;            // as Session::logits_finite()
  const Executor* latest = nullptr;  // that has the logits
  size_t latest_positions = 1;       // of each row
  std::vector<float> logits;         // [batch, vocab], only after prefill_all_logits
};

Status Session::Impl::check_fp8() const {
  if (options.fp8 == Fp8::kNone) return {};
  const DeviceInfo info = device->info();
  if (info.compute_capability != cuda::kFp8Capability) {
    return bad_input(
        "dtype fp8: expected a GPU of compute capability {}, found {}", cuda::kFp8Capability,
        info.compute_capability.empty() ? "device " + info.kind
                                        : info.name + " of " + info.compute_capability);
  }
  if (options.dtype == DType::kF32) {
    return bad_input("dtype fp8: expected weights of fp16 or bf16 beside it, found fp32");
  }
  return {};
}

Status Session::Impl::build(Checkpoint checkpoint) {
  ASSAY_CHECK(check_fp8());
  const bool too_wide = options.fp8 != Fp8::kNone && checkpoint.config().dtype == DType::kF32;
  if (too_wide && !options.dtype) options.dtype = DType::kBF16;
  ASSAY_TRY(Weights loaded, Weights::load(std::move(checkpoint), options.dtype, weight_memory));
  weights = std::make_unique<Weights>(std::move(loaded));
  ASSAY_TRY(graph, make_graph(options.logits, options.fp8));
  ASSAY_CHECK(build_frames());
  ASSAY_TRY(executor, device->make_eager(graph, *weights));
  return {};
}

Status Session::Impl::build_frames() {
  const CompileOptions& compile = options.compile;
  if (compile.recompile_limit < 1) {
    return bad_input("compile: expected a recompile limit of at least 1, found {}",
                     compile.recompile_limit);
  }
  if (compile.bucket < 0 || compile.bucket > kMostBucket) {
    return bad_input("compile: expected a bucket from 0 to {}, found {}", kMostBucket,
                     compile.bucket);
  }
  if (!compile.prefill && !compile.decode) return {};
  ASSAY_TRY(compiler, GraphCompiler::create(graph, compile, *device));
  // A failure is no failure to open: the first run tries again, falls back, and records why.
  const Status loaded = compiler->load(*weights);
  if (!loaded && device->fault().kind != DeviceFault::Kind::kNone) return loaded;
  if (compile.prefill)
    prefill_frame.emplace(FrameKind::kPrefill, options.cache, compile, *compiler);
  if (compile.decode) decode_frame.emplace(FrameKind::kDecode, options.cache, compile, *compiler);
  return {};
}

Result<Session> Session::open(const std::filesystem::path& folder, const SessionOptions& options) {
  ASSAY_TRY(Checkpoint checkpoint, Checkpoint::open(folder));  // before a device is looked for
  ASSAY_TRY(auto device, open_device(options));
  return make(std::move(checkpoint), options, std::move(device));
}

Result<Session> Session::open(const std::filesystem::path& folder, const SessionOptions& options,
                              std::shared_ptr<Device> device) {
  ASSAY_TRY(Checkpoint checkpoint, Checkpoint::open(folder));
  return make(std::move(checkpoint), options, std::move(device));
}

Result<Session> Session::make(Checkpoint checkpoint, const SessionOptions& options,
                              std::shared_ptr<Device> device) {
  auto impl = std::make_unique<Impl>(options, std::move(device));
  ASSAY_CHECK(impl->build(std::move(checkpoint)));
  return Session(std::move(impl));
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

const ModelConfig& Session::config() const {
  return impl_->weights->config();
}
DType Session::dtype() const {
  return impl_->weights->dtype();
}
Fp8 Session::fp8() const {
  return impl_->options.fp8;
}
bool Session::fp8_always() const {
  return impl_->options.fp8_always;
}
bool Session::fp8_fast_sums() const {
  return impl_->options.fp8_fast_sums;
}
int64_t Session::logits_of_prompt(int64_t padded_len) const {
  return static_cast<int64_t>(impl_->positions(padded_len));
}
size_t Session::threads() const {
  return impl_->device->threads();
}
const Device& Session::device() const {
  return *impl_->device;
}
Device& Session::device() {
  return *impl_->device;
}
std::vector<std::span<const std::byte>> Session::mapped_weights() const {
  return impl_->weights->mapped_files();
}

uint64_t Session::weight_bytes() const {
  return impl_->weights->bytes();
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
  const auto all = impl_->latest->output_f32(0);
  if (impl_->latest_positions == 1) return all;
  impl_->keep_last_logits(all, impl_->latest_positions);
  return impl_->logits;
}

uint64_t Session::step_bytes(int64_t batch, int64_t kv_len) const {
  const Graph& graph = impl_->graph;
  std::vector<uint64_t> read(
      graph.values.size());  // of each weight: the most that a node reads of it
  for (const Node& node : graph.nodes) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      const auto* weight = std::get_if<WeightSource>(&graph.values[id].source);
      if (weight == nullptr) continue;
      const TensorView& tensor = impl_->weights->tensor(weight->tensors.front());
      const bool rows_only = node.op == OpKind::kEmbedding;
      const uint64_t bytes =
          rows_only ? static_cast<uint64_t>(std::min(batch, tensor.shape[0]) * tensor.shape[1]) *
                          dtype_size_bytes(tensor.dtype)
                    : tensor.size_bytes();
      read[id] = std::max(read[id], bytes);
    }
  }
  uint64_t total = 0;
  for (const uint64_t bytes : read) total += bytes;
  const ModelConfig& c = config();
  return total + static_cast<uint64_t>(2 * c.layers * batch * kv_len * c.kv_heads * c.head_dim) *
                     dtype_size_bytes(impl_->cache_type());
}

Status Session::prepare(int64_t batch, int64_t capacity) {
  const ModelConfig& c = config();
  if (batch < 1) return bad_input("batch: expected at least 1 row, found {}", batch);
  if (capacity < 1 || capacity > c.max_positions) {
    return bad_input("capacity: expected 1 to {} positions (the model's), found {}",
                     c.max_positions, capacity);
  }
  const int64_t room = impl_->options.compile.bucket;  // the most that a bucket can add, and one
  const CacheShape shape{.layers = c.layers,
                         .batch = batch,
                         .kv_heads = c.kv_heads,
                         .capacity = capacity + std::max<int64_t>(room - 1, 0),
                         .head_dim = c.head_dim,
                         .dtype = impl_->cache_type()};
  impl_->capacity = capacity;
  impl_->bucket_pad = 0;
  impl_->next.clear();
  impl_->forget_logits();
  if (impl_->cache && impl_->cache->shape() == shape) {
    impl_->cache->reset();
    return {};
  }
  impl_->cache.reset();  // before the new one: the two need not fit side by side
  impl_->device->memory().forget_most();
  if (impl_->options.cache == CacheKind::kStatic) {
    ASSAY_TRY(impl_->cache, make_static_cache(shape, impl_->device->memory()));
  } else {
    impl_->cache = make_dynamic_cache(shape, impl_->device->memory());
  }
  if (impl_->rope_positions < capacity) {
    impl_->rope = make_rope_tables(c, capacity);
    impl_->rope_positions = capacity;
  }
  return {};
}

Status Session::Impl::check_ids(std::span<const int32_t> ids) const {
  const int64_t vocab = weights->config().vocab_size;
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
  return {.dims = {batch, q_len, cache->length() + q_len},
          .ids = ids,
          .lengths = lengths,
          .pad = pad,
          .rope = &rope};
}

void Session::Impl::forget_run() {
  cache->reset();
  next.clear();
  forget_logits();
}

Result<Executor*> Session::Impl::run(Frame* frame, Executor& eager, std::span<const int32_t> ids,
                                     int64_t q_len) {
  auto ran = execute(frame, eager, inputs_of(ids, q_len));
  if (!ran) forget_run();
  return ran;
}

Status Session::Impl::run_greedy(int64_t steps, const TokenSink& sink) {
  if (!decode_frame) return {};
  const std::vector<int32_t> first = next;
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
  const int64_t bucket = options.compile.bucket;
  return bucket == 0 ? 0 : (bucket - padded_len % bucket) % bucket;
}

void Session::Impl::note_chosen_logits() {
  if (const auto known = latest != nullptr ? latest->chose_finite() : std::nullopt) {
    finite &= *known;
    return;
  }
  const auto vocab = static_cast<size_t>(weights->config().vocab_size);
  for (size_t row = 0; row < next.size(); ++row) {
    const auto token = static_cast<size_t>(next[row]);
    const size_t position = latest != nullptr ? (row + 1) * latest_positions - 1 : row;
    const size_t chosen = position * vocab + token;
    finite &= std::isfinite(latest != nullptr ? latest->element_f32(0, chosen) : logits[chosen]);
  }
}

void Session::Impl::keep_last_logits(std::span<const float> all, size_t count) {
  const auto vocab = static_cast<size_t>(weights->config().vocab_size);
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
  return impl_->compiler && impl_->device->launches() ? run_until_replayed(padded_len, decode)
                                                      : Status();
}

// The first run of a step launches it, and its recording may have to be made again: a cache that
// grows gets its lasting addresses when all of its first ones have come back.
Status Session::run_until_replayed(int64_t padded_len, bool decode) {
  constexpr int kMostRuns = 4;
  const auto batch = static_cast<size_t>(impl_->cache->shape().batch);
  const std::vector<std::vector<int32_t>> rows(
      batch, std::vector<int32_t>(static_cast<size_t>(padded_len)));
  const PromptBatch prompts = PromptBatch::of(rows);
  for (int run = 0; run < kMostRuns; ++run) {
    const LaunchCounts before = *impl_->device->launches();
    ASSAY_CHECK(prefill(prompts));
    if (decode) ASSAY_CHECK(this->decode(std::vector<int32_t>(batch)));
    const LaunchCounts after = *impl_->device->launches();
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
            impl_->run(impl_->prefill_frame ? &*impl_->prefill_frame : nullptr, *impl_->executor,
                       batch->ids, batch->padded_len));
  impl_->latest = ran;
  impl_->latest_positions = impl_->positions(batch->padded_len);
  const auto next = ran->output_i32(1);
  impl_->next.assign(next.begin(), next.end());
  impl_->note_chosen_logits();
  return {};
}

Result<std::vector<float>> Session::prefill_all_logits(const PromptBatch& prompts) {
  ASSAY_CHECK(impl_->check_prompts(prompts));
  if (!impl_->all_logits_executor) {
    ASSAY_TRY(Graph graph, impl_->make_graph(LogitsOf::kAllPositions, impl_->options.fp8));
    ASSAY_TRY(impl_->all_logits_executor,
              impl_->device->make_eager(std::move(graph), *impl_->weights));
  }
  return all_logits(prompts, *impl_->all_logits_executor);
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
  if (impl_->options.fp8 == Fp8::kNone) {
    return bad_input("fp8_error: expected a session of dtype fp8, found {}", dtype_name(dtype()));
  }
  if (!impl_->cache) return bad_input("fp8_error: expected prepare() before it, found no cache");
  if (!impl_->wide_executor) {
    ASSAY_TRY(Graph graph, impl_->make_graph(LogitsOf::kAllPositions, Fp8::kNone));
    ASSAY_TRY(impl_->wide_executor, impl_->device->make_eager(std::move(graph), *impl_->weights));
  }
  CacheShape shape = impl_->cache->shape();
  shape.batch = prompts.batch;
  // Recorded steps keep the addresses of the session's own cache.
  auto kept = std::exchange(impl_->cache, make_dynamic_cache(shape, impl_->device->memory()));
  impl_->device->note_products(false);
  const auto all = prefill_all_logits(prompts);
  const auto all_wide = all ? all_logits(prompts, *impl_->wide_executor) : all;
  impl_->device->note_products(true);
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
            impl_->run(impl_->decode_frame ? &*impl_->decode_frame : nullptr, *impl_->executor,
                       tokens, 1));
  impl_->latest = ran;
  impl_->latest_positions = 1;
  std::ranges::copy(ran->output_i32(1), impl_->next.begin());
  impl_->note_chosen_logits();
  return {};
}

Status Session::decode_greedy(int64_t steps,
                              const std::function<void(std::span<const int32_t> tokens)>& sink) {
  if (kv_len() == 0) {
    return bad_input("decode_greedy: expected a prefill before it, found an empty cache");
  }
  if (steps < 0 || steps > impl_->capacity - kv_len()) {
    return bad_input("decode_greedy: expected 0 to {} steps (the prepared capacity), found {}",
                     impl_->capacity - kv_len(), steps);
  }
  int64_t left = steps;
  const TokenSink keep = [&](std::span<const int32_t> tokens, bool finite) {
    std::ranges::copy(tokens, impl_->next.begin());
    impl_->finite &= finite;
    --left;
    sink(tokens);
  };
  // The first steps compile and record, or fall back to eager, one by one.
  while (left > 0) {
    ASSAY_CHECK(impl_->run_greedy(left, keep));
    if (left == 0) break;
    ASSAY_CHECK(decode(std::vector<int32_t>(impl_->next)));
    --left;
    sink(impl_->next);
  }
  return {};
}

CompileEvidence Session::compile_evidence() const {
  CompileEvidence evidence;
  if (impl_->prefill_frame) evidence.prefill = impl_->prefill_frame->evidence();
  if (impl_->decode_frame) evidence.decode = impl_->decode_frame->evidence();
  if (impl_->prefill_frame) evidence.prefill.code = impl_->prefill_frame->code();
  if (impl_->decode_frame) evidence.decode.code = impl_->decode_frame->code();
  if (!impl_->compiler) return evidence;
  const Device& device = *impl_->device;
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
  const auto launches = impl_->device->launches();
  // A GPU's eager kernels are compiled too.
  if (impl_->compiler || launches) {
    counters.kernels_compiled = impl_->device->stats().compiled;
    counters.kernels_loaded = impl_->device->stats().loaded;
  }
  if (launches) {
    counters.graph_captures = launches->captures;
    counters.graph_replays = launches->replays;
    counters.kernel_launches = launches->kernels;
  }
  return counters;
}

}  // namespace assay::engine
