// The attention template against the reference operator: every form of it, on poisoned caches.
#include "engine/codegen/cpu/cpu_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "base/process/thread_pool.h"
#include "engine/codegen/cpu/kernel_library.h"
#include "engine/ops/ops.h"

namespace assay::engine {
namespace {

struct Case {
  const char* what;
  int64_t batch, q_len, kv_len, heads, kv_heads, head_dim;
  size_t threads;
  std::vector<int32_t> pad;
  bool specialized;
  std::vector<int32_t> shorter = {};  // by row: positions that it has less than kv_len
  std::vector<int32_t> slots = {};    // by row: its row of the cache; empty: in order
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.what;
}

// Tensors of a case; positions behind a row's length in the cache hold poison.
struct Tensors {
  explicit Tensors(const Case& c) : capacity(c.kv_len + 3) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (size_t row = 0; row < static_cast<size_t>(c.batch); ++row) {
      const int32_t less = c.shorter.empty() ? 0 : c.shorter[row];
      lengths.push_back(static_cast<int32_t>(c.kv_len - c.q_len) - less);
    }
    const auto fill = [&](std::vector<float>& cache) {
      cache.assign(static_cast<size_t>(cache_rows(c) * c.kv_heads * capacity * c.head_dim),
                   std::numeric_limits<float>::quiet_NaN());
      for (int64_t head = 0; head < c.batch * c.kv_heads; ++head) {
        const auto row = static_cast<size_t>(head / c.kv_heads);
        const int64_t cache_row = c.slots.empty() ? head / c.kv_heads : c.slots[row];
        float* first =
            cache.data() + (cache_row * c.kv_heads + head % c.kv_heads) * capacity * c.head_dim;
        std::generate_n(first, (lengths[row] + c.q_len) * c.head_dim,
                        [&] { return normal(random); });
      }
    };
    fill(keys);
    fill(values);
    q.resize(static_cast<size_t>(c.batch * c.q_len * c.heads * c.head_dim));
    std::ranges::generate(q, [&] { return normal(random); });
    pad = c.pad;
    slots = c.slots;
  }
  static int64_t cache_rows(const Case& c) {
    return c.slots.empty() ? c.batch : std::ranges::max(c.slots) + 1;
  }
  KvView view(const Case& c, std::vector<float>& cache) const {
    return {.data = cache.data(),
            .batch = cache_rows(c),
            .kv_heads = c.kv_heads,
            .capacity = capacity,
            .head_dim = c.head_dim,
            .batch_stride = c.kv_heads * capacity * c.head_dim,
            .head_stride = capacity * c.head_dim};
  }

  int64_t capacity;
  std::vector<float> q, keys, values;
  std::vector<int32_t> lengths, pad, slots;
};

class CpuAttention : public ::testing::TestWithParam<Case> {};

TEST_P(CpuAttention, EqualsTheReference) {
  const Case& c = GetParam();
  Tensors t(c);
  const AttentionShape shape{c.batch, c.q_len, c.kv_len, c.heads, c.kv_heads, c.head_dim};
  std::vector<float> expected(t.q.size());
  make_reference_ops()->attention(t.q.data(), t.view(c, t.keys), t.view(c, t.values),
                                  {t.lengths, t.pad, c.q_len, c.slots}, shape, expected.data());

  Kernel kernel;
  AttentionKernel attention{c.heads, c.kv_heads, c.head_dim, 0, 1, 2, 3, 4, 5};
  if (!c.slots.empty()) attention.slots = 6;
  kernel.body = attention;
  if (c.specialized) kernel.dims = {c.batch, c.q_len, c.kv_len, t.capacity};
  auto compiler = CpuCompiler::find();
  ASSERT_TRUE(compiler) << compiler.error().message;
  KernelLibrary library(*compiler, std::nullopt, 1);
  const std::string source = cpu_attention_source(kernel);
  const auto functions = library.load_sources({&source, 1});
  ASSERT_TRUE(functions) << functions.error().message;

  ThreadPool pool(c.threads);
  const DimValues dims{c.batch, c.q_len, c.kv_len};
  const auto threads = static_cast<int64_t>(c.threads);
  std::vector<std::vector<float>> scratch(
      c.threads,
      std::vector<float>(static_cast<size_t>(attention_scratch_floats(attention, dims))));
  std::vector<float> shared(static_cast<size_t>(attention_shared_floats(attention, dims, threads)));
  std::vector<float> found(t.q.size(), -7.0f);
  void* buffers[] = {t.q.data(),   t.keys.data(), t.values.data(), t.lengths.data(),
                     t.pad.data(), found.data(),  t.slots.data()};
  for (int call = 0; call < 2;
       ++call) {  // the second finds the shared scratch as the first left it
    std::ranges::fill(found, -7.0f);
    pool.run([&](size_t i) {
      const KernelArgs args{
          buffers, {c.batch, c.q_len, c.kv_len, t.capacity}, scratch[i].data(), shared.data()};
      functions->front().run(&args, static_cast<int64_t>(i), threads);
    });
    for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 3e-6) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Forms, CpuAttention,
    ::testing::Values(
        Case{"one query", 1, 1, 40, 4, 2, 16, 2, {0}, true},
        Case{"one query, sizes at run time", 1, 1, 40, 4, 2, 16, 2, {0}, false},
        Case{"padded rows, a head that isn't whole vectors",
             3,
             1,
             133,
             6,
             2,
             20,
             4,
             {0, 5, 100},
             false},
        Case{"one head over four threads: split over positions", 1, 1, 700, 2, 1, 64, 4, {3}, true},
        Case{"few queries, some of them padding", 2, 5, 37, 4, 4, 6, 2, {0, 33}, false},
        Case{"few padded queries, split over positions", 2, 4, 300, 3, 1, 24, 3, {0, 298}, false},
        Case{"rows of different lengths", 3, 2, 50, 4, 2, 16, 2, {0, 3, 0}, false, {0, 40, 48}},
        Case{"rows of different lengths, split over positions",
             2,
             1,
             700,
             2,
             1,
             64,
             4,
             {3, 0},
             true,
             {690, 0}},
        Case{"blocks of rows of different lengths",
             2,
             70,
             150,
             6,
             2,
             24,
             2,
             {0, 37},
             false,
             {80, 30}},
        Case{"rows that are elsewhere in the cache",
             3,
             2,
             50,
             4,
             2,
             16,
             2,
             {0, 3, 0},
             false,
             {0, 40, 48},
             {4, 0, 2}},
        Case{"rows elsewhere, split over positions",
             2,
             1,
             700,
             2,
             1,
             64,
             4,
             {3, 0},
             true,
             {690, 0},
             {1, 0}},
        Case{"blocks of rows that are elsewhere, one half padding",
             2,
             70,
             150,
             6,
             2,
             24,
             2,
             {0, 37},
             false,
             {80, 80},
             {2, 1}},
        Case{"a whole block", 1, 64, 64, 4, 2, 64, 2, {0}, true},
        Case{"blocks with a rest, one row half padding", 2, 70, 70, 6, 2, 24, 2, {0, 37}, false},
        Case{"queries behind a cache, head of 80", 1, 130, 200, 4, 1, 80, 3, {7}, true},
        Case{"a head of two, all but one padding", 1, 9, 9, 4, 2, 2, 1, {8}, false}));

}  // namespace
}  // namespace assay::engine
