#include "server/engine_children.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace assay::server {
namespace {

constexpr double kLongestPause_s = 60;

// As its lines have it, which name the engine already.
std::string said(const Error& error) {
  constexpr std::string_view kSubject = "engine: ";
  return error.message.starts_with(kSubject) ? error.message.substr(kSubject.size())
                                             : error.message;
}

}  // namespace

EngineChildren::EngineChildren(EngineProcess process, Lose lose, HasSlots has_slots)
    : process_(std::move(process)), lose_(std::move(lose)), has_slots_(std::move(has_slots)) {}

Result<Json> EngineChildren::open() {
  ASSAY_CHECK(begin_start());
  ASSAY_TRY(auto ready, starting_->ready(deadline_after(process_.start_s)));
  if (!ready) return std::unexpected(not_ready());
  take_whole();
  return *std::move(ready);
}

Result<EngineWorker*> EngineChildren::place() {
  look();
  for (int tries = 0; tries < 2 && !whole_ && !stand_in_ && !is_alone_; ++tries) {
    const Status started = start_stand_in();
    if (!started) process_.tell(fmt::format("operator by operator: {}", said(started.error())));
  }
  if (whole_ || !stand_in_) return wait_for_whole();
  if (!starting_) begin_start_if_due();
  return stand_in_.get();
}

Result<EngineAnswer> EngineChildren::ask(EngineWorker& worker, const EngineCall& call,
                                         const EngineWorker::Hear& hear) {
  auto answer = worker.ask(call, hear);
  if (worker.has_ended()) end(worker, said(answer.error()));
  return answer;
}

void EngineChildren::look(bool within_call) {
  if (starting_) {
    const auto ready = starting_->ready(0);
    if (!ready && starting_->says_no() && stand_in_ && !is_alone_ && process_.may_lack_room) {
      starting_.reset();
      refusal_ = ready.error();
    } else if (!ready) {
      put_off(ready.error());
    } else if (*ready) {
      take_whole();
      process_.tell(fmt::format("compiled again after {:.2f} s", whole_->age_s()));
    } else if (starting_->age_s() > process_.start_s) {
      put_off(not_ready());
    }
  }
  if (refusal_ && !within_call) start_alone(*std::exchange(refusal_, std::nullopt));
  if (!stand_in_ || refusal_) return;
  if (!whole_ && !starting_) begin_start_if_due();
  if (whole_ && !has_slots_(*stand_in_)) {
    stand_in_.reset();
    note_ready();
  }
}

bool EngineChildren::rest() {
  look();
  if (!whole_ && !starting_) begin_start_if_due();
  return !whole_;
}

Error EngineChildren::not_ready() const {
  return {ErrorKind::kEnvironment,
          fmt::format("engine: expected it ready, found it not within {:g} s", process_.start_s)};
}

Status EngineChildren::begin_start() {
  ASSAY_TRY(auto child, process_.start(true));
  starting_ = std::make_unique<EngineWorker>(std::move(child), process_.call_s);
  return {};
}

void EngineChildren::begin_start_if_due() {
  if (monotonic_now_ns() < next_start_ns_) return;
  if (const Status begun = begin_start(); !begun) put_off(begun.error());
}

void EngineChildren::put_off(const Error& error) {
  starting_.reset();
  pause_s_ = std::min(pause_s_ > 0 ? 2 * pause_s_ : process_.pause_s, kLongestPause_s);
  next_start_ns_ = deadline_after(pause_s_);
  process_.tell(fmt::format("compiled: {}; again in {:g} s", said(error), pause_s_));
}

void EngineChildren::take_whole() {
  whole_ = std::move(starting_);
  pause_s_ = 0;
  ++counts().starts[1];
  note_ready();
}

Status EngineChildren::start_stand_in() {
  ASSAY_TRY(auto child, process_.start(false));
  auto worker = std::make_unique<EngineWorker>(std::move(child), process_.call_s);
  ASSAY_TRY(const auto ready, worker->ready(deadline_after(process_.call_s)));
  if (!ready) return environment_error("engine: expected it ready, found it not in time");
  stand_in_ = std::move(worker);
  ++counts().starts[0];
  note_ready();
  process_.tell(fmt::format("goes on operator by operator after {:.2f} s", stand_in_->age_s()));
  return {};
}

void EngineChildren::start_alone(const Error& error) {
  is_alone_ = true;
  process_.tell(fmt::format("compiled: {}; starts alone, and all requests wait", said(error)));
  if (stand_in_) end(*stand_in_, "makes room");
}

Result<EngineWorker*> EngineChildren::wait_for_whole() {
  if (whole_) return whole_.get();
  if (!starting_) ASSAY_CHECK(begin_start());
  auto ready = starting_->ready(deadline_after(process_.start_s));
  if (ready && !*ready) ready = std::unexpected(not_ready());
  if (!ready) {
    // Room wasn't what it lacked, and one that stands in isn't ended for it again.
    is_alone_ = process_.may_lack_room = false;
    put_off(ready.error());
    return std::unexpected(ready.error());
  }
  take_whole();
  process_.tell(fmt::format("compiled again after {:.2f} s", whole_->age_s()));
  return whole_.get();
}

void EngineChildren::end(EngineWorker& worker, const std::string& why) {
  lose_(worker, why);
  (&worker == whole_.get() ? whole_ : stand_in_).reset();
  note_ready();
}

void EngineChildren::note_ready() {
  counts().ready[1] = whole_ ? 1 : 0;
  counts().ready[0] = stand_in_ ? 1 : 0;
}

}  // namespace assay::server
