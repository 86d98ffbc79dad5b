// An engine whose process ends, or doesn't answer, at every message of its life.
#include "server/engine_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <deque>
#include <ranges>
#include <thread>

#include "engine/session/tiny_checkpoint.h"
#include "server/thread_child.h"

namespace assay::server {
namespace {

using engine::Onward;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Hears what a request is told.
class Told final : public TokenListener {
 public:
  // `at`: is called with the number of tokens behind each one.
  explicit Told(std::function<void(size_t)> at = [](size_t) {}) : at_(std::move(at)) {}
  bool tokens(std::span<const int32_t> ids, std::span<const TokenLogprobs>) override {
    for (const int32_t id : ids) {
      made.push_back(id);
      at_(made.size());
    }
    return true;
  }
  void ended(Finish of, const GenerationTimes&, const std::string& why) override {
    finish = of;
    error = why;
    is_over = true;
    is_over.notify_all();
  }
  std::vector<int32_t> tokens_at_end() {
    is_over.wait(false);
    return made;
  }

  std::vector<int32_t> made;
  Finish finish = Finish::kFailed;
  std::string error;
  std::atomic<bool> is_over = false;

 private:
  std::function<void(size_t)> at_;
};

class EngineProcesses : public ::testing::Test {
 protected:
  static constexpr size_t kNew = 6, kMany = 20;

  // A thread that writes to nobody isn't the whole program's end.
  void SetUp() override { before_ = ::signal(SIGPIPE, SIG_IGN); }
  void TearDown() override { ::signal(SIGPIPE, before_); }

  // Processes get these fates in turn, those of operators alone and those with both ways; further
  // ones live.
  std::unique_ptr<SlotEngine> start(std::deque<Fate> stand_ins, std::deque<Fate> wholes) {
    fates_[0] = std::move(stand_ins);
    fates_[1] = std::move(wholes);
    counts_ = std::make_shared<EngineCounts>();
    told_.clear();
    errors_.clear();
    started_[0] = started_[1] = 0;
    EngineProcess process;
    process.pause_s = 0;
    process.may_lack_room = may_lack_room_;
    process.counts = counts_;
    process.start = [this](bool compiles) -> Result<std::unique_ptr<Child>> {
      ASSAY_TRY(engine::Batch batch,
                engine::Batch::create(model_, {.slots = 3, .capacity = 40, .eager_too = true}));
      auto& fates = fates_[compiles ? 1 : 0];
      const size_t number = started_[compiles ? 1 : 0]++;
      if (number == fates.size()) fates.emplace_back();
      return std::make_unique<ThreadChild>(std::move(batch), fates[number]);
    };
    process.tell = [this](const std::string& line) { told_.push_back(line); };
    auto started = start_engine(std::move(process));
    EXPECT_TRUE(started) << started.error().message;
    EXPECT_EQ(started->facts["name"], "tiny");
    return std::move(started->engine);
  }

  // Tokens of two requests that decode together, one of them drawn, where the first process has
  // this fate. Lost slots are restored in small parts, and a call that fails is made again.
  std::vector<std::vector<int32_t>> tokens_of(Fate fate) {
    const auto engine = start({}, {std::move(fate)});
    EXPECT_EQ(engine->slots(), 3);
    EXPECT_EQ(engine->capacity(), 40);
    EXPECT_TRUE(engine->ends_text(99));
    const int64_t unused = *engine->join({});
    const std::vector<std::vector<int32_t>> prompts = {{5, 6, 7, 8, 9}, {20, 21, 22}};
    std::vector<int64_t> slots;
    std::vector<std::vector<int32_t>> made(2);
    for (size_t i = 0; i < 2; ++i) {
      slots.push_back(*engine->join(prompts[i]));
      const TokenAsk wanted{
          .prompt = prompts[i],
          .most_tokens = kNew,
          .sampling = {.presence_penalty = i * 0.5, .temperature = i * 1.0, .seed = 4},
          .likeliest = i == 0 ? std::optional<int64_t>(0) : std::nullopt};
      const auto begun = engine->begin(slots[i], wanted);
      EXPECT_TRUE(begun) << begun.error().message;
    }
    engine->leave(unused);
    for (size_t i = 0; i < 2; ++i) {
      const std::span<const int32_t> prompt = prompts[i];
      while (engine->fed(slots[i]) < std::ssize(prompt)) {
        const auto left = prompt.subspan(static_cast<size_t>(engine->fed(slots[i])));
        const engine::SlotPrompt part{slots[i], left.first(std::min<size_t>(left.size(), 2))};
        call(*engine, [&] { return engine->extend({&part, 1}); });
      }
      EXPECT_EQ(engine->logits(slots[i]).size(), i == 0 ? model_->config().vocab_size : 0);
      made[i].push_back(engine->chosen(slots[i]).value());
    }
    while (made[0].size() < kNew || made[1].size() < kNew) {
      call(*engine, [&] {
        std::vector<int64_t> going;
        for (size_t i = 0; i < 2; ++i) {
          if (made[i].size() < kNew) going.push_back(slots[i]);
        }
        return engine->run(going, 20, false, [&](int64_t slot, int32_t token) {
          EXPECT_FALSE(engine->is_broken(slot));
          auto& tokens = made[slot == slots[0] ? 0 : 1];
          tokens.push_back(token);
          return tokens.size() < kNew ? Onward::kGo : Onward::kStop;
        });
      });
    }
    for (const int64_t slot : slots) engine->leave(slot);
    EXPECT_EQ(counts_->slots[0] + counts_->slots[1] + counts_->lost, 0);
    return made;
  }

  void call(SlotEngine& engine, const std::function<Status()>& made) {
    for (int64_t slot = 0; slot < engine.slots(); ++slot) {
      while (engine.is_lost(slot)) {
        const Status restored = engine.restore(slot, 2);
        ASSERT_TRUE(restored) << restored.error().message;
      }
    }
    if (const Status done = made(); !done) errors_.push_back(done.error().message);
  }

  static TokenAsk wish(int32_t first, size_t prompt = 3) {
    TokenAsk wanted{.prompt = {}, .most_tokens = kMany, .sampling = {.temperature = 1, .seed = 11}};
    for (size_t i = 0; i < prompt; ++i)
      wanted.prompt.push_back(first + static_cast<int32_t>(i) % 5);
    return wanted;
  }
  // Tokens of a request that nobody disturbs.
  std::vector<int32_t> alone(const TokenAsk& wanted) {
    Scheduler scheduler(start({}, {}), {}, now_);
    const auto told = std::make_shared<Told>();
    (void)scheduler.ask(wanted, told);
    return told->tokens_at_end();
  }

  static std::shared_ptr<engine::Model> load(const engine::TinyCheckpoint& checkpoint) {
    const engine::ModelOptions options{
        .dtype = engine::DType::kF32, .rows = engine::CacheRows::kNamed, .threads = 1};
    return *engine::Model::load(*engine::Checkpoint::open(checkpoint.folder()), options,
                                *engine::open_device(options));
  }

  engine::TinyCheckpoint checkpoint_{engine::families()[1]};
  std::shared_ptr<engine::Model> model_ = load(checkpoint_);
  std::deque<Fate> fates_[2];
  size_t started_[2] = {};
  std::shared_ptr<EngineCounts> counts_;
  bool may_lack_room_ = false;
  std::vector<std::string> errors_, told_;
  const Scheduler::Deliver now_ = [](const std::function<void()>& work) { work(); };
  sighandler_t before_ = SIG_DFL;
};

TEST_F(EngineProcesses, LoseNothingThatWasToldWhereverOneEnds) {
  const auto expected = tokens_of({});
  const int64_t messages = fates_[1][0].heard;
  ASSERT_GT(messages, 2 * static_cast<int64_t>(kNew));
  EXPECT_TRUE(told_.empty());
  for (const auto kind : {LineRead::Kind::kEnd, LineRead::Kind::kDeadline}) {
    for (int64_t until = 1; until < messages; ++until) {
      EXPECT_EQ(tokens_of({.messages = until, .kind = kind}), expected) << until << " messages";
      EXPECT_LE(errors_.size(), 1u);
      ASSERT_GE(told_.size(), 1u);
      EXPECT_THAT(told_[0],
                  StartsWith(kind == LineRead::Kind::kEnd
                                 ? "expected an answer, found the end of its process (SIGSEGV); "
                                 : "expected an answer, found none within 60 s; "));
      if (told_.size() == 1) {
        EXPECT_GE(until, messages - 3) << "nobody's slot was lost";
        continue;
      }
      EXPECT_THAT(told_[1], StartsWith("goes on operator by operator after "));
      EXPECT_EQ(counts_->starts[0], 1);
      EXPECT_LE(counts_->starts[1], 2);
    }
  }
}

// Nothing but tokens of these requests lets the compiled process be ready: they'd wait for ever.
TEST_F(EngineProcesses, ServeWhileWhatIsCompiledStarts) {
  const std::vector<TokenAsk> asks = {wish(5), wish(20, 12), wish(30)};
  std::vector<std::vector<int32_t>> expected;
  for (const TokenAsk& wanted : asks) expected.push_back(alone(wanted));
  std::atomic<bool> held = true;
  auto engine = start({}, {{.messages = 12}, {.held = &held}});
  std::vector<int64_t> there;  // requests in the two processes, at the third one's first token
  Scheduler scheduler(std::move(engine), {.chunk_tokens = 4}, now_);
  const auto third = std::make_shared<Told>([&](size_t tokens) {
    if (tokens == 1) there = {counts_->slots[0], counts_->slots[1]};
  });
  const auto first = std::make_shared<Told>([&](size_t tokens) {
    if (tokens == 12) {
      EXPECT_EQ(counts_->starts[0], 1);
      EXPECT_EQ(counts_->starts[1], 1);
      EXPECT_EQ(counts_->ready[1], 0);
      held = false;
    }
    if (tokens == 14) (void)scheduler.ask(asks[2], third);
  });
  const auto second = std::make_shared<Told>();
  (void)scheduler.ask(asks[0], first);
  (void)scheduler.ask(asks[1], second);
  EXPECT_EQ(first->tokens_at_end(), expected[0]);
  EXPECT_EQ(second->tokens_at_end(), expected[1]);
  EXPECT_EQ(third->tokens_at_end(), expected[2]);
  scheduler.settle();
  ASSERT_EQ(there.size(), 2u);
  EXPECT_GE(there[0], 1) << "those that were begun there end there";
  EXPECT_EQ(there[1], 1) << "new ones are where something is compiled";
  EXPECT_EQ(counts_->ready[0], 0) << "the one that stood in has ended";
  EXPECT_EQ(counts_->ready[1], 1);
  EXPECT_THAT(told_, ElementsAre(HasSubstr("(SIGSEGV); "), StartsWith("goes on operator by "),
                                 StartsWith("compiled again after ")));
}

TEST_F(EngineProcesses, RestoreATextInChunksBetweenStepsOfOthers) {
  const TokenAsk longer = wish(20, 20), shorter = wish(5);
  const auto expected = alone(longer), other = alone(shorter);
  std::atomic<bool> held = true;
  Scheduler scheduler(start({}, {{.messages = 26}, {.held = &held}}), {.chunk_tokens = 4}, now_);
  const auto second = std::make_shared<Told>();
  const auto first = std::make_shared<Told>([&](size_t tokens) {
    if (tokens == 2) (void)scheduler.ask(longer, second);
  });
  (void)scheduler.ask(shorter, first);
  EXPECT_EQ(first->tokens_at_end(), other);
  EXPECT_EQ(second->tokens_at_end(), expected);
  held = false;
  held.notify_all();
  scheduler.settle();
  // Calls of the one that stood in, from the second slot's begin on.
  std::vector<std::string> calls;
  for (const std::string& one : fates_[0].at(0).calls)
    calls.push_back(Json::parse(one)["call"].get<std::string>());
  const auto begin = std::find(calls.begin() + 1, calls.end(), "begin");
  const auto last = std::find(calls.rbegin(), calls.rend(), "extend").base();
  EXPECT_EQ(std::count(begin, last, "extend"), 5) << "parts of 4 tokens";
  EXPECT_GE(std::count(begin, last, "run"), 4);
}

TEST_F(EngineProcesses, OnesThatEndInTheirStartAreStartedAgain) {
  const TokenAsk wanted = wish(5);
  const auto expected = alone(wanted);
  // Neither the one that stands in nor the compiled one gets ready at once.
  Scheduler scheduler(start({{.messages = 0}}, {{.messages = 9}, {.messages = 0}, {.messages = 0}}),
                      {}, now_);
  const auto told = std::make_shared<Told>();
  (void)scheduler.ask(wanted, told);
  EXPECT_EQ(told->tokens_at_end(), expected);
  while (counts_->ready[1] == 0) std::this_thread::yield();  // the scheduler rests meanwhile
  EXPECT_EQ(counts_->starts[0], 1);
  EXPECT_EQ(counts_->starts[1], 2);
  EXPECT_EQ(started_[0], 2u);
  EXPECT_EQ(started_[1], 4u);
}

TEST_F(EngineProcesses, TheOneThatStandsInMayEndToo) {
  const TokenAsk wanted = wish(5);
  const auto expected = alone(wanted);
  std::atomic<bool> held = true;
  for (int64_t until = 1; until < 8; ++until) {
    held = true;
    Scheduler scheduler(start({{.messages = until}}, {{.messages = 9}, {.held = &held}}), {}, now_);
    const auto told = std::make_shared<Told>();
    (void)scheduler.ask(wanted, told);
    EXPECT_EQ(told->tokens_at_end(), expected) << until;
    EXPECT_EQ(counts_->starts[0], 2) << until;
    held = false;
    held.notify_all();
  }
}

// A processor has room: whatever a start says, the one that stands in goes on.
TEST_F(EngineProcesses, ARefusedStartIsTriedAgainWhereThereIsRoom) {
  const TokenAsk wanted = wish(5);
  const auto expected = alone(wanted);
  Scheduler scheduler(start({}, {{.messages = 9}, {.refuses = true}, {}}), {}, now_);
  for (int i = 0; i < 2; ++i) {
    const auto told = std::make_shared<Told>();
    (void)scheduler.ask(wanted, told);
    EXPECT_EQ(told->tokens_at_end(), expected);
  }
  scheduler.settle();
  EXPECT_EQ(counts_->starts[0], 1);
  EXPECT_THAT(told_, Contains("compiled: no room; again in 0 s"));
  EXPECT_THAT(told_, Not(Contains(HasSubstr("alone"))));
}

TEST_F(EngineProcesses, WhereThereIsNoRoomForTwoOneStartsAlone) {
  const TokenAsk wanted = wish(5);
  const auto expected = alone(wanted);
  may_lack_room_ = true;
  Scheduler scheduler(start({}, {{.messages = 9}, {.refuses = true}, {.messages = 9}}), {}, now_);
  for (int i = 0; i < 2; ++i) {
    const auto told = std::make_shared<Told>();
    (void)scheduler.ask(wanted, told);
    EXPECT_EQ(told->tokens_at_end(), expected);
  }
  scheduler.settle();
  EXPECT_EQ(counts_->starts[0], 1) << "once it was tried";
  EXPECT_EQ(counts_->starts[1], 3);
  EXPECT_THAT(told_,
              ElementsAre(HasSubstr("(SIGSEGV); 1 request to restore"),
                          StartsWith("goes on operator by operator after "),
                          "compiled: no room; starts alone, and all requests wait",
                          "makes room; 1 request to restore", StartsWith("compiled again after "),
                          HasSubstr("(SIGSEGV); 1 "), StartsWith("compiled again after ")));
}

// A request fails whose calls three processes didn't survive, and nobody else.
TEST_F(EngineProcesses, ARequestThatEndsEachProcessFailsAlone) {
  const TokenAsk good = wish(5);
  const auto expected = alone(good);
  const TokenAsk bad{.prompt = {33, 33, 33}, .most_tokens = kMany};
  const std::string poison = "[33,33,33]";
  std::atomic<bool> held = true;
  Scheduler scheduler(start({{.poison = poison}, {.poison = poison}, {.poison = poison}},
                            {{.poison = poison}, {.held = &held}}),
                      {}, now_);
  const auto failed = std::make_shared<Told>();
  const auto told = std::make_shared<Told>([&](size_t tokens) {
    if (tokens == 3) (void)scheduler.ask(bad, failed);
  });
  (void)scheduler.ask(good, told);
  EXPECT_EQ(told->tokens_at_end(), expected);
  EXPECT_TRUE(failed->tokens_at_end().empty());
  EXPECT_EQ(failed->finish, Finish::kFailed);
  EXPECT_EQ(failed->error, "engine: expected an answer, found the end of its process (SIGSEGV)");
  EXPECT_EQ(started_[0], 3u);
  held = false;
  held.notify_all();
}

TEST_F(EngineProcesses, OneThatCantBeginSaysWhy) {
  EngineProcess process;
  process.start = [](bool) -> Result<std::unique_ptr<Child>> {
    return bad_input("no such program");
  };
  const auto started = start_engine(std::move(process));
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().message, "no such program");
}

}  // namespace
}  // namespace assay::server
