// Symbolic sizes: products, evaluation and their text.
#include "engine/graph/dim.h"

#include <fmt/format.h>

namespace assay::engine {

int64_t Dim::value(const DimValues& values) const {
  const std::array<int64_t, 3> symbols = {values.batch, values.q_len, values.kv_len};
  int64_t result = factor_;
  for (size_t i = 0; i < symbols.size(); ++i) {
    for (uint8_t power = 0; power < powers_[i]; ++power) result *= symbols[i];
  }
  return result;
}

std::string Dim::to_string() const {
  static constexpr std::array<const char*, 3> kNames = {"batch", "q_len", "kv_len"};
  std::string text = factor_ == 1 && !is_constant() ? "" : fmt::format("{}", factor_);
  for (size_t i = 0; i < kNames.size(); ++i) {
    for (uint8_t power = 0; power < powers_[i]; ++power) {
      text += text.empty() ? kNames[i] : fmt::format("*{}", kNames[i]);
    }
  }
  return text;
}

Dim operator*(const Dim& a, const Dim& b) {
  Dim product = a;
  product.factor_ *= b.factor_;
  for (size_t i = 0; i < product.powers_.size(); ++i) {
    product.powers_[i] = static_cast<uint8_t>(product.powers_[i] + b.powers_[i]);
  }
  return product;
}

Dim elements(std::span<const Dim> shape) {
  Dim product(1);
  for (const Dim& dim : shape) product = product * dim;
  return product;
}

SymbolicShape symbolic(const Shape& shape) {
  SymbolicShape result;
  for (size_t i = 0; i < shape.rank(); ++i) result.emplace_back(shape[i]);
  return result;
}

}  // namespace assay::engine
