// For tests: whether a function as declared by hand is called as its header declares it.
#pragma once

#include <type_traits>

namespace assay::engine {

template <typename Ours, typename Theirs>
constexpr bool passed_alike() {
  if constexpr (std::is_pointer_v<Ours> || std::is_pointer_v<Theirs>) {
    return std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>;
  } else if constexpr (std::is_void_v<Ours> || std::is_void_v<Theirs>) {
    return std::is_void_v<Ours> && std::is_void_v<Theirs>;
  } else {
    return sizeof(Ours) == sizeof(Theirs) && !std::is_floating_point_v<Ours> &&
           !std::is_floating_point_v<Theirs>;
  }
}

// The same number of arguments, and each, as what is returned, a pointer, or an integer of the same
// size.
template <typename Our, typename... Ours, typename Their, typename... Theirs>
constexpr bool same_call(Our (*)(Ours...), Their (*)(Theirs...)) {
  if constexpr (sizeof...(Ours) != sizeof...(Theirs)) {
    return false;
  } else {
    return passed_alike<Our, Their>() && (passed_alike<Ours, Theirs>() && ...);
  }
}

}  // namespace assay::engine
