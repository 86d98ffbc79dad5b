// Attention of prompts and of steps on a GPU, over caches of the model's type, against the
// interpreter, in odd sizes. Skipped where there is no GPU.
#include "cuda_kernel_harness.h"

namespace assay::engine {
namespace {

class CudaAttention : public CudaManyRows,
                      public testing::WithParamInterface<std::tuple<int64_t, DType>> {};

Graph attention_graph(int64_t heads, int64_t kv_heads, int64_t head_dim, DType dtype,
                      CacheRows rows = CacheRows::kInOrder) {
  GraphBuilder builder({{"table", Shape{50, heads * head_dim}}}, dtype, dtype, false,
                       rows == CacheRows::kNamed);
  const auto x = builder.add(OpKind::kEmbedding, {builder.ids(), builder.weight("table")});
  const auto out = builder.attention(builder.split_heads(x, heads, head_dim),
                                     builder.cache(0, CachePart::kKeys, kv_heads, head_dim),
                                     builder.cache(0, CachePart::kValues, kv_heads, head_dim));
  auto graph = builder.finish({out});
  EXPECT_TRUE(graph) << graph.error().message;
  return *std::move(graph);
}

TEST_P(CudaAttention, EqualsTheInterpreters) {
  const auto [head_dim, dtype] = GetParam();
  const Graph graph = attention_graph(6, 2, head_dim, dtype);
  const int64_t longest = only_few_cases() ? 137 : 300;
  run<AttentionKernel>(graph, dtype,
                       {{1, 9, 9},
                        {2, 17, 17},
                        {2, 130, 130},
                        {3, 70, 101},
                        {1, longest, longest},
                        {46, 9, 20},
                        {2, 5, 30}});
  run<AttentionKernel>(graph, DType::kF32,  // as exact, whatever the cache's type
                       {{1, 1, 1}, {2, 1, 40}, {3, 1, 301}, {1, 1, 1000}, {2, 8, 101}});
}

// One head has keys of its own; others share keys: seven, or more than a block takes, of which the
// last block of nine and of seventeen has fewer.
TEST_P(CudaAttention, OfGroupsEqualsTheInterpreters) {
  const auto [head_dim, dtype] = GetParam();
  for (const int64_t heads : {1, 7, 9, 12, 17}) {
    SCOPED_TRACE(heads);
    run<AttentionKernel>(attention_graph(heads, 1, head_dim, dtype), DType::kF32,
                         {{2, 1, 40}, {1, 1, 1700}, {1, 3, 50}});
  }
}

TEST_P(CudaAttention, OfNamedRowsEqualsTheInterpreters) {
  const auto [head_dim, dtype] = GetParam();
  const Graph graph = attention_graph(6, 2, head_dim, dtype, CacheRows::kNamed);
  run<AttentionKernel>(graph, dtype, {{3, 17, 30}});
  run<AttentionKernel>(graph, DType::kF32, {{3, 1, 301}, {2, 5, 30}});
}

// Shapes that go by the capacity: of a cache of one range, of several, and of long ones.
TEST_P(CudaAttention, OverCachesOfKnownCapacityEqualsTheInterpreters) {
  const auto [head_dim, dtype] = GetParam();
  known_sizes_ = true;
  run<AttentionKernel>(attention_graph(6, 2, head_dim, dtype), DType::kF32,
                       {{1, 1, 40}, {2, 1, 301}, {1, 1, 700}, {3, 1, 1001}, {1, 1, 2100}});
  run<AttentionKernel>(attention_graph(7, 1, head_dim, dtype), DType::kF32, {{1, 1, 2300}});
}

// So many blocks that they are smaller.
TEST_P(CudaAttention, OfManyRowsEqualsTheInterpreters) {
  const auto [head_dim, dtype] = GetParam();
  run<AttentionKernel>(attention_graph(6, 2, head_dim, dtype), DType::kF32, {{140, 1, 90}});
}

// Few: heads of odd sizes, and those that warpgroups multiply on Hopper in both types of 16 bits.
std::vector<std::tuple<int64_t, DType>> head_cases() {
  if (only_few_cases()) {
    return {{6, DType::kF32},
            {64, DType::kBF16},
            {80, DType::kBF16},
            {128, DType::kF16},
            {130, DType::kF16}};
  }
  std::vector<std::tuple<int64_t, DType>> all;
  for (const int64_t head_dim : {6, 16, 64, 80, 128, 130}) {
    for (const DType dtype : kTypes) all.emplace_back(head_dim, dtype);
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Heads, CudaAttention, testing::ValuesIn(head_cases()));

// Heads that warpgroups multiply on Hopper, in blocks of two of them. In one round their queries
// are of both ends of the prompt, of which the middle is one warpgroup's alone; then two rounds.
class CudaPairedAttention : public CudaAttention {};

TEST_P(CudaPairedAttention, EqualsTheInterpreters) {
  const auto [head_dim, dtype] = GetParam();
  const Graph graph = attention_graph(6, 2, head_dim, dtype);
  std::vector<DimValues> all_dims = {{6, 300, 310}, {8, 257, 257}};
  if (!only_few_cases()) all_dims.insert(all_dims.end(), {{9, 130, 141}, {4, 520, 560}});
  const auto is_attention = [&](const Node& node) { return node.op == OpKind::kAttention; };
  const auto node = std::ranges::find_if(graph.nodes, is_attention);
  ASSERT_NE(node, graph.nodes.end());
  auto kernel = lower(graph, *node, {}, TileLayout::kRows);
  ASSERT_TRUE(kernel) << kernel.error().message;
  kernel->target = "sm_90a";
  for (const DimValues& dims : all_dims) {
    kernel->run_sizes = {dims.batch, dims.q_len, {}, {}};
    const CudaLaunch launch = cuda_launches(*kernel, dims, dims.kv_len).run.front();
    EXPECT_EQ(launch.threads, 3 * 128) << "two warpgroups, and one that loads";
    EXPECT_EQ(launch.blocks_x,
              std::min(dims.batch * 6 * ((dims.q_len + 127) / 128), kCudaMultiprocessors));
  }
  run<AttentionKernel>(graph, dtype, all_dims);
}

std::vector<std::tuple<int64_t, DType>> paired_cases() {
  if (only_few_cases()) return {{64, DType::kBF16}, {128, DType::kF16}};
  return {{64, DType::kBF16}, {64, DType::kF16}, {128, DType::kBF16}, {128, DType::kF16}};
}
INSTANTIATE_TEST_SUITE_P(Heads, CudaPairedAttention, testing::ValuesIn(paired_cases()));

}  // namespace
}  // namespace assay::engine
