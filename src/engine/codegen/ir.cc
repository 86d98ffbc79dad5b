// Hash-consing, and index arithmetic in a normal form: a sum of terms, each times a constant.
#include "engine/codegen/ir.h"

#include <cassert>
#include <utility>

namespace assay::engine::ir {

ExprId Arena::intern(Expr expr) {
  const auto [it, is_new] = ids_.try_emplace(
      std::tuple(expr.op, expr.value, expr.symbol, expr.args), static_cast<ExprId>(exprs_.size()));
  if (is_new) exprs_.push_back(std::move(expr));
  return it->second;
}

ExprId Arena::number(double value) {
  return intern({Op::kFloat, value, 0, {}});
}

ExprId Arena::index(int64_t value) {
  return intern({Op::kIndex, static_cast<double>(value), 0, {}});
}

ExprId Arena::var(VarId id) {
  return intern({Op::kVar, 0, id, {}});
}

ExprId Arena::dim(DimSymbol symbol) {
  return intern({Op::kDim, 0, static_cast<uint32_t>(symbol), {}});
}

ExprId Arena::load(BufferId buffer, ExprId index) {
  return intern({Op::kLoad, 0, buffer, {index}});
}

std::optional<int64_t> Arena::constant(ExprId id) const {
  if (exprs_[id].op != Op::kIndex) return std::nullopt;
  return static_cast<int64_t>(exprs_[id].value);
}

int64_t Arena::constant_term(ExprId id) const {
  return sum_of(id).constant;
}

// The sums that from_sum() made, taken apart again.
Arena::Sum Arena::sum_of(ExprId id) const {
  const Expr& expr = exprs_[id];
  if (expr.op == Op::kIndex) return {{}, static_cast<int64_t>(expr.value)};
  if (expr.op == Op::kIndexMul) {
    if (const auto factor = constant(expr.args[1])) return {{{expr.args[0], *factor}}, 0};
  }
  if (expr.op != Op::kIndexAdd && expr.op != Op::kIndexSub) return {{{id, 1}}, 0};
  Sum sum = sum_of(expr.args[0]);
  const Sum other = sum_of(expr.args[1]);
  const int64_t sign = expr.op == Op::kIndexAdd ? 1 : -1;
  for (const auto& [term, factor] : other.terms) sum.terms[term] += sign * factor;
  sum.constant += sign * other.constant;
  std::erase_if(sum.terms, [](const auto& term) { return term.second == 0; });
  return sum;
}

// Positive terms first, then the subtracted ones, the constant last.
ExprId Arena::from_sum(const Sum& sum) {
  std::optional<ExprId> result;
  const auto scaled = [&](ExprId term, int64_t factor) {
    return factor == 1 ? term : intern({Op::kIndexMul, 0, 0, {term, index(factor)}});
  };
  for (const auto& [term, factor] : sum.terms) {
    if (factor < 0) continue;
    const ExprId next = scaled(term, factor);
    result = result ? intern({Op::kIndexAdd, 0, 0, {*result, next}}) : next;
  }
  if (!result || sum.constant > 0) {
    const ExprId next = index(sum.constant);
    result = result ? intern({Op::kIndexAdd, 0, 0, {*result, next}}) : next;
  } else if (sum.constant < 0) {
    result = intern({Op::kIndexSub, 0, 0, {*result, index(-sum.constant)}});
  }
  for (const auto& [term, factor] : sum.terms) {
    if (factor > 0) continue;
    result = intern({Op::kIndexSub, 0, 0, {*result, scaled(term, -factor)}});
  }
  return *result;
}

ExprId Arena::combine(ExprId a, ExprId b, int64_t sign) {
  Sum sum = sum_of(a);
  const Sum other = sum_of(b);
  for (const auto& [term, factor] : other.terms) sum.terms[term] += sign * factor;
  sum.constant += sign * other.constant;
  std::erase_if(sum.terms, [](const auto& term) { return term.second == 0; });
  return from_sum(sum);
}

ExprId Arena::multiply(ExprId a, ExprId b) {
  if (constant(a)) std::swap(a, b);
  const auto factor = constant(b);
  if (!factor) return intern({Op::kIndexMul, 0, 0, {std::min(a, b), std::max(a, b)}});
  if (*factor == 0) return index(0);
  Sum sum = sum_of(a);
  for (auto& term : sum.terms) term.second *= *factor;
  sum.constant *= *factor;
  return from_sum(sum);
}

// Terms that the divisor divides leave the division, if the rest is certainly >= 0.
ExprId Arena::divide(Op op, ExprId a, ExprId b) {
  const auto divisor = constant(b);
  if (!divisor) return intern({op, 0, 0, {a, b}});
  assert(*divisor > 0);
  Sum whole, rest;
  for (const auto& [term, factor] : sum_of(a).terms) {
    (factor % *divisor == 0 ? whole : rest).terms[term] = factor;
  }
  rest.constant = sum_of(a).constant;
  bool positive = rest.constant >= 0;
  for (const auto& term : rest.terms) positive = positive && term.second > 0;
  if (!positive) return intern({op, 0, 0, {a, b}});
  for (auto& term : whole.terms) term.second /= *divisor;
  whole.constant = rest.constant / *divisor;
  if (rest.terms.empty()) {
    return op == Op::kIndexDiv ? from_sum(whole) : index(rest.constant % *divisor);
  }
  rest.constant %= *divisor;
  const ExprId remainder = intern({op, 0, 0, {from_sum(rest), b}});
  return op == Op::kIndexDiv ? combine(from_sum(whole), remainder, 1) : remainder;
}

ExprId Arena::make(Op op, std::vector<ExprId> args) {
  switch (op) {
    case Op::kIndexAdd:
      return combine(args[0], args[1], 1);
    case Op::kIndexSub:
      return combine(args[0], args[1], -1);
    case Op::kIndexMul:
      return multiply(args[0], args[1]);
    case Op::kIndexDiv:
    case Op::kIndexMod:
      return divide(op, args[0], args[1]);
    case Op::kIndexLess:
      if (constant(args[0]) && constant(args[1])) {
        return index(*constant(args[0]) < *constant(args[1]) ? 1 : 0);
      }
      break;
    case Op::kSelect:
      if (const auto condition = constant(args[0])) return *condition != 0 ? args[1] : args[2];
      break;
    default:
      break;
  }
  return intern({op, 0, 0, std::move(args)});
}

}  // namespace assay::engine::ir
