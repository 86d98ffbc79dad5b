#include "server/batch_engine.h"

#include <algorithm>
#include <utility>

namespace assay::server {
namespace {

class BatchEngine final : public SlotEngine {
 public:
  BatchEngine(engine::Batch batch, std::vector<int32_t> ends, bool reuses_prefixes)
      : batch_(std::move(batch)),
        ends_(std::move(ends)),
        reuses_prefixes_(reuses_prefixes),
        texts_(static_cast<size_t>(batch_.slots())) {}

  int64_t slots() const override { return batch_.slots(); }
  int64_t capacity() const override { return batch_.capacity(); }
  std::optional<int64_t> join(std::span<const int32_t> prompt) override {
    return batch_.join(reuses_prefixes_ ? likest(prompt) : std::nullopt);
  }
  void leave(int64_t slot) override {
    SlotText& text = texts_[static_cast<size_t>(slot)];
    text.ids.resize(is_broken(slot) ? 0 : std::min(text.ids.size(), length(slot)));
    text.left = ++leaves_;
    (void)batch_.leave(slot);  // a slot that was joined can be left
  }
  Result<int64_t> begin(int64_t slot, const TokenAsk& wanted) override {
    // The largest logit is the batch's default, which the device takes by itself.
    if (!wanted.sampling.is_argmax()) ASSAY_CHECK(batch_.sample(slot, wanted.sampling));
    std::vector<int32_t>& ids = texts_[static_cast<size_t>(slot)].ids;
    ids.resize(reuses_prefixes_ ? common(ids, wanted.prompt) : 0);
    if (!ids.empty()) ASSAY_CHECK(batch_.reuse(slot, ids));
    return std::ssize(ids);
  }
  Status extend(std::span<const engine::SlotPrompt> parts) override {
    ASSAY_CHECK(batch_.extend(parts));
    for (const auto& [slot, ids] : parts) {
      std::vector<int32_t>& text = texts_[static_cast<size_t>(slot)].ids;
      if (reuses_prefixes_) text.insert(text.end(), ids.begin(), ids.end());
    }
    return {};
  }
  int64_t fed(int64_t slot) const override {
    return batch_.length(slot) + (batch_.awaits_end(slot) ? 1 : 0);
  }
  std::optional<int32_t> chosen(int64_t slot) const override {
    if (batch_.awaits_end(slot)) return std::nullopt;
    return batch_.next(slot);
  }
  Status run(std::span<const int64_t> slots, int64_t steps, bool wants_logits,
             const engine::Batch::Sink& sink) override {
    if (!reuses_prefixes_) return batch_.run(slots, steps, sink, wants_logits);
    for (const int64_t slot : slots) {
      std::vector<int32_t>& text = texts_[static_cast<size_t>(slot)].ids;
      text.resize(length(slot));
      text.push_back(batch_.next(slot));  // is fed next
    }
    return batch_.run(
        slots, steps,
        [&](int64_t slot, int32_t token) {
          texts_[static_cast<size_t>(slot)].ids.push_back(token);
          return sink(slot, token);
        },
        wants_logits);
  }
  std::span<const float> logits(int64_t slot) const override { return batch_.logits(slot); }
  bool ends_text(int32_t id) const override { return std::ranges::find(ends_, id) != ends_.end(); }
  bool is_broken(int64_t slot) const override { return !batch_.logits_finite(slot); }
  void use_compiled(bool compiled) override { batch_.use_compiled(compiled); }

 private:
  // The tokens at a slot's positions, and perhaps one that is to be fed; of a free slot those that
  // its positions still hold.
  struct SlotText {
    std::vector<int32_t> ids = {};
    int64_t left = 0;  // when it was given back; 0: never
  };

  size_t length(int64_t slot) const { return static_cast<size_t>(batch_.length(slot)); }

  // Tokens that both begin with. A prompt's last one is computed: its logits are wanted.
  static size_t common(std::span<const int32_t> held, std::span<const int32_t> prompt) {
    const auto [end, _] = std::ranges::mismatch(held, prompt.first(prompt.size() - 1));
    return static_cast<size_t>(end - held.begin());
  }

  // The free slot with the longest common beginning; among equal ones that which is free longest.
  std::optional<int64_t> likest(std::span<const int32_t> prompt) const {
    std::optional<int64_t> best;
    std::pair<size_t, int64_t> most;
    for (int64_t slot = 0; slot < slots(); ++slot) {
      const SlotText& text = texts_[static_cast<size_t>(slot)];
      const std::pair found(common(text.ids, prompt), -text.left);
      if (!batch_.is_free(slot) || (best && found <= most)) continue;
      best = slot;
      most = found;
    }
    return best;
  }

  engine::Batch batch_;
  std::vector<int32_t> ends_;
  bool reuses_prefixes_;
  std::vector<SlotText> texts_;  // by slot
  int64_t leaves_ = 0;
};

}  // namespace

std::unique_ptr<SlotEngine> make_batch_engine(engine::Batch batch, std::vector<int32_t> ends,
                                              bool reuses_prefixes) {
  return std::make_unique<BatchEngine>(std::move(batch), std::move(ends), reuses_prefixes);
}

}  // namespace assay::server
