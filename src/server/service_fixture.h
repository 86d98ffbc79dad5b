// A service over a scheduler whose engine is a toy, and its clients, for tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <semaphore>
#include <set>

#include "base/text/text.h"
#include "server/scheduler.h"
#include "server/service.h"

namespace assay::server {

inline constexpr int32_t kEnd = 99;

// Each next token is the one before it and one; 99 ends a text, and no step to 77 succeeds. A
// prompt whose last token is even ends with the slot's first step.
class CountingEngine final : public SlotEngine {
 public:
  explicit CountingEngine(int64_t slots)
      : latest_(static_cast<size_t>(slots)), fed_(latest_.size()), awaits_(latest_.size()) {}
  int64_t slots() const override { return std::ssize(latest_); }
  int64_t capacity() const override { return 50; }
  std::optional<int64_t> join(std::span<const int32_t>) override {
    for (int64_t slot = 0; slot < slots(); ++slot) {
      if (used_.insert(slot).second) return slot;
    }
    return std::nullopt;
  }
  void leave(int64_t slot) override {
    if (leaves_gated) gate.acquire();
    EXPECT_EQ(used_.erase(slot), 1u);
  }
  void ended(int64_t slot) override {
    EXPECT_TRUE(used_.contains(slot));
    ++requests_ended;
  }
  Result<int64_t> begin(int64_t slot, const TokenAsk& wanted) override {
    if (wanted.sampling.seed == 7) return bad_input("expected another seed, found 7");
    fed_[static_cast<size_t>(slot)] = std::min(cached, std::ssize(wanted.prompt) - 1);
    return fed(slot);
  }
  int64_t fed(int64_t slot) const override { return fed_[static_cast<size_t>(slot)]; }
  Status extend(std::span<const engine::SlotPrompt> parts) override {
    if (gated) gate.acquire();
    int64_t tokens = 0;
    for (const auto& [slot, ids] : parts) {
      if (ids.back() == 13) return environment_error("expected no 13, found one");
      tokens += std::ssize(ids);
      const bool awaits = ids.back() % 2 == 0;
      latest_[static_cast<size_t>(slot)] = ids.back() + (awaits ? 0 : 1);
      fed_[static_cast<size_t>(slot)] += std::ssize(ids);
      awaits_[static_cast<size_t>(slot)] = awaits;
    }
    chunks.push_back(tokens);
    return {};
  }
  std::optional<int32_t> chosen(int64_t slot) const override {
    if (awaits_[static_cast<size_t>(slot)]) return std::nullopt;
    return latest_[static_cast<size_t>(slot)];
  }
  Status run(std::span<const int64_t> slots, int64_t most, bool,
             const engine::Batch::Sink& sink) override {
    most_stepped = std::max(most_stepped, std::ssize(slots));
    std::vector<int64_t> going(slots.begin(), slots.end());
    for (bool last = false; most > 0 && !going.empty() && !last; --most) {
      const auto fails = [&](int64_t slot) { return latest_[static_cast<size_t>(slot)] == 76; };
      if (std::ranges::any_of(going, fails)) return environment_error("expected no 77, found one");
      ++steps;
      std::erase_if(going, [&](int64_t slot) {
        EXPECT_TRUE(used_.contains(slot));
        awaits_[static_cast<size_t>(slot)] = false;
        const engine::Onward onward = sink(slot, ++latest_[static_cast<size_t>(slot)]);
        last |= onward == engine::Onward::kLast;
        return onward == engine::Onward::kStop;
      });
    }
    return {};
  }
  bool ends_text(int32_t id) const override { return id == kEnd; }
  // 0, but of the next token 2 and of the one behind it 1.
  std::span<const float> logits(int64_t slot) const override {
    if (no_logits) return {};
    const auto next_id = static_cast<size_t>(latest_[static_cast<size_t>(slot)]);
    logits_.assign(101, 0);
    logits_[next_id] = 2;
    logits_[next_id + 1] = 1;
    return std::span(logits_).first(100);
  }

  bool no_logits = false;
  int64_t cached = 0;  // tokens of each prompt
  std::vector<int64_t> chunks = {};
  bool gated = false;
  bool leaves_gated = false;
  std::counting_semaphore<> gate{0};  // a gated extend() or leave() waits for one each
  std::atomic<int64_t> requests_ended = 0;
  int64_t steps = 0;
  ptrdiff_t most_stepped = 0;

 private:
  std::vector<int32_t> latest_;
  std::vector<int64_t> fed_;
  std::vector<bool> awaits_;
  std::set<int64_t> used_ = {};
  mutable std::vector<float> logits_ = {};
};

// An answer as its client sees it.
class SeenAnswer final : public Answer {
 public:
  ~SeenAnswer() override = default;
  void send(int code, std::string_view, std::string body) override {
    status = code;
    bytes = std::move(body);
    done = true;
  }
  void refuse(int code, const std::string& message, std::optional<int> retry) override {
    status = code;
    bytes = message;
    retry_after_s = retry;
    done = true;
  }
  void begin(std::string_view of_type) override {
    status = 200;
    type = of_type;
  }
  void write(std::string more) override { bytes += more; }
  void end() override { done = true; }
  void when_gone(std::function<void()> tell) override { go = std::move(tell); }

  int status = 0;
  std::string bytes, type;
  std::optional<int> retry_after_s;
  bool done = false;
  std::function<void()> go;
};

inline ServedModel toy() {
  ServedModel model;
  model.name = "toy";
  model.architecture = "llama";
  model.capacity = 50;
  model.vocab_size = 100;
  return model;
}

// The events of a stream.
inline std::vector<std::string> events_of(const std::string& bytes) {
  std::vector<std::string> events;
  for (const std::string& line : split(bytes, '\n')) {
    if (line.starts_with("data: ")) events.push_back(line.substr(6));
  }
  return events;
}

class ServiceTest : public testing::Test {
 protected:
  void start(int64_t slots = 2, const SchedulerOptions& options = {}) {
    auto engine = std::make_unique<CountingEngine>(slots);
    engine_ = engine.get();
    const auto deliver = [this](std::function<void()> work) {
      const std::lock_guard lock(mutex_);
      work_.push_back(std::move(work));
      more_.notify_all();
    };
    scheduler_ = std::make_unique<Scheduler>(std::move(engine), options, deliver);
    service_ = std::make_unique<Service>(toy(), *scheduler_, nullptr, std::nullopt, deliver);
  }
  void TearDown() override {
    scheduler_.reset();
    service_.reset();
  }

  std::shared_ptr<SeenAnswer> ask(const std::string& path, const Json& body,
                                  const std::string& method = "POST") {
    auto answer = std::make_shared<SeenAnswer>();
    service_->serve({method, path, "", body.is_string() ? body.get<std::string>() : body.dump()},
                    answer);
    return answer;
  }

  // Runs what the scheduler delivers until this holds.
  void until(const std::function<bool()>& holds) {
    while (!holds()) {
      std::unique_lock lock(mutex_);
      ASSERT_TRUE(more_.wait_for(lock, std::chrono::seconds(300), [&] { return !work_.empty(); }));
      auto work = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      work();
    }
  }
  Json answered(const std::string& path, const Json& body) {
    const auto answer = ask(path, body);
    until([&] { return answer->done; });
    EXPECT_EQ(answer->status, 200) << answer->bytes;
    return Json::parse(answer->bytes);
  }
  std::string refused(const std::string& path, const Json& body, int status = 400) {
    const auto answer = ask(path, body);
    until([&] { return answer->done; });
    EXPECT_EQ(answer->status, status) << answer->bytes;
    return answer->bytes;
  }

  CountingEngine* engine_ = nullptr;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<Service> service_;
  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<std::function<void()>> work_;
};

}  // namespace assay::server
