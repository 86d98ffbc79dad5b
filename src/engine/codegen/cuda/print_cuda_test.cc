// Every kernel of real graphs compiles for every GPU target, without spills and within its launch
// bound. No GPU is needed; skipped where there is no NVRTC.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "base/text/text.h"
#include "engine/codegen/cuda/cuda_product_shape.h"
#include "engine/codegen/cuda/fp8_product.h"
#include "engine/codegen/cuda/library_product.h"
#include "engine/codegen/cuda/nvrtc.h"
#include "engine/codegen/cuda/print_cuda.h"
#include "engine/codegen/cuda/unit_epilogue.h"
#include "engine/codegen/lower/lower.h"
#include "engine/device/cuda/many_rows.h"
#include "engine/graph/graph_builder.h"
#include "engine/passes/test_models.h"

namespace assay::engine {
namespace {

constexpr int64_t kCapacity = 1024;

// A step of one model, specialised or symbolic.
struct Step {
  std::string label;
  DimValues dims;
  Specialization specialization;
};

// fp32 and fp16 differ from bf16 by one conversion: prefill is left out there.
std::vector<Step> steps(DType dtype) {
  const DimValues decode{1, 1, 513}, prefill{1, 512, 512};
  const auto fixed = [](const DimValues& dims, bool kv_len) {
    Specialization specialization{dims.batch, dims.q_len, std::nullopt, kCapacity};
    if (kv_len) specialization.kv_len = dims.kv_len;
    return specialization;
  };
  std::vector<Step> steps = {{"decode", decode, fixed(decode, false)}, {"symbolic", prefill, {}}};
  for (const int64_t rows : {8, 12, 24, 64}) {
    const DimValues batch{rows, 1, 513};
    const bool on_tensor_cores = rows > kProductRows && rows <= kCudaTensorRows;
    if (dtype == DType::kF32 || (dtype == DType::kF16 && on_tensor_cores)) continue;
    steps.push_back({fmt::format("batch of {}", rows), batch, fixed(batch, false)});
  }
  if (dtype == DType::kBF16) steps.push_back({"prefill", prefill, fixed(prefill, true)});
  return steps;
}

Graph graph_of(const std::string& architecture, DType weights, bool fused, Fp8 fp8 = Fp8::kNone) {
  Graph graph = test::model_graph(architecture, weights, LogitsOf::kLastPosition, weights, fp8);
  return fused ? test::fused_graph(std::move(graph), TileLayout::kRows) : graph;
}

// Number of compiled sources and their needs: the worst over targets and steps, by kernel and
// entry.
struct Line {
  int64_t sources = 0;
  int64_t most_registers = 0;
  int64_t most_shared_bytes = 0;
};
using Report = std::map<std::pair<std::string, std::string>, Line>;

class CudaKernels : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc_) GTEST_SKIP() << nvrtc_.error().message;
    // A result of NVRTC's own cache has no report of its registers.
    setenv("CUDA_CACHE_DISABLE", "1", 1);
  }

  void check_launches(const Kernel& kernel, const Step& step) {
    const CudaLaunches launches = cuda_launches(kernel, step.dims, kCapacity);
    ASSERT_FALSE(launches.run.empty());
    for (const CudaLaunch& launch : launches.run) {
      EXPECT_GE(launch.blocks_x, 1);
      EXPECT_GE(launch.blocks_y, 1);
      EXPECT_LE(launch.blocks_y, 65535) << kernel.label;
      EXPECT_LE(launch.blocks_z, 65535) << kernel.label;
    }
    DimValues longer = step.dims;
    longer.kv_len += 100;
    const CudaLaunches later = cuda_launches(kernel, longer, kCapacity);
    const auto as_text = [](const CudaLaunches& all) {
      std::vector<CudaLaunch> launched = all.run;
      for (const auto& one : {all.prologue, all.epilogue}) {
        if (one) launched.push_back(*one);
      }
      std::vector<std::string> lines;
      for (const CudaLaunch& one : launched) {
        lines.push_back(fmt::format("{}: {} x {} x {} blocks of {}", one.entry, one.blocks_x,
                                    one.blocks_y, one.blocks_z, one.threads));
      }
      return lines;
    };
    EXPECT_EQ(as_text(launches), as_text(later))
        << kernel.label << ": a captured graph can't replay";
  }

  // Entries that a source must have.
  static std::vector<std::string> expected_entries(const Kernel& kernel) {
    if (std::holds_alternative<AttentionKernel>(kernel.body)) {
      return {"assay_decode", "assay_prefill"};
    }
    std::vector<std::string> names = {"assay_run"};
    if (const auto* product = std::get_if<ProductKernel>(&kernel.body)) {
      const LibraryProduct parts = library_product(kernel, *product);
      if (!may_have_many_rows(kernel, *product)) {
        const CudaProductForm form = cuda_product_shape(kernel, *product).form;
        const bool staged = form == CudaProductForm::kWarpgroups && parts.prologue;
        if (staged || form == CudaProductForm::kTiles) {
          names.insert(names.begin(), "assay_prologue");
        }
        return names;
      }
      if (parts.prologue) names.insert(names.begin(), "assay_prologue");
      if (product->codes_output) names.insert(names.begin(), "assay_epilogue_to_codes");
      if (!parts.direct) names.insert(names.begin(), "assay_epilogue");
    }
    return names;
  }

  // The most threads that it is launched with, by entry.
  static std::map<std::string, int64_t> threads_of(const Kernel& kernel, const DimValues& dims) {
    std::map<std::string, int64_t> threads;
    for (const int64_t q_len : {int64_t{1}, std::max(dims.q_len, int64_t{512})}) {
      const bool possible = !kernel.dims.q_len || *kernel.dims.q_len == q_len;
      if (!possible) continue;
      const CudaLaunches launches =
          cuda_launches(kernel, {dims.batch, q_len, std::max(dims.kv_len, q_len)}, kCapacity);
      std::vector<CudaLaunch> all = launches.run;
      for (const auto& one : {launches.prologue, launches.epilogue, launches.to_codes}) {
        if (one) all.push_back(*one);
      }
      for (const CudaLaunch& launch : all) {
        threads[launch.entry] = std::max(threads[launch.entry], launch.threads);
      }
    }
    return threads;
  }

  void compile(const Kernel& kernel, const std::string& source, const std::string& target,
               const DimValues& dims) {
    const int64_t asked_bytes = cuda_launches(kernel, dims, kCapacity).run.back().shared_bytes;
    const auto threads = threads_of(kernel, dims);
    const auto cubin = nvrtc_->compile(source, target);
    ASSERT_TRUE(cubin) << kernel.label << "\n" << cubin.error().message << "\n" << source;
    std::vector<std::string> names;
    for (const EntryResources& entry : cubin->entries) {
      SCOPED_TRACE(kernel.label + " " + entry.entry + " " + target);
      names.push_back(entry.entry);
      EXPECT_LE(entry.spill_store_bytes, most_spilled_bytes_);
      EXPECT_LE(entry.spill_load_bytes, most_spilled_bytes_);
      EXPECT_FALSE(entry.serialized) << "products by warpgroups wait for each other";
      const bool product = std::holds_alternative<ProductKernel>(kernel.body);
      // Sums over a warp of up to 32 products are picked by lane, through the stack.
      EXPECT_LE(entry.stack_bytes, product && entry.entry == "assay_run" ? 128 : 0)
          << "an array left the registers";
      EXPECT_GT(entry.registers, 0);
      EXPECT_LE(entry.registers, 255);
      // The threads of an entry that is never launched here are checked in another step's case.
      const auto launched = threads.find(entry.entry);
      if (launched != threads.end()) {
        EXPECT_LE((entry.registers + 7) / 8 * 8 * launched->second, 65536)
            << "a block's threads must fit a multiprocessor";
      }
      EXPECT_LE(entry.shared_bytes, 48 * 1024) << "more needs opting in";
      EXPECT_LE(entry.shared_bytes + asked_bytes, (kernel.target == "sm_90a" ? 227 : 99) * 1024)
          << "the most that a block can have, of GPUs of any kind or of the target's";
      Line& line = report_[{kernel.label, entry.entry}];
      ++line.sources;
      line.most_registers = std::max(line.most_registers, entry.registers);
      line.most_shared_bytes = std::max(line.most_shared_bytes, entry.shared_bytes);
    }
    std::ranges::sort(names);
    EXPECT_EQ(names, expected_entries(kernel));
  }

  std::vector<std::string> targets_of(std::span<const int> capabilities) const {
    const std::vector<int> offered = nvrtc_->targets();
    std::vector<std::string> targets;
    for (const int capability : capabilities) {
      if (std::ranges::find(offered, capability) != offered.end()) {
        targets.push_back(nvrtc_target(capability));
      }
    }
    return targets;
  }

  // The distinct kernels of a graph, as its steps on a GPU have them.
  void compile_all(const Graph& graph, const std::vector<Step>& all_steps,
                   const std::vector<std::string>& targets) {
    std::map<std::string, bool> seen;
    for (const Step& step : all_steps) {
      auto plan = make_step_plan(std::make_shared<const Graph>(graph), step.specialization, true,
                                 TileLayout::kRows);
      ASSERT_TRUE(plan) << plan.error().message;
      cuda::narrow_values(*plan);
      cuda::pair_codes(*plan);
      if (step.specialization.q_len == 1 && step.dims.batch > kProductRows) {
        for (const cuda::NarrowBuffer& narrow : cuda::narrow_buffers(*plan)) {
          plan->kernels[narrow.kernel].kernel.buffers[narrow.buffer].dtype = narrow.dtype;
        }
      }
      for (const PlannedKernel& planned : plan->kernels) {
        for (const std::string& target : targets) {
          Kernel kernel = planned.kernel;
          kernel.target = target;
          const auto source = print_cuda(kernel);
          ASSERT_TRUE(source) << source.error().message;
          check_launches(kernel, step);
          if (seen.emplace(target + *source, true).second) {
            compile(kernel, *source, target, step.dims);
          }
        }
      }
    }
  }

  void print_report(const std::string& title) const {
    std::printf("%s: most registers and shared memory over all steps\n", title.c_str());
    for (const auto& [key, line] : report_) {
      std::printf("  %-44s %-15s %3lld compiled, %3lld registers, %6lld bytes\n", key.first.c_str(),
                  key.second.c_str(), static_cast<long long>(line.sources),
                  static_cast<long long>(line.most_registers),
                  static_cast<long long>(line.most_shared_bytes));
    }
  }

  Result<Nvrtc> nvrtc_ = Nvrtc::open();
  Report report_;
  int64_t most_spilled_bytes_ = 0;
};

// A model in one type, for the GPUs of these compute capabilities: each generation once at least,
// since a target takes a large model half a minute.
struct CompiledModel {
  const char* architecture;
  DType dtype;
  std::vector<int> capabilities;
};
std::string test_name(const testing::TestParamInfo<CompiledModel>& model) {
  std::string name = fmt::format("{}_{}", model.param.architecture, dtype_name(model.param.dtype));
  std::ranges::replace_if(
      name, [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
}

class CudaKernelsOf : public CudaKernels, public testing::WithParamInterface<CompiledModel> {};

// A layer's products, in each of the shapes that products by warpgroups have for them: with all
// inputs in a block, and in two and four parts.
TEST_F(CudaKernels, ProductsByWarpgroupsCompileWithoutSpills) {
  std::set<std::string> seen;
  std::set<int64_t> splits;
  for (const auto& [architecture, dtype] : {std::pair("llama3.2-1b", DType::kBF16),
                                            {"llama3.2-1b", DType::kF16},
                                            {"qwen2.5-1.5b", DType::kBF16}}) {
    const Graph graph = graph_of(architecture, dtype, true);
    for (const Node& node : graph.nodes) {
      if (node.op == OpKind::kView) continue;
      auto kernel = lower(graph, node, {}, TileLayout::kRows);
      const auto* product = kernel ? std::get_if<ProductKernel>(&kernel->body) : nullptr;
      if (product == nullptr) continue;
      for (const int64_t rows : {24, 64, 128, 512}) {
        kernel->run_sizes = {1, rows, {}, {}};
        for (const std::string& target : targets_of(std::array{90})) {
          kernel->target = target;
          const CudaProductShape shape = cuda_product_shape(*kernel, *product);
          if (shape.form != CudaProductForm::kWarpgroups) continue;
          const auto source = print_cuda(*kernel);
          ASSERT_TRUE(source) << source.error().message;
          if (!seen.insert(*source).second) continue;
          EXPECT_NE(source->find("wgmma.mma_async"), std::string::npos) << rows;
          compile(*kernel, *source, target, {1, rows, rows});
          splits.insert(shape.splits);
        }
      }
    }
  }
  EXPECT_EQ(splits, (std::set<int64_t>{1, 2, 4}));
}

TEST_P(CudaKernelsOf, CompileWithoutSpills) {
  const auto& [architecture, dtype, capabilities] = GetParam();
  compile_all(graph_of(architecture, dtype, true), steps(dtype), targets_of(capabilities));
  print_report(fmt::format("{} {}", architecture, dtype_name(dtype)));
}

// Two models; soak.cuda_kernels has every architecture in every type, half an hour of a core.
std::vector<CompiledModel> compiled_models() {
  if (getenv("ASSAY_SOAK") == nullptr) {
    return {{"gpt2-100m", DType::kF32, {80, 89, 100}}, {"llama3.2-1b", DType::kBF16, {90}}};
  }
  std::vector<CompiledModel> models;
  for (const char* name : {"tiny-gpt2", "tiny-llama", "tiny-qwen2", "gpt2-25m", "gpt2-50m",
                           "gpt2-100m", "qwen2.5-0.5b", "qwen2.5-1.5b", "qwen2.5-3b", "qwen2.5-7b",
                           "llama3.2-1b", "llama3.2-3b", "llama3.1-8b", "llama2-7b"}) {
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
      models.push_back({name, dtype, {80, 89, 90, 100}});
    }
  }
  return models;
}

INSTANTIATE_TEST_SUITE_P(Models, CudaKernelsOf, testing::ValuesIn(compiled_models()), test_name);

// The kernels around products in e4m3: rounding behind a norm held in registers, of rows in memory,
// behind a layer norm, and behind an epilogue.
TEST_F(CudaKernels, DISABLED_OfPromptsInFp8CompileWithoutSpills) {
  const Step prompt = steps(DType::kBF16)[1];
  for (const auto& [name, dtype] : {std::pair("te-8-layers", DType::kBF16),
                                    {"llama3.1-8b", DType::kF16},
                                    {"gpt2-100m", DType::kBF16}}) {
    compile_all(graph_of(name, dtype, true, Fp8::kWithTheHead), {prompt}, {"sm_90a"});
  }
  print_report("fp8");
}

TEST_F(CudaKernels, OfWeightsInFp8CompileWithoutSpills) {
  for (const int64_t inputs : {2048, 5504, 14336, 65536}) {
    const auto cubin = nvrtc_->compile(print_fp8_weight(DType::kBF16, inputs), "sm_90a");
    ASSERT_TRUE(cubin) << cubin.error().message;
    EXPECT_EQ(cubin->entries.at(0).spill_store_bytes, 0) << inputs;
    EXPECT_EQ(cubin->entries.at(0).stack_bytes, 0) << inputs;
  }
}

// One row, a few, and as many as the form takes, with one block of warps and with several; and
// tiles of 64 and of 128 rows.
TEST_F(CudaKernels, OfWeightsInBlocksCompileWithoutSpills) {
  for (const auto& [format, inputs, rows] : {std::tuple(WeightFormat::kQ4_K, 2048, 1),
                                             {WeightFormat::kQ8_0, 8192, 1},
                                             {WeightFormat::kInt4_G128, 8192, 1},
                                             {WeightFormat::kFp8_G128, 8192, 1},
                                             {WeightFormat::kQ4_K, 14336, 1},
                                             {WeightFormat::kQ6_K, 14336, 1},
                                             {WeightFormat::kQ6_K, 8192, 8},
                                             {WeightFormat::kQ6_K, 2048, 16},
                                             {WeightFormat::kQ8_0, 2048, 16},
                                             {WeightFormat::kQ4_K, 8192, 64},
                                             {WeightFormat::kQ4_K, 2048, 512},
                                             {WeightFormat::kQ8_0, 2048, 512},
                                             {WeightFormat::kQ5_K, 2048, 128},
                                             {WeightFormat::kQ5_0, 2048, 128},
                                             {WeightFormat::kQ6_K, 2048, 128},
                                             {WeightFormat::kInt4_G128, 2048, 128}}) {
    // With so many inputs a block has two turns. Q6_K spills then (docs/engine.md).
    const int64_t outputs = inputs == 14336 ? 4096 : 2048;
    most_spilled_bytes_ = format == WeightFormat::kQ6_K && inputs == 14336 ? 28 : 0;
    const GraphBuilder::MixedWeights weights{
        {{"table", Shape{1, inputs}}, {"w.weight", Shape{outputs, inputs}, format}}};
    GraphBuilder builder(weights, DType::kF32, false, false);
    const auto x = builder.add(OpKind::kEmbedding, {builder.ids(), builder.weight("table")});
    const auto graph = builder.finish({builder.linear(x, "w", false, WeightLayout::kOutIn)});
    ASSERT_TRUE(graph);
    auto kernel =
        lower(*graph, graph->nodes.back(),
              {.batch = rows, .q_len = 1, .kv_len = {}, .capacity = {}}, TileLayout::kRows);
    ASSERT_TRUE(kernel) << kernel.error().message;
    kernel->target = "sm_90a";
    std::get<ProductKernel>(kernel->body).by_itself = rows > kCudaBlockRows;
    const auto source = print_cuda(*kernel);
    ASSERT_TRUE(source) << source.error().message;
    compile(*kernel, *source, "sm_90a", {rows, 1, 1});
  }
  print_report("blocks");
}

// With every pass off each operator is a kernel of its own.
TEST_F(CudaKernels, OfUnfusedGraphsCompileToo) {
  const Step symbolic = steps(DType::kBF16)[1];
  compile_all(graph_of("gpt2-25m", DType::kBF16, false), {symbolic}, {"sm_90a"});
  compile_all(graph_of("tiny-llama", DType::kBF16, false), {symbolic}, {"sm_90a"});
  print_report("unfused");
}

TEST(PrintCuda, IsTheSameForTheSameKernel) {
  const Graph graph = graph_of("tiny-qwen2", DType::kBF16, true);
  std::map<std::string, int> sources;
  for (const Node& node : graph.nodes) {
    if (node.op == OpKind::kView) continue;
    const auto first = lower(graph, node, {}), second = lower(graph, node, {});
    ASSERT_TRUE(first && second);
    EXPECT_EQ(*print_cuda(*first), *print_cuda(*second));
    ++sources[*print_cuda(*first)];
  }
  EXPECT_GT(graph.nodes.size(), sources.size()) << "layers share their kernels";
}

// The norm's weight is asked for before the wait, and the row once.
TEST(PrintCuda, APromptsNormHoldsItsRowWhereItFits) {
  const auto is_held = [](const std::string& architecture) {
    const Graph graph = graph_of(architecture, DType::kBF16, true);
    for (const Node& node : graph.nodes) {
      if (node.op == OpKind::kView) continue;
      const auto kernel = lower(graph, node, {});
      const auto source = print_cuda(kernel.value());
      const size_t prologue = source->find("assay_prologue(const Args");
      if (prologue == std::string::npos) continue;
      const size_t loads = source->find("load_four(weight + at", prologue);
      return loads < source->find("wait_for_kernels_ahead", prologue);
    }
    return false;
  };
  EXPECT_TRUE(is_held("llama3.2-1b"));
  EXPECT_FALSE(is_held("gpt2-100m")) << "a layer norm";
}

// Epilogues behind a library's products, by node: "units", or "loops" over a warp's lanes.
std::vector<std::string> epilogues_of(const std::string& architecture, DType dtype) {
  std::vector<std::string> forms;
  const Graph graph = graph_of(architecture, dtype, true);
  for (const Node& node : graph.nodes) {
    if (node.op == OpKind::kView) continue;
    const auto kernel = lower(graph, node, {});
    const auto source = print_cuda(kernel.value());
    const size_t epilogue = source->find("assay_epilogue(const Args");
    if (epilogue == std::string::npos) continue;
    forms.push_back(source->find("finish_unit(args", epilogue) != std::string::npos ? "units"
                                                                                    : "loops");
    if (forms.size() == 2) break;
  }
  return forms;
}

// Heads of 32 or more elements and hidden widths that tiles divide have vectors everywhere; fp32
// and other sizes go element by element.
TEST(PrintCuda, EpiloguesOfPromptsLoadAndStoreVectors) {
  const std::vector<std::string> units(2, "units"), loops(2, "loops");
  for (const char* name : {"llama3.2-1b", "qwen2.5-0.5b", "te-8-layers", "tiny-llama"}) {
    EXPECT_EQ(epilogues_of(name, DType::kBF16), units) << name;
  }
  EXPECT_EQ(epilogues_of("gpt2-100m", DType::kF16), units);
  EXPECT_EQ(epilogues_of("gpt2-100m", DType::kF32), loops);
}

// Blocks have few threads with nothing to do, and a row that is rounded at once is one block's.
TEST(PrintCuda, UnitsAreSharedOutEvenly) {
  int rows = 0;
  for (const char* name :
       {"llama3.2-1b", "llama3.1-8b", "qwen2.5-0.5b", "te-8-layers", "gpt2-25m"}) {
    const Graph graph = graph_of(name, DType::kBF16, true);
    for (const Node& node : graph.nodes) {
      if (node.op == OpKind::kView) continue;
      const auto kernel = lower(graph, node, {}, TileLayout::kRows);
      const auto* product = std::get_if<ProductKernel>(&kernel->body);
      if (product == nullptr) continue;
      const int64_t units = packed_columns(product->packing) / kUnitColumns;
      for (const auto& blocks :
           {unit_epilogue_blocks(*kernel, *product), unit_row_block(*kernel, *product)}) {
        if (!blocks) continue;
        const int64_t places = blocks->threads * blocks->each * blocks->blocks;
        EXPECT_GE(places, units) << name << " " << kernel->label;
        EXPECT_LE(places, std::max<double>(static_cast<double>(units) * 1.15, 64)) << name;
      }
      rows += unit_row_block(*kernel, *product) ? 1 : 0;
    }
  }
  EXPECT_GT(rows, 0);
}

// Which form attention of a prompt has; the text for any GPU has no instruction of one kind alone.
TEST(PrintCuda, PromptsOnHopperMultiplyByWarpgroups) {
  const auto has_warpgroups = [](const std::string& architecture, DType dtype,
                                 const std::string& target) {
    const Graph graph = graph_of(architecture, dtype, true);
    for (const Node& node : graph.nodes) {
      if (node.op == OpKind::kView) continue;
      auto kernel = lower(graph, node, {});
      if (!std::holds_alternative<AttentionKernel>(kernel.value().body)) continue;
      kernel->target = target;
      const auto source = print_cuda(*kernel);
      return source->find("wgmma.mma_async") != std::string::npos;
    }
    ADD_FAILURE() << "no attention in " << architecture;
    return false;
  };
  EXPECT_TRUE(has_warpgroups("llama3.2-1b", DType::kBF16, "sm_90a"));
  EXPECT_TRUE(has_warpgroups("llama3.1-8b", DType::kF16, "sm_90a"));
  EXPECT_FALSE(has_warpgroups("llama3.2-1b", DType::kF32, "sm_90a"));
  EXPECT_FALSE(has_warpgroups("tiny-llama", DType::kBF16, "sm_90a")) << "heads of 32 elements";
  for (const char* target : {"", "sm_80", "sm_100a"}) {
    EXPECT_FALSE(has_warpgroups("llama3.2-1b", DType::kBF16, target)) << target;
  }
}

CudaLaunch attention_launch(int64_t batch, int64_t capacity) {
  const Graph graph = graph_of("llama3.2-1b", DType::kBF16, true);
  const auto node = std::ranges::find(graph.nodes, OpKind::kAttention, &Node::op);
  const auto kernel = lower(graph, *node, {batch, 1, std::nullopt, capacity});
  return cuda_launches(kernel.value(), {batch, 1, capacity}, capacity).run.front();
}

// Putting ranges together takes longer than a block takes for a few positions.
TEST(PrintCuda, AttentionCutsLongContextsAlone) {
  EXPECT_EQ(attention_launch(1, 193).blocks_y, 1);
  EXPECT_EQ(attention_launch(8, 512).blocks_y, 1);
  EXPECT_EQ(attention_launch(1, 32832).blocks_y, 2 * kCudaMultiprocessors / 8);
  EXPECT_EQ(attention_launch(8, 32832).blocks_y, 2 * kCudaMultiprocessors / 64);
  EXPECT_EQ(attention_launch(64, 32832).blocks_y, 1);
}

TEST(PrintCuda, HeadsThatNoTemplateFitsAreNamed) {
  Kernel kernel;
  kernel.body = AttentionKernel{.heads = 1, .kv_heads = 1, .head_dim = 512};
  const auto source = print_cuda(kernel);
  ASSERT_FALSE(source);
  EXPECT_NE(source.error().message.find("found 512"), std::string::npos);
}

}  // namespace
}  // namespace assay::engine
