// A count that may be absent, in the eight bytes of the count: bundles have millions of them.
#pragma once

#include <cassert>
#include <cstdint>
#include <optional>
#include <ostream>

namespace assay {

// Absent where default-made. Reads like a std::optional<int64_t> of numbers from 0 on.
class OptionalCount {
 public:
  constexpr OptionalCount() = default;
  // Implicit, as those of the std::optional that it reads like.
  // NOLINTBEGIN(google-explicit-constructor)
  constexpr OptionalCount(std::nullopt_t) {}
  constexpr OptionalCount(int64_t count) : count_(count) { assert(count >= 0); }
  constexpr OptionalCount(std::optional<int64_t> count) : OptionalCount() {
    if (count) *this = *count;
  }
  // NOLINTEND(google-explicit-constructor)

  constexpr bool has_value() const { return count_ != kAbsent; }
  constexpr explicit operator bool() const { return has_value(); }
  constexpr int64_t operator*() const {
    assert(has_value());
    return count_;
  }
  constexpr int64_t value_or(int64_t other) const { return has_value() ? count_ : other; }
  constexpr void reset() { count_ = kAbsent; }

  friend constexpr bool operator==(OptionalCount, OptionalCount) = default;
  friend constexpr bool operator==(OptionalCount count, std::nullopt_t) {
    return !count.has_value();
  }
  friend std::ostream& operator<<(std::ostream& out, OptionalCount count) {
    return count ? out << *count : out << "absent";
  }

 private:
  static constexpr int64_t kAbsent = -1;
  int64_t count_ = kAbsent;
};
static_assert(sizeof(OptionalCount) == sizeof(int64_t));

}  // namespace assay
