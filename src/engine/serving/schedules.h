// For tests of every device: requests in slots that come and go in any order get the tokens that
// each has alone.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "engine/serving/batch.h"
#include "engine/session/tiny_checkpoint.h"

namespace assay::engine::test {

// Random schedules of join, chunk, step, run and leave over one batch, whose slots are so reused
// all the time. Before each run all positions that are in no use hold NaN.
class Schedules {
 public:
  // Fills memory of the device with bytes of 0xff, a NaN, in the order of its other work.
  using Poison = std::function<Status(std::byte* to, size_t bytes)>;

  static constexpr int64_t kSlots = 4, kCapacity = 24, kEnd = 5;

  // `base`: the device; weights are fp32, whose tokens no order of sums changes.
  Schedules(const Family& family, ModelOptions base, bool compiled) : checkpoint_(family) {
    Session alone = open(checkpoint_, {.dtype = DType::kF32, .threads = 1});
    make_requests(alone);
    base.dtype = DType::kF32;
    base.rows = CacheRows::kNamed;
    base.compiler.verify_passes = false;  // each pass has tests of its own
    auto checkpoint = Checkpoint::open(checkpoint_.folder());
    auto device = open_device(base);
    EXPECT_TRUE(checkpoint && device);
    auto model = Model::load(*std::move(checkpoint), base, *std::move(device));
    EXPECT_TRUE(model) << model.error().message;
    auto batch = Batch::create(*model, {.slots = kSlots,
                                        .capacity = kCapacity,
                                        .chunk = 16,
                                        .compiled = compiled,
                                        .eager_too = compiled && !base.gpu,
                                        .ends = {kEnd}});
    EXPECT_TRUE(batch) << batch.error().message;
    batch_ = std::make_unique<Batch>(*std::move(batch));
    held_.resize(kSlots);
    left_.resize(kSlots);
  }

  Batch& batch() { return *batch_; }

  void run(int64_t schedules, uint64_t seed, const Poison& poison) {
    for (int64_t schedule = 0; schedule < schedules; ++schedule) {
      random_ = Random(seed, static_cast<uint64_t>(schedule));
      for (int64_t action = 0; action < 30; ++action) {
        act(poison);
        ASSERT_FALSE(testing::Test::HasFailure())
            << "schedule " << schedule << " of seed " << seed << ", action " << action;
      }
    }
    for (int64_t slot = 0; slot < kSlots; ++slot) give_back(slot);
    EXPECT_EQ(batch_->free_slots(), kSlots);
  }

 private:
  struct Request {
    Prompt prompt;
    Sampling sampling;
    std::vector<int32_t> tokens;  // that follow it, as long as there is room
  };
  // Somebody's slot: how much of the prompt and of the tokens it has been fed.
  struct Held {
    const Request* request = nullptr;
    size_t fed = 0;

    size_t length() const { return request->prompt.size(); }
    bool decodes() const { return request != nullptr && fed >= length(); }
    // The token that must follow now.
    int32_t expected() const { return request->tokens[fed - length()]; }
  };

  int64_t below(int64_t bound) {
    return static_cast<int64_t>(random_.below(static_cast<uint64_t>(bound)));
  }

  // Half of them choose the largest logits. Tokens are those of logits by so much that no order of
  // sums makes others so.
  void make_requests(Session& alone) {
    constexpr size_t kRequests = 24;
    const int64_t vocab = alone.config().vocab_size;
    for (int tries = 0; requests_.size() < kRequests && tries < 1000; ++tries) {
      Request request;
      const int64_t length = 1 + below(kCapacity - 2);
      for (int64_t i = 0; i < length; ++i)
        request.prompt.push_back(static_cast<int32_t>(below(vocab)));
      if (tries % 2 == 1) request.sampling = some_sampling();
      if (generate_alone(alone, request)) requests_.push_back(std::move(request));
    }
    EXPECT_EQ(requests_.size(), kRequests);
  }

  Sampling some_sampling() {
    Sampling sampling{.temperature = 0.3 + random_.uniform(), .seed = random_()};
    if (below(2) == 0) sampling.top_k = 2 + below(10);
    if (below(2) == 0) sampling.top_p = 0.5 + 0.5 * random_.uniform();
    if (below(2) == 0) sampling.min_p = 0.1 * random_.uniform();
    if (below(2) == 0) sampling.repetition_penalty = 1.2;
    if (below(2) == 0) sampling.presence_penalty = 0.3;
    if (below(2) == 0) sampling.frequency_penalty = 0.2;
    if (below(2) == 0) sampling.logit_bias = {{static_cast<int32_t>(below(30)), 1.5}};
    return sampling;
  }

  // False if slightly other logits choose otherwise.
  bool generate_alone(Session& alone, Request& request) {
    Sampler sampler(request.sampling, alone.config().vocab_size);
    sampler.saw_prompt(request.prompt);
    EXPECT_TRUE(alone.prepare(1, kCapacity));
    EXPECT_TRUE(alone.prefill(PromptBatch::of({request.prompt})));
    for (;;) {
      const std::vector<float> logits = copy(alone.logits());
      const int32_t token = sampler.choose(logits);
      for (int trial = 0; trial < 8; ++trial) {
        if (sampler.choose(disturbed(logits)) != token) return false;
      }
      request.tokens.push_back(token);
      if (alone.kv_len() == kCapacity) return true;
      EXPECT_TRUE(alone.decode({&token, 1}));
      sampler.saw_chosen(token);
    }
  }
  std::vector<float> disturbed(std::vector<float> logits) {
    for (float& logit : logits) logit += static_cast<float>(1e-4 * (random_.uniform() - 0.5));
    return logits;
  }

  void act(const Poison& poison) {
    if (below(4) == 0) batch_->use_compiled(below(2) == 0);  // where it can be both
    const int64_t slot = below(kSlots);
    Held& held = held_[static_cast<size_t>(slot)];
    switch (below(7)) {
      case 0:
        return take_one();
      case 5:
        poison_unused(poison);
        return put_in_anew(slot);
      case 1:
        if (below(3) == 0) give_back(slot);
        return;
      case 2:
        if (held.request == nullptr || held.decodes()) return;
        poison_unused(poison);
        return feed_prompts({slot});
      case 3:
        poison_unused(poison);
        return feed_prompts(prompted());
      case 4:
        poison_unused(poison);
        return step(chosen());
      default:
        poison_unused(poison);
        return run_some(chosen());
    }
  }

  void take_one() {
    const int64_t wanted = below(kSlots);
    const auto slot = batch_->join(wanted);
    ASSERT_EQ(slot.has_value(), std::ranges::count(held_, nullptr, &Held::request) > 0);
    if (!slot) return;
    const auto at = static_cast<size_t>(*slot);
    Held& held = held_[at];
    ASSERT_EQ(held.request, nullptr) << "somebody's slot";
    if (held_[static_cast<size_t>(wanted)].request == nullptr) {
      EXPECT_EQ(*slot, wanted);
    }
    const Held left = std::exchange(left_[at], {});
    const bool again = left.request != nullptr && below(2) == 0;
    held = {again ? left.request : &requests_[static_cast<size_t>(below(std::ssize(requests_)))],
            0};
    EXPECT_EQ(batch_->length(*slot), 0);
    EXPECT_EQ(batch_->next(*slot), -1);
    EXPECT_TRUE(batch_->sample(*slot, held.request->sampling));
    if (!again) return;
    // A prompt's last token is computed.
    const size_t most = std::min(left.fed, held.length() - 1);
    held.fed = below(2) == 0 ? most : random_.below(most + 1);
    EXPECT_TRUE(batch_->reuse(*slot, std::span(held.request->prompt).first(held.fed)));
    EXPECT_EQ(batch_->length(*slot), static_cast<int64_t>(held.fed));
  }

  void give_back(int64_t slot) {
    Held& held = held_[static_cast<size_t>(slot)];
    const int64_t length = batch_->length(slot);
    EXPECT_EQ(batch_->leave(slot).has_value(), held.request != nullptr);
    if (held.request != nullptr)
      left_[static_cast<size_t>(slot)] = {held.request, static_cast<size_t>(length)};
    held = {};
  }

  // A slot that decodes gets its text anew, as where its process has ended: the prompt, and in
  // parts the tokens behind it, each part from the token on that ended the one before.
  void put_in_anew(int64_t slot) {
    const Held& held = held_[static_cast<size_t>(slot)];
    if (!held.decodes() || batch_->awaits_end(slot)) return;
    EXPECT_TRUE(batch_->leave(slot));
    EXPECT_EQ(batch_->join(slot), slot);
    EXPECT_TRUE(batch_->sample(slot, held.request->sampling));
    ASSERT_TRUE(batch_->extend(slot, held.request->prompt));
    auto left = std::span(held.request->tokens).first(held.fed - held.length() + 1);
    for (size_t count = 1; !left.empty(); left = left.subspan(count - 1)) {
      count = 1 + random_.below(left.size());
      if (count == 1 && left.size() > 1) count = 2;
      const Status followed = batch_->follow(slot, left.first(count));
      ASSERT_TRUE(followed) << followed.error().message;
      if (count == left.size()) break;
    }
    expect_next(slot, held);
  }

  // Parts of the prompts that are left, which may take several runs, or all of them.
  void feed_prompts(const std::vector<int64_t>& slots) {
    if (slots.empty()) return;
    std::vector<SlotPrompt> parts;
    for (const int64_t slot : slots) {
      Held& held = held_[static_cast<size_t>(slot)];
      const auto left = std::span(held.request->prompt).subspan(held.fed);
      const size_t count = below(2) == 0 ? left.size() : 1 + random_.below(left.size());
      parts.push_back({slot, left.first(count)});
      held.fed += count;
    }
    const Status fed = batch_->extend(parts);
    ASSERT_TRUE(fed) << fed.error().message;
    for (const int64_t slot : slots) expect_next(slot, held_[static_cast<size_t>(slot)]);
  }

  // The prompt's last token may be left for the next step.
  void expect_next(int64_t slot, const Held& held) {
    const bool awaits = batch_->awaits_end(slot);
    EXPECT_EQ(batch_->length(slot), static_cast<int64_t>(held.fed) - (awaits ? 1 : 0));
    if (awaits) {
      EXPECT_EQ(batch_->next(slot), held.request->prompt[held.fed - 1]);
      EXPECT_TRUE(batch_->logits(slot).empty());
    } else if (held.decodes()) {
      EXPECT_EQ(batch_->next(slot), held.expected()) << "slot " << slot << ", fed " << held.fed;
    }
    EXPECT_TRUE(batch_->logits_finite(slot));
  }

  // Some of the slots whose prompts aren't all in, in any order.
  std::vector<int64_t> prompted() {
    std::vector<int64_t> slots;
    for (int64_t slot = 0; slot < kSlots; ++slot) {
      const Held& held = held_[static_cast<size_t>(slot)];
      if (held.request == nullptr || held.decodes() || below(4) == 0) continue;
      slots.insert(slots.begin() + below(std::ssize(slots) + 1), slot);
    }
    return slots;
  }

  // Some of the slots that can take a step, in any order.
  std::vector<int64_t> chosen() {
    std::vector<int64_t> slots;
    for (int64_t slot = 0; slot < kSlots; ++slot) {
      const Held& held = held_[static_cast<size_t>(slot)];
      if (!held.decodes() || batch_->length(slot) == kCapacity || below(4) == 0) continue;
      slots.insert(slots.begin() + below(std::ssize(slots) + 1), slot);
    }
    return slots;
  }

  void step(const std::vector<int64_t>& slots) {
    if (slots.empty()) return;
    std::vector<SlotToken> fed;
    const std::vector<bool> awaited = awaiting();
    for (const int64_t slot : slots) fed.push_back({slot, batch_->next(slot)});
    const Status stepped = batch_->step(fed);
    ASSERT_TRUE(stepped) << stepped.error().message;
    for (const auto& [slot, token] : fed) {
      Held& held = held_[static_cast<size_t>(slot)];
      if (!awaited[static_cast<size_t>(slot)]) ++held.fed;
      expect_next(slot, held);
      EXPECT_FALSE(batch_->logits(slot).empty());
    }
  }

  // Steps that go on by themselves until the sink, an end or the room ends a slot's.
  void run_some(const std::vector<int64_t>& slots) {
    const int64_t steps = 1 + below(12);
    std::vector<int64_t> got(kSlots, 0), wanted(kSlots, steps);
    for (const int64_t slot : slots) {
      if (below(3) == 0) wanted[static_cast<size_t>(slot)] = 1 + below(steps);
    }
    std::vector<bool> awaited = awaiting();
    bool is_last = false;
    const auto take = [&](int64_t slot, int32_t token) {
      const auto at = static_cast<size_t>(slot);
      Held& held = held_[at];
      if (got[at] > 0) {
        EXPECT_NE(held.expected(), kEnd) << "it went on behind an end";
      }
      if (!awaited[at]) ++held.fed;
      awaited[at] = false;
      EXPECT_EQ(token, held.expected()) << "slot " << slot << ", fed " << held.fed;
      if (++got[at] == wanted[at]) return Onward::kStop;
      if (below(8) != 0) return Onward::kGo;
      is_last = true;
      return Onward::kLast;
    };
    const Status ran = batch_->run(slots, steps, take);
    ASSERT_TRUE(ran) << ran.error().message;
    for (const int64_t slot : slots) {
      const auto at = static_cast<size_t>(slot);
      const Held& held = held_[at];
      expect_next(slot, held);
      EXPECT_GE(got[at], 1);
      const bool ended = held.expected() == kEnd || batch_->length(slot) == kCapacity;
      EXPECT_TRUE(got[at] == wanted[at] || ended || (is_last && got[at] < wanted[at]));
      EXPECT_TRUE(batch_->logits(slot).empty());
    }
  }

  std::vector<bool> awaiting() const {
    std::vector<bool> slots;
    for (int64_t slot = 0; slot < kSlots; ++slot) slots.push_back(batch_->awaits_end(slot));
    return slots;
  }

  void poison_unused(const Poison& poison) {
    KvCache& cache = batch_->cache();
    for (int64_t layer = 0; layer < cache.shape().layers; ++layer) {
      for (const CachePart part : {CachePart::kKeys, CachePart::kValues}) {
        const auto view = cache.extend(layer, part, kCapacity);
        ASSERT_TRUE(view);
        for (int64_t head = 0; head < kSlots * view->kv_heads; ++head) {
          const int64_t slot = head / view->kv_heads;
          const bool taken = held_[static_cast<size_t>(slot)].request != nullptr;
          const int64_t used = taken ? batch_->length(slot)
                                     : static_cast<int64_t>(left_[static_cast<size_t>(slot)].fed);
          float* const first = view->f32() + head * view->head_stride + used * view->head_dim;
          ASSERT_TRUE(poison(reinterpret_cast<std::byte*>(first),
                             static_cast<size_t>((kCapacity - used) * view->head_dim) * 4));
        }
      }
    }
  }

  TinyCheckpoint checkpoint_;
  Random random_{1};
  std::vector<Request> requests_;
  std::unique_ptr<Batch> batch_;
  std::vector<Held> held_;  // by slot
  std::vector<Held> left_;  // likewise, of free ones: what their positions still hold
};

}  // namespace assay::engine::test
