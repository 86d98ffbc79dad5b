// Whole sessions on a GPU against the processor's: every family, eager and compiled, both caches,
// padded batches, to the last token in fp32, by their logits in 16 bits. Skipped where there is no
// GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cuda_driver.h"
#include "engine/model/tiny_quantized.h"
#include "engine/session/tiny_gguf_file.h"

namespace assay::engine {
namespace {

constexpr int64_t kPositions = 700, kTokens = 128, kFewTokens = 8;

// Lengths of prompts, padded on the left; a row's own is shorter by three than the one before.
std::vector<int64_t> prompt_lengths() {
  if (test::on_the_processor()) return {9};
  return {1, 9, 37};
}

PromptBatch some_prompts(int64_t length, size_t rows) {
  std::vector<Prompt> prompts(rows);
  for (size_t row = 0; row < rows; ++row) {
    const auto own = std::max<int64_t>(length - static_cast<int64_t>(row) * 3, 1);
    for (int64_t i = 0; i < own; ++i) {
      prompts[row].push_back(
          static_cast<int32_t>((i * 7 + static_cast<int64_t>(row) * 5 + 3) % 37));
    }
  }
  return PromptBatch::of(prompts);
}

// The steps of a session: eager, or compiled for any sizes or for those that it meets.
enum class Form { kEager, kSpecialised, kSymbolic };

struct SessionCase {
  size_t family;
  CacheKind cache;
  Form form;
  size_t rows;
};
std::vector<SessionCase> session_cases() {
  std::vector<SessionCase> cases;
  for (size_t family = 0; family < families().size(); ++family) {
    for (const CacheKind cache : {CacheKind::kDynamic, CacheKind::kStatic}) {
      for (const Form form : {Form::kEager, Form::kSpecialised, Form::kSymbolic}) {
        for (const size_t rows : {1, 3}) cases.push_back({family, cache, form, rows});
      }
    }
  }
  return cases;
}
std::string name_of(const SessionCase& of) {
  constexpr std::array kForms = {"eager", "specialised", "symbolic"};
  return fmt::format("{}_{}_{}_{}", families()[of.family].name,
                     of.cache == CacheKind::kStatic ? "static" : "dynamic",
                     kForms[static_cast<size_t>(of.form)], of.rows);
}

class CudaSessions : public testing::TestWithParam<SessionCase> {
 protected:
  void SetUp() override {
    if (!test::CudaDriver::open()) GTEST_SKIP() << "no GPU here";
  }
};

TEST_P(CudaSessions, GiveTheTokensOfTheProcessor) {
  const auto [family, cache, form, rows] = GetParam();
  const TinyCheckpoint checkpoint(families()[family], kPositions);
  SessionOptions options{.cache = cache, .dtype = DType::kF32, .threads = 2};
  Session processor = open(checkpoint, options);
  options.gpu = 0;
  options.compile.prefill = options.compile.decode = form != Form::kEager;
  options.compile.dynamic = form == Form::kSymbolic ? Dynamic::kTrue : Dynamic::kFalse;
  options.compile.verify_passes = false;
  options.compile.kernel_cache = test::kernels_of_all_cases();
  Session gpu = open(checkpoint, options);
  const int64_t tokens_each = test::steps_of_a_case(kTokens, kFewTokens);
  for (const int64_t length : prompt_lengths()) {
    const PromptBatch batch = some_prompts(length, rows);
    const Generation expected = generate(processor, batch, tokens_each);
    const Generation found = generate(gpu, batch, tokens_each);
    ASSERT_EQ(found.tokens, expected.tokens) << "prompts of " << length;
    // The same without the host between the steps, twice over one cache.
    for (int repeat = 0; repeat < 2; ++repeat) {
      ASSERT_TRUE(gpu.prepare(batch.batch, batch.padded_len + tokens_each));
      ASSERT_TRUE(gpu.prefill(batch));
      std::vector<Prompt> tokens(rows);
      const auto keep = [&](std::span<const int32_t> next) {
        for (size_t row = 0; row < rows; ++row) tokens[row].push_back(next[row]);
        return true;
      };
      keep(gpu.next_tokens());
      ASSERT_TRUE(gpu.decode_greedy(tokens_each, keep));
      ASSERT_EQ(tokens, expected.tokens) << "prompts of " << length;
      EXPECT_TRUE(gpu.logits_finite());
      expect_near(gpu.logits(), expected.logits.back(), 1e-4);
    }
    for (size_t i = 0; i < found.logits.size(); ++i) {
      expect_near(found.logits[i], expected.logits[i], 1e-4);
    }
  }
  if (form == Form::kSymbolic) {
    EXPECT_EQ(gpu.counters().fallbacks, 0);
  }
}

// So many inputs that blocks share them, behind a norm too.
const Family kWide = {
    "wide",
    R"("model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 41,
       "hidden_size": 2112, "num_hidden_layers": 1, "num_attention_heads": 4,
       "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 4112,
       "max_position_embeddings": 48, "rms_norm_eps": 1e-6, "hidden_act": "silu",
       "rope_theta": 10000.0, "attention_bias": false, "mlp_bias": false,
       "tie_word_embeddings": false)",
    DType::kBF16};

// Behind a residual, one row of more inputs than two of their columns fit a thread of 128.
TEST(CudaWide, ManyInputsGiveTheTokensOfTheProcessor) {
  if (!test::CudaDriver::open()) GTEST_SKIP() << "no GPU here";
  const TinyCheckpoint checkpoint(kWide, kPositions);
  SessionOptions options{.cache = CacheKind::kStatic, .dtype = DType::kF32, .threads = 2};
  Session processor = open(checkpoint, options);
  options.gpu = 0;
  options.compile.prefill = options.compile.decode = true;
  options.compile.verify_passes = false;
  options.compile.kernel_cache = test::kernels_of_all_cases();
  Session gpu = open(checkpoint, options);
  const PromptBatch prompt = PromptBatch::of({{3, 10, 17}});
  const Generation expected = generate(processor, prompt, 3);
  const Generation found = generate(gpu, prompt, 3);
  EXPECT_EQ(found.tokens, expected.tokens);
  for (size_t i = 0; i < found.logits.size(); ++i) {
    expect_near(found.logits[i], expected.logits[i], 1e-4);
  }
  EXPECT_EQ(gpu.counters().fallbacks, 0);
}

// So wide that a library multiplies its blocks in parts, and a block has columns more than once.
const Family kLarge = {
    "large",
    R"("model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 20480,
       "hidden_size": 2048, "num_hidden_layers": 1, "num_attention_heads": 32,
       "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 8192,
       "max_position_embeddings": 48, "rms_norm_eps": 1e-6, "hidden_act": "silu",
       "rope_theta": 10000.0, "attention_bias": false, "mlp_bias": false,
       "tie_word_embeddings": true)",
    DType::kBF16};
std::vector<Family> blocks_families() {
  std::vector<Family> families = wide_families();
  families.push_back(kLarge);
  return families;
}

struct BlocksCase {
  size_t family;
  Form form;
  size_t rows;
};
std::string name_of(const BlocksCase& of) {
  constexpr std::array kForms = {"eager", "specialised", "symbolic"};
  std::string family = blocks_families()[of.family].name;
  std::ranges::replace(family, '-', '_');
  return fmt::format("{}_{}_{}", family, kForms[static_cast<size_t>(of.form)], of.rows);
}
std::vector<BlocksCase> blocks_cases() {
  std::vector<BlocksCase> cases;
  for (size_t family = 0; family < blocks_families().size(); ++family) {
    for (const Form form : {Form::kEager, Form::kSpecialised, Form::kSymbolic}) {
      for (const size_t rows : {1, 3, 12}) cases.push_back({family, form, rows});
    }
  }
  return cases;
}

// As llama.cpp's Q4_K_M.
WeightFormat of_a_mix(const std::string& name) {
  const bool six = name.find("v_proj") != std::string::npos ||
                   name.find("down_proj") != std::string::npos ||
                   name.find("embed_tokens") != std::string::npos;
  return six ? WeightFormat::kQ6_K : WeightFormat::kQ4_K;
}

class CudaBlocks : public testing::TestWithParam<BlocksCase> {};

// Every format of blocks in one model, its embeddings too, against the decoded weights in fp32. Up
// to 8 rows 16 bits of x are multiplied, and caches are in fp16; more rows are in bf16.
TEST_P(CudaBlocks, GiveTheLogitsOfTheirValues) {
  if (!test::CudaDriver::open()) GTEST_SKIP() << "no GPU here";
  const auto [family, form, rows] = GetParam();
  const Family of = blocks_families()[family];
  const TinyCheckpoint folder(of, kPositions);
  const GgufOf file(folder, of.name == kLarge.name ? std::function(&of_a_mix) : formats_in_turn());
  SessionOptions options{.cache = CacheKind::kStatic, .dtype = DType::kF32, .threads = 2};
  auto processor = Session::open(file.path(), options);
  ASSERT_TRUE(processor) << processor.error().message;
  options.dtype = {};
  options.gpu = 0;
  options.compile.prefill = options.compile.decode = form != Form::kEager;
  options.compile.dynamic = form == Form::kSymbolic ? Dynamic::kTrue : Dynamic::kFalse;
  options.compile.verify_passes = false;
  options.compile.kernel_cache = test::kernels_of_all_cases();
  auto gpu = Session::open(file.path(), options);
  ASSERT_TRUE(gpu) << gpu.error().message;
  EXPECT_NE(gpu->model().block_formats(), "");
  for (const int64_t length : {1, 23}) {
    const PromptBatch batch = some_prompts(length, rows);
    for (Session* session : {&*processor, &*gpu}) {
      ASSERT_TRUE(session->prepare(batch.batch, batch.padded_len + 2));
      const auto ran = session->prefill(batch);
      ASSERT_TRUE(ran) << ran.error().message;
    }
    const auto check = [&](bool few) {
      const std::vector<float> found(gpu->logits().begin(), gpu->logits().end());
      const std::vector<float> expected(processor->logits().begin(), processor->logits().end());
      EXPECT_LT(logits_distance(found, expected), few ? 2e-3 : 0.03) << "prompts of " << length;
      EXPECT_TRUE(gpu->logits_finite());
    };
    const bool few = static_cast<int64_t>(rows) * batch.padded_len <= kProductRows;
    check(few);
    const std::vector<int32_t> next(rows, 7);
    ASSERT_TRUE(processor->decode(next));
    ASSERT_TRUE(gpu->decode(next));
    check(few);
  }
  EXPECT_EQ(gpu->counters().fallbacks, 0);
  if (form == Form::kEager || rows > 1) {  // 23 compiled ones are multiplied by kernels
    EXPECT_FALSE(gpu->device().library_products().empty()) << "nothing was decoded for it";
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudaBlocks,
                         testing::ValuesIn(test::chosen(
                             blocks_cases(), &name_of,
                             {name_of({1, Form::kEager, 1}), name_of({1, Form::kSpecialised, 3}),
                              name_of({0, Form::kSpecialised, 12}),
                              name_of({1, Form::kSpecialised, 1})},
                             {name_of({0, Form::kEager, 3}), name_of({2, Form::kSymbolic, 3})})),
                         [](const auto& test) { return name_of(test.param); });

// GPTQ's act-order: x is read in the order of the stored inputs, by products of few rows and many.
TEST(CudaActOrder, GivesTheLogitsOfItsValues) {
  if (!test::CudaDriver::open()) GTEST_SKIP() << "no GPU here";
  const TinyQuantized made({.method = QuantizationMethod::kGptq, .group = 64, .act_order = true});
  SessionOptions options{.cache = CacheKind::kStatic, .dtype = DType::kF32, .threads = 2};
  auto processor = Session::open(made.folder(), options);
  ASSERT_TRUE(processor) << processor.error().message;
  options.dtype = {};
  options.gpu = 0;
  options.compile.prefill = options.compile.decode = true;
  options.compile.kernel_cache = test::kernels_of_all_cases();
  auto gpu = Session::open(made.folder(), options);
  ASSERT_TRUE(gpu) << gpu.error().message;
  EXPECT_EQ(gpu->model().block_formats(), "int4_g64");
  const PromptBatch batch = some_prompts(23, 1);
  const auto check = [&] {
    const std::vector<float> found(gpu->logits().begin(), gpu->logits().end());
    const std::vector<float> expected(processor->logits().begin(), processor->logits().end());
    EXPECT_LT(logits_distance(found, expected), 0.03);
  };
  for (Session* session : {&*processor, &*gpu}) {
    ASSERT_TRUE(session->prepare(batch.batch, batch.padded_len + 2));
    const auto ran = session->prefill(batch);
    ASSERT_TRUE(ran) << ran.error().message;
  }
  check();
  ASSERT_TRUE(processor->decode(std::vector<int32_t>{7}));
  ASSERT_TRUE(gpu->decode(std::vector<int32_t>{7}));
  check();
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

struct Fp8Case {
  Fp8 fp8;
  LogitsOf logits;
  Form form;
  DType dtype;
};
std::vector<Fp8Case> fp8_cases() {
  std::vector<Fp8Case> cases;
  for (const Form form : {Form::kEager, Form::kSpecialised, Form::kSymbolic}) {
    cases.push_back({Fp8::kLayers, LogitsOf::kLastPosition, form, DType::kBF16});
    cases.push_back({Fp8::kWithTheHead, LogitsOf::kAllPositions, form, DType::kBF16});
  }
  cases.push_back({Fp8::kWithTheHead, LogitsOf::kAllPositions, Form::kSpecialised, DType::kF16});
  return cases;
}
std::string name_of(const Fp8Case& of) {
  constexpr std::array kForms = {"eager", "specialised", "symbolic"};
  return fmt::format("{}_{}_{}_{}", of.fp8 == Fp8::kLayers ? "layers" : "head",
                     of.logits == LogitsOf::kLastPosition ? "last" : "all",
                     kForms[static_cast<size_t>(of.form)], dtype_name(of.dtype));
}

class CudaFp8 : public testing::TestWithParam<Fp8Case> {};

// A product in e4m3 is off by 2^-4.8 of its deviation (cuda_many_rows_test). Nine of them, one
// behind the other, are off by three times that; of 128 differences the largest is 2.7 times as
// large, and of 64 logits 2.5 deviations: 0.12 of the largest, and twice as much is allowed,
// because attention multiplies the errors of scores.
TEST_P(CudaFp8, LogitsAreNearThoseInTheWeightsType) {
  if (!test::CudaDriver::open()) GTEST_SKIP() << "no GPU here";
  const auto [fp8, logits, form, dtype] = GetParam();
  const TinyCheckpoint checkpoint(kEven, kPositions);
  SessionOptions options{.cache = CacheKind::kStatic, .dtype = dtype, .threads = 2};
  options.gpu = 0;
  options.compile.kernel_cache = test::kernels_of_all_cases();
  Session wide = open(checkpoint, options);
  options.fp8 = fp8;
  options.fp8_always = true;
  options.logits = logits;
  options.compile.prefill = options.compile.decode = form != Form::kEager;
  options.compile.dynamic = form == Form::kSymbolic ? Dynamic::kTrue : Dynamic::kFalse;
  options.compile.verify_passes = false;
  Session session = open(checkpoint, options);
  const PromptBatch batch = some_prompts(19, 2);
  for (Session* one : {&wide, &session}) {
    ASSERT_TRUE(one->prepare(2, batch.padded_len + 3));
    const auto ran = one->prefill(batch);
    ASSERT_TRUE(ran) << ran.error().message;
  }
  const std::vector<float> expected(wide.logits().begin(), wide.logits().end());
  const std::vector<float> found(session.logits().begin(), session.logits().end());
  ASSERT_EQ(found.size(), expected.size());
  constexpr double kTolerance = 0.25;
  expect_near(found, expected, kTolerance);
  EXPECT_NE(found, expected) << "nothing was rounded";
  EXPECT_TRUE(session.logits_finite());
  const auto products = session.device().library_products();
  EXPECT_GE(products.size(), 4u);
  for (const LibraryShape& one : products) {
    EXPECT_EQ(one.type, "e4m3") << one.rows << " x " << one.outputs << " x " << one.inputs;
  }
  // Decoding goes on in the weights' type.
  ASSERT_TRUE(session.decode(wide.next_tokens()));
  ASSERT_TRUE(
      wide.decode(std::vector<int32_t>(wide.next_tokens().begin(), wide.next_tokens().end())));
  expect_near({session.logits().begin(), session.logits().end()},
              {wide.logits().begin(), wide.logits().end()}, kTolerance);
  EXPECT_EQ(session.counters().fallbacks, 0);
  // Recorded steps are replayed afterwards as before.
  ASSERT_TRUE(session.prepare(2, batch.padded_len + 3));
  const auto launched = [&] {
    EXPECT_TRUE(session.prefill(batch));
    return session.counters().kernel_launches;
  };
  launched(), launched();
  const int64_t before = launched(), each = launched() - before;
  const auto error = session.fp8_error(batch);
  const int64_t after = session.counters().kernel_launches;
  EXPECT_EQ(launched() - after, each) << (form == Form::kEager ? "eager" : "replayed alone: none");
  ASSERT_TRUE(error) << error.error().message;
  EXPECT_EQ(error->positions, 18 + 15) << "of each row, without padding and the last";
  EXPECT_GT(error->kl_mean, 0);
  EXPECT_LT(error->kl_mean, 0.05);
  EXPECT_GE(error->nll_distance_mean, std::abs(error->nll_change_mean));
}

// A checkpoint in e4m3: its prompts multiply the codes that it has, if that is asked for.
TEST(CudaFp8Checkpoint, PromptsMultiplyItsCodes) {
  if (!test::CudaDriver::open()) GTEST_SKIP() << "no GPU here";
  const TinyQuantized made(
      {.method = QuantizationMethod::kFp8, .group = -1, .dtype = DType::kBF16});
  SessionOptions options{.cache = CacheKind::kStatic, .threads = 2};
  options.gpu = 0;
  options.compile.prefill = options.compile.decode = true;
  options.compile.kernel_cache = test::kernels_of_all_cases();
  auto wide = Session::open(made.folder(), options);
  options.fp8 = Fp8::kLayers;
  auto session = Session::open(made.folder(), options);
  const PromptBatch batch = some_prompts(19, 2);
  for (auto* one : {&wide, &session}) {
    ASSERT_TRUE(*one) << one->error().message;
    ASSERT_TRUE((*one)->prepare(2, batch.padded_len + 1));
    const auto ran = (*one)->prefill(batch);
    ASSERT_TRUE(ran) << ran.error().message;
  }
  const std::vector<float> expected(wide->logits().begin(), wide->logits().end());
  const std::vector<float> found(session->logits().begin(), session->logits().end());
  expect_near(found, expected, 0.25);  // CudaFp8's, of as many products
  EXPECT_NE(found, expected) << "x wasn't rounded";
  for (const LibraryShape& one : wide->device().library_products()) EXPECT_EQ(one.type, "bf16");
  size_t in_codes = 0;
  for (const LibraryShape& one : session->device().library_products()) {
    in_codes += one.type == "e4m3" ? 1 : 0;
  }
  EXPECT_GE(in_codes, 4);
}

INSTANTIATE_TEST_SUITE_P(
    All, CudaFp8,
    testing::ValuesIn(test::chosen(
        fp8_cases(), &name_of,
        {"head_all_specialised_bf16", "layers_last_symbolic_bf16", "head_all_eager_bf16"},
        {"layers_last_eager_bf16", "head_all_symbolic_bf16", "head_all_specialised_fp16"})),
    [](const auto& test) { return name_of(test.param); });

TEST(Fp8Sessions, OfWhatCanNotBeAreRefused) {
  const TinyCheckpoint checkpoint(kEven);
  const SessionOptions options{.dtype = DType::kBF16, .fp8 = Fp8::kLayers, .threads = 1};
  const auto on_processor = Session::open(checkpoint.folder(), options);
  ASSERT_FALSE(on_processor);
  EXPECT_EQ(on_processor.error().message,
            "dtype fp8: expected a GPU of compute capability 9.0, found device cpu");
}

struct BatchCase {
  Family family;
  DType dtype;
  size_t rows;
  int64_t steps;
};
std::vector<BatchCase> batch_cases() {
  std::vector<BatchCase> cases = {{kWide, DType::kBF16, 3, 2}};
  for (const size_t rows : {12, 16, 24, 40}) cases.push_back({kWide, DType::kBF16, rows, 2});
  for (const size_t rows : {24, 40}) cases.push_back({kWide, DType::kF16, rows, 2});
  for (const Family& family : families()) {
    for (const DType dtype : {DType::kF16, DType::kBF16}) {
      for (const size_t rows : {2, 5, 8}) cases.push_back({family, dtype, rows, 24});
      for (const size_t rows : {9, 20}) cases.push_back({family, dtype, rows, 3});
    }
  }
  return cases;
}

std::string name_of(const BatchCase& of) {
  return fmt::format("{}_{}_{}", of.family.name, dtype_name(of.dtype), of.rows);
}

// The most that a row's logits may be from its own alone, relative to its largest. Up to 8 rows
// only a value on the edge of two of the cache's falls to either. With more, x is rounded to the
// weights' type, as a library has it, and some products are. Where products have variance one
// (kWide), a rounding moves what is behind it by 0.41 units in the root mean square, 8 of them are
// independent, and a row's largest of 41 logits is 2.3 standard deviations: five of the error's are
// allowed. Families of fewer inputs have larger weights, and scores whose error attention
// multiplies.
double tolerance_of_batch(const Family& family, DType dtype, size_t rows) {
  const double unit = dtype == DType::kF16 ? 0x1p-11 : 0x1p-8;
  if (rows <= kProductRows) return dtype == DType::kF16 ? 4e-4 : 3e-3;
  if (family.name != kWide.name) return dtype == DType::kF16 ? 6.4e-3 : 4.8e-2;
  return 5 * 0.41 * unit * std::sqrt(8.0) / 2.3;
}

// Rows of a batch go through tensor cores in weights of 16 bits, one row doesn't.
class CudaBatches : public testing::TestWithParam<BatchCase> {};

TEST_P(CudaBatches, GiveEachRowWhatItGivesAlone) {
  if (!test::CudaDriver::open()) GTEST_SKIP() << "no GPU here";
  const auto& [family, dtype, rows, most_steps] = GetParam();
  const int64_t steps = test::on_the_processor() ? std::min<int64_t>(most_steps, 2) : most_steps;
  const TinyCheckpoint checkpoint(family, kPositions);
  const double tolerance = tolerance_of_batch(family, dtype, rows);
  SessionOptions options{.cache = CacheKind::kStatic, .dtype = dtype, .threads = 2};
  options.gpu = 0;
  options.compile.prefill = options.compile.decode = true;
  options.compile.dynamic = Dynamic::kFalse;
  options.compile.verify_passes = false;
  options.compile.kernel_cache = test::kernels_of_all_cases();
  Session together = open(checkpoint, options), alone = open(checkpoint, options);
  std::vector<Prompt> prompts;  // of one token: a prompt of more than 8 rows isn't in fp32
  for (size_t row = 0; row < rows; ++row)
    prompts.push_back({static_cast<int32_t>((row * 5 + 1) % 40)});
  const Generation found = generate(together, PromptBatch::of(prompts), steps);
  const bool all_alone = !test::on_the_processor() || test::in_the_soak();
  for (size_t row = 0; row < rows; row += all_alone ? 1 : rows - 1) {  // or the first and the last
    const Generation expected = generate(alone, PromptBatch::of({prompts[row]}), steps);
    // Rounding may turn a choice between equals: logits are alike until then.
    const auto differ = std::ranges::mismatch(found.tokens[row], expected.tokens[0]);
    const auto alike = static_cast<size_t>(differ.in1 - found.tokens[row].begin());
    if (rows <= kProductRows) {
      ASSERT_EQ(found.tokens[row], expected.tokens[0]) << "row " << row;
    }
    for (size_t i = 0; i < std::min(alike + 1, expected.logits.size()); ++i) {
      const size_t vocab = expected.logits[i].size();
      const std::vector<float>& all = found.logits[i];
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(row * vocab);
      expect_near({begin, begin + static_cast<std::ptrdiff_t>(vocab)}, expected.logits[i],
                  tolerance);
    }
  }
  EXPECT_EQ(together.counters().fallbacks, 0);
}

INSTANTIATE_TEST_SUITE_P(
    All, CudaBatches,
    testing::ValuesIn(test::chosen(batch_cases(), &name_of, {"wide_bf16_16", "gpt2_fp16_5"},
                                   {"wide_bf16_24", "qwen2_bf16_9", "wide_bf16_3", "wide_fp16_24",
                                    "llama_bf16_8", "qwen2_bf16_2"})),
    [](const auto& test) { return name_of(test.param); });

// On the processor two families with padding, in symbols, with sizes or eager, and one row too (the
// third is a batch above): batches of unequal rows (cuda_unequal_rows_test) run all of these over
// both caches.
INSTANTIATE_TEST_SUITE_P(
    All, CudaSessions,
    testing::ValuesIn(test::chosen(
        session_cases(), &name_of,
        {"llama_dynamic_symbolic_3", "qwen2_static_specialised_1", "llama_dynamic_eager_3"},
        {"gpt2_static_symbolic_3", "qwen2_static_symbolic_3", "gpt2_static_specialised_1",
         "llama_static_specialised_1", "gpt2_static_eager_3", "gpt2_dynamic_symbolic_3",
         "llama_static_symbolic_3", "qwen2_dynamic_symbolic_3", "gpt2_dynamic_eager_3",
         "qwen2_dynamic_eager_3"})),
    [](const auto& test) { return name_of(test.param); });

// Models of 16 bits, whose caches are too, fed with the tokens of the processor, whose caches are
// fp32.
struct HalfCase {
  size_t family;
  DType dtype;
  CacheKind cache;
  bool compiled;
  size_t rows;
};
std::vector<HalfCase> half_cases() {
  std::vector<HalfCase> cases;
  for (size_t family = 0; family < families().size(); ++family) {
    for (const DType dtype : {DType::kBF16, DType::kF16}) {
      for (const CacheKind cache : {CacheKind::kDynamic, CacheKind::kStatic}) {
        for (const bool compiled : {false, true}) {
          for (const size_t rows : {1, 3}) cases.push_back({family, dtype, cache, compiled, rows});
        }
      }
    }
  }
  return cases;
}
std::string name_of(const HalfCase& of) {
  return fmt::format("{}_{}_{}_{}_{}", families()[of.family].name, dtype_name(of.dtype),
                     of.cache == CacheKind::kStatic ? "static" : "dynamic",
                     of.compiled ? "compiled" : "eager", of.rows);
}

class CudaHalfSessions : public testing::TestWithParam<HalfCase> {
 protected:
  void SetUp() override {
    if (!test::CudaDriver::open()) GTEST_SKIP() << "no GPU here";
  }
};

TEST_P(CudaHalfSessions, AreNearTheProcessors) {
  const int64_t steps = test::on_the_processor() ? 4 : 12;
  const auto [family, dtype, cache, compiled, rows] = GetParam();
  const TinyCheckpoint checkpoint(families()[family], kPositions);
  SessionOptions options{.cache = cache, .dtype = dtype, .threads = 2};
  Session processor = open(checkpoint, options);
  options.gpu = 0;
  options.compile.prefill = options.compile.decode = compiled;
  options.compile.verify_passes = false;
  options.compile.kernel_cache = test::kernels_of_all_cases();
  Session gpu = open(checkpoint, options);
  const double tolerance = dtype == DType::kF16 ? 4e-3 : 3e-2;
  for (const int64_t length : prompt_lengths()) {
    const PromptBatch batch = some_prompts(length, rows);
    const Generation expected = generate(processor, batch, steps);
    ASSERT_TRUE(gpu.prepare(batch.batch, batch.padded_len + steps));
    ASSERT_TRUE(gpu.prefill(batch));
    for (size_t step = 0; step < expected.logits.size(); ++step) {
      expect_near(gpu.logits(), expected.logits[step], tolerance);
      if (HasFatalFailure()) FAIL() << "prompts of " << length << ", step " << step;
      if (step + 1 == expected.logits.size()) break;
      std::vector<int32_t> tokens;
      for (const Prompt& row : expected.tokens) tokens.push_back(row[step]);
      ASSERT_TRUE(gpu.decode(tokens));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, CudaHalfSessions,
    testing::ValuesIn(test::chosen(half_cases(), &name_of, {"llama_bf16_dynamic_compiled_3"},
                                   {"gpt2_fp16_static_compiled_3", "gpt2_bf16_dynamic_eager_3",
                                    "qwen2_bf16_static_eager_1"})),
    [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace assay::engine
