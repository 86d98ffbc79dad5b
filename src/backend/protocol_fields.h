// Entries of records (base/records/record.h) with the bounds that the worker protocol sets on its
// members; private to the protocol.
//
// A member that is null counts as missing. An optional that is absent isn't written.
#pragma once

#include <cmath>
#include <string>
#include <type_traits>

#include "base/records/count_limits.h"
#include "base/records/counter.h"
#include "base/records/measured.h"
#include "base/records/record.h"

namespace assay::wire {

// The member of this name, or null where it is missing or null.
const Json* find_member(const Json& object, std::string_view name);
// Null: a missing member.
Fit wrong_member(std::string_view name, std::string expected, const Json* found);
std::optional<int64_t> whole_within(const Json& json, int64_t least, int64_t most);
std::string range_text(int64_t least, int64_t most);
// An array of at most `most_elements`; else what is wrong.
Fit misfit_array(const Json* found, std::string_view name, size_t most_elements);

// A whole number, or an optional one, within [least, most].
template <typename T, typename M>
struct Whole {
  static constexpr size_t kCovers = 1;
  static constexpr bool kOptional = !std::is_same_v<M, int64_t>;
  const char* name;
  M T::*pointer;
  int64_t least;
  int64_t most;

  template <typename Context>
  void write(const T& of, Json& object, const Context&) const {
    if constexpr (kOptional) {
      if (of.*pointer) object[name] = *(of.*pointer);
    } else {
      object[name] = of.*pointer;
    }
  }
  template <typename Context>
  Fit read(const Json& object, T& of, const Context&) const {
    const Json* found = find_member(object, name);
    if (kOptional && found == nullptr) return std::nullopt;
    const auto value = found ? whole_within(*found, least, most) : std::nullopt;
    if (!value) return wrong_member(name, range_text(least, most), found);
    of.*pointer = *value;
    return std::nullopt;
  }
};

// Seconds: a finite number, not negative.
template <typename T>
struct Seconds {
  static constexpr size_t kCovers = 1;
  const char* name;
  double T::*pointer;

  template <typename Context>
  void write(const T& of, Json& object, const Context&) const {
    object[name] = of.*pointer;
  }
  template <typename Context>
  Fit read(const Json& object, T& of, const Context&) const {
    const Json* found = find_member(object, name);
    const double value = found && found->is_number() ? found->template get<double>() : -1;
    if (!std::isfinite(value) || value < 0) {
      return wrong_member(name, "seconds, not negative", found);
    }
    of.*pointer = value;
    return std::nullopt;
  }
};

// A flag that is written where it is set, and is false where it is missing.
template <typename T>
struct FlagIfSet {
  static constexpr size_t kCovers = 1;
  const char* name;
  bool T::*pointer;

  template <typename Context>
  void write(const T& of, Json& object, const Context&) const {
    if (of.*pointer) object[name] = true;
  }
  template <typename Context>
  Fit read(const Json& object, T& of, const Context& context) const {
    return field_may_lack(name, pointer).read(object, of, context);
  }
};

// A JSON object; where it may lack, it is empty then.
template <typename T>
struct Object {
  static constexpr size_t kCovers = 1;
  const char* name;
  Json T::*pointer;
  bool may_lack;

  template <typename Context>
  void write(const T& of, Json& object, const Context&) const {
    object[name] = of.*pointer;
  }
  template <typename Context>
  Fit read(const Json& object, T& of, const Context&) const {
    const Json* found = find_member(object, name);
    if (found == nullptr && may_lack) return std::nullopt;
    if (found == nullptr || !found->is_object()) return wrong_member(name, "an object", found);
    of.*pointer = *found;
    return std::nullopt;
  }
};

// A list of whole numbers within [least, most]. Where it may lack, it isn't written while empty.
template <typename T, typename Number>
struct Wholes {
  static constexpr size_t kCovers = 1;
  const char* name;
  std::vector<Number> T::*pointer;
  int64_t least;
  int64_t most;
  size_t most_elements;
  bool may_lack;

  template <typename Context>
  void write(const T& of, Json& object, const Context&) const {
    if (may_lack && (of.*pointer).empty()) return;
    object[name] = of.*pointer;
  }
  template <typename Context>
  Fit read(const Json& object, T& of, const Context&) const {
    const Json* found = find_member(object, name);
    if (found == nullptr && may_lack) return std::nullopt;
    if (Fit fit = misfit_array(found, name, most_elements)) return fit;
    for (const Json& element : *found) {
      const auto value = whole_within(element, least, most);
      if (!value)
        return wrong_member(name, "every element to be " + range_text(least, most), found);
      (of.*pointer).push_back(static_cast<Number>(*value));
    }
    return std::nullopt;
  }
};

// Rows of ids of one length; at least one row, none empty.
template <typename T>
struct IdRows {
  static constexpr size_t kCovers = 1;
  const char* name;
  std::vector<std::vector<int32_t>> T::*pointer;
  size_t most_rows;
  size_t most_ids;  // in a row

  template <typename Context>
  void write(const T& of, Json& object, const Context&) const {
    object[name] = of.*pointer;
  }
  template <typename Context>
  Fit read(const Json& object, T& of, const Context&) const {
    const Json* found = find_member(object, name);
    if (Fit fit = misfit_array(found, name, most_rows)) return fit;
    if (found->empty()) return wrong_member(name, "at least one row", found);
    auto& rows = of.*pointer;
    for (const Json& element : *found) {
      if (Fit fit = misfit_array(&element, name, most_ids)) return fit;
      auto& row = rows.emplace_back();
      for (const Json& id : element) {
        const auto value = whole_within(id, 0, INT32_MAX);
        if (!value) {
          return wrong_member(name, "every element to be " + range_text(0, INT32_MAX), found);
        }
        row.push_back(static_cast<int32_t>(*value));
      }
      if (row.empty() || row.size() != rows.front().size()) {
        return wrong_member(name, "rows of one length, not empty", found);
      }
    }
    return std::nullopt;
  }
};

// A list of objects: records, or JSON as it is. Where it may lack, it isn't written while empty.
template <typename T, typename Element>
struct Objects {
  static constexpr size_t kCovers = 1;
  const char* name;
  std::vector<Element> T::*pointer;
  size_t most_elements;
  bool may_lack;

  template <typename Context>
  void write(const T& of, Json& object, const Context& context) const {
    if (may_lack && (of.*pointer).empty()) return;
    object[name] = record::write_value(of.*pointer, context);
  }
  template <typename Context>
  Fit read(const Json& object, T& of, const Context& context) const {
    const Json* found = find_member(object, name);
    if (found == nullptr && may_lack) return std::nullopt;
    if (Fit fit = misfit_array(found, name, most_elements)) return fit;
    for (const Json& element : *found) {
      if (!element.is_object()) return wrong_member(name, "every element to be an object", found);
      if (Fit fit = record::read_value(element, (of.*pointer).emplace_back(), context)) {
        return within(name, std::move(fit));
      }
    }
    return std::nullopt;
  }
};

// A record whose members stand among the message's own.
template <typename T, typename Part>
struct Flattened {
  static constexpr size_t kCovers = 1;
  Part T::*pointer;

  template <typename Context>
  void write(const T& of, Json& object, const Context& context) const {
    object.update(record::write_value(of.*pointer, context));
  }
  template <typename Context>
  Fit read(const Json& object, T& of, const Context& context) const {
    return record::read_value(object, of.*pointer, context);
  }
};

// The counters that a sample added to. Counters that this program doesn't know are ignored.
template <typename T>
struct CounterMembers {
  static constexpr size_t kCovers = 1;
  const char* name;
  Counts T::*pointer;

  template <typename Context>
  void write(const T& of, Json& object, const Context&) const {
    object[name] = counts_to_json(of.*pointer);
  }
  template <typename Context>
  Fit read(const Json& object, T& of, const Context&) const {
    const Json* found = find_member(object, name);
    if (found == nullptr) return std::nullopt;
    if (!found->is_object()) return wrong_member(name, "an object", found);
    for (const auto& [counter, value] : found->items()) {
      if (!whole_within(value, 0, kMostCounted)) {
        return wrong_member(counter, range_text(0, kMostCounted), &value);
      }
    }
    of.*pointer = counts_from_json(*found);
    return std::nullopt;
  }
};

// Every measured figure, under the member that kMeasuredColumns gives it.
void write_measured(const Measured& measured, Json& object);
Fit read_measured(const Json& object, Measured& measured);
struct MeasuredMembers {  // of a message that is derived from Measured
  static constexpr size_t kCovers = 1;

  template <typename Context>
  void write(const Measured& of, Json& object, const Context&) const {
    write_measured(of, object);
  }
  template <typename Context>
  Fit read(const Json& object, Measured& of, const Context&) const {
    return read_measured(object, of);
  }
};

template <typename T, typename M>
constexpr auto whole(const char* name, M T::*pointer, int64_t least, int64_t most) {
  return Whole<T, M>{name, pointer, least, most};
}
template <typename T, typename Number>
constexpr auto wholes(const char* name, std::vector<Number> T::*pointer, int64_t least,
                      int64_t most, size_t most_elements, bool may_lack = false) {
  return Wholes<T, Number>{name, pointer, least, most, most_elements, may_lack};
}
template <typename T, typename Element>
constexpr auto objects(const char* name, std::vector<Element> T::*pointer, size_t most_elements,
                       bool may_lack = false) {
  return Objects<T, Element>{name, pointer, most_elements, may_lack};
}

}  // namespace assay::wire
