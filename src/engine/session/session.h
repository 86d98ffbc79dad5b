// One batch of equally long rows on a model, as studies and `generate` run it: phases that are
// compiled in frames or eager, and a cache that all rows fill together.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/cache/kv_cache.h"
#include "engine/compiled/compile_evidence.h"
#include "engine/compiled/compile_options.h"
#include "engine/serving/model.h"
#include "engine/session/logits_error.h"

namespace assay::engine {

// Members of the names that ModelOptions has mean the same here.
struct SessionOptions {
  CacheKind cache = CacheKind::kStatic;
  CompileOptions compile = {};  // neither frame compiled: eager
  std::optional<DType> dtype = {};
  Fp8 fp8 = Fp8::kNone;
  bool fp8_fast_sums = false;
  bool fp8_always = false;
  LogitsOf logits = LogitsOf::kLastPosition;
  size_t threads = 0;
  std::optional<int> gpu = {};
  bool reference_ops = false;

  ModelOptions model() const;
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

class Session {
 public:
  // On a model of its own.
  static Result<Session> open(const std::filesystem::path& folder, const SessionOptions& options);
  // Likewise, on a device as Model::load() has it.
  static Result<Session> open(const std::filesystem::path& folder, const SessionOptions& options,
                              std::shared_ptr<Device> device);
  // On a model that may have other sessions and batches.
  static Result<Session> on(std::shared_ptr<Model> model, CacheKind cache,
                            const FrameOptions& frames);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  Model& model() { return *shared_model(); }
  const Model& model() const { return *shared_model(); }
  const std::shared_ptr<Model>& shared_model() const;  // for other sessions and batches
  const ModelConfig& config() const { return model().config(); }
  Device& device() { return model().device(); }
  const Device& device() const { return model().device(); }

  // Makes room for `batch` rows of `capacity` positions (a static cache allocates here, once a
  // shape) and forgets the past. capacity > max_positions is a bad_input that names both.
  Status prepare(int64_t batch, int64_t capacity);
  // After prepare(): compiles the code for a prefill of this length and, if `decode`, for the first
  // step after it and, over a static cache, the next ones, if compilation was asked for; on a GPU
  // runs them until nothing is launched or recorded any more, and forgets these runs. A failed
  // compilation is no error, see compile_evidence(); a device that is lost or out of memory is one.
  // Without this call the first run that needs the code compiles it.
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
  // host in between. `sink` gets each step's tokens, one a row, as they arrive, and answers whether
  // to go on: the step that it ends with is the last one that the session knows of, but for its
  // logits, which it then has none of. It may not use the session. Past the capacity: bad_input,
  // and nothing has run.
  Status decode_greedy(int64_t steps,
                       const std::function<bool(std::span<const int32_t> tokens)>& sink);

  std::span<const int32_t> next_tokens() const;  // [batch], argmax of logits()
  // [batch, vocab] of each row's last position; empty before a run, and once another session or
  // batch of the model has run.
  std::span<const float> logits() const;
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

  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::engine
