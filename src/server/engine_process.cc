// A slot's text is kept here too, so that another process can be given it.
#include "server/engine_process.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text/text.h"
#include "server/engine_children.h"

namespace assay::server {
namespace {

using engine::SlotPrompt;

struct KeptSlot {
  bool taken = false;
  EngineWorker* home = nullptr;  // that has it, or is being given it; null: it is begun nowhere
  int64_t there = 0;             // its number there
  Json sampling = nullptr;       // null: it isn't begun
  bool wants_logits = false;
  std::vector<int32_t> prompt = {};  // what is in
  std::vector<int32_t> tokens = {};  // behind it; the last one isn't fed yet
  size_t missing = 0;                // tokens at the end of both that its home hasn't got yet
  bool is_broken = false;
  std::vector<float> logits = {};

  size_t text() const { return prompt.size() + tokens.size(); }
  bool is_lost() const { return !sampling.is_null() && (home == nullptr || missing > 0); }

  // The call that puts in up to so many of the missing tokens, none of them compiled: that may be
  // the reason for a process's end. Then `missing` is without them.
  EngineCall restoring(size_t most) {
    const size_t in = text() - missing;
    const bool of_prompt = in < prompt.size();
    const auto first = static_cast<ptrdiff_t>(of_prompt ? in : in - prompt.size());
    const std::vector<int32_t>& of = of_prompt ? prompt : tokens;
    const auto count = std::min(static_cast<ptrdiff_t>(most), std::ssize(of) - first);
    // The token that ended the part before is to be fed.
    const ptrdiff_t from = of_prompt ? first : std::max<ptrdiff_t>(first - 1, 0);
    missing -= static_cast<size_t>(count);
    return {.call = of_prompt ? "extend" : "follow",
            .parts = {{there, {of.begin() + from, of.begin() + first + count}}}};
  }
};

class ProcessEngine final : public SlotEngine {
 public:
  explicit ProcessEngine(EngineProcess process)
      : tell_(process.tell),
        children_(
            std::move(process),
            [this](const EngineWorker& worker, const std::string& why) { lose(worker, why); },
            [this](const EngineWorker& worker) {
              return std::ranges::find(kept_, &worker, &KeptSlot::home) != kept_.end();
            }) {}

  Result<Json> open() {
    ASSAY_TRY(Json ready, children_.open());
    capacity_ = ready.value("capacity", int64_t{0});
    ends_ = ready.value("ends", std::vector<int32_t>());
    kept_.resize(ready.value("slots", size_t{0}));
    return ready["facts"];
  }

  int64_t slots() const override { return std::ssize(kept_); }
  int64_t capacity() const override { return capacity_; }
  bool ends_text(int32_t id) const override { return std::ranges::find(ends_, id) != ends_.end(); }
  void use_compiled(bool compiled) override { compiled_ = compiled; }
  bool compiles(int64_t slot) const override {
    return at(slot).home != nullptr && at(slot).home == children_.whole();
  }
  bool is_broken(int64_t slot) const override { return at(slot).is_broken; }
  bool is_lost(int64_t slot) const override { return at(slot).is_lost(); }
  int64_t fed(int64_t slot) const override { return std::ssize(at(slot).prompt); }
  std::span<const float> logits(int64_t slot) const override { return at(slot).logits; }
  std::optional<int32_t> chosen(int64_t slot) const override {
    const KeptSlot& one = at(slot);
    return one.tokens.empty() ? std::nullopt : std::optional(one.tokens.back());
  }

  std::optional<int64_t> join(std::span<const int32_t>) override {
    const auto free = std::ranges::find(kept_, false, &KeptSlot::taken);
    if (free == kept_.end()) return std::nullopt;
    *free = {.taken = true};
    return free - kept_.begin();
  }

  void leave(int64_t slot) override {
    const KeptSlot left = std::exchange(at(slot), {});
    leave_there(left.home, left.there);
    children_.look();
    count_slots();
  }

  // Where its process ends by this, the slot is lost as others are.
  Result<int64_t> begin(int64_t slot, const TokenAsk& wanted) override {
    KeptSlot& one = at(slot);
    one.wants_logits = wanted.likeliest.has_value();
    one.sampling = sampling_to_json(wanted.sampling);
    const int64_t ends = processes_lost_;
    const Status begun = begin_there(one);
    if (!begun && ends == processes_lost_) return std::unexpected(begun.error());
    return 0;
  }

  Status extend(std::span<const SlotPrompt> parts) override {
    children_.look();
    std::vector<SlotPrompt> own[2];
    for (const SlotPrompt& part : parts) {
      ASSAY_CHECK(check_home(part.slot));
      own[compiles(part.slot) ? 1 : 0].push_back(part);
    }
    // Logits are of a prompt that is alone.
    const bool wants_logits = parts.size() == 1 && at(parts.front().slot).wants_logits;
    for (const auto& of : own) {
      if (!of.empty()) ASSAY_CHECK(extend_in_one(of, wants_logits));
    }
    return {};
  }

  Status run(std::span<const int64_t> slots, int64_t steps, bool wants_logits,
             const engine::Batch::Sink& sink) override {
    children_.look();
    std::vector<int64_t> own[2];
    for (const int64_t slot : slots) {
      ASSAY_CHECK(check_home(slot));
      own[compiles(slot) ? 1 : 0].push_back(slot);
    }
    // Two processes take turns.
    if (!own[0].empty() && !own[1].empty()) steps = std::min<int64_t>(steps, 1);
    for (const auto& of : own) {
      if (!of.empty()) ASSAY_CHECK(run_in_one(of, steps, wants_logits, sink));
    }
    return {};
  }

  Status restore(int64_t slot, int64_t tokens) override {
    children_.look();
    KeptSlot& one = at(slot);
    if (!one.is_lost()) return {};
    if (one.home == nullptr) ASSAY_CHECK(begin_there(one));
    if (one.missing > 0) {
      const size_t before = one.missing;
      const auto done = children_.ask(*one.home, one.restoring(static_cast<size_t>(tokens)));
      if (!done) {
        one.missing = one.text();
        leave_there(std::exchange(one.home, nullptr), one.there);
        return std::unexpected(done.error());
      }
      children_.counts().restored_tokens += static_cast<int64_t>(before - one.missing);
    }
    count_slots();
    return {};
  }

  bool rest() override { return children_.rest(); }

 private:
  KeptSlot& at(int64_t slot) { return kept_[static_cast<size_t>(slot)]; }
  const KeptSlot& at(int64_t slot) const { return kept_[static_cast<size_t>(slot)]; }

  Status check_home(int64_t slot) const {
    if (at(slot).home != nullptr && !is_lost(slot)) return {};
    return bad_input("slot {}: expected it begun and restored, found it not", slot);
  }

  static void take(KeptSlot& one, const EngineSlot& told) {
    if (told.token >= 0) one.tokens.push_back(told.token);
    one.is_broken = !told.finite;
    one.logits = logits_from_text(told.logits);
  }

  Status begin_there(KeptSlot& one) {
    ASSAY_TRY(EngineWorker* const home, children_.place());
    ASSAY_TRY(const auto begun, children_.ask(*home, {.call = "begin", .sampling = one.sampling}));
    one.home = home;
    one.there = begun.slots.at(0).slot;
    count_slots();
    return {};
  }

  void leave_there(EngineWorker* home, int64_t there) {
    if (home != nullptr) (void)children_.ask(*home, {.call = "leave", .parts = {{.slot = there}}});
  }

  // The slots of this call have one home.
  Status extend_in_one(const std::vector<SlotPrompt>& parts, bool wants_logits) {
    EngineCall call{.call = "extend", .compiled = compiled_, .wants_logits = wants_logits};
    for (const auto& [slot, ids] : parts)
      call.parts.push_back({at(slot).there, {ids.begin(), ids.end()}});
    ASSAY_TRY(const EngineAnswer answer, children_.ask(*at(parts.front().slot).home, call));
    for (size_t i = 0; i < parts.size(); ++i) {
      KeptSlot& one = at(parts[i].slot);
      one.prompt.insert(one.prompt.end(), parts[i].ids.begin(), parts[i].ids.end());
      one.tokens.clear();
      take(one, answer.slots.at(i));
    }
    return {};
  }

  Status run_in_one(const std::vector<int64_t>& slots, int64_t steps, bool wants_logits,
                    const engine::Batch::Sink& sink) {
    EngineCall call{
        .call = "run", .compiled = compiled_, .steps = steps, .wants_logits = wants_logits};
    for (const int64_t slot : slots) call.parts.push_back({at(slot).there});
    const auto hear = [&](const EngineSlot& told) {
      children_.look(true);
      for (const int64_t slot : slots) {
        if (at(slot).there != told.slot) continue;
        take(at(slot), told);
        return sink(slot, told.token);
      }
      return engine::Onward::kStop;
    };
    const auto done = children_.ask(*at(slots.front()).home, call, hear);
    if (!done) return std::unexpected(done.error());
    return {};
  }

  void lose(const EngineWorker& worker, const std::string& why) {
    ++processes_lost_;
    for (KeptSlot& one : kept_) {
      if (one.home != &worker) continue;
      one.home = nullptr;
      one.missing = one.text();
    }
    count_slots();
    tell_(
        fmt::format("{}; {} to restore", why, counted(children_.counts().lost.load(), "request")));
  }

  void count_slots() {
    int64_t counts[2] = {}, lost = 0;
    for (const KeptSlot& one : kept_) {
      if (one.home != nullptr) ++counts[one.home == children_.whole() ? 1 : 0];
      if (one.is_lost()) ++lost;
    }
    EngineCounts& told = children_.counts();
    told.lost = lost;
    for (const size_t way : {0, 1}) told.slots[way] = counts[way];
  }

  std::function<void(const std::string&)> tell_;
  int64_t capacity_ = 0;
  std::vector<int32_t> ends_ = {};
  std::vector<KeptSlot> kept_ = {};
  bool compiled_ = true;
  int64_t processes_lost_ = 0;
  EngineChildren children_;
};

}  // namespace

Result<StartedEngine> start_engine(EngineProcess process) {
  auto engine = std::make_unique<ProcessEngine>(std::move(process));
  ASSAY_TRY(Json facts, engine->open());
  return StartedEngine{std::move(engine), std::move(facts)};
}

}  // namespace assay::server
