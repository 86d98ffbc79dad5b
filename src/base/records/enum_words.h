// Words of enums, as files and messages have them.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string_view>

namespace assay {

// Specialised for an enum that JSON has as words (record.h): kAll, a range of its values, and
// name(value).
template <typename E>
struct EnumWords;

// EnumWords of an enum with kCount values, counted from 0, that a function names.
template <typename E, std::string_view (*kNameOf)(E), size_t kCount>
struct WordsByName {
  static constexpr std::array<E, kCount> kAll = [] {
    std::array<E, kCount> all{};
    for (size_t i = 0; i < kCount; ++i) all[i] = static_cast<E>(i);
    return all;
  }();
  static std::string_view name(E value) { return kNameOf(value); }
};

// The value's word in a list that has the order of the enum's values.
template <typename E>
constexpr std::string_view word_of(E value, std::initializer_list<std::string_view> words) {
  return words.begin()[static_cast<size_t>(value)];
}

}  // namespace assay
