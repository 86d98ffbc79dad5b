// Kernels of rows: a thread waits for memory once, not once for each of its elements.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/codegen/cuda/print_cuda.h"
#include "engine/codegen/lower/lower.h"
#include "engine/graph/graph_builder.h"

namespace assay::engine {
namespace {

std::string embedding_text(int64_t width) {
  GraphBuilder builder({{"table", Shape{50, width}}}, DType::kBF16);
  const ValueId row = builder.add(OpKind::kEmbedding, {builder.ids(), builder.weight("table")});
  const auto graph = builder.finish({row});
  EXPECT_TRUE(graph) << graph.error().message;
  const auto kernel = lower(*graph, graph->nodes[0], {}, TileLayout::kRows);
  EXPECT_TRUE(kernel) << kernel.error().message;
  const auto text = print_cuda(*kernel);
  EXPECT_TRUE(text) << text.error().message;
  return *text;
}

size_t find_in(const std::string& text, const std::string& part) {
  const size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part << "\n" << text;
  return at;
}

TEST(CudaRows, ThreadsLoadSeveralElementsBeforeTheyStoreAny) {
  for (const auto& [width, size] :
       std::vector<std::pair<int64_t, int>>{{257, 2}, {896, 4}, {2048, 8}, {4096, 8}}) {
    SCOPED_TRACE(width);
    const std::string text = embedding_text(width);
    const std::string loop = fmt::format("_at < {}; ++", size);
    const size_t loads = find_in(text, loop), stores = text.find(loop, loads + 1);
    ASSERT_NE(stores, std::string::npos) << text;
    EXPECT_LT(loads, find_in(text, "from_bf16(in1["));
    EXPECT_LT(find_in(text, "from_bf16(in1["), stores);
    EXPECT_LT(stores, find_in(text, "out0["));
    EXPECT_EQ(text.find("- 1;", loads) != std::string::npos, width % (256 * size) != 0)
        << "elements behind the last are the last one";
  }
}

TEST(CudaRows, AnElementForEachThreadNeedsNoBatch) {
  EXPECT_EQ(embedding_text(256).find("_kept"), std::string::npos);
}

}  // namespace
}  // namespace assay::engine
