// The host's side of a GPU, without one: what is launched, recorded and replayed. Kernels do
// nothing there; tests/device/ runs them on a GPU.
#include "engine/device/cuda/cuda_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/files/hash.h"
#include "engine/device/cuda/fake_gpu.h"

namespace assay::engine {
namespace {

TEST_F(CudaDeviceTest, RecordsAStepOnceAndReplaysIt) {
  fake_.reset();
  ASSERT_TRUE(generate(options(CacheKind::kStatic, true)));
  // The prompt and the first step are launched and then recorded.
  EXPECT_EQ(fake_.recorded(), fake_.launches());
  EXPECT_EQ(captures_, 2);
  EXPECT_EQ(fake_.replays(), 5);
  EXPECT_EQ(fallbacks_, 0);
  EXPECT_EQ(fake_.live(), 0);
}

// The host is at most some steps behind, and waits for nothing else.
TEST_F(CudaDeviceTest, StepsThatFeedThemselvesAreReplayedWithoutUploads) {
  fake_.reset();
  auto session = Session::open(checkpoint_.folder(), options(CacheKind::kStatic, true));
  ASSERT_TRUE(session);
  ASSERT_TRUE(session->prepare(2, 40));
  ASSERT_TRUE(session->prefill(PromptBatch::of({{1, 2, 3}, {4, 5}})));
  int64_t steps = 0;
  ASSERT_TRUE(session->decode_greedy(4, [&](auto) { return ++steps > 0; }));
  const long before = fake_.replays();
  const int calls = fake_.calls();
  ASSERT_TRUE(session->decode_greedy(20, [&](auto) { return ++steps > 0; }));
  EXPECT_EQ(steps, 24);
  EXPECT_EQ(fake_.replays(), before + 20 / 8 + 20 % 8) << "eight steps a graph, then one";
  EXPECT_EQ(fake_.count("cuMemcpyHtoDAsync_v2", calls), 1)
      << "ids, lengths, padding and sizes, once";
}

// They would write to the places of later ones.
TEST_F(CudaDeviceTest, StepsThatNobodyWaitsForEndBeforeOthersBegin) {
  fake_.reset();
  auto session = Session::open(checkpoint_.folder(), options(CacheKind::kStatic, true));
  ASSERT_TRUE(session);
  ASSERT_TRUE(session->prepare(2, 40));
  ASSERT_TRUE(session->prefill(PromptBatch::of({{1, 2, 3}, {4, 5}})));
  for (const bool stops : {false, true}) {
    ASSERT_TRUE(session->decode_greedy(4, [&](auto) { return !stops; }));
    const int calls = fake_.calls();
    ASSERT_TRUE(session->decode(session->next_tokens()));
    EXPECT_EQ(fake_.count("cuStreamSynchronize", calls), stops ? 1 : 0);
  }
}

// A copy by the driver is a call ahead of the first kernel, and an event one behind the last.
TEST_F(CudaDeviceTest, APromptIsReplayedWithoutAnotherCallOfTheDriver) {
  fake_.reset();
  auto session = Session::open(checkpoint_.folder(), options(CacheKind::kStatic, true));
  ASSERT_TRUE(session);
  ASSERT_TRUE(session->prepare(2, 40));
  ASSERT_TRUE(session->make_ready(3, false));
  const int calls = fake_.calls();
  ASSERT_TRUE(session->prefill(PromptBatch::of({{1, 2, 3}, {4, 5}})));
  EXPECT_EQ(fake_.calls() - calls,
            fake_.count("cuGraphLaunch", calls) + fake_.count("cuStreamQuery", calls));
  EXPECT_GT(fake_.count("cuGraphLaunch", calls), 0);
}

// The oldest go, and are made again.
TEST_F(CudaDeviceTest, RecordingsOfManyLengthsComeAndGo) {
  const TinyCheckpoint longer(families()[1], 160);
  fake_.reset();
  {
    auto session = Session::open(longer.folder(), options(CacheKind::kStatic, true));
    ASSERT_TRUE(session);
    ASSERT_TRUE(session->prepare(1, 150));
    const auto run = [&](size_t length) {
      const long launches = fake_.launches();
      EXPECT_TRUE(session->prefill(PromptBatch::of({Prompt(length, 1)})));
      return fake_.launches() == launches;
    };
    for (size_t length = 10; length < 115; ++length) run(length);
    EXPECT_FALSE(run(10)) << "105 lengths ago";
    EXPECT_TRUE(run(10)) << "recorded and replayed";
    for (const size_t length : {110, 111, 110, 111}) run(length);
    EXPECT_TRUE(run(110));
    EXPECT_TRUE(run(111));
  }
  EXPECT_EQ(fake_.live(), 0);
}

// They share their model's compiled steps.
TEST_F(CudaDeviceTest, SessionsOfOneModelByTurnsAreReplayed) {
  fake_.reset();
  const SessionOptions asked = options(CacheKind::kStatic, true);
  auto first = Session::open(checkpoint_.folder(), asked);
  ASSERT_TRUE(first);
  auto second = Session::on(first->shared_model(), CacheKind::kStatic, asked.compile);
  ASSERT_TRUE(second);
  const auto prompts = PromptBatch::of({{1, 2, 3}, {4, 5}});
  long launches = 0, captures = 0;
  for (int turn = 0; turn < 6; ++turn) {
    Session& session = turn % 2 == 0 ? *first : *second;
    if (turn < 2) {
      ASSERT_TRUE(session.prepare(2, 40));
    }
    if (turn == 4) launches = fake_.launches(), captures = fake_.recorded();
    ASSERT_TRUE(session.prefill(prompts));
    ASSERT_TRUE(session.decode_greedy(25, [](auto) { return true; }));
  }
  EXPECT_EQ(fake_.launches(), launches) << "by the third turn of each";
  EXPECT_EQ(fake_.recorded(), captures);
}

// Rows come and go, and prompts have any length: runs have sizes that were recorded at the start.
TEST_F(CudaDeviceTest, ABatchReplaysRunsOfAllItsSizes) {
  fake_.reset();
  {
    auto batch = make_batch({.slots = 20, .capacity = 40, .chunk = 32, .compiled = true});
    ASSERT_TRUE(batch) << batch.error().message;
    const LaunchCounts before = *batch->model().device().launches();
    EXPECT_GT(before.captures, 0);
    int64_t runs = 0;
    const Prompt prompt(32, 1);
    for (const size_t length : {32, 31, 17, 9, 8, 2, 1, 5}) {
      const auto slot = batch->join();
      ASSERT_TRUE(batch->extend(*slot, std::span(prompt).first(length)));
      EXPECT_EQ(batch->awaits_end(*slot), length != 32 && length != 8);
      runs += length == 1 ? 0 : 1;
    }
    std::vector<SlotPrompt> several;
    for (int64_t slot = 8; slot < 20; ++slot) {
      ASSERT_EQ(batch->join(), slot);
      several.push_back({slot, std::span(prompt).first(7)});
    }
    ASSERT_TRUE(batch->extend(several));
    runs += 3;  // of four rows of eight tokens
    for (int64_t rows = 1; rows <= 20; ++rows) {
      std::vector<SlotToken> fed;
      for (int64_t slot = 0; slot < rows; ++slot) fed.push_back({slot, batch->next(slot)});
      ASSERT_TRUE(batch->step(fed));
      ++runs;
      if (rows % 5 != 0) continue;
      for (int64_t slot = 0; slot < rows; ++slot) {
        if (batch->length(slot) < 30) continue;
        ASSERT_TRUE(batch->leave(slot));
        ASSERT_EQ(batch->join(), slot);
        ASSERT_TRUE(batch->extend(slot, std::span(prompt).first(8)));
        ++runs;
      }
    }
    const LaunchCounts after = *batch->model().device().launches();
    EXPECT_EQ(after.captures, before.captures + 1) << "the second run of several prompts";
    EXPECT_EQ(after.kernels, before.kernels);
    EXPECT_EQ(after.replays - before.replays, runs);
  }
  EXPECT_EQ(fake_.live(), 0);
}

// Steps that the device has begun when one of its rows ends aren't lost for the others.
TEST_F(CudaDeviceTest, StepsUnderWayAreTakenByTheRowsThatGoOn) {
  fake_.reset();
  auto batch = make_batch({.slots = 2, .capacity = 40, .compiled = true});
  ASSERT_TRUE(batch) << batch.error().message;
  const Prompt prompt(8, 1);
  for (int64_t slot = 0; slot < 2; ++slot) {
    ASSERT_EQ(batch->join(), slot);
    ASSERT_TRUE(batch->extend(slot, prompt));
  }
  const std::vector<int64_t> both = {0, 1};
  std::vector<int64_t> got(2, 0);
  const long before = fake_.replays();
  ASSERT_TRUE(batch->run(both, 20, [&](int64_t slot, int32_t) {
    ++got[static_cast<size_t>(slot)];
    return slot == 0 && got[0] == 3 ? Onward::kStop : got[1] == 10 ? Onward::kLast : Onward::kGo;
  }));
  EXPECT_EQ(got[0], 3);
  EXPECT_GE(got[1], 10);
  EXPECT_EQ(fake_.replays() - before, got[1]) << "each step that began gave the other row a token";
  EXPECT_EQ(batch->length(0), 8 + 3);
  EXPECT_EQ(batch->length(1), 8 + got[1]);
}

TEST_F(CudaDeviceTest, RecordsNoStepOverACacheThatGrowsAndNothingEager) {
  fake_.reset();
  ASSERT_TRUE(generate(options(CacheKind::kDynamic, true)));
  EXPECT_EQ(captures_, 1) << "the prompt";
  EXPECT_EQ(fake_.replays(), 0);
  EXPECT_GT(fake_.launches(), 0);
  EXPECT_EQ(fake_.live(), 0);
  fake_.reset();
  ASSERT_TRUE(generate(options(CacheKind::kStatic, false)));
  EXPECT_EQ(fake_.recorded(), 0);
  EXPECT_EQ(fake_.live(), 0);
}

TEST_F(CudaDeviceTest, ABatchIsUsedByAnotherThreadThanTheOneThatMadeIt) {
  for (const bool compiled : {false, true}) {
    auto batch = make_batch({.slots = 2, .capacity = 12, .compiled = compiled});
    ASSERT_TRUE(batch) << batch.error().message;
    Status done;
    std::thread([&] {
      const std::vector<int32_t> prompt = {1, 2, 3};
      const int64_t slot = batch->join().value_or(-1);
      done = batch->extend(slot, prompt);
      if (done) done = batch->step(std::vector{SlotToken{slot, batch->next(slot)}});
    }).join();
    EXPECT_TRUE(done) << done.error().message;
  }
}

// Which a repetition that is timed would hold else.
TEST_F(CudaDeviceTest, WhatIsReadyIsReplayedWithEveryCache) {
  constexpr int kPrompt = 20, kSteps = 24;
  const TinyCheckpoint longer(families()[1], 2 * (kPrompt + kSteps));
  for (const CacheKind cache : {CacheKind::kStatic, CacheKind::kDynamic}) {
    for (const Dynamic dynamic : {Dynamic::kFalse, Dynamic::kTrue}) {
      for (const bool decode : {false, true}) {
        SessionOptions asked = options(cache, true);
        asked.compile.dynamic = dynamic;
        auto session = Session::open(longer.folder(), asked);
        ASSERT_TRUE(session);
        // Blocks that earlier cells have left in the pool don't matter.
        for (const int more : {15, 0}) {
          ASSERT_TRUE(session->prepare(2, kPrompt + kSteps + more));
          ASSERT_TRUE(session->make_ready(kPrompt + more, decode));
        }
        EXPECT_EQ(session->kv_len(), 0);
        const std::vector<Prompt> prompts(2, Prompt(kPrompt, 1));
        for (int repetition = 0; repetition < 4; ++repetition) {
          const CompileCounters before = session->counters();
          ASSERT_TRUE(session->prefill(PromptBatch::of(prompts)));
          const CompileCounters prefilled = session->counters();
          EXPECT_EQ(prefilled.graph_captures, before.graph_captures);
          EXPECT_EQ(prefilled.graph_replays, before.graph_replays + 1);
          EXPECT_EQ(prefilled.kernel_launches, before.kernel_launches);
          if (!decode) continue;
          ASSERT_TRUE(session->decode_greedy(kSteps, [](auto) { return true; }));
          const CompileCounters decoded = session->counters();
          EXPECT_EQ(decoded.graph_captures, before.graph_captures);
          EXPECT_EQ(decoded.graph_replays - prefilled.graph_replays,
                    cache == CacheKind::kStatic ? kSteps : 0);
        }
      }
    }
  }
}

// A later operator gets an earlier one's memory; the chosen tokens and their logits stay.
TEST_F(CudaDeviceTest, EagerOutputsComeFromThePoolAndGoBack) {
  fake_.reset();
  auto session = Session::open(checkpoint_.folder(), options(CacheKind::kStatic, false));
  ASSERT_TRUE(session);
  ASSERT_TRUE(session->prepare(2, 40));
  const BufferPool& pool = session->device().memory();
  const uint64_t caches = pool.used_bytes();
  ASSERT_TRUE(session->prefill(PromptBatch::of({{1, 2, 3}, {4, 5}})));
  const uint64_t outputs = pool.used_bytes() - caches;
  const auto vocab = static_cast<uint64_t>(session->config().vocab_size);
  EXPECT_GE(outputs, 2 * vocab * sizeof(float) + 2 * sizeof(int32_t));
  EXPECT_LE(outputs, 2048u) << "two blocks, of which 512 bytes is the smallest";
  const std::vector<int32_t> tokens = {1, 2};
  ASSERT_TRUE(session->decode(tokens));
  const uint64_t allocations = pool.system_allocations();
  for (int step = 0; step < 10; ++step) ASSERT_TRUE(session->decode(tokens));
  EXPECT_EQ(pool.system_allocations(), allocations);
  EXPECT_EQ(pool.used_bytes() - caches, outputs);
}

TEST_F(CudaDeviceTest, CountsWhatTheHostLaunches) {
  fake_.reset();
  auto session = Session::open(checkpoint_.folder(), options(CacheKind::kStatic, true));
  ASSERT_TRUE(session);
  ASSERT_TRUE(session->prepare(1, 12));
  ASSERT_TRUE(session->prefill(PromptBatch::of({{1, 2, 3}})));
  for (int step = 0; step < 4; ++step) ASSERT_TRUE(session->decode(session->next_tokens()));
  const CompileCounters counters = session->counters();
  EXPECT_EQ(counters.graph_captures, 2);
  EXPECT_EQ(counters.graph_replays, fake_.replays());
  EXPECT_EQ(counters.kernel_launches, fake_.launches());
  EXPECT_GT(counters.kernels_compiled, 0);
  const Device& device = session->device();
  EXPECT_EQ(device.info().kind, "cuda");
  EXPECT_EQ(device.info().name, "Fake GPU");
  EXPECT_EQ(device.info().compute_capability, "9.0");
  EXPECT_EQ(device.info().driver, "CUDA 13.0");
  ASSERT_TRUE(device.toolchain());
  EXPECT_EQ(device.toolchain()->name, "nvrtc");
  EXPECT_EQ(device.toolchain()->target, "sm_90a");
  EXPECT_EQ(device.toolchain()->sha256, *sha256_file_hex(device.toolchain()->path));
}

TEST_F(CudaDeviceTest, CachesAreOfTheModelsType) {
  for (const CacheKind kind : {CacheKind::kStatic, CacheKind::kDynamic}) {
    const auto bytes = [&](std::optional<DType> dtype) -> uint64_t {
      SessionOptions asked = options(kind, true);
      asked.dtype = dtype;
      auto session = Session::open(checkpoint_.folder(), asked);
      EXPECT_TRUE(session);
      EXPECT_TRUE(session->prepare(1, 40) && session->prefill(PromptBatch::of({Prompt(32, 1)})));
      const ModelConfig& c = session->config();
      EXPECT_EQ(session->model().step_bytes(1, 10) - session->model().step_bytes(1, 9),
                static_cast<uint64_t>(2 * c.layers * c.kv_heads * c.head_dim) *
                    dtype_size_bytes(session->model().dtype()));
      return session->device().memory().used_bytes();
    };
    EXPECT_EQ(bytes(DType::kF32), 2 * bytes(DType::kF16));
  }
}

TEST_F(CudaDeviceTest, DescribesAGpuWithoutAContext) {
  fake_.reset();
  const auto gpu = cuda::Driver::describe(0);
  ASSERT_TRUE(gpu);
  EXPECT_EQ(gpu->uuid, "GPU-00112233-4455-6677-8899-aabbccddeeff");
  EXPECT_EQ(gpu->total_bytes, 1'000'000'000'000u);
  EXPECT_EQ(gpu->cache_bytes, 60'000'000u);
  for (int at = 1; at <= fake_.calls(); ++at) {
    EXPECT_NE(fake_.name(at), "cuDevicePrimaryCtxRetain");
  }
}

}  // namespace
}  // namespace assay::engine
