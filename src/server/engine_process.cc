// A slot's tokens are kept here too, so that a new process can be given them.
#include "server/engine_process.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "server/engine_messages.h"

namespace assay::server {
namespace {

using engine::Onward;
using engine::SlotPrompt;

constexpr double kEndSeconds = 5;  // in which a process that has closed its pipe ends

struct KeptSlot {
  bool taken = false;
  std::optional<int64_t> there = {};  // its number in the process; absent: it isn't begun there
  Json sampling = nullptr;
  bool wants_logits = false;
  std::vector<int32_t> prompt = {};  // what is in
  std::vector<int32_t> tokens = {};  // behind it; the last one isn't fed yet
  bool is_broken = false;
  std::vector<float> logits = {};
};

class ProcessEngine final : public SlotEngine {
 public:
  explicit ProcessEngine(EngineProcess process) : process_(std::move(process)) {}

  Result<Json> open() {
    ASSAY_TRY(Json ready, start());
    capacity_ = ready.value("capacity", int64_t{0});
    ends_ = ready.value("ends", std::vector<int32_t>());
    kept_.resize(ready.value("slots", size_t{0}));
    return ready["facts"];
  }

  int64_t slots() const override { return std::ssize(kept_); }
  int64_t capacity() const override { return capacity_; }
  bool ends_text(int32_t id) const override { return std::ranges::find(ends_, id) != ends_.end(); }
  void use_compiled(bool compiled) override { compiled_ = compiled; }
  bool is_broken(int64_t slot) const override { return at(slot).is_broken; }
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
    const auto there = at(slot).there;
    at(slot) = {};
    if (there) (void)ask({.call = "leave", .parts = {{.slot = *there}}});
  }

  Result<int64_t> begin(int64_t slot, const TokenAsk& wanted) override {
    KeptSlot& one = at(slot);
    one.sampling = sampling_to_json(wanted.sampling);
    one.wants_logits = wanted.likeliest.has_value();
    ASSAY_CHECK(begin_there(one));
    return 0;
  }

  Status extend(std::span<const SlotPrompt> parts) override {
    Status done = extend_once(parts);
    if (!done && is_worth_another(parts.size())) done = extend_once(parts);
    return done;
  }

  Status run(std::span<const int64_t> slots, int64_t steps, bool wants_logits,
             const engine::Batch::Sink& sink) override {
    bool goes_on = true;
    const auto heard = [&](int64_t slot, int32_t token) {
      const Onward onward = sink(slot, token);
      goes_on = onward != Onward::kStop;
      return onward;
    };
    Status done = run_once(slots, steps, wants_logits, heard);
    if (!done && is_worth_another(slots.size()) && goes_on)
      done = run_once(slots, 1, wants_logits, heard);
    return done;
  }

 private:
  using Hear = std::function<Onward(const EngineSlot&)>;

  // A call operator by operator that its process didn't survive has no other way to fall back to.
  // One of several slots is made again slot by slot.
  bool is_worth_another(size_t slots) const { return has_ended_ && !compiled_ && slots == 1; }

  Status extend_once(std::span<const SlotPrompt> parts) {
    EngineCall call{.call = "extend", .compiled = compiled_};
    call.wants_logits = parts.size() == 1 && at(parts.front().slot).wants_logits;
    ASSAY_CHECK(begun());
    for (const auto& [slot, ids] : parts)
      call.parts.push_back({*at(slot).there, {ids.begin(), ids.end()}});
    ASSAY_TRY(const EngineAnswer answer, ask(call));
    for (size_t i = 0; i < parts.size(); ++i) {
      KeptSlot& one = at(parts[i].slot);
      one.prompt.insert(one.prompt.end(), parts[i].ids.begin(), parts[i].ids.end());
      one.tokens.clear();
      take(one, answer.slots.at(i));
    }
    return {};
  }

  Status run_once(std::span<const int64_t> slots, int64_t steps, bool wants_logits,
                  const engine::Batch::Sink& sink) {
    EngineCall call{
        .call = "run", .compiled = compiled_, .steps = steps, .wants_logits = wants_logits};
    ASSAY_CHECK(begun());
    for (const int64_t slot : slots) call.parts.push_back({*at(slot).there});
    const auto hear = [&](const EngineSlot& told) {
      for (const int64_t slot : slots) {
        if (at(slot).there != told.slot) continue;
        take(at(slot), told);
        return sink(slot, told.token);
      }
      return Onward::kStop;
    };
    const auto done = ask(call, hear);
    if (!done) return std::unexpected(done.error());
    return {};
  }

  KeptSlot& at(int64_t slot) { return kept_[static_cast<size_t>(slot)]; }
  const KeptSlot& at(int64_t slot) const { return kept_[static_cast<size_t>(slot)]; }

  static void take(KeptSlot& one, const EngineSlot& told) {
    if (told.token >= 0) one.tokens.push_back(told.token);
    one.is_broken = !told.finite;
    one.logits = logits_from_text(told.logits);
  }

  // A process that is ready. Slots have nothing in it.
  Result<Json> start() {
    ASSAY_TRY(child_, process_.start());
    const LineRead read = child_->read_line(deadline_after(process_.start_s));
    if (read.kind != LineRead::Kind::kLine) return broken(read, process_.start_s);
    ASSAY_TRY(Json json, parse_json(read.line, "engine"));
    if (json.value("kind", "") == "ready") return json;
    child_.reset();
    return std::unexpected(error_of(json));
  }

  static Error error_of(const Json& json) {
    return {json.value("is_bad_input", false) ? ErrorKind::kBadInput : ErrorKind::kEnvironment,
            json.value("error", "engine: expected an answer, found another message")};
  }

  // The error of a process that doesn't answer, which is gone then.
  std::unexpected<Error> broken(const LineRead& read, double seconds) {
    std::string found = fmt::format("none within {:g} s", seconds);
    if (read.kind != LineRead::Kind::kDeadline) {
      const auto end = child_->wait(deadline_after(kEndSeconds));
      found = fmt::format("the end of its process ({})", end ? end->text() : "its pipe is closed");
    }
    child_.reset();
    process_.tell(fmt::format("expected an answer, found {}", found), false);
    return environment_error("engine: expected an answer, found {}", found);
  }

  // One call of a process that runs, without a second try.
  Result<EngineAnswer> exchange(const EngineCall& call, const Hear& hear = {}) {
    const auto send = [&](const std::string& text) {
      return child_->send(text, deadline_after(process_.call_s));
    };
    // Where it can't be sent, the answer that doesn't come says why.
    (void)send(to_json_line(record_to_json(call)) + "\n");
    while (true) {
      const LineRead read = child_->read_line(deadline_after(process_.call_s));
      if (read.kind != LineRead::Kind::kLine) return broken(read, process_.call_s);
      ASSAY_TRY(const Json json, parse_json(read.line, "engine"));
      ASSAY_TRY(EngineAnswer answer, record_from_json<EngineAnswer>(json, "engine"));
      if (answer.kind == "done") return answer;
      if (answer.kind != "token" || !hear) return std::unexpected(error_of(json));
      const Onward onward = hear(answer.slots.at(0));
      (void)send(onward == Onward::kGo ? "go\n" : onward == Onward::kLast ? "last\n" : "stop\n");
    }
  }

  // A call; if its process ends by it, there is a new one afterwards.
  Result<EngineAnswer> ask(const EngineCall& call, const Hear& hear = {}) {
    if (!child_) ASSAY_CHECK(restart());
    auto answer = exchange(call, hear);
    has_ended_ = !answer && !child_;
    if (has_ended_) {
      if (const Status again = restart(); !again) return std::unexpected(again.error());
    }
    return answer;
  }

  // All taken slots are begun in a process that runs.
  Status begun() {
    if (!child_) return restart();
    return {};
  }

  Status begin_there(KeptSlot& one) {
    // A new process begins all taken slots, this one too.
    if (!child_) return restart();
    const EngineCall call{.call = "begin", .sampling = one.sampling};
    auto answer = exchange(call);
    if (!answer && !child_) return restart();
    if (!answer) return std::unexpected(answer.error());
    one.there = answer->slots.at(0).slot;
    return {};
  }

  // Nothing is compiled here: that may be the reason for the process's end.
  Status restart() {
    const int64_t begun_ns = monotonic_now_ns();
    for (KeptSlot& one : kept_) one.there.reset();
    const auto ready = start();
    if (!ready) return std::unexpected(ready.error());
    for (KeptSlot& one : kept_) {
      if (!one.taken || one.sampling.is_null()) continue;
      ASSAY_TRY(const auto begun, exchange({.call = "begin", .sampling = one.sampling}));
      one.there = begun.slots.at(0).slot;
      if (one.prompt.empty()) continue;
      ASSAY_TRY(const auto in, exchange({.call = "extend", .parts = {{*one.there, one.prompt}}}));
      if (one.tokens.empty()) continue;
      ASSAY_TRY(const auto fed, exchange({.call = "follow", .parts = {{*one.there, one.tokens}}}));
    }
    process_.tell(fmt::format("runs anew after {:.2f} s",
                              static_cast<double>(monotonic_now_ns() - begun_ns) / 1e9),
                  true);
    return {};
  }

  EngineProcess process_;
  int64_t capacity_ = 0;
  std::vector<int32_t> ends_ = {};
  std::vector<KeptSlot> kept_ = {};
  bool compiled_ = true;
  bool has_ended_ = false;        // the process of the last call, by that call
  std::unique_ptr<Child> child_;  // null: it has ended, and couldn't be started anew
};

}  // namespace

Result<StartedEngine> start_engine(EngineProcess process) {
  auto engine = std::make_unique<ProcessEngine>(std::move(process));
  ASSAY_TRY(Json facts, engine->open());
  return StartedEngine{std::move(engine), std::move(facts)};
}

}  // namespace assay::server
