// The columns of a block once warps have their parts of the sums: tasks of TASK columns of a row.
#include <string>
#include <string_view>

#include "engine/codegen/cuda/cuda_tensor_product.h"

namespace assay::engine {
namespace {

// Up to 8 rows.
constexpr std::string_view kFinishFew = R"(
// A warp's share of columns [first, last) of the rows: columns of a row that are of one segment, because segments begin at
// multiples of TASK. False: there is none.
struct Task { int row, begin, end; };
__device__ __forceinline__ bool find_task(int number, int first, int last, int rows, Task& task) {
  const int aligned = (first / TASK + number / rows) * TASK;
  task.row = number % rows;
  task.begin = aligned < first ? first : aligned, task.end = aligned + TASK < last ? aligned + TASK : last;
  return aligned < last;
}
// The warp asks early for the values that its first task's epilogue reads.
__device__ __forceinline__ void ask_ahead(const Args& args, const Parts& parts, int first, int last, int rows, Asking& asking) {
  Task task;
  if (!READS_EARLY || !find_task(warp_of_thread(), first, last, rows, task)) return;
  early_epilogue(args, first_row() + task.row, task.begin, task.end - task.begin, parts.sums[0], asking);
}
// Columns [first, last) of the rows to the end: one round, or, of splits, any number of them.
__device__ __forceinline__ void finish(const Args& args, Parts& parts, int first, int last, int rows, const Asking& asking) {
  Task task;
  for (int number = warp_of_thread(); find_task(number, first, last, rows, task); number += WARPS) {
    const int begin = task.begin, count = task.end - begin;
    float* tile = parts.sums[0] + (SPLITS == 1 ? task.row * ROW_PITCH + begin - first : warp_of_thread() * TASK);
    const float scale = scale_of(parts, task.row);
    float total = 0.0f;  // of the lane's column
    if (lane_of_thread() < count) {
      if (SPLITS == 1) {
        #pragma unroll
        for (int w = 0; w < WARPS; ++w) total += parts.sums[w][task.row * ROW_PITCH + begin - first + lane_of_thread()];
      } else {
        total = take_sum<SPLITS>(split_sums(args, 0, task.row) + begin + lane_of_thread(), ROWS * COLUMNS);
      }
      tile[lane_of_thread()] = total * scale;
    }
    __syncwarp();
    if (READS_EARLY && number == warp_of_thread()) {
      Giving giving = {asking.kept};
      early_epilogue(args, first_row() + task.row, begin, count, tile, giving);
    } else {
      epilogue_row(args, first_row() + task.row, begin, count, tile);
    }
    __syncwarp();  // the next task's
  }
}
)";

// More rows: 8 lanes take TASK columns of a row, so that a warp's epilogues wait for
// memory together, four at a time.
constexpr std::string_view kFinishMany = R"(
enum { TASKS = THREADS / EPILOGUE_LANES };
// Columns [first, last) of the rows to the end: one round, or, of splits, any number of them.
__device__ __forceinline__ void ask_ahead(const Args&, const Parts&, int, int, int, Asking&) {}
__device__ __forceinline__ void finish(const Args& args, Parts& parts, int first, int last, int rows, const Asking&) {
  const int lane = epilogue_lane();
  for (int ahead = 0;; ahead += TASKS) {
    const int of_warp = ahead + warp_of_thread() * (32 / EPILOGUE_LANES), task = ahead + threadIdx.x / EPILOGUE_LANES;
    if ((first / TASK + of_warp / rows) * TASK >= last) break;
    const int row = task % rows;
    const int aligned = (first / TASK + task / rows) * TASK;  // segments begin at such columns
    const int begin = aligned < first ? first : aligned, end = aligned + TASK < last ? aligned + TASK : last;
    const bool there = begin < end;
    enum { OWN = TASK / EPILOGUE_LANES };
    float total[OWN] = {};
    if (SPLITS > 1 && there) {  // a whole task, because GRAIN is one's columns
      float found[OWN * SPLITS];
      take([&](int i) { return split_sums(args, i / OWN, row) + begin + i % OWN * EPILOGUE_LANES + lane; }, found);
      #pragma unroll
      for (int i = 0; i < OWN * SPLITS; ++i) total[i % OWN] += found[i];
    }
    #pragma unroll
    for (int c = 0; c < OWN; ++c) {
      const int at = c * EPILOGUE_LANES + lane;
      if (SPLITS > 1 || begin + at >= end) continue;
      #pragma unroll 4
      for (int w = 0; w < WARPS; ++w) total[c] += parts.sums[w][row * ROW_PITCH + begin - first + at];
    }
    const float scale = scale_of(parts, row);
    __syncwarp();  // all lanes have read, also what the epilogue before had
    float* tile = parts.sums[0] + (SPLITS == 1 ? row * ROW_PITCH + begin - first : threadIdx.x / EPILOGUE_LANES * TASK);
    #pragma unroll
    for (int c = 0; c < OWN; ++c) {
      if (there) tile[c * EPILOGUE_LANES + lane] = total[c] * scale;
    }
    __syncwarp();
    if (there) epilogue_row(args, first_row() + row, begin, end - begin, tile);
  }
}
)";

}  // namespace

int64_t cuda_tensor_epilogue_lanes(const CudaProductShape& shape) {
  return shape.rows <= kProductRows ? 32 : 8;
}

std::string cuda_finish_text(const CudaProductShape& shape) {
  return std::string(cuda_tensor_epilogue_lanes(shape) == 32 ? kFinishFew : kFinishMany);
}

}  // namespace assay::engine
