// Structs as JSON objects and back, both by one description of their members. A member that the
// description lacks doesn't compile.
//
//   template <> struct Record<Point> {
//     static constexpr auto kMembers =
//         std::tuple(field("x_mm", &Point::x), field("label", &Point::label));
//   };
//   record_to_json(point); record_from_json<Point>(json, "points.json");
//
// A record with `static constexpr bool kIsArray = true` is an array of its members in their order.
//
// Members are bool, integers, double, text, enums with EnumWords, other records, and optionals,
// vectors and maps of those; Json as it is. An absent optional is null, and so is a double that
// isn't finite. entries.h has entries for documents that are only written. An entry of a
// description is anything with `kCovers`, the number of the struct's members that it describes, and
// with Member's write() and read(). The context that these are given is the caller's, for members
// whose meaning depends on something beside their struct.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/records/enum_words.h"
#include "base/records/json.h"
#include "base/result.h"

namespace assay {

// Specialised for each struct: kMembers, a tuple of entries in the order of the JSON.
template <typename T>
struct Record;

struct NoContext {};

// Path of a value that didn't fit; it grows on the way out.
struct Misfit {
  std::string path;
  std::string expected;
  std::string found;
};
using Fit = std::optional<Misfit>;  // absent: it fits

Fit misfit(std::string expected, const Json& found);
Fit within(std::string_view key, Fit fit);  // "key.path"
Fit within(size_t index, Fit fit);          // "[index].path"
// "evidence.json: expected a number at processes[0].load_seconds, found \"x\"".
std::unexpected<Error> misfit_error(std::string_view object, const Misfit& misfit);

namespace record {

template <typename T>
concept Described = requires {
  Record<T>::kMembers;
};
template <typename T>
concept Worded = requires {
  EnumWords<T>::kAll;
};

template <typename T, template <typename...> typename Of>
inline constexpr bool kIs = false;
template <template <typename...> typename Of, typename... A>
inline constexpr bool kIs<Of<A...>, Of> = true;

struct AnyMember {
  template <typename T>
  operator T() const;  // NOLINT(google-explicit-constructor): a member is initialised by it
};
template <typename T, size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
  return requires {
    T{(void(I), AnyMember{})...};
  };
}
// The number of members of an aggregate without bases.
template <typename T, size_t N = 0>
constexpr size_t member_count() {
  if constexpr (takes<T>(std::make_index_sequence<N + 1>())) {
    return member_count<T, N + 1>();
  } else {
    return N;
  }
}
template <typename T>
constexpr size_t described_count() {
  return std::apply([](const auto&... entry) { return (size_t{0} + ... + entry.kCovers); },
                    Record<T>::kMembers);
}

// The word of an enum's value, or none.
template <Worded E>
std::optional<E> parse_word(std::string_view word) {
  for (const E value : EnumWords<E>::kAll) {
    if (EnumWords<E>::name(value) == word) return value;
  }
  return std::nullopt;
}
template <Worded E>
std::string words() {
  std::string all;
  for (const E value : EnumWords<E>::kAll) {
    all += fmt::format("{}\"{}\"", all.empty() ? "one of " : ", ", EnumWords<E>::name(value));
  }
  return all;
}

// A map's key as a member's name, and back.
template <typename K>
std::string key_text(const K& key) {
  if constexpr (Worded<K>)
    return std::string(EnumWords<K>::name(key));
  else
    return fmt::format("{}", key);
}
Fit read_key(const std::string& name, std::string& key);
Fit read_key(const std::string& name, int64_t& key);
template <Worded E>
Fit read_key(const std::string& name, E& key) {
  const auto word = parse_word<E>(name);
  if (!word) return misfit(words<E>() + " for a member's name", Json(name));
  key = *word;
  return std::nullopt;
}

template <typename T, typename Context>
Json write_value(const T& value, const Context& context);
template <typename T, typename Context>
Fit read_value(const Json& json, T& value, const Context& context);

// A record that is an array of its members in their order.
template <typename T>
concept Listed = Described<T> && requires {
  Record<T>::kIsArray;
};

// Adds members to the object.
template <typename T, typename Entries, typename Context>
void write_entries(const T& value, const Entries& entries, Json& object, const Context& context) {
  std::apply([&](const auto&... entry) { (entry.write(value, object, context), ...); }, entries);
}

template <typename T, typename Context>
Json write_object(const T& value, const Context& context) {
  static_assert(member_count<T>() == described_count<T>(),
                "Record<T>::kMembers has to say something of every member of T");
  Json object = Json::object();
  write_entries(value, Record<T>::kMembers, object, context);
  if constexpr (!Listed<T>) {
    return object;
  } else {
    Json array = Json::array();
    for (auto& element : object) array.push_back(std::move(element));
    return array;
  }
}

template <typename T, typename Context>
Fit read_object(const Json& json, T& value, const Context& context) {
  if constexpr (Listed<T>) {
    if (!json.is_array() || json.size() != described_count<T>()) {
      return misfit(fmt::format("an array of {}", described_count<T>()), json);
    }
    size_t next = 0;
    Fit fit;
    std::apply(
        [&](const auto&... entry) {
          (void)((fit = within(next, read_value(json[next], value.*entry.pointer, context)), ++next,
                  !fit.has_value()) &&
                 ...);
        },
        Record<T>::kMembers);
    return fit;
  }
  if (!json.is_object()) return misfit("an object", json);
  Fit fit;
  std::apply(
      [&](const auto&... entry) {
        (void)((fit = entry.read(json, value, context), !fit.has_value()) && ...);
      },
      Record<T>::kMembers);
  return fit;
}

template <typename T, typename Context>
Json write_value(const T& value, const Context& context) {
  if constexpr (std::is_same_v<T, Json>) {
    return value;
  } else if constexpr (Worded<T>) {
    return EnumWords<T>::name(value);
  } else if constexpr (Described<T>) {
    return write_object(value, context);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::isfinite(value) ? Json(value) : Json();
  } else if constexpr (kIs<T, std::optional> || kIs<T, std::shared_ptr>) {
    return value ? write_value(*value, context) : Json();
  } else if constexpr (kIs<T, std::vector>) {
    Json array = Json::array();
    for (const auto& element : value) array.push_back(write_value(element, context));
    return array;
  } else if constexpr (kIs<T, std::map>) {
    Json object = Json::object();
    for (const auto& [key, element] : value) {
      object[key_text(key)] = write_value(element, context);
    }
    return object;
  } else {
    return value;
  }
}

Fit read_plain(const Json& json, bool& value);
Fit read_plain(const Json& json, double& value);
Fit read_plain(const Json& json, std::string& value);

template <std::integral T>
Fit read_plain(const Json& json, T& value) {
  const bool fits = json.is_number_unsigned()
                        ? std::in_range<T>(json.get<uint64_t>())
                        : json.is_number_integer() && std::in_range<T>(json.get<int64_t>());
  if (!fits) return misfit(std::is_signed_v<T> ? "an integer" : "a count", json);
  value = json.get<T>();
  return std::nullopt;
}

template <typename T, typename Context>
Fit read_map(const Json& json, T& value, const Context& context) {
  if (!json.is_object()) return misfit("an object", json);
  value.clear();
  for (const auto& [name, element] : json.items()) {
    typename T::key_type key{};
    if (Fit fit = read_key(name, key)) return fit;
    if (Fit fit = read_value(element, value[key], context)) return within(name, std::move(fit));
  }
  return std::nullopt;
}

template <typename T, typename Context>
Fit read_value(const Json& json, T& value, const Context& context) {
  if constexpr (std::is_same_v<T, Json>) {
    value = json;
    return std::nullopt;
  } else if constexpr (Worded<T>) {
    const auto word =
        json.is_string() ? parse_word<T>(json.template get<std::string>()) : std::optional<T>();
    if (!word) return misfit(words<T>(), json);
    value = *word;
    return std::nullopt;
  } else if constexpr (Described<T>) {
    return read_object(json, value, context);
  } else if constexpr (kIs<T, std::optional>) {
    value.reset();
    return json.is_null() ? Fit() : read_value(json, value.emplace(), context);
  } else if constexpr (kIs<T, std::vector>) {
    if (!json.is_array()) return misfit("an array", json);
    value.clear();
    for (const Json& element : json) {
      if (Fit fit = read_value(element, value.emplace_back(), context)) {
        return within(value.size() - 1, std::move(fit));
      }
    }
    return std::nullopt;
  } else if constexpr (kIs<T, std::map>) {
    return read_map(json, value, context);
  } else {
    return read_plain(json, value);
  }
}

// A member's presence in the JSON.
enum class Presence {
  kAlways,   // an object without it isn't read
  kMayLack,  // written always; if it is missing or null, the member stays as it was made
  kIfKnown,  // likewise, and left out if the member is empty
};

template <typename T, typename M, Presence kPresence>
struct Member {
  static constexpr size_t kCovers = 1;
  const char* name;
  M T::*pointer;

  template <typename Context>
  void write(const T& of, Json& object, const Context& context) const {
    if constexpr (kPresence == Presence::kIfKnown) {
      if constexpr (kIs<M, std::optional>) {
        if (!(of.*pointer)) return;
      } else {
        if ((of.*pointer).empty()) return;
      }
    }
    object[name] = write_value(of.*pointer, context);
  }
  template <typename Context>
  Fit read(const Json& object, T& of, const Context& context) const {
    const auto at = object.find(name);
    const bool missing = at == object.end();
    if constexpr (kPresence == Presence::kAlways) {
      if (missing) return Misfit{name, "a value", "nothing"};
    } else {
      if (missing || at->is_null()) return std::nullopt;
    }
    return within(name, read_value(*at, of.*pointer, context));
  }
};

// A text that is null where it is empty.
template <typename T>
struct TextOrNull {
  static constexpr size_t kCovers = 1;
  const char* name;
  std::string T::*pointer;

  template <typename Context>
  void write(const T& of, Json& object, const Context&) const {
    object[name] = (of.*pointer).empty() ? Json() : Json(of.*pointer);
  }
  template <typename Context>
  Fit read(const Json& object, T& of, const Context&) const {
    const auto at = object.find(name);
    if (at == object.end()) return Misfit{name, "a text or null", "nothing"};
    (of.*pointer).clear();
    return at->is_null() ? Fit() : within(name, read_plain(*at, of.*pointer));
  }
};

}  // namespace record

template <typename T, typename M>
constexpr auto field(const char* name, M T::*pointer) {
  return record::Member<T, M, record::Presence::kAlways>{name, pointer};
}
template <typename T, typename M>
constexpr auto field_may_lack(const char* name, M T::*pointer) {
  return record::Member<T, M, record::Presence::kMayLack>{name, pointer};
}
template <typename T, typename M>
constexpr auto field_if_known(const char* name, M T::*pointer) {
  return record::Member<T, M, record::Presence::kIfKnown>{name, pointer};
}
template <typename T>
constexpr auto text_or_null(const char* name, std::string T::*pointer) {
  return record::TextOrNull<T>{name, pointer};
}

template <typename T, typename Context = NoContext>
Json record_to_json(const T& value, const Context& context = {}) {
  return record::write_value(value, context);
}

// `object` names the JSON in errors. Members that the description doesn't name are skipped.
template <typename T, typename Context = NoContext>
Result<T> record_from_json(const Json& json, std::string_view object, const Context& context = {}) {
  T value{};
  if (const Fit fit = record::read_value(json, value, context)) return misfit_error(object, *fit);
  return value;
}

}  // namespace assay
