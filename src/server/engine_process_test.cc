// An engine whose process ends, or doesn't answer, at every message of its life.
#include "server/engine_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <thread>

#include "base/files/descriptor.h"
#include "engine/session/tiny_checkpoint.h"

namespace assay::server {
namespace {

using engine::Onward;

// Messages until the process's end, and how it comes.
struct Fate {
  int64_t messages = INT64_MAX;
  LineRead::Kind kind = LineRead::Kind::kEnd;
  int64_t heard = 0;  // messages
};

// The process's side in a thread.
class ThreadChild final : public Child {
 public:
  ThreadChild(engine::Batch batch, Fate& fate) : batch_(std::move(batch)), fate_(fate) {
    int requests[2], replies[2];
    EXPECT_EQ(::pipe(requests), 0);
    EXPECT_EQ(::pipe(replies), 0);
    to_ = Descriptor(requests[1]);
    from_ = ::fdopen(replies[0], "r");
    thread_ = std::thread([this, in = requests[0], out = Descriptor(replies[1])] {
      (void)serve_batch(batch_, {99}, {{"name", "tiny"}}, in, out.get());
    });
  }
  ~ThreadChild() override {
    to_ = Descriptor();
    std::fclose(from_);
    thread_.join();
  }
  int64_t pid() const override { return 0; }
  Status send(std::string_view bytes, int64_t) override {
    if (is_dead_ || ::write(to_.get(), bytes.data(), bytes.size()) < 0)
      return environment_error("it has ended");
    return {};
  }
  void close_requests() override {}
  LineRead read_line(int64_t) override {
    is_dead_ |= fate_.heard++ == fate_.messages;
    if (is_dead_) return {fate_.kind, ""};
    std::string line;
    for (int byte = 0; (byte = std::fgetc(from_)) != EOF && byte != '\n';)
      line += static_cast<char>(byte);
    return {LineRead::Kind::kLine, line};
  }
  int reply_descriptor() const override { return -1; }
  int end_descriptor() const override { return -1; }
  std::optional<ChildEnd> wait(int64_t) override {
    ChildEnd end;
    end.signal = "SIGSEGV";
    return end;
  }
  void kill() override {}
  std::string captured_stdout() const override { return ""; }
  std::string captured_stderr() const override { return ""; }

 private:
  engine::Batch batch_;
  Fate& fate_;
  Descriptor to_;
  std::FILE* from_ = nullptr;
  bool is_dead_ = false;
  std::thread thread_;
};

class EngineProcesses : public ::testing::Test {
 protected:
  static constexpr size_t kNew = 6;

  // A thread that writes to nobody isn't the whole program's end.
  void SetUp() override { before_ = ::signal(SIGPIPE, SIG_IGN); }
  void TearDown() override { ::signal(SIGPIPE, before_); }

  // Tokens of two requests that decode together, one of them drawn; each call that fails is made
  // again once.
  std::vector<std::vector<int32_t>> tokens_of(Fate fate, bool compiled = true) {
    EngineProcess process;
    process.start = [&]() -> Result<std::unique_ptr<Child>> {
      ASSAY_TRY(engine::Batch batch,
                engine::Batch::create(model_, {.slots = 3, .capacity = 30, .eager_too = true}));
      return std::make_unique<ThreadChild>(std::move(batch), fate);
    };
    process.tell = [&](const std::string& line, bool) { told_.push_back(line); };
    auto started = start_engine(std::move(process));
    EXPECT_TRUE(started) << started.error().message;
    SlotEngine& engine = *started->engine;
    EXPECT_EQ(started->facts["name"], "tiny");
    EXPECT_EQ(engine.slots(), 3);
    EXPECT_EQ(engine.capacity(), 30);
    EXPECT_TRUE(engine.ends_text(99));
    engine.use_compiled(compiled);
    const int64_t unused = *engine.join({});
    const std::vector<std::vector<int32_t>> prompts = {{5, 6, 7, 8, 9}, {20, 21, 22}};
    std::vector<int64_t> slots;
    std::vector<std::vector<int32_t>> made(2);
    for (size_t i = 0; i < 2; ++i) {
      slots.push_back(*engine.join(prompts[i]));
      const TokenAsk wanted{
          .prompt = prompts[i],
          .most_tokens = kNew,
          .sampling = {.presence_penalty = i * 0.5, .temperature = i * 1.0, .seed = 4},
          .likeliest = i == 0 ? std::optional<int64_t>(0) : std::nullopt};
      const auto begun = engine.begin(slots[i], wanted);
      EXPECT_TRUE(begun) << begun.error().message;
    }
    engine.leave(unused);
    for (size_t i = 0; i < 2; ++i) {
      const std::span<const int32_t> prompt = prompts[i];
      for (const auto& part : {prompt.first(2), prompt.subspan(2)}) {
        const engine::SlotPrompt one{slots[i], part};
        retried([&] { return engine.extend({&one, 1}); });
      }
      EXPECT_EQ(engine.logits(slots[i]).size(), i == 0 ? model_->config().vocab_size : 0);
      made[i].push_back(engine.chosen(slots[i]).value());
    }
    retried([&] {
      std::vector<int64_t> going;
      for (size_t i = 0; i < 2; ++i) {
        if (made[i].size() < kNew) going.push_back(slots[i]);
      }
      return engine.run(going, 20, false, [&](int64_t slot, int32_t token) {
        EXPECT_FALSE(engine.is_broken(slot));
        auto& tokens = made[slot == slots[0] ? 0 : 1];
        tokens.push_back(token);
        return tokens.size() < kNew ? Onward::kGo : Onward::kStop;
      });
    });
    for (const int64_t slot : slots) engine.leave(slot);
    messages_ = fate.heard;
    return made;
  }

  void retried(const std::function<Status()>& call) {
    const Status first = call();
    if (first) return;
    errors_.push_back(first.error().message);
    const Status again = call();
    EXPECT_TRUE(again) << again.error().message;
  }

  static std::shared_ptr<engine::Model> load(const engine::TinyCheckpoint& checkpoint) {
    const engine::ModelOptions options{
        .dtype = engine::DType::kF32, .rows = engine::CacheRows::kNamed, .threads = 1};
    return *engine::Model::load(*engine::Checkpoint::open(checkpoint.folder()), options,
                                *engine::open_device(options));
  }

  engine::TinyCheckpoint checkpoint_{engine::families()[1]};
  std::shared_ptr<engine::Model> model_ = load(checkpoint_);
  int64_t messages_ = 0;  // of the engine in a whole life
  std::vector<std::string> errors_, told_;
  sighandler_t before_ = SIG_DFL;
};

TEST_F(EngineProcesses, LoseNothingThatWasToldWhereverOneEnds) {
  const auto expected = tokens_of({});
  const int64_t messages = messages_;
  ASSERT_GT(messages, 2 * static_cast<int64_t>(kNew));
  EXPECT_TRUE(told_.empty());
  for (const auto kind : {LineRead::Kind::kEnd, LineRead::Kind::kDeadline}) {
    for (int64_t until = 1; until < messages; ++until) {
      errors_.clear();
      told_.clear();
      EXPECT_EQ(tokens_of({until, kind}), expected) << "after " << until << " messages";
      EXPECT_LE(errors_.size(), 1u);
      ASSERT_EQ(told_.size(), 2u);
      EXPECT_EQ(told_[0], kind == LineRead::Kind::kEnd
                              ? "expected an answer, found the end of its process (SIGSEGV)"
                              : "expected an answer, found none within 60 s");
      EXPECT_THAT(told_[1], ::testing::StartsWith("runs anew after "));
    }
  }
}

// Steps of several requests alone are the caller's to make again.
TEST_F(EngineProcesses, MakeACallOperatorByOperatorAgainWhereOneEnds) {
  const auto expected = tokens_of({}, false);
  const int64_t messages = messages_;
  int64_t errors = 0;
  for (int64_t until = 1; until < messages; ++until) {
    errors_.clear();
    told_.clear();
    EXPECT_EQ(tokens_of({until, LineRead::Kind::kEnd}, false), expected) << "after " << until;
    errors += std::ssize(errors_);
    EXPECT_EQ(told_.size(), 2u);
  }
  EXPECT_GT(errors, 0);
  EXPECT_LE(errors, 2 * static_cast<int64_t>(kNew)) << "no prompt's, which come by themselves";
}

TEST_F(EngineProcesses, OneThatCantBeginSaysWhy) {
  EngineProcess process;
  process.start = []() -> Result<std::unique_ptr<Child>> { return bad_input("no such program"); };
  const auto started = start_engine(std::move(process));
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().message, "no such program");
}

}  // namespace
}  // namespace assay::server
