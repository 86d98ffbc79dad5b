// The host's side of a GPU, without one: sessions on a driver of the tests' own, each of whose
// calls is made to fail once. Kernels do nothing there; tests/device/ runs them on a GPU.
#include "engine/device/cuda/cuda_device.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <thread>

#include "base/files/hash.h"
#include "engine/codegen/cpu/scratch_folder.h"
#include "engine/serving/batch.h"
#include "engine/session/tiny_checkpoint.h"
#include "tests/support/places.h"

namespace assay::engine {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kIllegalAddress = 700, kOutOfMemory = 2;

class FakeCuda {
  template <typename Function, typename... Arguments>
  auto call(const char* name, Arguments... arguments) {
    return reinterpret_cast<Function>(dlsym(library_, name))(arguments...);
  }

 public:
  FakeCuda() : library_(dlopen(built("libfake_cuda.so").c_str(), RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(library_, nullptr) << dlerror();
    setenv("ASSAY_CUDA_DRIVER", built("libfake_cuda.so").c_str(), 1);
    setenv("ASSAY_NVRTC", built("libfake_cuda.so").c_str(), 1);
    setenv("ASSAY_CUBLASLT", built("libfake_cuda.so").c_str(), 1);
    unset_failures();
  }
  ~FakeCuda() {  // other tests of this process find what is really here
    unsetenv("ASSAY_CUDA_DRIVER");
    unsetenv("ASSAY_NVRTC");
    unsetenv("ASSAY_CUBLASLT");
    unset_failures();
  }

  // From here on; `at`: the call that fails, counted from 1; 0: none.
  void reset(int at = 0, int status = 0) {
    call<void (*)(int, int)>("fake_cuda_reset", at, status);
  }
  int live() { return call<int (*)()>("fake_cuda_live"); }
  int calls() { return call<int (*)()>("fake_cuda_calls"); }
  std::string name(int number) { return call<const char* (*)(int)>("fake_cuda_call", number); }
  long launches() { return call<long (*)()>("fake_cuda_launches"); }
  long recorded() { return call<long (*)()>("fake_cuda_recorded"); }
  long replays() { return call<long (*)()>("fake_cuda_replays"); }
  long products() { return call<long (*)()>("fake_cuda_products"); }
  int last_algorithm() { return call<int (*)()>("fake_cuda_last_algorithm"); }

 private:
  static void unset_failures() {
    unsetenv("FAKE_NVRTC_FAILS");
    unsetenv("FAKE_CUBLASLT_FINDS");
    unsetenv("FAKE_CUBLASLT_FAST");
    unsetenv("FAKE_CUBLASLT_SLOW");
  }
  void* library_;
};

class CudaDeviceTest : public ::testing::Test {
 protected:
  SessionOptions options(CacheKind cache, bool compiled) {
    SessionOptions options{.cache = cache, .threads = 1, .gpu = 0};
    options.compile.prefill = options.compile.decode = compiled;
    options.compile.dynamic = Dynamic::kTrue;
    options.compile.verify_passes = false;
    return options;
  }

  // A prompt of ten rows or more and four steps; the first error.
  Status generate(const SessionOptions& options,
                  std::vector<Prompt> prompts = {{1, 2, 3, 4, 5}, {6, 7}}) {
    ASSAY_TRY(Session session, Session::open(checkpoint_.folder(), options));
    ASSAY_CHECK(session.prepare(2, 12));
    ASSAY_CHECK(session.prefill(PromptBatch::of(prompts)));
    for (int step = 0; step < 4; ++step) {
      const std::vector<int32_t> tokens(session.next_tokens().begin(), session.next_tokens().end());
      ASSAY_CHECK(session.decode(tokens));
    }
    ASSAY_CHECK(session.decode_greedy(2, [](auto) { return true; }));
    fallbacks_ = session.counters().fallbacks;
    captures_ = session.counters().graph_captures;
    const CompileEvidence evidence = session.compile_evidence();
    reason_ = evidence.prefill.fallback + evidence.decode.fallback;
    notes_ = session.compile_evidence().notes;
    return {};
  }

  Result<Batch> make_batch(const BatchOptions& options) {
    ModelOptions asked{.rows = CacheRows::kNamed, .threads = 1, .gpu = 0};
    asked.compiler.verify_passes = false;
    ASSAY_TRY(Checkpoint checkpoint, Checkpoint::open(checkpoint_.folder()));
    ASSAY_TRY(auto device, open_device(asked));
    ASSAY_TRY(auto model, Model::load(std::move(checkpoint), asked, std::move(device)));
    return Batch::create(std::move(model), options);
  }

  FakeCuda fake_;
  TinyCheckpoint checkpoint_{families()[1]};
  int64_t fallbacks_ = 0, captures_ = 0;
  std::string reason_;  // of the frames that fell back
  std::vector<std::string> notes_;
};

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
  EXPECT_EQ(fake_.replays(), before + 20);
  int uploads = 0;
  for (int call = calls + 1; call <= fake_.calls(); ++call) {
    uploads += fake_.name(call) == "cuMemcpyHtoDAsync_v2" ? 1 : 0;
  }
  EXPECT_EQ(uploads, 1) << "ids, lengths, padding and sizes, once";
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

// Every call once, with a lost context and with the memory at its end: an error that names the
// call, nothing that stays behind, and the next session works.
TEST_F(CudaDeviceTest, SurvivesTheFailureOfEveryCall) {
  for (const bool compiled : {true, false}) {
    const SessionOptions asked = options(CacheKind::kStatic, compiled);
    fake_.reset();
    ASSERT_TRUE(generate(asked));
    const int calls = fake_.calls();
    ASSERT_GT(calls, 100);
    for (const int status : {kIllegalAddress, kOutOfMemory}) {
      int failures = 0;
      for (int at = 1; at <= calls; ++at) {
        fake_.reset(at, status);
        const Status ran = generate(asked);
        ASSERT_EQ(fake_.live(), 0) << "call " << at << ", " << fake_.name(at);
        if (ran) continue;  // what gives back can't fail; a failed compilation falls back
        ++failures;
        EXPECT_EQ(ran.error().kind, ErrorKind::kEnvironment);
        EXPECT_THAT(ran.error().message, AnyOf(HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"),
                                               HasSubstr("CUDA_ERROR_OUT_OF_MEMORY"),
                                               HasSubstr("cublasLtMatmul: CUBLAS_STATUS_")))
            << "call " << at << ", " << fake_.name(at);
      }
      EXPECT_GT(failures, calls / 2);
      fake_.reset();
      EXPECT_TRUE(generate(asked));
    }
  }
}

// Products of two layers, compiled, but for those behind the last attention.
constexpr long kInPrompt = 4 + 1;

TEST_F(CudaDeviceTest, ProductsOfManyRowsAreTheLibrarys) {
  for (const bool compiled : {true, false}) {
    fake_.reset();
    ASSERT_TRUE(generate(options(CacheKind::kStatic, compiled)));
    // The head has two rows, and compiled what is behind the last attention.
    EXPECT_EQ(fake_.products(), compiled ? 2 * kInPrompt : 2 * 7) << "launched and recorded";
    EXPECT_THAT(notes_, IsEmpty());
    fake_.reset();
    ASSERT_TRUE(generate(options(CacheKind::kStatic, compiled), {{1, 2, 3, 4}, {5}}));
    EXPECT_EQ(fake_.products(), 0) << "eight rows";
    EXPECT_EQ(fake_.live(), 0);
  }
}

// The answer of the library's that one process measured as fastest is every other process's too.
TEST_F(CudaDeviceTest, TheFastestAlgorithmIsMeasuredOnceAMachine) {
  const ScratchFolder folder;
  SessionOptions asked = options(CacheKind::kStatic, true);
  asked.compile.kernel_cache = folder.path() / "kernels";
  setenv("FAKE_CUBLASLT_FINDS", "3", 1);
  setenv("FAKE_CUBLASLT_FAST", "2", 1);
  fake_.reset();
  ASSERT_TRUE(generate(asked));
  EXPECT_GT(fake_.products(), 2 * kInPrompt);
  EXPECT_EQ(fake_.last_algorithm(), 2);
  EXPECT_EQ(fake_.live(), 0);
  setenv("FAKE_CUBLASLT_FAST", "1", 1);
  fake_.reset();
  ASSERT_TRUE(generate(asked));
  EXPECT_EQ(fake_.products(), 2 * kInPrompt) << "nothing is measured again";
  EXPECT_EQ(fake_.last_algorithm(), 2);
  setenv("FAKE_CUBLASLT_FINDS", "2", 1);  // another library: it has no algorithm 2
  fake_.reset();
  ASSERT_TRUE(generate(asked));
  EXPECT_EQ(fake_.last_algorithm(), 1);
  asked.compile.kernel_cache.reset();
  fake_.reset();
  ASSERT_TRUE(generate(asked));
  EXPECT_EQ(fake_.products(), 2 * kInPrompt);
  EXPECT_EQ(fake_.last_algorithm(), 0) << "the library's own, where no choice can be kept";
}

// Sizes that products in e4m3 may have.
const Family kEven = {
    "even",
    R"("model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 64,
       "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
       "num_key_value_heads": 2, "head_dim": 32, "intermediate_size": 256,
       "max_position_embeddings": 48, "rms_norm_eps": 1e-6, "hidden_act": "silu",
       "rope_theta": 10000.0, "attention_bias": false, "mlp_bias": false,
       "tie_word_embeddings": false)",
    DType::kBF16};

// A product that may be in fp8 is in the type that was measured as faster, unless another is asked
// for; what one process measured holds for all of the machine.
TEST_F(CudaDeviceTest, AProductIsInTheFasterType) {
  const char* const kE4M3 = "28";
  const char* const kBF16 = "14";
  const TinyCheckpoint even(kEven);
  const ScratchFolder folder, other;
  SessionOptions asked = options(CacheKind::kStatic, true);
  asked.fp8 = Fp8::kLayers;
  const auto types = [&](const ScratchFolder& kernels, const char* slow,
                         const std::vector<int64_t>& lengths = {9}) {
    asked.compile.kernel_cache = kernels.path() / "kernels";
    setenv("FAKE_CUBLASLT_SLOW", slow, 1);
    fake_.reset();
    std::set<std::string> found;
    auto session = Session::open(even.folder(), asked);
    EXPECT_TRUE(session) << session.error().message;
    EXPECT_TRUE(session->prepare(1, 20));
    for (const int64_t length : lengths) {
      EXPECT_TRUE(session->prefill(PromptBatch::of({Prompt(static_cast<size_t>(length), 1)})));
    }
    for (const TypeContest& one : session->device().type_contests()) {
      EXPECT_EQ(one.fp8_wins(), one.fp8_us < one.wide_us);
      EXPECT_EQ(one.rounding_us > 0, one.outputs == 128 && one.inputs == 128)
          << "attention's rows are rounded by a kernel of their own";
      found.insert(one.fp8_wins() ? "chose e4m3" : "chose bf16");
    }
    for (const LibraryShape& one : session->device().library_products()) found.insert(one.type);
    return found;
  };
  EXPECT_THAT(types(folder, kE4M3), ElementsAre("bf16", "chose bf16"));
  EXPECT_THAT(types(folder, kBF16), ElementsAre("bf16", "chose bf16")) << "measured once";
  EXPECT_THAT(types(other, kBF16), ElementsAre("chose e4m3", "e4m3"));
  EXPECT_THAT(types(folder, kBF16, {5, 9}), ElementsAre("bf16", "chose bf16"))
      << "whatever ran before";
  EXPECT_THAT(types(folder, kE4M3, {5}), ElementsAre()) << "kernels for few rows do all";
  asked.fp8_always = true;
  EXPECT_THAT(types(folder, kE4M3), ElementsAre("e4m3"));
  asked.fp8_always = false;
  asked.compile.prefill = asked.compile.decode = false;
  EXPECT_THAT(types(folder, kE4M3), ElementsAre("e4m3")) << "eager";
}

TEST_F(CudaDeviceTest, WhatCantBeMeasuredIsTheLibrarysChoice) {
  setenv("FAKE_CUBLASLT_FINDS", "2", 1);
  const auto fresh = [&](const ScratchFolder& folder) {
    SessionOptions asked = options(CacheKind::kStatic, true);
    asked.compile.kernel_cache = folder.path() / "kernels";
    return asked;
  };
  fake_.reset();
  {
    const ScratchFolder folder;
    ASSERT_TRUE(generate(fresh(folder)));
  }
  const int calls = fake_.calls();
  int measured = 0;  // calls of the measurement
  for (int at = 1; at <= calls; at += 7) {
    const ScratchFolder folder;
    fake_.reset(at, kOutOfMemory);
    const Status ran = generate(fresh(folder));
    ASSERT_EQ(fake_.live(), 0) << "call " << at << ", " << fake_.name(at);
    measured += static_cast<bool>(ran);
  }
  EXPECT_GT(measured, calls / 7 / 2);
}

TEST_F(CudaDeviceTest, WithoutTheLibraryKernelsForFewRowsDoAll) {
  setenv("ASSAY_CUBLASLT", "/nonexistent/libcublasLt.so.13", 1);
  fake_.reset();
  ASSERT_TRUE(generate(options(CacheKind::kStatic, true)));
  EXPECT_THAT(notes_, ElementsAre("cublasLt: expected one of /nonexistent/libcublasLt.so.13, found "
                                  "none; products of many rows run by kernels made for a few"));
  setenv("ASSAY_CUBLASLT", built("libfake_cuda.so").c_str(), 1);
  setenv("FAKE_CUBLASLT_FINDS", "0", 1);
  fake_.reset();
  ASSERT_TRUE(generate(options(CacheKind::kStatic, true)));
  EXPECT_EQ(fake_.products(), 0);
  EXPECT_THAT(notes_, Contains(HasSubstr("expected an algorithm for 10 x ")));
  EXPECT_EQ(fake_.live(), 0);
}

TEST_F(CudaDeviceTest, MemoryThatEndsSaysWhatWasAskedForAndWhatIsFree) {
  fake_.reset();
  setenv("FAKE_CUDA_MEMORY", "10000", 1);
  {
    auto device = CudaDevice::open({});
    ASSERT_TRUE(device);
    const auto held = (*device)->memory().allocate(4096);
    ASSERT_TRUE(held);
    const auto block = (*device)->memory().allocate(8192);
    ASSERT_FALSE(block);
    EXPECT_EQ(block.error().message,
              "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY: expected 8192 bytes on Fake GPU, found "
              "5.90 kB of 10.00 kB free; this process holds 4.10 kB: weights 0 B, caches and "
              "eager outputs 4.10 kB, kept for them 0 B, values of steps 0 B; the driver and other "
              "processes hold 0 B");
    EXPECT_EQ((*device)->fault().kind, DeviceFault::Kind::kOutOfMemory);
    (*device)->forget_fault();
    EXPECT_EQ((*device)->fault().kind, DeviceFault::Kind::kNone);
  }
  unsetenv("FAKE_CUDA_MEMORY");
}

TEST_F(CudaDeviceTest, ALostContextStaysLost) {
  fake_.reset();
  auto device = CudaDevice::open({});
  ASSERT_TRUE(device);
  fake_.reset(1, kIllegalAddress);
  EXPECT_FALSE((*device)->memory().allocate(16));
  (*device)->forget_fault();
  EXPECT_EQ((*device)->fault().kind, DeviceFault::Kind::kLost);
  EXPECT_EQ((*device)->fault().name, "CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_FALSE((*device)->start_timer());
}

// A failure of a recorded step leaves eager steps on the same GPU, with the reason.
TEST_F(CudaDeviceTest, AStepThatCantBeRecordedRunsEager) {
  constexpr int kUnsupported = 900;
  const SessionOptions asked = options(CacheKind::kStatic, true);
  fake_.reset();
  ASSERT_TRUE(generate(asked));
  std::vector<int> capturing;
  for (int at = 1; at <= fake_.calls(); ++at) {
    for (const char* name : {"cuStreamBeginCapture_v2", "cuStreamEndCapture",
                             "cuGraphInstantiateWithFlags", "cuGraphLaunch"}) {
      if (fake_.name(at) == name) capturing.push_back(at);
    }
  }
  ASSERT_EQ(capturing.size(), 2 * 3u + 5);  // of the prompt and a step; and five replays
  for (const int at : capturing) {
    fake_.reset(at, kUnsupported);
    ASSERT_TRUE(generate(asked)) << at;
    EXPECT_GT(fallbacks_, 0) << at;
    EXPECT_THAT(reason_, HasSubstr("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED")) << at;
    EXPECT_EQ(fake_.live(), 0) << at;
  }
}

// A launch that fails within a step over a cache that grows: the run is made again.
TEST_F(CudaDeviceTest, AStepThatFailedHalfWayIsMadeAgainOverBothCaches) {
  constexpr int kInvalidValue = 1;
  for (const CacheKind cache : {CacheKind::kStatic, CacheKind::kDynamic}) {
    const SessionOptions asked = options(cache, true);
    fake_.reset();
    ASSERT_TRUE(generate(asked));
    const int calls = fake_.calls();
    int failed = 0;
    for (int at = 1; at <= calls; ++at) {
      fake_.reset();
      if (fake_.name(at) != "cuLaunchKernelEx") continue;
      fake_.reset(at, kInvalidValue);
      ASSERT_TRUE(generate(asked)) << at;
      EXPECT_GT(fallbacks_, 0) << at;
      EXPECT_EQ(fake_.live(), 0) << at;
      fake_.reset();
      ASSERT_TRUE(generate(asked));  // so that name(at) is as it was
      ++failed;
    }
    EXPECT_GT(failed, 20);
  }
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

// Eager needs other kernels than a fused product.
TEST_F(CudaDeviceTest, AFusedKernelThatDoesntCompileFallsBackWithTheWholeLog) {
  fake_.reset();
  setenv("FAKE_NVRTC_FAILS", "NORMED = 1", 1);
  ASSERT_TRUE(generate(options(CacheKind::kStatic, true)));
  EXPECT_EQ(fallbacks_, 7);  // the prompt and all steps
  EXPECT_THAT(reason_, HasSubstr("fake log"));
  EXPECT_EQ(fake_.live(), 0);
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

TEST_F(CudaDeviceTest, NamesTheGpuThatIsNotThere) {
  fake_.reset();
  const auto device = CudaDevice::open({.ordinal = 3, .threads = 1, .kernel_cache = {}});
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().message,
            "device: expected one of this machine's GPUs (it has 1), found cuda:3");
  EXPECT_EQ(fake_.live(), 0);
}

TEST_F(CudaDeviceTest, WithoutADriverNothingIsOpened) {
  setenv("ASSAY_CUDA_DRIVER", "/nonexistent/libcuda.so.1", 1);
  const auto device = CudaDevice::open({});
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().kind, ErrorKind::kEnvironment);
  EXPECT_THAT(device.error().message, HasSubstr("expected /nonexistent/libcuda.so.1, found none"));
}

TEST_F(CudaDeviceTest, ACompilerThatFailsIsSaidWhole) {
  setenv("FAKE_NVRTC_FAILS", "", 1);
  fake_.reset();
  const Status ran = generate(options(CacheKind::kStatic, true));
  ASSERT_FALSE(ran);  // eager needs the compiler as well
  EXPECT_THAT(ran.error().message, HasSubstr("fake log"));
  EXPECT_EQ(fake_.live(), 0);
}

}  // namespace
}  // namespace assay::engine
