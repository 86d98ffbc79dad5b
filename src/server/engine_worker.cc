#include "server/engine_worker.h"

#include <fmt/core.h>

#include <string>
#include <utility>

#include "base/clock.h"

namespace assay::server {
namespace {

using engine::Onward;

constexpr double kEndSeconds = 5;  // in which a process that has closed its pipe ends

Error error_of(const Json& json) {
  return {json.value("is_bad_input", false) ? ErrorKind::kBadInput : ErrorKind::kEnvironment,
          json.value("error", "engine: expected an answer, found another message")};
}

}  // namespace

EngineWorker::EngineWorker(std::unique_ptr<Child> child, double call_s)
    : child_(std::move(child)), call_s_(call_s), begun_ns_(monotonic_now_ns()) {}

double EngineWorker::age_s() const {
  return static_cast<double>(monotonic_now_ns() - begun_ns_) / 1e9;
}

Result<std::optional<Json>> EngineWorker::ready(int64_t deadline_ns) {
  const LineRead read = child_->read_line(deadline_ns);
  if (read.kind == LineRead::Kind::kDeadline) return std::nullopt;
  if (read.kind != LineRead::Kind::kLine) return end(read);
  ASSAY_TRY(Json json, parse_json(read.line, "engine"));
  if (json.value("kind", "") == "ready") return json;
  says_no_ = true;
  child_.reset();
  return std::unexpected(error_of(json));
}

Result<EngineAnswer> EngineWorker::ask(const EngineCall& call, const Hear& hear) {
  const auto send = [&](const std::string& text) {
    return child_->send(text, deadline_after(call_s_));
  };
  // Where it can't be sent, the answer that doesn't come says why.
  (void)send(to_json_line(record_to_json(call)) + "\n");
  while (true) {
    const LineRead read = child_->read_line(deadline_after(call_s_));
    if (read.kind != LineRead::Kind::kLine) return end(read);
    ASSAY_TRY(const Json json, parse_json(read.line, "engine"));
    ASSAY_TRY(EngineAnswer answer, record_from_json<EngineAnswer>(json, "engine"));
    if (answer.kind == "done") return answer;
    if (answer.kind != "token" || !hear) return std::unexpected(error_of(json));
    const Onward onward = hear(answer.slots.at(0));
    (void)send(onward == Onward::kGo ? "go\n" : onward == Onward::kLast ? "last\n" : "stop\n");
  }
}

std::unexpected<Error> EngineWorker::end(const LineRead& read) {
  std::string found = fmt::format("none within {:g} s", call_s_);
  if (read.kind != LineRead::Kind::kDeadline) {
    const auto end = child_->wait(deadline_after(kEndSeconds));
    found = fmt::format("the end of its process ({})", end ? end->text() : "its pipe is closed");
  }
  child_.reset();
  return environment_error("engine: expected an answer, found {}", found);
}

}  // namespace assay::server
