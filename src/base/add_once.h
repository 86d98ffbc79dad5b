// Lists without repetition, in the order in which their values first came.
#pragma once

#include <algorithm>
#include <cstddef>
#include <ranges>
#include <utility>
#include <vector>

namespace assay {

// Appends the value unless the list has it already; returns whether it was appended. Each call
// looks at the whole list, so this is for lists of names, not of rows.
template <typename T, typename Value>
bool add_once(std::vector<T>& list, Value&& value) {
  if (std::ranges::find(list, value) != list.end()) return false;
  list.push_back(std::forward<Value>(value));
  return true;
}

// The value's place in the list, which has it afterwards.
template <typename T>
size_t place_once(std::vector<T>& list, const T& value) {
  const auto at = std::ranges::find(list, value);
  if (at != list.end()) return static_cast<size_t>(at - list.begin());
  list.push_back(value);
  return list.size() - 1;
}

// add_once() for each value in turn.
template <typename T, std::ranges::input_range Values>
void add_each_once(std::vector<T>& list, const Values& values) {
  for (const auto& value : values) add_once(list, value);
}

}  // namespace assay
