// Products of many rows on the tests' driver: when the library multiplies, and by which algorithm
// and type.
#include "engine/device/cuda/cublaslt.h"
#include "engine/model/tiny_quantized.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "engine/codegen/cpu/scratch_folder.h"
#include "engine/device/cuda/fake_gpu.h"

namespace assay::engine {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CudaLibraryProducts : public CudaDeviceTest {};

// Products of two layers, compiled, but for those behind the last attention.
constexpr long kInPrompt = 4 + 1;

TEST_F(CudaLibraryProducts, ProductsOfManyRowsAreTheLibrarys) {
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
TEST_F(CudaLibraryProducts, TheFastestAlgorithmIsMeasuredOnceAMachine) {
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
TEST_F(CudaLibraryProducts, AProductIsInTheFasterType) {
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

// Both at first and behind other sizes, beside the library's product and beside one of our own.
TEST_F(CudaLibraryProducts, AProductsTypeDependsOnItsSizesAlone) {
  const TinyCheckpoint even(kEven, 128);
  const ScratchFolder folder;
  SessionOptions asked = options(CacheKind::kStatic, true);
  asked.fp8 = Fp8::kLayers;
  asked.compile.kernel_cache = folder.path() / "kernels";
  setenv("FAKE_CUBLASLT_SLOW", "28", 1);  // e4m3
  for (const CacheKind cache : {CacheKind::kStatic, CacheKind::kDynamic}) {
    asked.cache = cache;
    auto session = Session::open(even.folder(), asked);
    ASSERT_TRUE(session) << session.error().message;
    std::vector<TypeContest> first;
    for (const auto& [capacity, length] :
         {std::pair<int64_t, size_t>{60, 32}, {90, 32}, {100, 50}, {120, 32}, {60, 32}}) {
      ASSERT_TRUE(session->prepare(1, capacity));
      ASSERT_TRUE(session->prefill(PromptBatch::of({Prompt(length, 1)})));
      std::vector<TypeContest> of_length;
      for (const TypeContest& one : session->device().type_contests()) {
        if (one.rows == 32) of_length.push_back(one);
      }
      if (first.empty()) first = of_length;
      EXPECT_EQ(of_length, first) << capacity;
    }
    EXPECT_FALSE(first.empty());
  }
}

// Blocks of other codes have no form in e4m3, whatever type stands beside them.
TEST_F(CudaLibraryProducts, BlocksOfOtherCodesAreRefusedInFp8) {
  SessionOptions asked = options(CacheKind::kStatic, true);
  asked.fp8 = Fp8::kLayers;
  for (const DType dtype : {DType::kF16, DType::kF32}) {
    const TinyQuantized made({.method = QuantizationMethod::kAwq, .dtype = dtype});
    const auto session = Session::open(made.folder(), asked);
    ASSERT_FALSE(session);
    EXPECT_THAT(session.error().message,
                HasSubstr("dtype fp8: expected weights of fp16, bf16 or fp8, found int4_g128 in "
                          "model.layers.0."));
  }
}

TEST_F(CudaLibraryProducts, WhatCantBeMeasuredIsTheLibrarysChoice) {
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

TEST_F(CudaLibraryProducts, WithoutTheLibraryKernelsForFewRowsDoAll) {
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

}  // namespace
}  // namespace assay::engine
