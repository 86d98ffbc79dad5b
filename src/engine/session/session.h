// A loaded model with its executor and cache, driven by the worker, `generate` and the server.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/cache/kv_cache.h"
#include "engine/compiled/compile_evidence.h"
#include "engine/compiled/compile_options.h"
#include "engine/graph/architectures.h"
#include "engine/model/config.h"
#include "engine/session/logits_error.h"
#include "engine/tensor.h"

namespace assay::engine {

struct SessionOptions {
  CacheKind cache = CacheKind::kStatic;
  CompileOptions compile = {};      // neither frame compiled: eager
  std::optional<DType> dtype = {};  // absent: as stored; else weights are converted at load
  // Products of prompts in e4m3: on a GPU of compute capability 9.0 alone, with weights of 16 bits.
  // Weights stored in fp32 become bf16, unless `dtype` says otherwise.
  Fp8 fp8 = Fp8::kNone;
  bool fp8_fast_sums = false;  // the sums of these: not in fp32 throughout, and faster
  // All of these, even where the weights' type was measured to be faster; eager ones always are.
  bool fp8_always = false;
  LogitsOf logits = LogitsOf::kLastPosition;  // that a prefill computes
  size_t threads = 0;                         // 0: as many as the process may run on
  std::optional<int> gpu = {};  // the number of the GPU to compute on; absent: the processor
  bool reference_ops = false;   // the slow operators, for tests
};

// A batch of prompts, left-padded to one length.
struct PromptBatch {
  int64_t batch = 0;
  int64_t padded_len = 0;
  std::vector<int32_t> ids;  // [batch, padded_len]; any valid id in the padding
  std::vector<int32_t> pad;  // [batch]: padding tokens at the start of each row, < padded_len

  // Prompts of any lengths >= 1, each padded on the left to the longest or to `pad_to`, the larger.
  static PromptBatch of(const std::vector<std::vector<int32_t>>& prompts, int64_t pad_to = 0);
  // The same with `more` padding tokens at the start of each row.
  PromptBatch padded_by(int64_t more) const;
};

class Checkpoint;
class Device;
class Executor;

// The device that the options ask for. environment_error: no driver, no such GPU.
Result<std::shared_ptr<Device>> open_device(const SessionOptions& options);

class Session {
 public:
  static Result<Session> open(const std::filesystem::path& folder, const SessionOptions& options);
  // On a device of open_device() with the same options, of no other session: its caller can ask it
  // for the meaning of an error, even if no session came to be.
  static Result<Session> open(const std::filesystem::path& folder, const SessionOptions& options,
                              std::shared_ptr<Device> device);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  const ModelConfig& config() const;
  DType dtype() const;  // of the weights in use
  Fp8 fp8() const;
  bool fp8_fast_sums() const;
  bool fp8_always() const;
  int64_t logits_of_prompt(int64_t padded_len) const;  // positions of a row that get logits
  size_t threads() const;
  const Device& device() const;
  Device& device();
  uint64_t weight_bytes() const;  // in memory, all tensors
  // Weights::mapped_files()
  std::vector<std::span<const std::byte>> mapped_weights() const;
  // Bytes that one decode step at this batch must at least read: every weight once, of the
  // embedding table only the rows looked up (unless it is also the head), and the cache at kv_len.
  uint64_t step_bytes(int64_t batch, int64_t kv_len) const;

  // Makes room for `batch` rows of `capacity` positions (a static cache allocates here, once a
  // shape) and forgets the past. capacity > max_positions is a bad_input that names both.
  Status prepare(int64_t batch, int64_t capacity);
  // After prepare(): compiles the code for a prefill of this length and, if `decode`, for the first
  // step after it, if compilation was asked for; on a GPU runs them until nothing is launched or
  // recorded any more, and forgets these runs. A failed compilation is no error, see
  // compile_evidence(); a device that is lost or out of memory is one. Without this call the first
  // run that needs the code compiles it.
  Status make_ready(int64_t padded_len, bool decode);

  // Runs the prompt from position 0, filling the cache; next_tokens() then holds the greedy
  // continuation. The batch and padded_len must fit the room that prepare() made, and ids the
  // vocabulary: bad_input.
  Status prefill(const PromptBatch& prompts);
  // prefill() that returns the logits of every position, [batch, padded_len, vocab]; those inside
  // the padding mean nothing. Always eager, without buckets: it is for tests, not measured.
  Result<std::vector<float>> prefill_all_logits(const PromptBatch& prompts);
  // Distance of these prompts' logits, with products in fp8, from those with products in the
  // weights' type, both by the eager executor. bad_input: the session has none in fp8, or isn't
  // prepared for so many tokens; any batch will do. The cache is empty afterwards, and recorded
  // steps are as they were.
  Result<LogitsError> fp8_error(const PromptBatch& prompts);
  // One decode step: feeds `tokens` (one a row) at the next position. Past the capacity: bad_input.
  Status decode(std::span<const int32_t> tokens);

  // decode(next_tokens()) `steps` times; on a GPU whose compiled step feeds itself, without the
  // host in between. `sink` gets each step's tokens, one a row, as they arrive; it may not use the
  // session. Past the capacity: bad_input, and nothing has run.
  Status decode_greedy(int64_t steps,
                       const std::function<void(std::span<const int32_t> tokens)>& sink);

  std::span<const int32_t> next_tokens() const;  // [batch], argmax of logits()
  std::span<const float> logits() const;         // [batch, vocab] of each row's last position
  // True if every token since the last prefill began was chosen by a finite logit. False: some row
  // of logits has NaN or an infinity for its largest (argmax chooses these), and its tokens say
  // nothing of the model.
  bool logits_finite() const;
  int64_t kv_len() const;  // cache positions in use, without those of a bucket's padding

  CompileCounters counters() const;
  FrameRuns prefill_runs() const;  // none where that phase was to be eager
  FrameRuns decode_runs() const;
  CompileEvidence compile_evidence() const;

 private:
  Status run_until_replayed(int64_t padded_len, bool decode);
  Result<std::vector<float>> all_logits(const PromptBatch& prompts, Executor& executor);
  static Result<Session> make(Checkpoint checkpoint, const SessionOptions& options,
                              std::shared_ptr<Device> device);

  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::engine
