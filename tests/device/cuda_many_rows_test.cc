// Products on a GPU against the interpreter: the processor's own suite, of random graphs; many rows
// by cuBLASLt between their prologues and epilogues; batches; in odd sizes. Skipped where there is
// no GPU.
#include "cuda_kernel_harness.h"
#include "engine/codegen/cuda/cuda_product_shape.h"

namespace assay::engine {
namespace {

class CudaManyRowsOf : public CudaManyRows,
                       public testing::WithParamInterface<std::tuple<size_t, DType, bool>> {};

TEST_P(CudaManyRowsOf, ProductsEqualTheInterpreters) {
  const auto [family, dtype, fused] = GetParam();
  // 9, 17, 64 and 130 rows.
  run<ProductKernel>(graph_of(families()[family].config, dtype, fused), dtype,
                     {{1, 9, 9}, {1, 17, 20}, {2, 32, 32}, {2, 65, 65}});
}

std::vector<std::tuple<size_t, DType, bool>> family_cases() {
  if (only_few_cases()) {
    return {{0, DType::kF32, true},
            {1, DType::kBF16, true},
            {2, DType::kF16, true},
            {0, DType::kBF16, false}};
  }
  std::vector<std::tuple<size_t, DType, bool>> all;
  for (const size_t family : {0, 1, 2}) {
    for (const DType dtype : kTypes) {
      for (const bool fused : {false, true}) all.emplace_back(family, dtype, fused);
    }
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Families, CudaManyRowsOf, testing::ValuesIn(family_cases()));

// So wide that blocks share a row's columns, and rows that divide them unevenly.
TEST_F(CudaManyRows, WideRowsAreMovedByBlocks) {
  GraphBuilder builder({{"table", Shape{50, 9001}}}, DType::kF32);
  const auto x = builder.add(OpKind::kEmbedding, {builder.ids(), builder.weight("table")});
  auto graph = builder.finish({x, builder.add(OpKind::kLastRows, {x})});
  ASSERT_TRUE(graph) << graph.error().message;
  run<RowsKernel>(*graph, DType::kF32, {{1, 5, 5}, {3, 2, 2}});
}

// Sizes that a row of codes may have: of products behind a norm, of attention, behind an epilogue.
constexpr std::string_view kEvenLlama =
    R"("model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 48,
       "hidden_size": 128, "num_hidden_layers": 1, "num_attention_heads": 4,
       "num_key_value_heads": 2, "head_dim": 32, "intermediate_size": 240,
       "max_position_embeddings": 96, "rms_norm_eps": 1e-6, "hidden_act": "silu",
       "rope_theta": 10000.0, "attention_bias": false, "mlp_bias": false,
       "tie_word_embeddings": false)";
constexpr std::string_view kEvenGpt2 =
    R"("model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 48,
       "n_embd": 96, "n_layer": 1, "n_head": 3, "n_positions": 96, "n_inner": null,
       "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": true)";

// Sizes whose elements lie in vectors: with RoPE and caches, with a bias, with a bias behind a gate
// of one input.
constexpr std::array kOfVectors = {
    R"("model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 48,
       "hidden_size": 128, "num_hidden_layers": 1, "num_attention_heads": 4,
       "num_key_value_heads": 2, "head_dim": 32, "intermediate_size": 192,
       "max_position_embeddings": 96, "rms_norm_eps": 1e-6, "hidden_act": "silu",
       "rope_theta": 10000.0, "attention_bias": false, "mlp_bias": false,
       "tie_word_embeddings": false)",
    R"("model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "vocab_size": 41,
       "hidden_size": 128, "num_hidden_layers": 1, "num_attention_heads": 8,
       "num_key_value_heads": 4, "head_dim": 16, "intermediate_size": 4160,
       "max_position_embeddings": 96, "rms_norm_eps": 1e-6, "hidden_act": "silu",
       "rope_theta": 10000.0, "tie_word_embeddings": true)",
    R"("model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 48,
       "n_embd": 128, "n_layer": 1, "n_head": 4, "n_positions": 96, "n_inner": null,
       "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": true)"};

TEST_F(CudaManyRows, EpiloguesByUnitsEqualTheInterpreters) {
  for (const std::string_view config : kOfVectors) {
    for (const DType dtype : {DType::kBF16, DType::kF16}) {
      if (only_few_cases() && dtype == DType::kF16) continue;
      const Graph graph = graph_of(std::string(config), dtype, true);
      int64_t by_units = 0;
      for (const Node& node : graph.nodes) {
        if (node.op == OpKind::kView) continue;
        const auto kernel = lower(graph, node, {}, TileLayout::kRows);
        const auto* product = std::get_if<ProductKernel>(&kernel->body);
        if (product != nullptr && !library_product(*kernel, *product).direct) {
          by_units += unit_epilogue_blocks(*kernel, *product) ? 1 : 0;
        }
      }
      EXPECT_GE(by_units, 2) << config;
      run<ProductKernel>(graph, dtype, {{2, 33, 33}, {1, 9, 20}});
    }
  }
}

// An element of either operand is off by 2^-4 of itself at most, 2^-5.3 in the root mean square; a
// product of many by 2^-4.8 of its own deviation. 41 or more values have a largest of two such
// deviations, and of some thousand differences none is five: 0.09 of the largest.
TEST_F(CudaManyRows, ProductsInFp8AreNearTheInterpreters) {
  constexpr double kTolerance = 0.09;
  for (const auto& [config, dtype] : {std::pair(kEvenLlama, DType::kBF16),
                                      {kEvenLlama, DType::kF16},
                                      {kEvenGpt2, DType::kBF16}}) {
    if (only_few_cases() && dtype == DType::kF16) continue;
    const std::vector<DimValues> few = {{2, 33, 33}}, all = {{1, 9, 9}, {2, 33, 33}};
    for (const bool fused : {true, false}) {
      run<ProductKernel>(graph_of(std::string(config), dtype, fused, Fp8::kWithTheHead), dtype,
                         only_few_cases() ? few : all, kTolerance);
    }
  }
}

// Codes and scales to the bit: the nearest of each element over its row's scale.
TEST_F(CudaManyRows, RowsAreRoundedToTheNearestCode) {
  constexpr int64_t kRows = 7, kInputs = 4112;
  std::vector<uint16_t> from(static_cast<size_t>(kRows * kInputs));
  Random random(11);
  for (size_t i = 0; i < from.size(); ++i) {
    const double spread = std::exp2(-12 * random.uniform());  // codes of all sizes
    from[i] = f32_to_bf16(static_cast<float>((2 * random.uniform() - 1) * spread));
  }
  const auto row = [&](size_t at) { return std::span(from).subspan(at * kInputs, kInputs); };
  std::ranges::fill(row(1), uint16_t{0});
  std::ranges::transform(row(2), row(2).begin(),
                         [](uint16_t x) { return f32_to_bf16(bf16_to_f32(x) * 0x1p100F); });
  row(3)[5] = f32_to_bf16(std::numeric_limits<float>::quiet_NaN());
  row(4)[7] = f32_to_bf16(std::numeric_limits<float>::infinity());
  cuda::Driver& driver = Gpu::get()->driver();
  const size_t codes_bytes = from.size(), from_bytes = from.size() * 2;
  auto memory = cuda::GpuBlock::allocate(driver, from_bytes + codes_bytes + kRows * sizeof(float));
  ASSERT_TRUE(memory) << memory.error().message;
  cuda::Address parts[] = {memory->address(), memory->address() + from_bytes,
                           memory->address() + from_bytes + codes_bytes};
  ASSERT_TRUE(driver.upload(parts[0], std::as_bytes(std::span(from))));
  const auto module = Gpu::get()->module(print_fp8_weight(DType::kBF16, kInputs));
  ASSERT_TRUE(module) << module.error().message;
  const auto function = driver.function(*module, "assay_round");
  ASSERT_TRUE(function) << function.error().message;
  ASSERT_TRUE(driver.launch(*function, {kRows, 1, 1}, kCudaThreads, parts, false));
  std::vector<uint8_t> codes(codes_bytes);
  std::vector<float> scales(kRows);
  ASSERT_TRUE(driver.download(std::as_writable_bytes(std::span(codes)), parts[1]));
  ASSERT_TRUE(driver.download(std::as_writable_bytes(std::span(scales)), parts[2]));
  const auto value_of = [](int code) {
    const int exponent = code >> 3 & 15, mantissa = code & 7;
    const double size =
        exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
    return code & 0x80 ? -size : size;
  };
  for (size_t r = 0; r < kRows; ++r) {
    SCOPED_TRACE(r);
    if (r == 3 || r == 4) {  // NaN where NaN or an infinity was
      EXPECT_EQ(codes[r * kInputs + (r == 3 ? 5 : 7)] & 0x7f, 0x7f);
      continue;
    }
    float largest = 0;
    for (const uint16_t x : row(r)) largest = std::max(largest, std::abs(bf16_to_f32(x)));
    ASSERT_EQ(scales[r], largest / 448.0F);
    for (size_t i = 0; i < kInputs; ++i) {
      const int code = codes[r * kInputs + i];
      ASSERT_NE(code & 0x7f, 0x7f) << i;
      const double exact = largest == 0 ? 0 : bf16_to_f32(row(r)[i]) * (448.0F / largest);
      const double off = std::abs(value_of(code) - exact);
      for (const int other : {code - 1, code + 1}) {
        if (other < 0 || (other & 0x7f) == 0x7f || (other ^ code) & 0x80) continue;
        ASSERT_LE(off, std::abs(value_of(other) - exact)) << i;
      }
    }
  }
}

// Blocks that share a row leave what they have chosen for the last of them.
TEST_F(CudaManyRows, TheFirstLargestOfALongRowIsChosen) {
  constexpr size_t kColumns = 9001;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  GraphBuilder builder({{"table", Shape{50, int64_t{kColumns}}}}, DType::kF32);
  const auto logits = builder.add(OpKind::kEmbedding, {builder.ids(), builder.weight("table")});
  const auto graph = builder.finish({builder.add(OpKind::kArgmax, {logits})});
  ASSERT_TRUE(graph) << graph.error().message;
  const auto kernel = lower(*graph, graph->nodes.back(), {}, TileLayout::kRows);
  ASSERT_TRUE(kernel) << kernel.error().message;
  ASSERT_EQ(kernel->buffers.size(), 2u);
  const auto source = print_cuda(*kernel);
  ASSERT_TRUE(source) << source.error().message;
  const auto module = Gpu::get()->module(*source);
  ASSERT_TRUE(module) << module.error().message;
  cuda::Driver& driver = Gpu::get()->driver();
  const auto function = driver.function(*module, "assay_run");
  ASSERT_TRUE(function) << function.error().message;
  for (const size_t rows : {1, 8, 300}) {
    SCOPED_TRACE(rows);
    std::vector<float> values(rows * kColumns);
    std::vector<int32_t> expected(rows), chosen(rows);
    Random random(rows);
    for (size_t r = 0; r < rows; ++r) {
      const auto row = std::span(values).subspan(r * kColumns, kColumns);
      for (float& value : row) value = static_cast<float>(2 * random.uniform() - 1);
      const auto put = [&](std::initializer_list<size_t> places, float value) {
        for (const size_t at : places) row[at] = value;
        expected[r] = static_cast<int32_t>(*places.begin());
      };
      switch ((r + rows) % 8) {
        case 0:
          put({3000, 3001, 7000}, 2.0F);
          break;  // equal ones of one slice and another
        case 1:
          put({kColumns - 1}, 2.0F);
          break;
        case 2:
          std::ranges::fill(row, -kInfinity), expected[r] = 0;
          break;
        case 3:
          std::ranges::fill(row, -0.0F), put({5}, 0.0F), expected[r] = 0;
          break;
        case 4:
          put({10}, kInfinity), put({4100, 8000}, kNan);
          break;
        case 5:
          put({2, 8000}, -kNan), row[1000] = kNan;
          break;
        case 6:
          std::ranges::fill(row, -3.0F), put({4444}, -2.0F);
          break;
        default:
          put({0, 1}, 1.5F);
      }
    }
    const DimValues dims{static_cast<int64_t>(rows), 1, 1};
    const CudaWorkspace room = cuda_workspace(*kernel, dims, 1);
    const int64_t sizes[] = {dims.batch, dims.q_len, dims.kv_len, 1};
    const size_t tokens_at = values.size() * sizeof(float), sizes_at = tokens_at + rows * 8,
                 room_at = (sizes_at + sizeof sizes + 255) / 256 * 256;
    auto memory = cuda::GpuBlock::allocate(driver, room_at + room.bytes());
    ASSERT_TRUE(memory) << memory.error().message;
    const cuda::Address at = memory->address();
    ASSERT_TRUE(driver.fill(at, 0, room_at + room.bytes()));
    ASSERT_TRUE(driver.upload(at, std::as_bytes(std::span(values))));
    ASSERT_TRUE(driver.upload(at + sizes_at, std::as_bytes(std::span(sizes))));
    const bool writes_first = kernel->buffers[0].writable;
    cuda::Address arguments[] = {at + (writes_first ? tokens_at : 0),
                                 at + (writes_first ? 0 : tokens_at), at + sizes_at,
                                 room.place_in(at + room_at)};
    const CudaLaunch launch = cuda_launches(*kernel, dims, 1).run.front();
    ASSERT_EQ(launch.blocks_y > 1, rows < 300);
    for (int turn = 0; turn < 2; ++turn) {  // words are zeros again behind the first
      ASSERT_TRUE(driver.fill(at + tokens_at, 0xff, rows * sizeof(int32_t)));
      ASSERT_TRUE(driver.launch(
          *function,
          {static_cast<unsigned>(launch.blocks_x), static_cast<unsigned>(launch.blocks_y), 1},
          static_cast<unsigned>(launch.threads), arguments, false));
      ASSERT_TRUE(driver.download(std::as_writable_bytes(std::span(chosen)), at + tokens_at));
      EXPECT_EQ(chosen, expected);
    }
  }
}

std::string one_layer(int64_t hidden, int64_t intermediate) {
  return fmt::format(
      R"("model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "vocab_size": 41,
         "hidden_size": {}, "num_hidden_layers": 1, "num_attention_heads": 4,
         "num_key_value_heads": 2, "head_dim": 32, "intermediate_size": {},
         "max_position_embeddings": 48, "rms_norm_eps": 1e-6, "hidden_act": "silu",
         "rope_theta": 10000.0, "tie_word_embeddings": true)",
      hidden, intermediate);
}

// Products by warpgroups of a step's batch. A session of wide inputs has more stages than the ring.
TEST_F(CudaManyRows, ProductsOfBatchesEqualTheInterpreters) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    if (only_few_cases() && dtype == DType::kF16) continue;
    run<ProductKernel>(graph_of(one_layer(128, 4480), dtype, true), dtype,
                       dtype == DType::kBF16 ? std::vector<DimValues>{{17, 1, 3}, {40, 1, 2}}
                                             : std::vector<DimValues>{{64, 1, 2}});
  }
}

// Products by warpgroups of a prompt: few rows, a tile that isn't full, and blocks that take
// several tiles one behind the other, the last of them not full.
TEST_F(CudaManyRows, ProductsOfPromptsEqualTheInterpreters) {
  known_sizes_ = true;
  const Graph graph = graph_of(one_layer(64, 4480), DType::kBF16, true);
  int found = 0;
  for (const Node& node : graph.nodes) {
    auto kernel = lower(graph, node, {}, TileLayout::kRows);
    const auto* product = kernel ? std::get_if<ProductKernel>(&kernel->body) : nullptr;
    if (product == nullptr || !product->packing.interleaved) continue;
    kernel->target = "sm_90a";
    for (const int64_t rows : {400, 200, 70, 30}) {
      kernel->run_sizes = {1, rows, {}, {}};
      const CudaProductShape shape = cuda_product_shape(*kernel, *product);
      ASSERT_EQ(shape.form, CudaProductForm::kWarpgroups) << rows;
      ASSERT_EQ(shape.splits, 1) << rows;
      ASSERT_EQ(ceil_div(rows, shape.rows) * shape.blocks > kCudaMultiprocessors, rows == 400);
      ASSERT_EQ(shape.columns == 224, rows == 200) << "no power of two";
    }
    ++found;
  }
  ASSERT_EQ(found, 1);
  run<ProductKernel>(graph, DType::kBF16, {{1, 400, 400}, {1, 200, 200}});
  run<ProductKernel>(graph_of(one_layer(1024, 192), DType::kBF16, true), DType::kBF16,
                     {{1, 30, 30}, {1, 70, 70}});
  if (only_few_cases()) return;
  run<ProductKernel>(graph_of(one_layer(128, 4480), DType::kF16, true), DType::kF16,
                     {{2, 90, 90}, {1, 520, 520}});
}

// x . w^T and what was there, of so many inputs and outputs.
Graph residual_graph(int64_t inputs, int64_t outputs, DType dtype) {
  GraphBuilder builder({{"table", Shape{50, inputs}},
                        {"others", Shape{50, outputs}},
                        {"product.weight", Shape{outputs, inputs}}},
                       dtype);
  const auto x = builder.add(OpKind::kEmbedding, {builder.ids(), builder.weight("table")});
  const auto others = builder.add(OpKind::kEmbedding, {builder.ids(), builder.weight("others")});
  const auto product = builder.linear(x, "product", false, WeightLayout::kOutIn);
  auto graph = builder.finish({builder.add(OpKind::kAdd, {product, others})});
  EXPECT_TRUE(graph) << graph.error().message;
  return test::fused_graph(*std::move(graph), TileLayout::kRows);
}

// Blocks of a cluster that multiply parts of the inputs, two and four of them: each ends some rows,
// of which the last aren't there; four have a last tile of columns that isn't full.
TEST_F(CudaManyRows, PartsOfTheInputsEqualTheInterpreters) {
  struct Case {
    int64_t inputs, outputs, rows, splits, tile_rows = 64;
    DType dtype = DType::kBF16;
  };
  std::vector<Case> cases = {{2048, 1024, 40, 2}, {3072, 1280, 40, 4}, {3072, 2240, 100, 2, 128}};
  if (!only_few_cases()) {
    cases.push_back({2048, 2048, 64, 2, 64, DType::kF16});
    cases.push_back({2048, 2048, 100, 2});
    cases.push_back({8192, 2048, 128, 4, 128});
  }
  for (const Case& one : cases) {
    SCOPED_TRACE(fmt::format("{} x {}, {} rows", one.outputs, one.inputs, one.rows));
    const Graph graph = residual_graph(one.inputs, one.outputs, one.dtype);
    const DimValues dims{one.rows, 1, 2};
    auto kernel = lower(graph, graph.nodes.back(), {}, TileLayout::kRows);
    ASSERT_TRUE(kernel) << kernel.error().message;
    kernel->target = "sm_90a";
    kernel->run_sizes = {one.rows, 1, {}, {}};
    const auto shape = cuda_product_shape(*kernel, std::get<ProductKernel>(kernel->body));
    ASSERT_EQ(shape.form, CudaProductForm::kWarpgroups);
    ASSERT_EQ(shape.splits, one.splits);
    ASSERT_EQ(shape.rows, one.tile_rows);
    run<ProductKernel>(graph, one.dtype, {dims});
  }
}

// The same with rotary pairs and caches behind; no other product, because racecheck can't go over a
// library's.
TEST_F(CudaManyRows, PartsOfHeadsEqualTheInterpreters) {
  const Graph graph = graph_of(
      R"("model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "vocab_size": 41,
         "hidden_size": 2048, "num_hidden_layers": 1, "num_attention_heads": 16,
         "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 64,
         "max_position_embeddings": 48, "rms_norm_eps": 1e-6, "hidden_act": "silu",
         "rope_theta": 10000.0, "tie_word_embeddings": true)",
      DType::kBF16, true);
  const auto heads = std::ranges::find_if(graph.nodes, [&](const Node& node) {
    if (node.op == OpKind::kView) return false;
    auto kernel = lower(graph, node, {}, TileLayout::kRows);
    const auto* product = kernel ? std::get_if<ProductKernel>(&kernel->body) : nullptr;
    if (product == nullptr || product->packing.segments.size() != 3) return false;
    kernel->target = "sm_90a";
    kernel->run_sizes = {20, 1, {}, {}};
    return cuda_product_shape(*kernel, *product).splits == 2;
  });
  ASSERT_NE(heads, graph.nodes.end()) << "q, k and v in two parts";
  const auto node = static_cast<size_t>(heads - graph.nodes.begin());
  run<ProductKernel>(graph, DType::kBF16, {{20, 1, 3}}, std::nullopt, node);
}

// Blocks that share a norm's inputs leave the squares of each row too.
TEST_F(CudaManyRows, BlocksThatShareANormsInputsEqualTheInterpreters) {
  run<ProductKernel>(graph_of(one_layer(2176, 64), DType::kBF16, true), DType::kBF16,
                     {{8, 1, 2}, {12, 1, 2}});
}

// x needs no prologue where it is of the weights' type.
TEST_F(CudaManyRows, ProductsOfBatchesReadWhatIsThere) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    if (only_few_cases() && dtype == DType::kF16) continue;
    GraphBuilder builder({{"table", Shape{50, 128}}, {"product.weight", Shape{6200, 128}}}, dtype);
    const auto x = builder.add(OpKind::kEmbedding, {builder.ids(), builder.weight("table")});
    const auto product = builder.linear(x, "product", false, WeightLayout::kOutIn);
    auto graph = builder.finish({builder.add(OpKind::kActivate, {product}, ActivateAttributes{})});
    ASSERT_TRUE(graph) << graph.error().message;
    run<ProductKernel>(test::fused_graph(*std::move(graph), TileLayout::kRows), dtype,
                       {{24, 1, 2}, {33, 1, 2}});
  }
}

// The processor's own suite: every kind of kernel, of steps and prompts.
TEST_F(CudaManyRows, KernelsOfRandomGraphsEqualTheInterpreters) {
  for (uint64_t seed = 0; seed < test::kRandomCases; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    auto test = test::random_case(seed, TileLayout::kRows);
    if (!test) continue;
    // With many rows the library reads x in the weights' type.
    const auto kernel =
        lower(test->graph, test->graph.nodes[*test->node], test->specialization, TileLayout::kRows);
    ASSERT_TRUE(kernel) << kernel.error().message;
    const auto* product = std::get_if<ProductKernel>(&kernel->body);
    const bool many = product != nullptr && product->rows.value(test->dims) > kProductRows;
    const DType read_as = many ? kernel->buffers[product->weight].dtype : DType::kF32;
    GpuHarness(*std::move(test), *Gpu::get(), std::nullopt, tolerance_of(read_as)).run();
    if (HasFatalFailure()) return;
  }
}

// A row's norm in each of its forms: held in registers, of even shares and not; too long for them;
// loaded one by one.
TEST_F(CudaManyRows, NormsOfAllWidths) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const int64_t width : {6, 512, 1000, 2048, 4104}) {
      GraphBuilder builder({{"table", Shape{50, width}},
                            {"norm", Shape{width}},
                            {"product.weight", Shape{64, width}}},
                           dtype);
      const auto x = builder.add(OpKind::kEmbedding, {builder.ids(), builder.weight("table")});
      const auto norm =
          builder.add(OpKind::kRmsNorm, {x, builder.weight("norm")}, NormAttributes{1e-5});
      auto graph = builder.finish({builder.linear(norm, "product", false, WeightLayout::kOutIn)});
      ASSERT_TRUE(graph) << graph.error().message;
      SCOPED_TRACE(width);
      run<ProductKernel>(test::fused_graph(*std::move(graph), TileLayout::kRows), dtype,
                         {{1, 9, 9}, {2, 8, 8}});
    }
  }
}

}  // namespace
}  // namespace assay::engine
