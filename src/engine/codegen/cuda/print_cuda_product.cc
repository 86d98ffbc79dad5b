// Products on CUDA: the parts common to every form, which read inputs and store sums, and the form
// of any number of rows.
#include <fmt/format.h>

#include "engine/codegen/cuda/block_slots.h"
#include "engine/codegen/cuda/cuda_product_shape.h"
#include "engine/codegen/cuda/cuda_target.h"
#include "engine/codegen/cuda/cuda_tensor_product.h"
#include "engine/codegen/cuda/cuda_tiles.h"
#include "engine/codegen/cuda/cuda_warpgroup_product.h"
#include "engine/codegen/cuda/early_epilogue.h"
#include "engine/codegen/cuda/library_product.h"
#include "engine/codegen/cuda/print_cuda.h"

namespace assay::engine {
namespace {

constexpr std::string_view kElements = R"(
// The place of a thread's input `v` from its first on.
__device__ __forceinline__ constexpr int own_input(int v) { return APART ? v % 4 + v / 4 * 16 : v; }
// VECTOR inputs of a row from `at`, zeros behind the last.
__device__ __forceinline__ void load_inputs(const unsigned short* row, int at, float (&x)[VECTOR]) {
  if (APART) {
    const bool there = at < INPUTS;  // INPUTS are whole cells of 32
    const uint2 a = there ? *(const uint2*)(row + at) : make_uint2(0, 0);
    const uint2 b = there ? *(const uint2*)(row + at + 16) : make_uint2(0, 0);
    widen(make_uint4(a.x, a.y, b.x, b.y), x);
    return;
  }
  if (VECTOR == 8 && INPUTS % 8 == 0) {
    widen(at < INPUTS ? *(const uint4*)(row + at) : make_uint4(0, 0, 0, 0), x);
    return;
  }
  #pragma unroll
  for (int v = 0; v < VECTOR; ++v) x[v] = at + v < INPUTS ? from_half_word(row[at + v]) : 0.0f;
}
__device__ __forceinline__ void load_inputs(const float* row, int at, float (&x)[VECTOR]) {
  if (INPUTS % 4 == 0) {
    #pragma unroll
    for (int v = 0; v < VECTOR; v += 4) {
      float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if ((WHOLE && PITCH == INPUTS) || at + v < INPUTS) four = *(const float4*)(row + at + own_input(v));
      x[v] = four.x, x[v + 1] = four.y, x[v + 2] = four.z, x[v + 3] = four.w;
    }
  } else {
    #pragma unroll
    for (int v = 0; v < VECTOR; ++v) x[v] = at + v < INPUTS ? row[at + v] : 0.0f;
  }
}
// The same of inputs in the order of the weight's, if that isn't theirs.
__device__ __forceinline__ float widen_input(float x) { return x; }
__device__ __forceinline__ float widen_input(unsigned short x) { return from_half_word(x); }
__device__ __forceinline__ const int* input_order(const Args& args) {
  return (const int*)((const char*)args.buffers[WEIGHT] + ORDER_AT);
}
template <typename T>
__device__ __forceinline__ void load_inputs(const Args& args, const T* row, int at, float (&x)[VECTOR]) {
  if (!ORDERED) return load_inputs(row, at, x);
  #pragma unroll
  for (int v = 0; v < VECTOR; ++v) {
    const int stored = at + own_input(v);
    x[v] = stored < INPUTS ? widen_input(row[input_order(args)[stored]]) : 0.0f;
  }
}
// Sums over the warp of each of N values, a power of two up to 32: the lane's is that of the value
// lane / (32 / N).
template <int N>
__device__ __forceinline__ float sum_each(float (&v)[N]) {
  int offset = 16;
  #pragma unroll
  for (int n = N; n > 1; n /= 2, offset /= 2) {
    const bool upper = (lane_of_thread() & offset) != 0;
    #pragma unroll
    for (int i = 0; i < n / 2; ++i) {
      const float sent = upper ? v[i] : v[i + n / 2];
      v[i] = (upper ? v[i + n / 2] : v[i]) + __shfl_xor_sync(~0u, sent, offset);
    }
  }
  #pragma unroll
  for (; offset > 0; offset /= 2) v[0] += __shfl_xor_sync(~0u, v[0], offset);
  return v[0];
}
)";

// Inputs read where they lie: a row of them, and the norm.
constexpr std::string_view kInputsInPlace = R"(
struct Inputs {};
__device__ __forceinline__ void prepare_inputs(const Args&, Inputs&, long, int) {}
__device__ __forceinline__ const input_t* row_of(const Args& args, const Inputs&, long first, int r) {
  return inputs_of(args, first + r);
}
)";
constexpr std::string_view kInputsShared = R"(
struct __align__(16) Inputs { float x[ROWS][(INPUTS + 3) / 4 * 4]; };
__device__ __forceinline__ void prepare_inputs(const Args& args, Inputs& in, long first, int here) {
  for (int r = 0; r < here; ++r) inputs_row(args, first + r, in.x[r]);
  __syncthreads();
}
__device__ __forceinline__ const float* row_of(const Args&, const Inputs& in, long, int r) {
  return in.x[r];
}
)";

// A product has none unless a norm is applied behind it.
constexpr std::string_view kNoScales = R"(
enum { WHOLE_SCALES = 0 };
__device__ __forceinline__ uint4 whole_scales(const Args&, int) { return make_uint4(0, 0, 0, 0); }
__device__ __forceinline__ void load_scales(const Args&, int, float (&)[VECTOR]) {}
)";

// A thread's inputs are pieces of 16 bytes, STRIDE inputs apart, so that a block reads columns from
// end to end. Inputs that don't fit the registers come in further stages.
constexpr std::string_view kHeldConstants = R"(
enum { STRIDE = THREADS * VECTOR, STAGES = (PITCH + HELD * STRIDE - 1) / (HELD * STRIDE),
       WHOLE = PITCH == STAGES * HELD * STRIDE };
)";

constexpr std::string_view kNear = R"(
// Thread 0 asks the second-level cache for `count` weights, or for NEAR bytes of them if these are fewer; for none below 1.
__device__ __forceinline__ void bring_near(const weight_t* weights, int count) {
  const int bytes = count * (int)sizeof(weight_t);
  if (threadIdx.x != 0 || bytes <= 0) return;
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" :: "l"(weights), "r"(bytes < NEAR ? bytes : NEAR) : "memory");
}
)";
constexpr std::string_view kNothingNear = R"(
__device__ __forceinline__ void bring_near(const weight_t*, int) {}
)";

constexpr std::string_view kHeldRun = R"(
__device__ __forceinline__ int input_of(int stage, int piece) {
  return (stage * HELD + piece) * STRIDE + threadIdx.x * VECTOR;
}
__device__ __forceinline__ void hold(const weight_t* weight, int stage, uint4 (&held)[COLUMNS][HELD]) {
  #pragma unroll
  for (int h = 0; h < HELD; ++h) {
    const int at = input_of(stage, h);
    #pragma unroll
    for (int c = 0; c < COLUMNS; ++c) {
      held[c][h] = WHOLE || at < PITCH ? load_once(weight + c * PITCH + at) : make_uint4(0, 0, 0, 0);
    }
  }
}
// Factors of one row that no kernel of a step writes are asked for before the kernels ahead have ended: the norm's weight, and
// the inputs of the first turn's epilogue, if it has no others.
enum { FEW_OWN = STAGES == 1 && HELD <= 2, STEADY_SCALES = ROWS == 1 && FEW_OWN && NORMED && WHOLE_SCALES };
struct Steady { uint4 scales[STEADY_SCALES ? HELD : 1]; Asking asking; };
__device__ __forceinline__ void ask_steady(const Args& args, const weight_t* weight, long column, Steady& steady) {
  #pragma unroll
  for (int h = 0; h < HELD; ++h) {
    if (STEADY_SCALES) steady.scales[STEADY_SCALES ? h : 0] = whole_scales(args, input_of(0, h));
  }
  const float* no_products = (const float*)weight;  // nobody uses what is read there
  if (ROWS == 1 && READS_STEADY && warp_of_thread() == 0) early_epilogue(args, 0, column, COLUMNS, no_products, steady.asking);
}
// Rows [first, first + here): their products, and the epilogue by a warp a row. `next`: weights to ask for when these are
// multiplied, or null. Of one row a few inputs a thread, and what the epilogue reads, are asked for before any is used.
template <int R>
__device__ __forceinline__ void run_rows(const Args& args, const weight_t* weight, uint4 (&held)[COLUMNS][HELD],
                                         const weight_t* next, int turn, long first, int here, long column, const Inputs& in,
                                         Steady& steady) {
  enum { AT_ONCE = R == 1 && FEW_OWN, EARLY = R == 1 && READS_EARLY };
  __shared__ float parts[TURNS > 1 ? 2 : 1][WARPS][COLUMNS * R], squares[TURNS > 1 ? 2 : 1][WARPS][R], tile[R][COLUMNS];
  const int lane = lane_of_thread(), warp = warp_of_thread(), place = TURNS > 1 ? turn % 2 : 0;
  float sums[COLUMNS * R] = {}, square[R] = {}, own[AT_ONCE ? HELD : 1][VECTOR];
  #pragma unroll
  for (int h = 0; h < HELD; ++h) {
    if (AT_ONCE) load_inputs(row_of(args, in, first, 0), input_of(0, h), own[AT_ONCE ? h : 0]);
  }
  const bool asked = ROWS == 1 && READS_STEADY && turn == 0 && first == 0;
  if (EARLY && warp == 0 && !asked) early_epilogue(args, first, column, COLUMNS, tile[0], steady.asking);
  #pragma unroll 1
  for (int stage = 0; stage < STAGES; ++stage) {
    if (STAGES > 1 && (stage > 0 || first > 0)) hold(weight, stage, held);
    #pragma unroll
    for (int h = 0; h < HELD; ++h) {
      const int at = input_of(stage, h);
      float scale[VECTOR];
      if (STEADY_SCALES) widen(steady.scales[STEADY_SCALES ? h : 0], scale);
      else if (NORMED) load_scales(args, at, scale);
      #pragma unroll
      for (int r = 0; r < R; ++r) {
        float x[VECTOR];
        if (!AT_ONCE) load_inputs(row_of(args, in, first, r < here ? r : 0), at, x);
        #pragma unroll
        for (int v = 0; v < VECTOR; ++v) {
          if (AT_ONCE) x[v] = own[AT_ONCE ? h : 0][v];
          if (NORMED) square[r] += x[v] * x[v], x[v] *= scale[v];
        }
        #pragma unroll
        for (int c = 0; c < COLUMNS; ++c) {
          float w[VECTOR];
          widen(held[c][h], w);
          #pragma unroll
          for (int v = 0; v < VECTOR; ++v) sums[c * R + r] += w[v] * x[v];
        }
      }
    }
  }
  if (TURNS > 1 && next) hold(next, 0, held);
  constexpr int SHARE = 32 / (COLUMNS * R);
  const float sum = sum_each(sums);
  if (lane % SHARE == 0) parts[place][warp][lane / SHARE] = sum;
  if (NORMED) {
    #pragma unroll
    for (int r = 0; r < R; ++r) {
      square[r] = warp_sum(square[r]);
      if (lane == 0) squares[place][warp][r] = square[r];
    }
  }
  __syncthreads();
  for (int r = warp; r < here; r += WARPS) {
    float scale = 1.0f;
    if (NORMED) {
      float total = 0.0f;
      #pragma unroll
      for (int w = 0; w < WARPS; ++w) total += squares[place][w][r];
      scale = 1.0f / sqrtf(total * (1.0f / INPUTS) + EPSILON);
    }
    if (lane < COLUMNS) {
      float total = 0.0f;
      #pragma unroll
      for (int w = 0; w < WARPS; ++w) total += parts[place][w][lane * R + r];
      tile[r][lane] = total * scale;
    }
    __syncwarp();
    if (EARLY) {
      Giving giving = {steady.asking.kept};
      early_epilogue(args, first, column, COLUMNS, tile[0], giving);
    } else {
      epilogue_row(args, first + r, column, COLUMNS, tile[r]);
    }
    if (TURNS > 1) __syncwarp();  // the next turn's
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, TOGETHER) assay_run(const Args args) {
  __shared__ Inputs in;
  const long column = (long)blockIdx.x * (COLUMNS * TURNS);
  const weight_t* weight = (const weight_t*)args.buffers[WEIGHT] + column * PITCH;
  let_next_begin();
  uint4 held[COLUMNS][HELD];
  hold(weight, 0, held);
  if (column + COLUMNS < ALL_COLUMNS) bring_near(weight + COLUMNS * PITCH, COLUMNS * PITCH);
  Steady steady;
  ask_steady(args, weight, column, steady);
  wait_for_kernels_ahead();
  if (TURNS > 1) {
    prepare_inputs(args, in, 0, 1);
    #pragma unroll 1
    for (int turn = 0; turn < TURNS; ++turn) {
      weight += COLUMNS * PITCH;
      const bool more = turn + 1 < TURNS && column + (turn + 1) * COLUMNS < ALL_COLUMNS;
      run_rows<1>(args, weight, held, more ? weight : nullptr, turn, 0, 1, column + turn * COLUMNS, in, steady);
      if (!more) break;
    }
    return;
  }
  const long rows = rows_of(args);
  for (long first = 0; first < rows; first += ROWS) {
    const int here = rows - first < ROWS ? (int)(rows - first) : ROWS;
    if (first > 0) __syncthreads();
    prepare_inputs(args, in, first, here);
    if (ROWS == 1 || here == 1) run_rows<1>(args, weight, held, nullptr, 0, first, here, column, in, steady);
    else run_rows<ROWS>(args, weight, held, nullptr, 0, first, here, column, in, steady);
  }
}
)";

std::string sizes_text(const Kernel& kernel, const ProductKernel& product,
                       const CudaProductShape& shape) {
  const DType dtype = kernel.buffers[product.weight].dtype;
  const auto& blocks = kernel.buffers[product.weight].blocks;
  const int64_t groups = packed_columns(product.packing) / CudaSlot::kColumns;
  const std::string sizes = fmt::format(
      "\ntypedef {} weight_t;\n"
      "enum {{ INPUTS = {}, PITCH = {}, ROWS = {}, WEIGHT = {}, NORMED = {}, VECTOR = 16 / "
      "sizeof(weight_t), APART = {}, ORDERED = {} }};\n"
      "#define ORDER_AT {}L\n"
      "#define EPSILON ((float){:.9g})\n",
      element_type(dtype, "unsigned short"), product.inputs, Packing::padded_inputs(product.inputs),
      shape.rows, product.weight, product.norm ? 1 : 0, blocks ? 1 : 0,
      blocks && blocks->ordered ? 1 : 0,
      blocks ? groups * cuda_group_bytes(blocks->format, product.inputs) : 0,
      product.norm ? product.norm->eps : 0.0);
  if (shape.form == CudaProductForm::kWarpgroups) {
    return sizes + cuda_warpgroup_constants(shape, product);
  }
  if (shape.form == CudaProductForm::kTiles) return sizes + cuda_tile_constants(shape, product);
  if (shape.form != CudaProductForm::kHeld) {
    return sizes + cuda_tensor_constants(shape, kernel, product);
  }
  return sizes +
         fmt::format(
             "enum {{ COLUMNS = {}, HELD = {}, TOGETHER = {}, TURNS = {}, ALL_COLUMNS = {} }};",
             shape.columns, shape.pieces, shape.together, shape.turns,
             packed_columns(product.packing)) +
         std::string(kHeldConstants);
}

std::string rows_text(const Kernel& kernel, const ProductKernel& product) {
  return "\n__device__ __forceinline__ long rows_of(const Args& args) {\n" +
         cuda_arguments(kernel) + fmt::format("  return {};\n}}\n", dim_text(product.rows));
}

// A row's inputs where they lie, and what the norm scales them by.
std::string place_text(const Kernel& kernel, const ProductKernel& product) {
  const std::string row = CPrinter::var_name(product.row);
  const KernelBuffer& x = kernel.buffers[product.norm ? product.norm->x : product.x];
  const std::string head = fmt::format(
      "\ntypedef {} input_t;\n"
      "__device__ __forceinline__ const input_t* inputs_of(const Args& args, long {}) {{\n{}",
      element_type(x.dtype, "unsigned short"), row, cuda_arguments(kernel));
  if (!product.norm) {
    return head + fmt::format("  return {} + {} * INPUTS;\n}}\n", x.name, row) +
           std::string(kNoScales);
  }
  const RmsPrologue& norm = *product.norm;
  CPrinter printer(kernel, cuda_block_target());
  printer.define(product.row);
  const KernelBuffer& weight = kernel.buffers[norm.weight];
  const std::string_view widened = weight.dtype == DType::kBF16  ? "from_bf16"
                                   : weight.dtype == DType::kF16 ? "from_f16"
                                                                 : "";
  // No piece of 16 bytes ends in the padding.
  const bool whole = product.inputs % 8 == 0 && !kernel.buffers[product.weight].blocks &&
                     weight.dtype == kernel.buffers[product.weight].dtype;
  // Four at a time.
  const auto& blocks = kernel.buffers[product.weight].blocks;
  const bool ordered = blocks && blocks->ordered;
  const bool steps = weight.dtype == DType::kF32 && blocks && !ordered;
  return head +
         fmt::format("  return {} + {} * INPUTS;\n}}\n", x.name, printer.expression(norm.x_row)) +
         fmt::format(
             "enum {{ WHOLE_SCALES = {3} }};\n"
             "__device__ __forceinline__ uint4 whole_scales(const Args& args, int at) {{\n"
             "  return at < INPUTS ? *(const uint4*)((const {0}*)args.buffers[{1}] + at) : "
             "make_uint4(0, 0, 0, 0);\n}}\n"
             "__device__ __forceinline__ void load_scales(const Args& args, int at, float "
             "(&scale)[VECTOR]) {{\n"
             "  const {0}* weight = (const {0}*)args.buffers[{1}];\n{2}}}\n",
             element_type(weight.dtype, "unsigned short"), norm.weight,
             whole ? "  widen(whole_scales(args, at), scale);\n"
             : steps
                 ? "  #pragma unroll\n"
                   "  for (int v = 0; v < VECTOR; v += 4) {\n"
                   "    float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);\n"
                   "    if (at + v < INPUTS) four = *(const float4*)(weight + at + own_input(v));\n"
                   "    scale[v] = four.x, scale[v + 1] = four.y, scale[v + 2] = four.z, scale[v + "
                   "3] = four.w;\n"
                   "  }\n"
                 : fmt::format("  #pragma unroll\n"
                               "  for (int v = 0; v < VECTOR; ++v) {{\n"
                               "    const int stored = at + own_input(v);\n"
                               "    scale[v] = stored < INPUTS ? {}(weight[{}]) : 0.0f;\n"
                               "  }}\n",
                               widened, ordered ? "input_order(args)[stored]" : "stored"),
             whole ? 1 : 0);
}

// A row's inputs as the prologue computes them, by the block.
std::string prologue_text(const Kernel& kernel, const ProductKernel& product) {
  CPrinter printer(kernel, cuda_block_target());
  printer.define(product.row);
  return fmt::format(
             "\n__device__ __forceinline__ void inputs_row(const Args& args, long {}, float* to) "
             "{{\n",
             CPrinter::var_name(product.row)) +
         cuda_arguments(kernel) +
         fmt::format("  float* {} = to;\n", kernel.buffers[product.x].name) +
         printer.block(product.prologue, 1) + "}\n";
}

}  // namespace

std::string cuda_epilogue_segment(const Kernel& kernel, const ProductKernel& product,
                                  size_t segment, const CTarget& target, std::string_view head) {
  const Packing& packing = product.packing;
  const int64_t abreast = packing.interleaved ? 2 : 1;
  const auto columns_to = [&](size_t end) {
    int64_t columns = 0;
    for (size_t i = 0; i < end; ++i) {
      columns += (packing.segments[i] * abreast + packing.tile - 1) / packing.tile * packing.tile;
    }
    return columns;
  };
  CPrinter printer(kernel, target);
  for (const ir::VarId var : {product.row, product.first_column, product.column_count}) {
    printer.define(var);
  }
  return fmt::format(
             "  if (column >= {0} && column < {1}) {{\n{5}    const long {2} = (column - {0}) / "
             "{4}, {3} = count / {4};\n",
             columns_to(segment), columns_to(segment + 1), CPrinter::var_name(product.first_column),
             CPrinter::var_name(product.column_count), abreast, head) +
         printer.block(product.epilogues[segment], 2) + "  }\n";
}

std::string cuda_epilogue_row(const Kernel& kernel, const ProductKernel& product, bool counted) {
  std::string text =
      fmt::format(
          "\n__device__ __forceinline__ void epilogue_row(const Args& args, long {}, long column, "
          "long count,\n                                             const {}* {}) {{\n",
          CPrinter::var_name(product.row),
          element_type(kernel.buffers[product.tile].dtype, "unsigned short"),
          kernel.buffers[product.tile].name) +
      cuda_arguments(kernel);
  const CTarget& target = counted ? cuda_counted_warp_target() : cuda_warp_target();
  for (size_t i = 0; i < product.epilogues.size(); ++i) {
    text += cuda_epilogue_segment(kernel, product, i, target);
  }
  return text + "}\n";
}

std::string print_cuda_product(const Kernel& kernel, const ProductKernel& product) {
  const CudaProductShape shape = cuda_product_shape(kernel, product);
  const bool in_place = cuda_inputs_in_place(product);
  std::string text = cuda_prelude(shape.threads);
  const bool mapped = shape.form == CudaProductForm::kWarpgroups;
  if (mapped) text += "struct __align__(64) TensorMap { unsigned char bytes[128]; };\n";
  text += cuda_args_struct(kernel, mapped ? "TensorMap weights, rows; " : "");
  text += sizes_text(kernel, product, shape);
  text += cuda_widen_text(kernel.buffers[product.weight].dtype);
  text += kElements;
  if (const auto& blocks = kernel.buffers[product.weight].blocks) {
    text += cuda_slot_text(blocks->format, product.inputs);
  }
  text += rows_text(kernel, product);
  if (product.has_prologue) text += prologue_text(kernel, product);
  text += in_place ? place_text(kernel, product) : std::string(kNoScales);
  text += in_place ? kInputsInPlace : kInputsShared;
  if (shape.form == CudaProductForm::kTiles) return text + cuda_tile_run(kernel, product, shape);
  if (mapped) return text + cuda_warpgroup_run(kernel, product, shape);
  const bool held = shape.form == CudaProductForm::kHeld;
  text += fmt::format(
      "\nenum {{ EPILOGUE_LANES = {} }};\n"
      "__device__ __forceinline__ int epilogue_lane() {{ return threadIdx.x % EPILOGUE_LANES; }}\n",
      held ? 32 : cuda_tensor_epilogue_lanes(shape));
  text += cuda_epilogue_row(kernel, product, false);
  text += early_epilogue_text(kernel, product);
  text += shape.near_bytes == 0
              ? std::string(kNothingNear)
              : fmt::format("\nenum {{ NEAR = {} }};", shape.near_bytes) + std::string(kNear);
  text += held ? std::string(kHeldRun) : cuda_tensor_run(shape, kernel, product);
  if (may_have_many_rows(kernel, product)) text += print_library_entries(kernel, product);
  return text;
}

}  // namespace assay::engine
