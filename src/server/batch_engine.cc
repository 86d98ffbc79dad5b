#include "server/batch_engine.h"

#include <algorithm>
#include <utility>

namespace assay::server {
namespace {

class BatchEngine final : public SlotEngine {
 public:
  BatchEngine(engine::Batch batch, std::vector<int32_t> ends)
      : batch_(std::move(batch)), ends_(std::move(ends)) {}

  int64_t slots() const override { return batch_.slots(); }
  int64_t capacity() const override { return batch_.capacity(); }
  std::optional<int64_t> join() override { return batch_.join(); }
  // A slot that was joined can be left.
  void leave(int64_t slot) override { (void)batch_.leave(slot); }
  Status begin(int64_t slot, const TokenAsk& wanted) override {
    // The largest logit is the batch's default, which the device takes by itself.
    if (wanted.sampling.is_argmax()) return {};
    return batch_.sample(slot, wanted.sampling);
  }
  Status extend(std::span<const engine::SlotPrompt> parts) override { return batch_.extend(parts); }
  std::optional<int32_t> chosen(int64_t slot) const override {
    if (batch_.awaits_end(slot)) return std::nullopt;
    return batch_.next(slot);
  }
  Status run(std::span<const int64_t> slots, int64_t steps, bool wants_logits,
             const engine::Batch::Sink& sink) override {
    return batch_.run(slots, steps, sink, wants_logits);
  }
  std::span<const float> logits(int64_t slot) const override { return batch_.logits(slot); }
  bool ends_text(int32_t id) const override { return std::ranges::find(ends_, id) != ends_.end(); }
  bool is_broken(int64_t slot) const override { return !batch_.logits_finite(slot); }
  void use_compiled(bool compiled) override { batch_.use_compiled(compiled); }

 private:
  engine::Batch batch_;
  std::vector<int32_t> ends_;
};

}  // namespace

std::unique_ptr<SlotEngine> make_batch_engine(engine::Batch batch, std::vector<int32_t> ends) {
  return std::make_unique<BatchEngine>(std::move(batch), std::move(ends));
}

}  // namespace assay::server
