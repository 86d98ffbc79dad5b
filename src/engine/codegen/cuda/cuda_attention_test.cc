// The cut of a step's attention: threads, memory and ranges; and of a prompt's: warpgroups.
#include "engine/codegen/cuda/cuda_attention.h"

#include <gtest/gtest.h>

namespace assay::engine {
namespace {

struct Steps {
  int64_t rows, kv_heads, head_dim, capacity;  // 0: a symbol
  std::string target = "sm_90a";
  bool beside_rings = false;
};
struct Cut {
  int64_t threads, kilobytes, ranges;
  bool operator==(const Cut&) const = default;
};
void PrintTo(const Cut& cut, std::ostream* out) {
  *out << cut.threads << " threads, " << cut.kilobytes << " KB, " << cut.ranges << " ranges";
}

Cut cut_of(const Steps& steps) {
  Kernel kernel;
  kernel.target = steps.target;
  kernel.beside_rings = steps.beside_rings;
  kernel.dims.q_len = 1;
  if (steps.capacity > 0) kernel.dims.capacity = steps.capacity;
  kernel.run_sizes = {.batch = steps.rows, .q_len = 1, .kv_len = {}, .capacity = {}};
  AttentionKernel attention{
      .heads = 4 * steps.kv_heads, .kv_heads = steps.kv_heads, .head_dim = steps.head_dim};
  kernel.buffers.resize(6);
  attention.keys = 1, attention.values = 2;
  kernel.buffers[1].dtype = kernel.buffers[2].dtype = DType::kBF16;
  const int64_t capacity = steps.capacity > 0 ? steps.capacity : 4000;
  return {cuda_steps_threads(kernel, attention), cuda_steps_shared_bytes(kernel, attention) / 1024,
          cuda_attention_splits(kernel, attention, {.batch = steps.rows, .q_len = 1, .kv_len = 1},
                                capacity)};
}

// 132 multiprocessors: blocks that have one each, with more memory and fewer ranges than two.
TEST(CudaAttention, HasOneLargeBlockAMultiprocessorWhereRangesFillTheGpu) {
  EXPECT_EQ(cut_of({1, 8, 64, 1000}), (Cut{256, 96, 8}));
  EXPECT_EQ(cut_of({1, 8, 64, 5000}), (Cut{512, 128, 16}));
  EXPECT_EQ(cut_of({8, 8, 64, 1000}), (Cut{256, 96, 2}));
  EXPECT_EQ(cut_of({8, 8, 64, 5000}), (Cut{512, 128, 2}));
  EXPECT_EQ(cut_of({1, 8, 128, 5000}), (Cut{256, 128, 16}));
  EXPECT_EQ(cut_of({8, 8, 128, 300}), (Cut{256, 128, 1})) << "of one range too";
}

TEST(CudaAttention, HasTwoOrMoreBlocksAMultiprocessorElsewhere) {
  EXPECT_EQ(cut_of({1, 8, 64, 300}), (Cut{256, 64, 1})) << "a small cache";
  EXPECT_EQ(cut_of({8, 8, 64, 300}), (Cut{128, 32, 1})) << "a few rows over one";
  EXPECT_EQ(cut_of({12, 8, 64, 5000}), (Cut{256, 64, 2})) << "96 heads leave 36 multiprocessors";
  EXPECT_EQ(cut_of({32, 8, 64, 5000}), (Cut{256, 64, 1}));
  EXPECT_EQ(cut_of({64, 8, 64, 5000}), (Cut{128, 32, 1}));
  EXPECT_EQ(cut_of({12, 8, 128, 5000}), (Cut{128, 64, 2}));
  EXPECT_EQ(cut_of({1, 8, 64, 0}), (Cut{256, 64, 31})) << "a capacity that isn't known";
  EXPECT_EQ(cut_of({1, 8, 64, 5000, "sm_90a", true}), (Cut{256, 64, 33})) << "beside rings";
  EXPECT_EQ(cut_of({1, 8, 128, 5000, "sm_80"}), (Cut{128, 64, 33})) << "a GPU with less memory";
}

// A prompt has so many blocks of two warpgroups. Returns how many its blocks have, without the one
// that loads.
int64_t warpgroups_of(int64_t head_dim, int64_t blocks_of_two) {
  Kernel kernel;
  kernel.target = "sm_90a";
  kernel.run_sizes = {.batch = 1, .q_len = 100, .kv_len = {}, .capacity = {}};
  const AttentionKernel attention{
      .heads = blocks_of_two, .kv_heads = blocks_of_two, .head_dim = head_dim};
  return warpgroup_prefill_threads(kernel, attention) / 128 - 1;
}

// 132 multiprocessors: of heads of 64 elements each has room for two blocks of one warpgroup.
TEST(CudaAttention, OfPromptsHasTwoWarpgroupsWhereTheirBlocksFillOneOrTwoRounds) {
  EXPECT_EQ(warpgroups_of(64, 98), 1);
  EXPECT_EQ(warpgroups_of(64, 99), 2);
  EXPECT_EQ(warpgroups_of(64, 264), 2);
  EXPECT_EQ(warpgroups_of(64, 265), 3);
  EXPECT_EQ(warpgroups_of(128, 65), 1);
  EXPECT_EQ(warpgroups_of(128, 66), 2);
  EXPECT_EQ(warpgroups_of(128, 2000), 2) << "registers for no more";
}

}  // namespace
}  // namespace assay::engine
