// Translation units for the system compiler: entry points around the C printer's text.
#include <fmt/format.h>

#include <array>

#include "engine/codegen/cpu/cpu_attention.h"
#include "engine/codegen/cpu/cpu_text.h"
#include "engine/codegen/cpu/print_cpu.h"

namespace assay::engine {
namespace {

std::string spaces(int indent) {
  return std::string(static_cast<size_t>(indent) * 2, ' ');
}

std::string loop_head(const std::string& var, const std::string& extent, bool innermost,
                      int indent) {
  const std::string pragma = innermost ? spaces(indent) + "#pragma omp simd\n" : "";
  return fmt::format("{0}{1}for (long {2} = 0; {2} < {3}; ++{2}) {{\n", pragma, spaces(indent), var,
                     extent);
}

// Short sums in fp32 lanes, added up in double.
std::string sum_text(const ReduceText& r) {
  const std::string in = spaces(r.indent);
  return fmt::format(
      "{in}double {result}_sum = 0;\n"
      "{in}for (long {var}_at = 0; {var}_at < {extent}; {var}_at += 512) {{\n"
      "{in}  const long {var}_end = {var}_at + 512 < {extent} ? {var}_at + 512 : {extent};\n"
      "{in}  float lane = 0.0f;\n"
      "{in}  #pragma omp simd reduction(+ : lane)\n"
      "{in}  for (long {var} = {var}_at; {var} < {var}_end; ++{var}) {{\n"
      "{body}{in}    lane += {value};\n"
      "{in}  }}\n"
      "{in}  {result}_sum += lane;\n"
      "{in}}}\n"
      "{in}const float {result} = (float){result}_sum;\n",
      fmt::arg("in", in), fmt::arg("result", r.result), fmt::arg("var", r.var),
      fmt::arg("extent", r.extent), fmt::arg("body", r.body), fmt::arg("value", r.value));
}

// Block by block: the first whose largest beats all before, or which holds the first NaN; then the
// place in it.
std::string argmax_text(const ReduceText& r) {
  const std::string in = spaces(r.indent);
  return fmt::format(
      "{in}float {result}_best = -__builtin_inff();\n"
      "{in}long {result}_block = 0;\n"
      "{in}int {result}_nan = 0;\n"
      "{in}for (long {var}_at = 0; {var}_at < {extent} && !{result}_nan; {var}_at += 512) {{\n"
      "{in}  const long {var}_end = {var}_at + 512 < {extent} ? {var}_at + 512 : {extent};\n"
      "{in}  float lane = -__builtin_inff();\n"
      "{in}  int nans = 0;\n"
      "{in}  #pragma omp simd reduction(max : lane) reduction(| : nans)\n"
      "{in}  for (long {var} = {var}_at; {var} < {var}_end; ++{var}) {{\n"
      "{body}{in}    const float value = {value};\n"
      "{in}    nans |= value != value;\n"
      "{in}    lane = value > lane ? value : lane;\n"
      "{in}  }}\n"
      "{in}  if (nans || lane > {result}_best) {{\n"
      "{in}    {result}_best = lane;\n"
      "{in}    {result}_block = {var}_at;\n"
      "{in}    {result}_nan = nans;\n"
      "{in}  }}\n"
      "{in}}}\n"
      "{in}long {result} = {result}_block;\n"
      "{in}for (long {var} = {result}_block; {var} < {extent}; ++{var}) {{\n"
      "{body}{in}    const float value = {value};\n"
      "{in}  if ({result}_nan ? value != value : value == {result}_best) {{\n"
      "{in}    {result} = {var};\n"
      "{in}    break;\n"
      "{in}  }}\n"
      "{in}}}\n",
      fmt::arg("in", in), fmt::arg("result", r.result), fmt::arg("var", r.var),
      fmt::arg("extent", r.extent), fmt::arg("body", r.body), fmt::arg("value", r.value));
}

std::string reduce_text(const ReduceText& reduce) {
  ReduceText shifted = reduce;  // its lines lie one level deeper
  if (!reduce.body.empty()) {
    shifted.body.clear();
    size_t begin = 0;
    while (begin < reduce.body.size()) {
      const size_t end = reduce.body.find('\n', begin) + 1;
      shifted.body += "  " + reduce.body.substr(begin, end - begin);
      begin = end;
    }
  }
  return reduce.op == ir::ReduceOp::kSum ? sum_text(shifted) : argmax_text(shifted);
}

std::string rows_source(const Kernel& kernel, const RowsKernel& rows) {
  CPrinter printer(kernel, cpu_target());
  printer.define(rows.row);
  const std::string row = CPrinter::var_name(rows.row);
  std::string text(kCpuPrelude);
  text += "\nextern \"C\" void assay_run(const Args* args, long thread, long threads) {\n";
  text += cpu_arguments(kernel);
  text += fmt::format("  const long rows = {};\n", dim_text(rows.rows));
  text += fmt::format(
      "  for (long {0} = rows * thread / threads; {0} < rows * (thread + 1) / threads; ++{0}) {{\n",
      row);
  return text + printer.block(rows.body, 2) + "  }\n}\n";
}

struct Print {
  const Kernel& kernel;
  std::string operator()(const RowsKernel& rows) const { return rows_source(kernel, rows); }
  std::string operator()(const ProductKernel& product) const {
    return print_cpu_product(kernel, product);
  }
  std::string operator()(const AttentionKernel&) const { return cpu_attention_source(kernel); }
};

}  // namespace

const CTarget& cpu_target() {
  static constexpr CTarget kTarget{.exp = "exp_f",
                                   .sqrt = "sqrt_f",
                                   .erfc = "erfc_f",
                                   .bf16 = "from_bf16",
                                   .f16 = "from_f16",
                                   .loop = loop_head,
                                   .reduce = reduce_text};
  return kTarget;
}

std::string cpu_arguments(const Kernel& kernel) {
  return argument_text(kernel, "args->", "_Float16", " __restrict__");
}

std::string print_cpu(const Kernel& kernel) {
  return std::visit(Print{kernel}, kernel.body);
}

}  // namespace assay::engine
