// Every operator of the CPU library against the reference, over random shapes, dtypes, layouts and
// thread counts. Outputs are poisoned with NaN and have a border, so that a missing element, and
// one written outside, shows; inputs are exactly as long as they may be read.
#include "engine/ops/ops.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "engine/model/convert.h"
#include "engine/ops/cpu/bf16_product.h"
#include "engine/ops/element.h"
#include "engine/random_blocks.h"

namespace assay::engine {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr size_t kBorder = 32;

std::vector<float> random_floats(Random& random, int64_t count, double spread = 1) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& v : values) v = static_cast<float>((random.uniform() * 2 - 1) * spread);
  return values;
}

std::vector<float> rounded_to_bf16(std::vector<float> values) {
  for (float& v : values) v = bf16_to_f32(f32_to_bf16(v));
  return values;
}

// A random tensor that owns its bytes.
struct Tensor {
  std::vector<std::byte> bytes;
  DType dtype;
  Shape shape;

  Tensor(Random& random, DType type, Shape dims) : dtype(type), shape(dims) {
    bytes.resize(static_cast<size_t>(shape.elements()) * dtype_size_bytes(dtype));
    const std::vector<float> values = random_floats(random, shape.elements());
    for (size_t i = 0; i < values.size(); ++i) {
      const uint16_t half = dtype == DType::kBF16 ? f32_to_bf16(values[i]) : f32_to_f16(values[i]);
      if (dtype == DType::kF32) {
        std::memcpy(&bytes[i * 4], &values[i], 4);
      } else {
        std::memcpy(&bytes[i * 2], &half, 2);
      }
    }
  }
  TensorView view() const { return {bytes.data(), dtype, shape}; }
};

// An output full of NaN, with a border behind it.
struct Output {
  std::vector<float> values;
  size_t count;

  explicit Output(int64_t size)
      : values(static_cast<size_t>(size) + kBorder, kNan), count(static_cast<size_t>(size)) {}
  float* data() { return values.data(); }
};

void expect_agree(const Output& reference, const Output& actual, double tolerance) {
  double largest = 0;
  for (size_t i = 0; i < reference.count; ++i) {
    largest = std::max(largest, std::fabs(double{reference.values[i]}));
  }
  for (size_t i = 0; i < reference.count; ++i) {
    ASSERT_FALSE(std::isnan(reference.values[i])) << "reference left " << i << " unwritten";
    ASSERT_NEAR(actual.values[i], reference.values[i], tolerance * std::max(largest, 1e-3))
        << "at " << i;
  }
  for (size_t i = reference.count; i < reference.values.size(); ++i) {
    ASSERT_TRUE(std::isnan(reference.values[i]) && std::isnan(actual.values[i]))
        << "written past the end by " << i - reference.count + 1;
  }
}

int64_t pick(Random& random, std::initializer_list<int64_t> choices) {
  return choices.begin()[random.below(choices.size())];
}

// Sizes about vectors and blocks, their neighbours, and anything.
int64_t size_up_to(Random& random, int64_t limit) {
  const int64_t edge =
      pick(random, {1, 2, 3, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 256});
  if (random.below(3) > 0 && edge <= limit) return edge;
  return 1 + static_cast<int64_t>(random.below(static_cast<uint64_t>(limit)));
}

DType any_dtype(Random& random) {
  const DType dtypes[] = {DType::kF32, DType::kF16, DType::kBF16};
  return dtypes[random.below(3)];
}

// Threads, and a Highway target (0: the best that the machine has).
class OpsAgree : public testing::TestWithParam<std::tuple<size_t, int64_t>> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(std::get<1>(GetParam())); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
  static size_t threads() { return std::get<0>(GetParam()); }

  // Runs body(random) for seeds that a failure names.
  template <typename Body>
  void for_seeds(uint64_t count, const Body& body) {
    for (uint64_t seed = 0; seed < count && !HasFatalFailure(); ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", threads " + std::to_string(threads()));
      Random random(seed);
      body(random);
    }
  }

  // Runs op(library, output) on both libraries.
  template <typename Op>
  void compare(int64_t outputs, double tolerance, const Op& op) {
    Output expected(outputs);
    Output actual(outputs);
    op(*reference_, expected.data());
    op(*cpu_, actual.data());
    expect_agree(expected, actual, tolerance);
  }

  ThreadPool pool_{threads()};
  std::unique_ptr<OpLibrary> reference_ = make_reference_ops();
  std::unique_ptr<OpLibrary> cpu_ = make_cpu_ops(pool_);
};

// Every target that was compiled and that this machine can run.
std::vector<int64_t> runnable_targets() {
  std::vector<int64_t> targets;
  for (int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1) {
    targets.push_back(rest & -rest);
  }
  return targets;
}

std::string case_name(const testing::TestParamInfo<std::tuple<size_t, int64_t>>& info) {
  const auto [threads, target] = info.param;
  return fmt::format("{}_threads_{}", threads, target == 0 ? "best" : hwy::TargetName(target));
}

INSTANTIATE_TEST_SUITE_P(Threads, OpsAgree,
                         testing::Combine(testing::Values(1, 2, 3), testing::Values(0)), case_name);
INSTANTIATE_TEST_SUITE_P(Targets, OpsAgree,
                         testing::Combine(testing::Values(2),
                                          testing::ValuesIn(runnable_targets())),
                         case_name);

TEST_P(OpsAgree, Embedding) {
  for_seeds(40, [&](Random& random) {
    const int64_t vocab = size_up_to(random, 300);
    const int64_t hidden = size_up_to(random, 900);
    const Tensor table(random, any_dtype(random), {vocab, hidden});
    std::vector<int32_t> ids(static_cast<size_t>(size_up_to(random, 70)));
    for (int32_t& id : ids) id = static_cast<int32_t>(random.below(static_cast<uint64_t>(vocab)));
    compare(static_cast<int64_t>(ids.size()) * hidden, 0,
            [&](OpLibrary& ops, float* out) { ops.embedding(ids, table.view(), out); });
  });
}

TEST_P(OpsAgree, AddAndMultiply) {
  for_seeds(40, [&](Random& random) {
    const int64_t count =
        random.below(4) == 0 ? size_up_to(random, 100'000) : size_up_to(random, 300);
    const std::vector<float> a = random_floats(random, count);
    const std::vector<float> b = random_floats(random, count);
    compare(count, 0, [&](OpLibrary& ops, float* out) { ops.add(a.data(), b.data(), out, count); });
    compare(count, 0,
            [&](OpLibrary& ops, float* out) { ops.multiply(a.data(), b.data(), out, count); });
    compare(count, 0, [&](OpLibrary& ops, float* out) {
      std::ranges::copy(a, out);
      ops.add(out, b.data(), out, count);
      ops.multiply(b.data(), out, out, count);
    });
  });
}

TEST_P(OpsAgree, Activations) {
  for_seeds(40, [&](Random& random) {
    const int64_t count =
        random.below(4) == 0 ? size_up_to(random, 100'000) : size_up_to(random, 300);
    const std::vector<float> x = random_floats(random, count, pick(random, {1, 10, 200}));
    for (const Activation kind :
         {Activation::kGeluTanh, Activation::kGeluErf, Activation::kRelu, Activation::kSilu}) {
      compare(count, 1e-6,
              [&](OpLibrary& ops, float* out) { ops.activate(kind, x.data(), out, count); });
      compare(count, 1e-6, [&](OpLibrary& ops, float* out) {
        std::ranges::copy(x, out);
        ops.activate(kind, out, out, count);
      });
    }
  });
}

// The bound of pointwise.h, element by element: small results must be as exact as large ones.
TEST_P(OpsAgree, ActivationsAreExactRelativeToEachElement) {
  std::vector<float> x;
  for (int i = -8000; i < 12'000; i += 2) x.push_back(static_cast<float>(i + 1) / 1000);
  const auto count = static_cast<int64_t>(x.size());
  for (const Activation kind : {Activation::kGeluTanh, Activation::kGeluErf, Activation::kSilu}) {
    std::vector<float> expected(x.size());
    std::vector<float> actual(x.size());
    reference_->activate(kind, x.data(), expected.data(), count);
    cpu_->activate(kind, x.data(), actual.data(), count);
    for (size_t i = 0; i < x.size(); ++i) {
      // The exponent of a tiny result is a large number, and its rounding adds to the bound.
      const double exponent = std::log(std::fabs(double{expected[i]} / x[i]));
      const double bound = 2e-6 + 2.4e-7 * std::fabs(exponent);
      ASSERT_NEAR(actual[i], expected[i], bound * std::fabs(expected[i])) << "x = " << x[i];
    }
  }
}

TEST_P(OpsAgree, ActivationsOfExtremeValues) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {0, -0.0f, 1e30f, -1e30f, 1e-40f, infinity, 3e38f, -3e38f, kNan};
  for (const Activation kind :
       {Activation::kGeluTanh, Activation::kGeluErf, Activation::kRelu, Activation::kSilu}) {
    std::vector<float> out(x.size());
    cpu_->activate(kind, x.data(), out.data(), static_cast<int64_t>(x.size()));
    EXPECT_EQ(out[0], 0);
    EXPECT_EQ(out[1], 0);
    EXPECT_EQ(out[2], 1e30f);
    EXPECT_EQ(out[3], 0);
    EXPECT_NEAR(out[4], 0, 1e-39);
    EXPECT_EQ(out[5], infinity);
    EXPECT_EQ(out[6], 3e38f);
    EXPECT_EQ(out[7], 0);
    EXPECT_TRUE(std::isnan(out[8]));
  }
}

TEST_P(OpsAgree, Norms) {
  for_seeds(60, [&](Random& random) {
    const int64_t rows = size_up_to(random, 40);
    const int64_t width = size_up_to(random, 2100);
    const Tensor weight(random, any_dtype(random), {width});
    const Tensor bias(random, any_dtype(random), {width});
    std::vector<float> x = random_floats(random, rows * width, pick(random, {1, 1000}));
    const auto shift = static_cast<float>(pick(random, {0, 50}));
    for (float& v : x) v += shift;
    compare(rows * width, 2e-5, [&](OpLibrary& ops, float* out) {
      ops.layer_norm(x.data(), weight.view(), bias.view(), 1e-5, out, rows, width);
    });
    compare(rows * width, 2e-6, [&](OpLibrary& ops, float* out) {
      ops.rms_norm(x.data(), weight.view(), 1e-6, out, rows, width);
    });
  });
}

// One product of random dtype, layout and bias; `run` is compare().
template <typename Compare>
void linear_case(Random& random, int64_t rows, int64_t inputs, int64_t outputs,
                 const Compare& run) {
  const bool out_in = random.below(2) == 0;
  const WeightLayout layout = out_in ? WeightLayout::kOutIn : WeightLayout::kInOut;
  const Shape shape = out_in ? Shape{outputs, inputs} : Shape{inputs, outputs};
  const Tensor weight(random, any_dtype(random), shape);
  const Tensor bias(random, any_dtype(random), {outputs});
  const TensorView bias_view = bias.view();
  const TensorView* bias_or_none = random.below(2) == 0 ? &bias_view : nullptr;
  std::vector<float> x = random_floats(random, rows * inputs);
  if (weight.dtype == DType::kBF16) x = rounded_to_bf16(x);  // of many rows it may be
  SCOPED_TRACE(testing::Message() << rows << " x " << inputs << " x " << outputs << ' '
                                  << dtype_name(weight.dtype) << (out_in ? " out-in" : " in-out"));
  run(rows * outputs, 1e-5, [&](OpLibrary& ops, float* out) {
    ops.linear(x.data(), weight.view(), layout, bias_or_none, out, rows);
  });
}

TEST_P(OpsAgree, LinearOfFewRows) {
  for_seeds(150, [&](Random& random) {
    const int64_t rows = 1 + static_cast<int64_t>(random.below(8));
    linear_case(random, rows, size_up_to(random, 700), size_up_to(random, 700),
                [&](auto&&... args) { compare(args...); });
  });
}

TEST_P(OpsAgree, WeightsInBlocks) {
  for_seeds(60, [&](Random& random) {
    const FormatTraits& format = kFormats[3 + random.below(kFormats.size() - 3)];
    SCOPED_TRACE(format.name);
    const int64_t rows = pick(random, {1, 3, 8, 9, 40});
    const int64_t inputs = format.block_values * (1 + static_cast<int64_t>(random.below(3)));
    const int64_t outputs = size_up_to(random, 300);
    const std::vector<std::byte> bytes =
        random_blocks(random, format.format, Shape{outputs, inputs});
    const TensorView weight(bytes.data(), format.format, Shape{outputs, inputs});
    const Tensor bias(random, any_dtype(random), {outputs});
    const TensorView bias_view = bias.view();
    const TensorView* bias_or_none = random.below(2) == 0 ? &bias_view : nullptr;
    const std::vector<float> x = random_floats(random, rows * inputs);
    compare(rows * outputs, 1e-5, [&](OpLibrary& ops, float* out) {
      ops.linear(x.data(), weight, WeightLayout::kOutIn, bias_or_none, out, rows);
    });
    std::vector<int32_t> ids(static_cast<size_t>(rows));
    for (int32_t& id : ids) id = static_cast<int32_t>(random.below(static_cast<uint64_t>(outputs)));
    compare(rows * inputs, 0, [&](OpLibrary& ops, float* out) { ops.embedding(ids, weight, out); });
  });
}

TEST_P(OpsAgree, LinearOfWideMatrices) {  // more than one column block and share a thread
  for_seeds(6, [&](Random& random) {
    const int64_t rows = 1 + static_cast<int64_t>(random.below(5));
    linear_case(random, rows, 20 + size_up_to(random, 100),
                5000 + static_cast<int64_t>(random.below(300)),
                [&](auto&&... args) { compare(args...); });
  });
}

TEST_P(OpsAgree, LinearOfManyRows) {
  for_seeds(40, [&](Random& random) {
    linear_case(random, 8 + size_up_to(random, 70), size_up_to(random, 300),
                size_up_to(random, 700), [&](auto&&... args) { compare(args...); });
  });
}

TEST_P(OpsAgree, ManyRowsAreRoundedToBf16WhereTheProcessorMultipliesIt) {
  if (!cpu::has_bf16_dot()) GTEST_SKIP() << "this processor has no dot product of bf16";
  for_seeds(10, [&](Random& random) {
    const int64_t rows = 9 + size_up_to(random, 40), inputs = size_up_to(random, 200);
    const bool out_in = random.below(2) == 0;
    const WeightLayout layout = out_in ? WeightLayout::kOutIn : WeightLayout::kInOut;
    const Tensor weight(random, DType::kBF16, out_in ? Shape{70, inputs} : Shape{inputs, 70});
    const std::vector<float> x = random_floats(random, rows * inputs);
    std::vector<float> expected(static_cast<size_t>(rows * 70)), actual = expected;
    cpu_->linear(rounded_to_bf16(x).data(), weight.view(), layout, nullptr, expected.data(), rows);
    cpu_->linear(x.data(), weight.view(), layout, nullptr, actual.data(), rows);
    ASSERT_EQ(actual, expected);
  });
}

TEST_P(OpsAgree, DotProductsDoNotDependOnThreads) {
  ThreadPool one(1);
  const auto alone = make_cpu_ops(one);
  for_seeds(10, [&](Random& random) {
    const Tensor weight(random, any_dtype(random), {1001, 515});
    const std::vector<float> x = random_floats(random, 3 * 515);
    std::vector<float> expected(3 * 1001);
    std::vector<float> actual(3 * 1001);
    alone->linear(x.data(), weight.view(), WeightLayout::kOutIn, nullptr, expected.data(), 3);
    cpu_->linear(x.data(), weight.view(), WeightLayout::kOutIn, nullptr, actual.data(), 3);
    ASSERT_EQ(actual, expected);
  });
}

// Rows of `q_len` new tokens each, of any lengths up to `kv_len` with them, half of them padded.
// Half of all cases have them in order in the cache, others in any of its rows.
class Places {
 public:
  Places(Random& random, int64_t batch, int64_t q_len, int64_t kv_len)
      : q_len_(q_len), cache_rows_(batch) {
    for (int64_t b = 0; b < batch; ++b) {
      const auto length = random.below(static_cast<uint64_t>(kv_len - q_len + 1));
      const auto end = length + static_cast<uint64_t>(q_len);
      lengths_.push_back(static_cast<int32_t>(length));
      pad_.push_back(random.below(2) == 0 ? static_cast<int32_t>(random.below(end)) : 0);
    }
    if (random.below(2) == 0) return;
    cache_rows_ += static_cast<int64_t>(random.below(3));
    for (int32_t row = 0; row < cache_rows_; ++row) {
      slots_.insert(slots_.begin() + static_cast<long>(random.below(slots_.size() + 1)), row);
    }
    slots_.resize(static_cast<size_t>(batch));
  }
  TokenPlaces get() const { return {lengths_, pad_, q_len_, slots_}; }
  int64_t cache_rows() const { return cache_rows_; }
  int64_t tokens() const { return std::ssize(lengths_) * q_len_; }

 private:
  std::vector<int32_t> lengths_, pad_, slots_;
  int64_t q_len_, cache_rows_;
};

TEST_P(OpsAgree, Positions) {
  const std::vector<int32_t> lengths = {0, 4, 2}, pad = {2, 1, 0};
  for (OpLibrary* ops : {reference_.get(), cpu_.get()}) {
    std::vector<int32_t> positions(9);
    ops->positions({lengths, pad, 3}, positions.data());
    EXPECT_EQ(positions, (std::vector<int32_t>{0, 0, 0, 3, 4, 5, 2, 3, 4})) << ops->name();
  }
}

TEST_P(OpsAgree, Rope) {
  for_seeds(40, [&](Random& random) {
    const int64_t heads = 1 + static_cast<int64_t>(random.below(9));
    const int64_t half = size_up_to(random, 70);
    const int64_t max_positions = size_up_to(random, 50);
    const std::vector<float> cos = random_floats(random, max_positions * half);
    const std::vector<float> sin = random_floats(random, max_positions * half);
    const Places places(random, 1 + static_cast<int64_t>(random.below(4)),
                        size_up_to(random, std::min<int64_t>(max_positions, 20)), max_positions);
    const int64_t count = places.tokens() * heads * half * 2;
    const std::vector<float> x = random_floats(random, count);
    compare(count, 1e-6, [&](OpLibrary& ops, float* out) {
      ops.rope(x.data(), places.get(), cos.data(), sin.data(), out, heads, half * 2);
    });
    compare(count, 1e-6, [&](OpLibrary& ops, float* out) {
      std::ranges::copy(x, out);
      ops.rope(out, places.get(), cos.data(), sin.data(), out, heads, half * 2);
    });
  });
}

// A cache of random strides over `storage`, which it makes as large as it must be.
KvView random_cache(Random& random, int64_t batch, int64_t kv_heads, int64_t used, int64_t head_dim,
                    std::vector<float>& storage) {
  KvView view{.batch = batch, .kv_heads = kv_heads, .head_dim = head_dim};
  view.capacity = used + static_cast<int64_t>(random.below(5));
  view.head_stride = view.capacity * head_dim;
  view.batch_stride = kv_heads * view.head_stride;
  storage.assign(static_cast<size_t>(batch * view.batch_stride), kNan);
  view.data = storage.data();
  return view;
}

TEST_P(OpsAgree, KvWrite) {
  for_seeds(40, [&](Random& random) {
    const int64_t batch = 1 + static_cast<int64_t>(random.below(4));
    const int64_t kv_heads = 1 + static_cast<int64_t>(random.below(5));
    const int64_t head_dim = size_up_to(random, 130);
    const int64_t past = static_cast<int64_t>(random.below(20));
    const int64_t q_len = size_up_to(random, 60);
    const Places places(random, batch, q_len, past + q_len);
    std::vector<float> expected;
    KvView cache =
        random_cache(random, places.cache_rows(), kv_heads, past + q_len, head_dim, expected);
    std::vector<float> actual = expected;
    const std::vector<float> x = random_floats(random, batch * q_len * kv_heads * head_dim);
    reference_->kv_write(x.data(), places.get(), cache);
    cache.data = actual.data();
    cpu_->kv_write(x.data(), places.get(), cache);
    ASSERT_EQ(std::memcmp(actual.data(), expected.data(), expected.size() * sizeof(float)), 0);
    ASSERT_EQ(
        static_cast<size_t>(std::ranges::count_if(actual, [](float v) { return !std::isnan(v); })),
        x.size());
  });
}

// Attention over caches in which only the positions in use are numbers. With padding, also the
// padded positions are NaN for all but the padding's own queries.
template <typename Compare>
void attention_case(Random& random, int64_t q_len, int64_t past, const Compare& run) {
  AttentionShape shape{.batch = 1 + static_cast<int64_t>(random.below(3)), .q_len = q_len};
  shape.kv_len = q_len + past;
  shape.kv_heads = 1 + static_cast<int64_t>(random.below(3));
  shape.heads = shape.kv_heads * pick(random, {1, 2, 3, 7});
  shape.head_dim = random.below(2) == 0 ? 64 : size_up_to(random, 130);
  const Places places(random, shape.batch, q_len, shape.kv_len);
  std::vector<float> key_storage, value_storage;
  const KvView keys = random_cache(random, places.cache_rows(), shape.kv_heads, shape.kv_len,
                                   shape.head_dim, key_storage);
  const KvView values = random_cache(random, places.cache_rows(), shape.kv_heads, shape.kv_len,
                                     shape.head_dim, value_storage);
  for (int64_t b = 0; b < shape.batch; ++b) {
    const int64_t row = places.get().cache_row(b);
    for (int64_t h = 0; h < shape.kv_heads; ++h) {
      for (int64_t i = 0; i < places.get().in_cache(b, q_len) * shape.head_dim; ++i) {
        keys.f32()[row * keys.batch_stride + h * keys.head_stride + i] =
            static_cast<float>(random.uniform() * 4 - 2);
        values.f32()[row * values.batch_stride + h * values.head_stride + i] =
            static_cast<float>(random.uniform() * 2 - 1);
      }
    }
  }
  const int64_t count = shape.batch * q_len * shape.heads * shape.head_dim;
  const std::vector<float> q = random_floats(random, count, 3);
  SCOPED_TRACE(testing::Message() << "q_len " << q_len << ", kv_len " << shape.kv_len << ", heads "
                                  << shape.heads << '/' << shape.kv_heads << ", head_dim "
                                  << shape.head_dim);
  run(count, 1e-5, [&](OpLibrary& ops, float* out) {
    ops.attention(q.data(), keys, values, places.get(), shape, out);
  });
}

TEST_P(OpsAgree, AttentionOfFewQueries) {
  for_seeds(60, [&](Random& random) {
    attention_case(random, 1 + static_cast<int64_t>(random.below(7)),
                   static_cast<int64_t>(random.below(200)),
                   [&](auto&&... args) { compare(args...); });
  });
}

TEST_P(OpsAgree, AttentionOfManyQueries) {
  for_seeds(40, [&](Random& random) {
    const int64_t past = random.below(2) == 0 ? 0 : static_cast<int64_t>(random.below(70));
    attention_case(random, 7 + size_up_to(random, 150), past,
                   [&](auto&&... args) { compare(args...); });
  });
}

TEST_P(OpsAgree, LastRows) {
  for_seeds(20, [&](Random& random) {
    const int64_t batch = 1 + static_cast<int64_t>(random.below(4));
    const int64_t q_len = size_up_to(random, 20);
    const int64_t hidden = size_up_to(random, 300);
    const std::vector<float> x = random_floats(random, batch * q_len * hidden);
    compare(batch * hidden, 0, [&](OpLibrary& ops, float* out) {
      ops.last_rows(x.data(), batch, q_len, hidden, out);
    });
  });
}

TEST_P(OpsAgree, Argmax) {
  for_seeds(80, [&](Random& random) {
    const int64_t rows = 1 + static_cast<int64_t>(random.below(4));
    const int64_t width = size_up_to(random, 20'000);
    std::vector<float> x = random_floats(random, rows * width);
    for (float& v : x) v = std::round(v * 20);  // equals are common
    if (random.below(4) == 0) x[random.below(x.size())] = kNan;
    if (random.below(4) == 0) x.assign(x.size(), -std::numeric_limits<float>::infinity());
    std::vector<int32_t> expected(static_cast<size_t>(rows), -1);
    std::vector<int32_t> actual(static_cast<size_t>(rows), -1);
    reference_->argmax(x.data(), rows, width, expected.data());
    cpu_->argmax(x.data(), rows, width, actual.data());
    ASSERT_EQ(actual, expected);
  });
}

}  // namespace
}  // namespace assay::engine
