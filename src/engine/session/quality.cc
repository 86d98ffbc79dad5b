// Windows go through both models in batches whose logits fit a bound of memory.
#include "engine/session/quality.h"

#include <algorithm>

#include "engine/serving/sampling.h"

namespace assay::engine {
namespace {

constexpr int64_t kMostLogitsBytes = int64_t{256} << 20;  // of one model

Status check_windows(const Session& reference, const Session& model,
                     std::span<const TokenWindow> windows) {
  const int64_t vocab = reference.config().vocab_size;
  if (model.config().vocab_size != vocab) {
    return bad_input("quality: expected a model of the reference's {} tokens, found {}", vocab,
                     model.config().vocab_size);
  }
  const auto length = static_cast<int64_t>(windows.front().size());
  for (const Session* one : {&reference, &model}) {
    if (length > one->config().max_positions) {
      return bad_input(
          "quality: expected windows of at most {} tokens (a model's positions), "
          "found {}",
          one->config().max_positions, length);
    }
  }
  return {};
}

// Logits of a token for each position of a batch of windows.
std::span<const float> at(const std::vector<float>& logits, size_t position, size_t vocab) {
  return std::span(logits).subspan(position * vocab, vocab);
}

}  // namespace

Result<std::vector<TokenWindow>> draw_windows(Session& model, int32_t start, int64_t count,
                                              int64_t length, uint64_t seed,
                                              const std::function<void(int64_t)>& progress) {
  const int64_t vocab = model.config().vocab_size;
  std::vector<Sampler> samplers;
  for (int64_t row = 0; row < count; ++row) {
    samplers.emplace_back(Sampling{.temperature = 1, .seed = seed + static_cast<uint64_t>(row)},
                          vocab);
  }
  std::vector<TokenWindow> windows(static_cast<size_t>(count), TokenWindow{start});
  ASSAY_CHECK(model.prepare(count, length));
  ASSAY_CHECK(model.prefill(PromptBatch::of(windows)));
  std::vector<int32_t> drawn(windows.size());
  for (int64_t tokens = 1; tokens < length; ++tokens) {
    const std::span<const float> logits = model.logits();
    for (size_t row = 0; row < windows.size(); ++row) {
      const auto size = static_cast<size_t>(vocab);
      drawn[row] = samplers[row].choose(logits.subspan(row * size, size));
      samplers[row].saw_chosen(drawn[row]);
      windows[row].push_back(drawn[row]);
    }
    progress(tokens + 1);
    if (tokens + 1 < length) ASSAY_CHECK(model.decode(drawn));
  }
  if (!model.logits_finite()) {
    return bad_input("quality: expected finite logits of the reference, found NaN or infinity");
  }
  return windows;
}

Result<std::vector<std::vector<PositionError>>> teacher_forced(
    Session& reference, Session& model, std::span<const TokenWindow> windows, int64_t first,
    const std::function<void(int64_t)>& progress) {
  ASSAY_CHECK(check_windows(reference, model, windows));
  const auto length = static_cast<int64_t>(windows.front().size());
  const int64_t vocab = reference.config().vocab_size;
  const int64_t abreast =
      std::clamp<int64_t>(kMostLogitsBytes / (length * vocab * static_cast<int64_t>(sizeof(float))),
                          1, std::ssize(windows));
  ASSAY_CHECK(reference.prepare(abreast, length));
  ASSAY_CHECK(model.prepare(abreast, length));
  std::vector<std::vector<PositionError>> all;
  while (all.size() < windows.size()) {
    const size_t count = std::min(static_cast<size_t>(abreast), windows.size() - all.size());
    const auto some = windows.subspan(all.size(), count);
    const PromptBatch prompts = PromptBatch::of({some.begin(), some.end()});
    if (static_cast<int64_t>(count) < abreast) {
      ASSAY_CHECK(reference.prepare(static_cast<int64_t>(count), length));
      ASSAY_CHECK(model.prepare(static_cast<int64_t>(count), length));
    }
    ASSAY_TRY(const std::vector<float> expected, reference.prefill_all_logits(prompts));
    ASSAY_TRY(const std::vector<float> found, model.prefill_all_logits(prompts));
    for (size_t row = 0; row < count; ++row) {
      std::vector<PositionError>& errors = all.emplace_back();
      for (int64_t place = first; place + 1 < length; ++place) {
        const auto position = row * static_cast<size_t>(length) + static_cast<size_t>(place);
        const auto size = static_cast<size_t>(vocab);
        errors.push_back(position_error(at(expected, position, size), at(found, position, size),
                                        prompts.ids[position + 1]));
      }
    }
    progress(std::ssize(all));
  }
  return all;
}

}  // namespace assay::engine
