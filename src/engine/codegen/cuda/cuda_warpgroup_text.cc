// The instructions of products by warpgroups, whose sums are operands one by one.
#include <fmt/format.h>

#include "engine/codegen/cuda/cuda_attention.h"

namespace assay::engine {
namespace {

// "+f"(name[0]), ... of so many numbers.
std::string sums_text(std::string_view name, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) {
    text += fmt::format("{}\"+f\"({}[{}])", i == 0 ? "" : ", ", name, i);
  }
  return text;
}

// {%0, %1, ...}
std::string operands_text(int64_t count) {
  std::string text = "{%0";
  for (int64_t i = 1; i < count; ++i) text += fmt::format(", %{}", i);
  return text + "}";
}

std::string wait_text(int64_t count) {
  return fmt::format(
      "template <int RUNNING>\n__device__ __forceinline__ void await_products(float "
      "(&sums)[{0}]) {{\n"
      "  asm volatile(\"wgmma.wait_group.sync.aligned %{0};\" : {1} : \"n\"(RUNNING) : "
      "\"memory\");\n}}\n",
      count, sums_text("sums", count));
}

// A function around one product. Behind the operands stand whether they add to the sums, both
// signs, and whether what lies in shared memory is transposed.
std::string multiply_text(std::string_view head, std::string_view narrow, int64_t columns,
                          int operands, std::string_view a, std::string_view flags) {
  const int64_t count = columns / 2;
  std::string rest;
  for (int i = 0; i < operands; ++i) {
    rest += fmt::format("{}%{}{}", i == 0 && operands == 9 ? ", {" : ", ", count + i,
                        i == 3 && operands == 9 ? "}" : "");
  }
  return fmt::format(
      "{} {{\n  asm volatile(\"wgmma.mma_async.sync.aligned.m64n{}k16.f32.{}.{} {}{};\"\n"
      "               : {} : {}, \"l\"(b), {}, \"n\"(1), \"n\"(1), {});\n}}\n",
      head, columns, narrow, narrow, operands_text(count), rest, sums_text("sums", count), a,
      operands == 7 ? "\"n\"(ADDS)" : "\"n\"(1)", flags);
}

constexpr std::string_view kBarriers = R"(
// Barriers in shared memory, by address.
__device__ __forceinline__ void make_barrier(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}
// And announces bytes of copies that the phase waits for, too.
__device__ __forceinline__ void arrive_expecting(unsigned barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void await(unsigned barrier, int turn) {
  unsigned come = 0;
  while (!come) {
    asm volatile("{.reg .pred come; mbarrier.try_wait.parity.shared::cta.b64 come, [%1], %2; selp.u32 %0, 1, 0, come;}"
                 : "=r"(come) : "r"(barrier), "r"(turn & 1) : "memory");
  }
}
__device__ __forceinline__ bool has_come(unsigned barrier, int turn) {
  unsigned come;
  asm volatile("{.reg .pred come; mbarrier.test_wait.parity.shared::cta.b64 come, [%1], %2; selp.u32 %0, 1, 0, come;}"
               : "=r"(come) : "r"(barrier), "r"(turn & 1) : "memory");
  return come != 0;
}
// Shows writes to shared memory that this thread has made or seen to the wgmma behind it.
__device__ __forceinline__ void show_to_products() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
)";

constexpr std::string_view kStages = R"(
extern __shared__ uint4 ring[];
__device__ __forceinline__ unsigned full(unsigned shared, int stage) { return shared + BARRIERS_AT + stage * 16; }
__device__ __forceinline__ unsigned empty(unsigned shared, int stage) { return full(shared, stage) + 8; }
// Descriptor of a matrix whose lines of 128 bytes lie one behind the other, in the swizzle of 128 bytes; and its lower word, to
// which 16 bytes add one.
__device__ __forceinline__ unsigned matrix_word(unsigned address) { return (address >> 4 & 0x3fff) | 1u << 16; }
__device__ __forceinline__ unsigned long matrix_of(unsigned word) { return (64ul << 32 | 1ul << 62) | word; }
__device__ __forceinline__ unsigned long matrix_at(unsigned address) { return matrix_of(matrix_word(address)); }
)";

}  // namespace

std::string cuda_stages_text() {
  return std::string(kStages);
}

std::string cuda_barrier_text() {
  return std::string(kBarriers);
}

std::string cuda_warpgroup_product_text(std::string_view narrow, int64_t columns) {
  return "__device__ __forceinline__ void begin_products() { asm "
         "volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\"); }\n"
         "__device__ __forceinline__ void end_products() { asm "
         "volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\"); }\n" +
         wait_text(columns / 2) +
         multiply_text(fmt::format("template <int ADDS>\n__device__ __forceinline__ void "
                                   "multiply_wide(float (&sums)[{}], unsigned long a, unsigned "
                                   "long b)",
                                   columns / 2),
                       narrow, columns, 7, "\"l\"(a)", "\"n\"(0), \"n\"(0)");
}

std::string cuda_held_product_text(std::string_view narrow, int64_t columns, bool transposed) {
  return multiply_text(fmt::format("__device__ __forceinline__ void multiply_weights(float "
                                   "(&sums)[{}], unsigned a0, unsigned a1, "
                                   "unsigned a2, unsigned a3, unsigned long b)",
                                   columns / 2),
                       narrow, columns, 9, "\"r\"(a0), \"r\"(a1), \"r\"(a2), \"r\"(a3)",
                       transposed ? "\"n\"(1)" : "\"n\"(0)");
}

std::string cuda_warpgroup_text(std::string_view narrow, int64_t tile, int64_t head_dim) {
  return cuda_barrier_text() + cuda_warpgroup_product_text(narrow, tile) +
         (head_dim == tile ? "" : wait_text(head_dim / 2)) +
         cuda_held_product_text(narrow, head_dim, true);
}

}  // namespace assay::engine
