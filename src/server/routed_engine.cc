// Calls of an engine, split by the way that they are computed.
#include "server/routed_engine.h"

#include <algorithm>
#include <ranges>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace assay::server {
namespace {

using engine::Onward;
using engine::SlotPrompt;

// One phase of a slot's request.
struct RoutedPhase {
  std::optional<RouteChoice> choice = {};  // absent: it hasn't begun, or has been told of
  int64_t begun_ns = 0;
  bool fell_back = false, lost = false;
  bool stood_in = false;  // nothing was compiled where its slot was, whatever the choice

  void fall_back() {
    fell_back = true;
    choice->compiled = false;
  }
};

struct RoutedSlot {
  int64_t prompt_tokens = 0, new_tokens = 0;
  int64_t fed = 0;  // of the prompt
  RoutedPhase prefill = {}, decode = {};
};

class RoutedEngine final : public SlotEngine {
 public:
  RoutedEngine(std::unique_ptr<SlotEngine> engine, PolicyRoutes routes)
      : engine_(std::move(engine)),
        routes_(std::move(routes)),
        slots_(static_cast<size_t>(engine_->slots())) {}

  int64_t slots() const override { return engine_->slots(); }
  int64_t capacity() const override { return engine_->capacity(); }
  std::optional<int64_t> join(std::span<const int32_t> prompt) override {
    return engine_->join(prompt);
  }
  std::optional<int32_t> chosen(int64_t slot) const override { return engine_->chosen(slot); }
  std::span<const float> logits(int64_t slot) const override { return engine_->logits(slot); }
  bool ends_text(int32_t id) const override { return engine_->ends_text(id); }
  bool is_broken(int64_t slot) const override { return engine_->is_broken(slot); }
  int64_t fed(int64_t slot) const override { return engine_->fed(slot); }
  bool compiles(int64_t slot) const override { return engine_->compiles(slot); }
  bool is_lost(int64_t slot) const override { return engine_->is_lost(slot); }
  Status restore(int64_t slot, int64_t tokens) override { return engine_->restore(slot, tokens); }
  bool rest() override { return engine_->rest(); }

  Result<int64_t> begin(int64_t slot, const TokenAsk& wanted) override {
    RoutedSlot& one = at(slot);
    one = {.prompt_tokens = std::ssize(wanted.prompt), .new_tokens = wanted.most_tokens};
    for (const auto& [phase, tokens] :
         {std::pair{Phase::kPrefill, int64_t{0}}, {Phase::kKvDecode, one.new_tokens}}) {
      if (routes_.choose(phase, 1, one.prompt_tokens, tokens)) continue;
      return bad_input("policy: no arm is safe for {} of {} prompt tokens and {} new tokens",
                       phase_name(phase), one.prompt_tokens, one.new_tokens);
    }
    one.prefill.begun_ns = monotonic_now_ns();
    ASSAY_TRY(one.fed, engine_->begin(slot, wanted));
    return one.fed;
  }

  void leave(int64_t slot) override { engine_->leave(slot); }

  void ended(int64_t slot) override {
    RoutedSlot& one = at(slot);
    const bool is_broken = engine_->is_broken(slot);
    one.prefill.lost |= is_broken;
    one.decode.lost |= is_broken;
    if (one.prefill.lost) tell(one.prefill);  // else its client has gone before the prompt's end
    tell(one.decode);
  }

  Status extend(std::span<const SlotPrompt> parts) override {
    for (const SlotPrompt& part : parts) {
      RoutedSlot& one = at(part.slot);
      if (one.prefill.choice) continue;
      one.prefill.choice = routes_.choose(Phase::kPrefill, std::ssize(parts), one.prompt_tokens, 0);
      if (!one.prefill.choice) one.prefill.choice.emplace();
    }
    std::vector<SlotPrompt> own[2];  // eager, compiled
    for (const SlotPrompt& part : parts)
      own[goes_compiled(part.slot, at(part.slot).prefill) ? 1 : 0].push_back(part);
    for (const bool compiled : {true, false}) {
      const std::vector<SlotPrompt>& of = own[compiled ? 1 : 0];
      if (!of.empty()) ASSAY_CHECK(extend_in_one_way(of, compiled));
    }
    return {};
  }

  Status run(std::span<const int64_t> slots, int64_t steps, bool wants_logits,
             const engine::Batch::Sink& sink) override {
    std::vector<int64_t> own[2];  // eager, compiled
    for (const int64_t slot : slots) {
      choose_steps(slot, std::ssize(slots));
      own[goes_compiled(slot, at(slot).decode) ? 1 : 0].push_back(slot);
    }
    if (!own[0].empty() && !own[1].empty()) steps = std::min<int64_t>(steps, 1);
    for (const bool compiled : {true, false}) {
      const std::vector<int64_t>& of = own[compiled ? 1 : 0];
      if (!of.empty()) ASSAY_CHECK(run_in_one_way(of, steps, wants_logits, sink, compiled));
    }
    return {};
  }

 private:
  RoutedSlot& at(int64_t slot) { return slots_[static_cast<size_t>(slot)]; }

  bool goes_compiled(int64_t slot, RoutedPhase& phase) const {
    if (!phase.choice->compiled) return false;
    phase.stood_in |= !engine_->compiles(slot);
    return engine_->compiles(slot);
  }

  template <typename Slots>
  bool is_any_lost(const Slots& slots) const {
    return std::ranges::any_of(slots, [&](int64_t slot) { return engine_->is_lost(slot); });
  }

  void choose_steps(int64_t slot, int64_t batch) {
    RoutedSlot& one = at(slot);
    if (!one.decode.choice) {
      one.decode.begun_ns = monotonic_now_ns();
      one.decode.choice.emplace();
    }
    if (one.decode.fell_back) return;
    const auto choice = routes_.choose(Phase::kKvDecode, batch, one.prompt_tokens, one.new_tokens);
    if (choice) one.decode.choice = choice;
  }

  Status extend_in_one_way(const std::vector<SlotPrompt>& parts, bool compiled) {
    engine_->use_compiled(compiled);
    Status done = engine_->extend(parts);
    if (!done && compiled) {
      for (const SlotPrompt& part : parts) at(part.slot).prefill.fall_back();
      engine_->use_compiled(false);
      if (!is_any_lost(parts | std::views::transform(&SlotPrompt::slot)))
        done = engine_->extend(parts);
    }
    for (const SlotPrompt& part : parts) {
      RoutedSlot& one = at(part.slot);
      const bool is_in = engine_->fed(part.slot) == one.fed + std::ssize(part.ids);
      one.prefill.lost = !is_in || engine_->is_broken(part.slot);
      if (!is_in) continue;
      one.fed += std::ssize(part.ids);
      if (one.fed == one.prompt_tokens) tell(one.prefill);
    }
    return done;
  }

  Status run_in_one_way(const std::vector<int64_t>& slots, int64_t steps, bool wants_logits,
                        const engine::Batch::Sink& sink, bool compiled) {
    std::vector<int64_t> left = slots;
    const auto watched = [&](int64_t slot, int32_t id) {
      const Onward onward = sink(slot, id);
      if (onward == Onward::kStop) std::erase(left, slot);
      return onward;
    };
    engine_->use_compiled(compiled);
    Status done = engine_->run(slots, steps, wants_logits, watched);
    if (!done && compiled && !left.empty()) {
      engine_->use_compiled(false);
      const std::vector<int64_t> again = left;
      for (const int64_t slot : again) at(slot).decode.fall_back();
      if (!is_any_lost(again)) done = engine_->run(again, 1, wants_logits, watched);
    }
    for (const int64_t slot : left) at(slot).decode.lost = !done;
    return done;
  }

  void tell(RoutedPhase& phase) {
    if (!phase.choice) return;
    routes_.ended(*std::exchange(phase.choice, std::nullopt),
                  {.ms = static_cast<double>(monotonic_now_ns() - phase.begun_ns) / 1e6,
                   .ran_eager = phase.fell_back,
                   .lost = phase.lost},
                  phase.stood_in && !phase.fell_back);
  }

  std::unique_ptr<SlotEngine> engine_;
  PolicyRoutes routes_;
  std::vector<RoutedSlot> slots_;
};

}  // namespace

std::unique_ptr<SlotEngine> make_routed_engine(std::unique_ptr<SlotEngine> engine,
                                               PolicyRoutes routes) {
  return std::make_unique<RoutedEngine>(std::move(engine), std::move(routes));
}

}  // namespace assay::server
