// The bytes of packed weights, which files of earlier programs hold too.
#include "engine/device/cpu/product_panels.h"

#include <gtest/gtest.h>

#include "base/files/hash.h"
#include "engine/ops/cpu/quantized_layout.h"
#include "engine/random_blocks.h"
#include "engine/session/tiny_gguf_file.h"

namespace assay::engine {
namespace {

class PackedBytes {
 public:
  void add(std::span<const std::byte> bytes) { hash_.update(bytes); }

  void add(const std::filesystem::path& path, std::optional<DType> dtype) {
    BufferPool memory;
    auto checkpoint = Checkpoint::open(path);
    ASSERT_TRUE(checkpoint) << checkpoint.error().message;
    const auto weights = Weights::load(*std::move(checkpoint), dtype, memory);
    ASSERT_TRUE(weights) << weights.error().message;
    for (const TensorSpec& spec : weights->tensors()) {
      if (spec.shape.rank() != 2) continue;
      for (const TileLayout layout : {TileLayout::kPanels, TileLayout::kRows}) {
        const ProductPanels panels(*weights, {.tensors = {spec.name}}, WeightLayout::kOutIn,
                                   {.segments = {spec.shape[0]}, .layout = layout});
        std::vector<std::byte> bytes(static_cast<size_t>(panels.count()) * panels.bytes());
        panels.pack(pool_, 0, panels.count(), bytes.data());
        add(bytes);
      }
    }
  }

  std::string finish() { return hash_.finish_hex(); }

 private:
  ThreadPool pool_{2};
  Sha256 hash_;
};

// A processor's packed weights are kept on disk (weight_cache.h). If this fails because the layout
// was meant to change, or the order of rows, raise kPackedVersion, so that no file of the former
// layout is read, and put the new hash here. A new format alone needs no new version.
TEST(ProductPanelsTest, BytesAreThoseOfTheirVersion) {
  PackedBytes packed;
  for (const Family& family : families()) {
    const TinyCheckpoint checkpoint(family);
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16})
      packed.add(checkpoint.folder(), dtype);
  }
  const TinyCheckpoint llama(families()[1]);
  const GgufOf interleaved(llama, [](const std::string&) { return WeightFormat::kF32; });
  packed.add(interleaved.path(), std::nullopt);
  Random random(5);
  for (const FormatTraits& t : kFormats) {
    if (!t.in_blocks()) continue;
    const int64_t inputs = 2 * std::max<int64_t>(t.block_values, 128);
    const auto blocks = random_blocks(random, t.format, Shape{Packing::kPanel, inputs});
    std::array<const std::byte*, Packing::kPanel> rows;
    for (size_t r = 0; r < rows.size(); ++r)
      rows[r] = blocks.data() + r * blocks.size() / rows.size();
    std::vector<std::byte> tile(cpu::block_tile_bytes(t.format, inputs));
    cpu::pack_block_tile(t.format, rows, inputs, tile.data());
    packed.add(tile);
  }
  EXPECT_EQ(kPackedVersion, 1);
  EXPECT_EQ(packed.finish(), "560f0c5918629fdd68533a0634e5a86c99c28fd7dbb427487d4c8f8bcecba9db");
}

}  // namespace
}  // namespace assay::engine
