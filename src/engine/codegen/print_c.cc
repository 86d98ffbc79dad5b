// Expressions become one line each; shared ones and those that don't change in a loop get a name.
#include "engine/codegen/print_c.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace assay::engine {

using ir::ExprId;
using ir::Op;

namespace {

std::string spaces(int indent) {
  return std::string(static_cast<size_t>(indent) * 2, ' ');
}

std::string float_text(double value) {
  std::string text = fmt::format("{:.9g}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text + "f";
}

std::string_view binary_sign(Op op) {
  switch (op) {
    case Op::kAdd:
    case Op::kIndexAdd:
      return "+";
    case Op::kSub:
    case Op::kIndexSub:
      return "-";
    case Op::kMul:
    case Op::kIndexMul:
      return "*";
    case Op::kDiv:
    case Op::kIndexDiv:
      return "/";
    case Op::kIndexMod:
      return "%";
    case Op::kIndexLess:
      return "<";
    default:
      return "";
  }
}

}  // namespace

std::string_view element_type(DType dtype, std::string_view f16_type) {
  switch (dtype) {
    case DType::kF32:
      return "float";
    case DType::kBF16:
      return "unsigned short";
    case DType::kF16:
      return f16_type;
    case DType::kI32:
      return "int";
  }
  return "";
}

CPrinter::CPrinter(const Kernel& kernel, const CTarget& target)
    : kernel_(kernel), target_(target) {}

std::string CPrinter::var_name(ir::VarId id) {
  return fmt::format("v{}", id);
}

bool CPrinter::is_leaf(ExprId id) const {
  const Op op = kernel_.exprs[id].op;
  return op == Op::kFloat || op == Op::kIndex || op == Op::kVar || op == Op::kDim;
}

bool CPrinter::is_available(ExprId id) {
  const ir::Expr& expr = kernel_.exprs[id];
  if (expr.op == Op::kVar) return defined_.contains(expr.symbol);
  for (const ExprId arg : expr.args) {
    if (!is_available(arg)) return false;
  }
  return true;
}

bool CPrinter::is_float(ExprId id) const {
  const ir::Expr& expr = kernel_.exprs[id];
  switch (expr.op) {
    case Op::kFloat:
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kDiv:
    case Op::kMax:
    case Op::kNeg:
    case Op::kExp:
    case Op::kSqrt:
    case Op::kErfc:
      return true;
    case Op::kVar:
      return floats_.contains(expr.symbol);
    case Op::kLoad:
      return kernel_.buffers[expr.symbol].dtype != DType::kI32;
    case Op::kSelect:
      return is_float(expr.args[1]);
    default:
      return false;
  }
}

std::string CPrinter::text(ExprId id) const {
  if (const auto named = names_.find(id); named != names_.end()) return named->second;
  return operation(kernel_.exprs[id]);
}

std::string CPrinter::operation(const ir::Expr& expr) const {
  static constexpr std::array<const char*, 4> kDims = {"batch", "q_len", "kv_len", "capacity"};
  const auto arg = [&](size_t i) { return text(expr.args[i]); };
  const auto call = [&](std::string_view function) {
    return fmt::format("{}({})", function, arg(0));
  };
  switch (expr.op) {
    case Op::kFloat:
      return float_text(expr.value);
    case Op::kIndex:
      return fmt::format("{}", static_cast<int64_t>(expr.value));
    case Op::kVar:
      return var_name(expr.symbol);
    case Op::kDim:
      return kDims[expr.symbol];
    case Op::kLoad: {
      const KernelBuffer& buffer = kernel_.buffers[expr.symbol];
      if (buffer.blocks) {
        return fmt::format("blocks_{0}::block_value({0}, ({1}) / {2}, (int)(({1}) % {2}))",
                           buffer.name, arg(0), buffer.blocks->row_values);
      }
      const std::string element = fmt::format("{}[{}]", buffer.name, arg(0));
      if (buffer.dtype == DType::kBF16) return fmt::format("{}({})", target_.bf16, element);
      if (buffer.dtype == DType::kF16) return fmt::format("{}({})", target_.f16, element);
      return element;
    }
    case Op::kMax:
      return fmt::format("({0} < {1} ? {1} : {0})", arg(0), arg(1));
    case Op::kNeg:
      return fmt::format("(-{})", arg(0));
    case Op::kExp:
      return call(target_.exp);
    case Op::kSqrt:
      return call(target_.sqrt);
    case Op::kErfc:
      return call(target_.erfc);
    case Op::kSelect:
      return fmt::format("({} ? {} : {})", arg(0), arg(1), arg(2));
    case Op::kDiv:
      if (!target_.divide.empty()) return fmt::format("{}({}, {})", target_.divide, arg(0), arg(1));
      [[fallthrough]];
    default:
      return fmt::format("({} {} {})", arg(0), binary_sign(expr.op), arg(1));
  }
}

// A line that computes the expression under a name of its own.
std::string CPrinter::name(ExprId id, int indent) {
  const std::string chosen = fmt::format("t{}", temporaries_++);
  const std::string line = fmt::format("{}const {} {} = {};\n", spaces(indent),
                                       is_float(id) ? "float" : "long", chosen, text(id));
  names_[id] = chosen;
  return line;
}

// Children before parents, each once.
void CPrinter::count_uses(ExprId id, Uses& uses, std::vector<ExprId>& order) const {
  if (is_leaf(id) || names_.contains(id)) return;
  if (++uses[id] > 1) return;
  for (const ExprId arg : kernel_.exprs[id].args) count_uses(arg, uses, order);
  order.push_back(id);
}

std::string CPrinter::name_shared(const std::vector<ExprId>& roots, int indent) {
  Uses uses;
  std::vector<ExprId> order;
  for (const ExprId root : roots) count_uses(root, uses, order);
  std::string lines;
  for (const ExprId id : order) {
    const Op op = kernel_.exprs[id].op;
    // Max mentions an argument twice.
    if (op == Op::kMax) {
      for (const ExprId arg : kernel_.exprs[id].args) {
        if (!is_leaf(arg) && !names_.contains(arg)) lines += name(arg, indent);
      }
    }
    if (uses[id] > 1 && !names_.contains(id)) lines += name(id, indent);
  }
  return lines;
}

// The largest parts of an expression that are known already.
std::string CPrinter::hoist(ExprId root, int indent) {
  if (is_leaf(root) || names_.contains(root)) return "";
  std::string lines;
  if (is_available(root)) {
    lines = name_shared({root}, indent);
    return lines += name(root, indent);
  }
  for (const ExprId arg : kernel_.exprs[root].args) lines += hoist(arg, indent);
  return lines;
}

std::string CPrinter::hoist(const ir::Block& block, int indent) {
  std::string lines;
  for (const ir::Stmt& stmt : block) {
    if (const auto* store = std::get_if<ir::Store>(&stmt.node)) {
      lines += hoist(store->index, indent);
      lines += hoist(store->value, indent);
    } else if (const auto* loop = std::get_if<ir::Loop>(&stmt.node)) {
      lines += hoist(loop->extent, indent);
      lines += hoist(loop->body, indent);
    } else {
      const auto& reduce = std::get<ir::Reduce>(stmt.node);
      lines += hoist(reduce.extent, indent);
      lines += hoist(reduce.value, indent);
    }
  }
  return lines;
}

// A value as an element of the buffer.
std::string CPrinter::stored(const KernelBuffer& buffer, std::string value) const {
  if (buffer.dtype == DType::kI32) return "(int)" + value;
  if (buffer.dtype == DType::kBF16) return fmt::format("{}({})", target_.to_bf16, value);
  if (buffer.dtype == DType::kF16) return fmt::format("{}({})", target_.to_f16, value);
  return value;
}

std::string CPrinter::statement(const ir::Store& store, int indent) {
  const KernelBuffer& buffer = kernel_.buffers[store.buffer];
  return fmt::format("{}{}[{}] = {};\n", spaces(indent), buffer.name, text(store.index),
                     stored(buffer, text(store.value)));
}

// Iterations of this loop that the target has one behind the other, loads first.
int64_t CPrinter::batch_size(const ir::Loop& loop, int indent) const {
  constexpr int kOutermost = 1;
  const auto extent = kernel_.exprs.constant(loop.extent);
  if (target_.batch_size == nullptr || indent != kOutermost || !extent) return 1;
  Uses uses;
  std::vector<ExprId> order;
  for (const ir::Stmt& stmt : loop.body) {
    const auto* store = std::get_if<ir::Store>(&stmt.node);
    if (store == nullptr) return 1;
    count_uses(store->value, uses, order);
  }
  const auto reads =
      std::ranges::count(order, Op::kLoad, [&](ExprId id) { return kernel_.exprs[id].op; });
  return target_.batch_size(*extent, reads);
}

// No iteration reads what another one stores (ir::Loop), which a compiler doesn't know: it leaves
// each load behind the store before it.
std::string CPrinter::batch(const ir::Loop& loop, int64_t size, int indent) {
  BatchText parts{.var = var_name(loop.var),
                  .extent = *kernel_.exprs.constant(loop.extent),
                  .types = {},
                  .values = "",
                  .stores = "",
                  .indent = indent};
  const auto kept = [&](size_t i) { return fmt::format("{0}_kept{1}[{0}_at]", parts.var, i); };
  const auto outer_names = names_;
  std::vector<ExprId> values, places;
  for (const ir::Stmt& stmt : loop.body) {
    values.push_back(std::get<ir::Store>(stmt.node).value);
    places.push_back(std::get<ir::Store>(stmt.node).index);
  }
  defined_.insert(loop.var);
  parts.values = name_shared(values, indent + 2);
  for (size_t i = 0; i < values.size(); ++i) {
    parts.types.push_back(is_float(values[i]) ? "float" : "long");
    parts.values += fmt::format("{}{} = {};\n", spaces(indent + 2), kept(i), text(values[i]));
  }
  names_ = outer_names;
  parts.stores = name_shared(places, indent + 2);
  for (size_t i = 0; i < places.size(); ++i) {
    const KernelBuffer& buffer = kernel_.buffers[std::get<ir::Store>(loop.body[i].node).buffer];
    parts.stores += fmt::format("{}{}[{}] = {};\n", spaces(indent + 2), buffer.name,
                                text(places[i]), stored(buffer, kept(i)));
  }
  names_ = outer_names;
  defined_.erase(loop.var);
  return target_.batch(parts, size);
}

std::string CPrinter::statement(const ir::Loop& loop, int indent) {
  std::string lines = hoist(loop.extent, indent);
  lines += hoist(loop.body, indent);
  if (const int64_t size = batch_size(loop, indent); size > 1) {
    return lines + batch(loop, size, indent);
  }
  bool innermost = true;
  for (const ir::Stmt& stmt : loop.body) {
    innermost = innermost && std::holds_alternative<ir::Store>(stmt.node);
  }
  const auto outer_names = names_;
  lines += target_.loop(var_name(loop.var), text(loop.extent), innermost, indent);
  defined_.insert(loop.var);
  lines += block(loop.body, indent + 1);
  names_ = outer_names;
  defined_.erase(loop.var);
  return lines + spaces(indent) + "}\n";
}

std::string CPrinter::statement(const ir::Reduce& reduce, int indent) {
  std::string lines = hoist(reduce.extent, indent);
  lines += hoist(reduce.value, indent);
  const auto outer_names = names_;
  defined_.insert(reduce.var);
  ReduceText parts{.op = reduce.op,
                   .result = var_name(reduce.result),
                   .var = var_name(reduce.var),
                   .extent = text(reduce.extent),
                   .body = name_shared({reduce.value}, indent + 1),
                   .value = "",
                   .indent = indent};
  parts.value = text(reduce.value);
  lines += target_.reduce(parts);
  names_ = outer_names;
  defined_.erase(reduce.var);
  defined_.insert(reduce.result);
  if (reduce.op == ir::ReduceOp::kSum) floats_.insert(reduce.result);
  return lines;
}

std::string CPrinter::block(const ir::Block& block, int indent) {
  std::string lines;
  std::vector<ExprId> roots;
  for (const ir::Stmt& stmt : block) {
    if (const auto* store = std::get_if<ir::Store>(&stmt.node)) {
      roots.push_back(store->index);
      roots.push_back(store->value);
    }
  }
  bool named = false;
  for (const ir::Stmt& stmt : block) {
    // Names the shared parts of all stores before the first: they may need a reduction before it.
    if (std::holds_alternative<ir::Store>(stmt.node) && !std::exchange(named, true)) {
      lines += name_shared(roots, indent);
    }
    lines += std::visit([&](const auto& node) { return statement(node, indent); }, stmt.node);
  }
  return lines;
}

std::string argument_text(const Kernel& kernel, std::string_view args, std::string_view f16_type,
                          std::string_view qualifier) {
  static constexpr std::array<const char*, 4> kNames = {"batch", "q_len", "kv_len", "capacity"};
  const Specialization& dims = kernel.dims;
  const std::array<std::optional<int64_t>, 4> known = {dims.batch, dims.q_len, dims.kv_len,
                                                       dims.capacity};
  std::string text;
  for (size_t i = 0; i < kNames.size(); ++i) {
    const std::string value =
        known[i] ? fmt::format("{}", *known[i]) : fmt::format("{}dims[{}]", args, i);
    text += fmt::format("  const long {} = {};\n", kNames[i], value);
  }
  for (size_t i = 0; i < kernel.bound_buffers; ++i) {
    const KernelBuffer& buffer = kernel.buffers[i];
    const std::string type =
        fmt::format("{}{}*", buffer.writable ? "" : "const ", element_type(buffer.dtype, f16_type));
    text += fmt::format("  {0}{4} {1} = ({0}){2}buffers[{3}];\n", type, buffer.name, args, i,
                        qualifier);
  }
  return text;
}

std::string dim_text(const Dim& dim) {
  static constexpr std::array<const char*, 3> kNames = {"batch", "q_len", "kv_len"};
  std::string text = fmt::format("{}", dim.factor());
  for (size_t i = 0; i < kNames.size(); ++i) {
    for (int power = 0; power < dim.power(i); ++power) text += fmt::format(" * {}", kNames[i]);
  }
  return text;
}

std::string print_epilogues(const Kernel& kernel, const ProductKernel& product,
                            const CTarget& target) {
  const Packing& packing = product.packing;
  const int64_t columns = packing.interleaved ? packing.tile / 2 : packing.tile;
  std::string text;
  int64_t first_tile = 0;
  for (size_t i = 0; i < product.epilogues.size(); ++i) {
    CPrinter printer(kernel, target);
    printer.define(product.row);
    printer.define(product.first_column);
    const int64_t end = first_tile + (packing.segments[i] + columns - 1) / columns;
    text += fmt::format("  if (index >= {} && index < {}) {{\n", first_tile, end);
    text += fmt::format("    const long {} = (index - {}) * {};\n",
                        CPrinter::var_name(product.first_column), first_tile, columns);
    text += printer.block(product.epilogues[i], 2) + "  }\n";
    first_tile = end;
  }
  return text;
}

}  // namespace assay::engine
