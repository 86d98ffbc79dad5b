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
  Status sample(int64_t slot, const engine::Sampling& sampling) override {
    if (sampling.is_argmax()) return {};  // the batch's default, which the device takes by itself
    return batch_.sample(slot, sampling);
  }
  Status extend(int64_t slot, std::span<const int32_t> ids) override {
    ASSAY_CHECK(batch_.extend(slot, ids));
    return check_finite(slot);
  }
  Status step(std::span<const FedToken> fed) override {
    tokens_.clear();
    for (const FedToken& one : fed) tokens_.push_back({one.slot, one.id});
    ASSAY_CHECK(batch_.step(tokens_));
    for (const FedToken& one : fed) ASSAY_CHECK(check_finite(one.slot));
    return {};
  }
  int32_t next(int64_t slot) const override { return batch_.next(slot); }
  std::span<const float> logits(int64_t slot) const override { return batch_.logits(slot); }
  bool ends_text(int32_t id) const override { return std::ranges::find(ends_, id) != ends_.end(); }

 private:
  Status check_finite(int64_t slot) const {
    if (batch_.logits_finite(slot)) return {};
    return environment_error("logits: expected finite values, found NaN or infinity");
  }

  engine::Batch batch_;
  std::vector<int32_t> ends_;
  std::vector<engine::SlotToken> tokens_;
};

}  // namespace

std::unique_ptr<SlotEngine> make_batch_engine(engine::Batch batch, std::vector<int32_t> ends) {
  return std::make_unique<BatchEngine>(std::move(batch), std::move(ends));
}

}  // namespace assay::server
