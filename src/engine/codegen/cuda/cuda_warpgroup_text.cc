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

}  // namespace

std::string cuda_warpgroup_text(std::string_view narrow, int64_t tile, int64_t head_dim) {
  const auto wait = [](int64_t count) {
    return fmt::format(
        "template <int RUNNING>\n__device__ __forceinline__ void await_products(float "
        "(&sums)[{0}]) {{\n"
        "  asm volatile(\"wgmma.wait_group.sync.aligned %{0};\" : {1} : \"n\"(RUNNING) : "
        "\"memory\");\n}}\n",
        count, sums_text("sums", count));
  };
  const int64_t scores = tile / 2, out = head_dim / 2;
  std::string text =
      "__device__ __forceinline__ void begin_products() { asm "
      "volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\"); }\n"
      "__device__ __forceinline__ void end_products() { asm "
      "volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\"); }\n";
  text += wait(scores);
  if (out != scores) text += wait(out);
  // Behind the operands: whether they add to the sums, both signs, and whether what lies in shared
  // memory is transposed.
  const auto multiply = [&](std::string_view head, int64_t columns, int operands,
                            std::string_view a, std::string_view flags) {
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
  };
  text += multiply(
      fmt::format(
          "template <int ADDS>\n__device__ __forceinline__ void multiply_wide(float (&sums)[{}], "
          "unsigned long a, unsigned long b)",
          scores),
      tile, 7, "\"l\"(a)", "\"n\"(0), \"n\"(0)");
  text += multiply(fmt::format("__device__ __forceinline__ void multiply_weights(float "
                               "(&sums)[{}], unsigned a0, unsigned a1, "
                               "unsigned a2, unsigned a3, unsigned long b)",
                               out),
                   head_dim, 9, "\"r\"(a0), \"r\"(a1), \"r\"(a2), \"r\"(a3)", "\"n\"(1)");
  return text;
}

}  // namespace assay::engine
