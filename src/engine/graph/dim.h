// Symbolic sizes: a constant times powers of batch, q_len and kv_len, the only sizes that a graph
// knows.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/tensor.h"

namespace assay::engine {

// The symbols' values in one run of a graph.
struct DimValues {
  int64_t batch = 0;
  int64_t q_len = 0;   // new positions of this run
  int64_t kv_len = 0;  // cache positions in use by the longest row, the new ones included
  friend bool operator==(const DimValues&, const DimValues&) = default;
};

// A monomial such as 768, batch or 3 * batch * q_len. Sums do not exist: no operator needs them.
class Dim {
 public:
  constexpr explicit Dim(int64_t constant) : factor_(constant) {}
  static constexpr Dim batch() { return Dim(1, {1, 0, 0}); }
  static constexpr Dim q_len() { return Dim(1, {0, 1, 0}); }
  static constexpr Dim kv_len() { return Dim(1, {0, 0, 1}); }

  bool is_constant() const { return powers_ == Powers{}; }
  int64_t factor() const { return factor_; }
  Dim symbols() const { return Dim(1, powers_); }  // without the factor
  // The power of batch (0), q_len (1) or kv_len (2).
  int power(size_t symbol) const { return powers_[symbol]; }
  int64_t value(const DimValues& values) const;
  std::string to_string() const;  // "768", "batch", "3*batch*q_len"

  friend Dim operator*(const Dim& a, const Dim& b);
  friend bool operator==(const Dim&, const Dim&) = default;

 private:
  using Powers = std::array<uint8_t, 3>;  // of batch, q_len, kv_len
  constexpr Dim(int64_t factor, Powers powers) : factor_(factor), powers_(powers) {}

  int64_t factor_ = 1;
  Powers powers_{};
};

using SymbolicShape = std::vector<Dim>;

Dim elements(std::span<const Dim> shape);  // the product; 1 for no dims
SymbolicShape symbolic(const Shape& shape);

}  // namespace assay::engine
