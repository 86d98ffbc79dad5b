// A GPU draws the tokens that the host draws, to the last of them: random wishes over random
// logits. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"
#include "cuda_driver.h"
#include "engine/codegen/cuda/cuda_sampling.h"
#include "engine/device/cuda/cuda_slot_sampling.h"
#include "engine/serving/sampling.h"

namespace assay::engine {
namespace {

constexpr int64_t kRows = 3, kSlots = 5, kSteps = 4;

class CudaSampling : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    if (!assay::test::CudaDriver::open()) GTEST_SKIP() << "no GPU here";
    driver_ = *cuda::Driver::open();
    kernels_.emplace(*driver_, *Nvrtc::open(), std::nullopt);
    const auto module = kernels_->load(
        print_cuda_sampling({"const float* logits; long positions, vocab; ", "", ""}), false);
    ASSERT_TRUE(module) << module.error().message;
    function_ = *driver_->function(*module, "assay_run");
    tables_ = *cuda::CudaSlotSampling::create(*driver_, *kernels_, kSlots, kRows, vocab());
  }
  int64_t vocab() const { return GetParam(); }
  int64_t below(int64_t bound) {
    return static_cast<int64_t>(random_.below(static_cast<uint64_t>(bound)));
  }
  bool perhaps() { return below(2) == 0; }

  Sampling some_sampling() {
    Sampling sampling{.seed = random_()};
    if (below(6) != 0) sampling.temperature = 0.2 + 2 * random_.uniform();
    if (perhaps()) sampling.top_k = 1 + below(perhaps() ? 5 : 2 * vocab());
    if (perhaps()) sampling.top_p = perhaps() ? 0.01 + 0.9 * random_.uniform() : 1e-9;
    if (perhaps()) sampling.min_p = perhaps() ? 0.2 * random_.uniform() : 1;
    if (perhaps()) sampling.repetition_penalty = 0.5 + random_.uniform();
    if (perhaps()) sampling.presence_penalty = random_.uniform() - 0.5;
    if (perhaps()) sampling.frequency_penalty = random_.uniform();
    for (int32_t id = 0; id < vocab() && perhaps(); id += 7)
      sampling.logit_bias.emplace_back(id, 4 * random_.uniform());
    return sampling;
  }

  // They have a few values or many; now and then one is not finite.
  std::vector<float> some_logits() {
    std::vector<float> logits(static_cast<size_t>(vocab()));
    const bool equal = below(3) == 0;
    const double spread = perhaps() ? 3 : 40;
    for (float& logit : logits) {
      const double value = spread * (random_.uniform() - 0.5);
      logit = static_cast<float>(equal ? std::floor(value) : value);
      if (below(50) == 0) logit = -std::numeric_limits<float>::infinity();
    }
    const auto place = [&]() -> float& { return logits[static_cast<size_t>(below(vocab()))]; };
    if (below(20) == 0) place() = std::numeric_limits<float>::infinity();
    if (below(20) == 0) place() = std::numeric_limits<float>::quiet_NaN();
    return logits;
  }

  template <typename T>
  cuda::Address on_device(const std::vector<T>& values) {
    blocks_.push_back(*cuda::GpuBlock::allocate(*driver_, values.size() * sizeof(T)));
    EXPECT_TRUE(driver_->upload(blocks_.back().address(), std::as_bytes(std::span(values))));
    return blocks_.back().address();
  }

  // The tokens of a run: a step that feeds these, or a prompt of `q_len`.
  std::vector<int32_t> drawn(const std::vector<float>& logits, const std::vector<int32_t>& slots,
                             const std::vector<int32_t>& fed, const std::vector<int32_t>& before,
                             int64_t q_len) {
    std::vector<int32_t> tokens(kRows, -1);
    const cuda::Address to = on_device(tokens);
    std::vector<cuda::Address> arguments = {
        to, on_device(std::vector<int64_t>{kRows, q_len, 0, 0, 0, 0}), on_device(slots),
        fed.empty() ? 0 : on_device(fed), on_device(before)};
    const auto tables = tables_->arguments();
    arguments.insert(arguments.end(), tables.begin(), tables.end());
    arguments.insert(arguments.end(), {on_device(logits), 1, static_cast<cuda::Address>(vocab())});
    EXPECT_TRUE(
        driver_->launch(function_, {kRows, 1, 1}, kCudaSamplingThreads, arguments.data(), false));
    EXPECT_TRUE(driver_->download(std::as_writable_bytes(std::span(tokens)), to));
    blocks_.clear();
    return tokens;
  }

  Random random_{7};
  std::unique_ptr<cuda::Driver> driver_;
  std::optional<cuda::KernelStore> kernels_;
  std::unique_ptr<cuda::CudaSlotSampling> tables_;
  cuda::Function function_ = nullptr;
  std::vector<cuda::GpuBlock> blocks_;
};

TEST_P(CudaSampling, DrawsTheHostsTokens) {
  const int64_t rounds = assay::test::steps_of_a_case(300, assay::test::in_the_soak() ? 60 : 8);
  for (int64_t round = 0; round < rounds; ++round) {
    std::vector<Sampler> host;
    std::vector<int32_t> slots, before;
    const bool held_back = perhaps();  // the prompt's last token goes with the first step
    for (int64_t row = 0; row < kRows; ++row) {
      const Sampling sampling = some_sampling();
      std::vector<int32_t> prompt(static_cast<size_t>(1 + below(20)));
      for (int32_t& id : prompt) id = static_cast<int32_t>(below(vocab()));
      const int64_t slot = (round + 2 * row) % kSlots;
      ASSERT_TRUE(tables_->begin(slot,
                                 {.samples = 1,
                                  .penalties = sampling.has_penalties() ? 1 : 0,
                                  .temperature = sampling.temperature,
                                  .repetition = sampling.repetition_penalty,
                                  .presence = sampling.presence_penalty,
                                  .frequency = sampling.frequency_penalty,
                                  .top_p = sampling.top_p,
                                  .top_k = sampling.top_k,
                                  .least = least_weight(sampling.min_p),
                                  .seed = sampling.seed},
                                 sampling.logit_bias));
      ASSERT_TRUE(tables_->saw_prompt(slot, {}));  // nothing is shared with the text before
      ASSERT_TRUE(tables_->saw_prompt(slot, prompt));
      const auto length = static_cast<int32_t>(prompt.size());
      ASSERT_TRUE(tables_->set_prompt(slot, length, held_back ? length - 1 : -1));
      host.emplace_back(sampling, vocab());
      host.back().saw_prompt(prompt);
      slots.push_back(static_cast<int32_t>(slot));
      before.push_back(length - 1);
    }
    std::vector<int32_t> fed(kRows, 1);
    for (int64_t step = 0; step < kSteps; ++step) {
      std::vector<float> logits;
      std::vector<int32_t> expected;
      for (int64_t row = 0; row < kRows; ++row) {
        Sampler& sampler = host[static_cast<size_t>(row)];
        if (step > 0) sampler.saw_chosen(fed[static_cast<size_t>(row)]);
        const std::vector<float> own = some_logits();
        expected.push_back(sampler.choose(own));
        logits.insert(logits.end(), own.begin(), own.end());
      }
      // A prompt's run of one token ends where a step of the last token does.
      const bool is_prompt = step == 0 && !held_back;
      const auto found = drawn(logits, slots, is_prompt ? std::vector<int32_t>() : fed, before, 1);
      ASSERT_EQ(found, expected) << "round " << round << ", step " << step;
      fed = expected;
      for (int32_t& length : before) ++length;
    }
  }
}

// One of few bins, more than a thread a token, and a real model's.
INSTANTIATE_TEST_SUITE_P(Vocabularies, CudaSampling,
                         testing::ValuesIn(assay::test::on_the_processor()
                                               ? std::vector<int64_t>{60, 2500}
                                               : std::vector<int64_t>{60, 2500, 128256}));

}  // namespace
}  // namespace assay::engine
