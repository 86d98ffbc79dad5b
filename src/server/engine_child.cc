// Answers calls one after the other.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "base/files/file_io.h"
#include "server/engine_messages.h"
#include "server/engine_process.h"

namespace assay::server {
namespace {

using engine::Onward;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

class BatchServer {
 public:
  BatchServer(engine::Batch& batch, int requests, int replies)
      : batch_(batch), requests_(::fdopen(requests, "r")), replies_(replies) {}
  ~BatchServer() { std::free(line_); }
  BatchServer(const BatchServer&) = delete;
  BatchServer& operator=(const BatchServer&) = delete;

  Status tell_ready(const std::vector<int32_t>& ends, const Json& facts) const {
    return write({{"kind", "ready"},
                  {"slots", batch_.slots()},
                  {"capacity", batch_.capacity()},
                  {"ends", ends},
                  {"facts", facts}});
  }

  Status run() {
    while (const auto line = read_line()) {
      ASSAY_TRY(const Json json, parse_json(*line, "call"));
      ASSAY_TRY(const auto call, record_from_json<EngineCall>(json, "call"));
      slots_.clear();
      const Status done = serve(call);
      EngineAnswer answer{.kind = done ? "done" : "error", .slots = slots_};
      if (!done) {
        answer.error = done.error().message;
        answer.is_bad_input = done.error().kind == ErrorKind::kBadInput;
      }
      ASSAY_CHECK(write(record_to_json(answer)));
    }
    return {};
  }

 private:
  std::optional<std::string_view> read_line() {
    const ssize_t count = ::getline(&line_, &size_, requests_.get());
    if (count <= 0) return std::nullopt;
    return std::string_view(line_, static_cast<size_t>(count));
  }
  Status write(const Json& json) const {
    return write_all(replies_, to_json_line(json) + "\n", "the server's pipe");
  }

  Status serve(const EngineCall& call) {
    batch_.use_compiled(call.compiled);
    if (call.call == "begin") return begin(call);
    if (call.call == "leave") return batch_.leave(call.parts.at(0).slot);
    if (call.call == "extend") return extend(call);
    if (call.call == "follow") return batch_.follow(call.parts.at(0).slot, call.parts.at(0).ids);
    if (call.call == "run") return run_steps(call);
    return bad_input("call: expected one that is known, found {}", call.call);
  }

  Status begin(const EngineCall& call) {
    const auto slot = batch_.join();
    if (!slot) return bad_input("slots: expected a free one, found none");
    slots_.push_back({.slot = *slot});
    const Status sampled = batch_.sample(*slot, sampling_from_json(call.sampling));
    if (!sampled) ASSAY_CHECK(batch_.leave(*slot));
    return sampled;
  }

  Status extend(const EngineCall& call) {
    std::vector<engine::SlotPrompt> parts;
    for (const EnginePart& part : call.parts) parts.push_back({part.slot, part.ids});
    ASSAY_CHECK(batch_.extend(parts));
    for (const EnginePart& part : call.parts)
      slots_.push_back(state_of(part.slot, call.wants_logits));
    return {};
  }

  EngineSlot state_of(int64_t slot, bool wants_logits) const {
    EngineSlot state{.slot = slot, .finite = batch_.logits_finite(slot)};
    if (!batch_.awaits_end(slot)) state.token = batch_.next(slot);
    if (wants_logits) state.logits = logits_to_text(batch_.logits(slot));
    return state;
  }

  Status run_steps(const EngineCall& call) {
    std::vector<int64_t> slots;
    for (const EnginePart& part : call.parts) slots.push_back(part.slot);
    Status told;
    const auto sink = [&](int64_t slot, int32_t token) {
      EngineSlot state = state_of(slot, call.wants_logits);
      state.token = token;
      told = write(record_to_json(EngineAnswer{.kind = "token", .slots = {std::move(state)}}));
      const auto word = told ? read_line() : std::nullopt;
      if (!word) return Onward::kStop;  // nobody asks any more
      return word->starts_with("go") ? Onward::kGo
                                     : (word->starts_with("last") ? Onward::kLast : Onward::kStop);
    };
    ASSAY_CHECK(batch_.run(slots, call.steps, sink, call.wants_logits));
    return told;
  }

  engine::Batch& batch_;
  std::unique_ptr<std::FILE, CloseFile> requests_;
  int replies_;
  char* line_ = nullptr;
  size_t size_ = 0;
  std::vector<EngineSlot> slots_ = {};  // of the answer at hand
};

}  // namespace

Status serve_batch(engine::Batch& batch, const std::vector<int32_t>& ends, const Json& facts,
                   int requests, int replies) {
  BatchServer server(batch, requests, replies);
  ASSAY_CHECK(server.tell_ready(ends, facts));
  return server.run();
}

void tell_no_engine(const Error& error, int replies) {
  const EngineAnswer answer{
      .kind = "error", .error = error.message, .is_bad_input = error.kind == ErrorKind::kBadInput};
  (void)write_all(replies, to_json_line(record_to_json(answer)) + "\n", "the server's pipe");
}

}  // namespace assay::server
