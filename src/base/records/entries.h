// Entries of records for documents that are written and not read: figures that follow from a
// struct, names in the place of numbers, parts of other structs. Those that a record which is read
// may have too say so.
//
// A `make` is a function of the struct, or of the struct and the caller's context, or a pointer to
// a member.
#pragma once

#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/records/record.h"

namespace assay {
namespace record {

// A pointer to a member describes that member, a function none.
template <typename... F>
inline constexpr size_t kCoveredBy = (size_t{0} + ... + std::is_member_object_pointer_v<F>);

template <typename F, typename T, typename Context>
decltype(auto) made(const F& make, const T& of, const Context& context) {
  if constexpr (std::is_invocable_v<const F&, const T&, const Context&>) {
    return std::invoke(make, of, context);
  } else {
    return std::invoke(make, of);
  }
}

template <size_t kCount, typename F>
struct Derived {
  static constexpr size_t kCovers = kCount;
  const char* name;
  F make;

  template <typename T, typename Context>
  void write(const T& of, Json& object, const Context& context) const {
    object[name] = write_value(made(make, of, context), context);
  }
  template <typename T, typename Context>
  Fit read(const Json&, const T&, const Context&) const {
    return std::nullopt;
  }
};

template <typename V>
struct Constant {
  static constexpr size_t kCovers = 0;
  const char* name;
  V value;

  template <typename T, typename Context>
  void write(const T&, Json& object, const Context&) const {
    object[name] = value;
  }
  template <typename T, typename Context>
  Fit read(const Json& object, const T&, const Context&) const {
    const auto at = object.find(name);
    const Json found = at == object.end() ? Json() : *at;
    return found == value ? Fit() : within(name, misfit(fmt::format("{}", value), found));
  }
};

template <size_t kCount>
struct Unwritten {
  static constexpr size_t kCovers = kCount;

  template <typename T, typename Context>
  void write(const T&, Json&, const Context&) const {}
  template <typename T, typename Context>
  Fit read(const Json&, const T&, const Context&) const {
    return std::nullopt;
  }
};

// Entries of the struct below a name of their own; without a name, among its others.
template <typename When, typename... E>
struct Group {
  static constexpr size_t kCovers = (size_t{0} + ... + E::kCovers);
  const char* name;  // null: none
  When when;
  std::tuple<E...> entries;

  template <typename T, typename Context>
  void write(const T& of, Json& object, const Context& context) const {
    if (!made(when, of, context)) return;
    Json own = Json::object();
    write_entries(of, entries, name == nullptr ? object : own, context);
    if (name != nullptr) object[name] = std::move(own);
  }
};

template <typename F, typename... E>
struct Part {
  static constexpr size_t kCovers = kCoveredBy<F>;
  F make;
  std::tuple<E...> entries;

  template <typename T, typename Context>
  void write(const T& of, Json& object, const Context& context) const {
    const auto& part = made(make, of, context);
    using P = std::remove_cvref_t<decltype(part)>;
    if constexpr (kIs<P, std::optional> || std::is_pointer_v<P>) {
      if (part) write_part(*part, object, context);
    } else {
      write_part(part, object, context);
    }
  }

 private:
  template <typename P, typename Context>
  void write_part(const P& part, Json& object, const Context& context) const {
    if constexpr (sizeof...(E) > 0) {
      write_entries(part, entries, object, context);
    } else {
      object.update(write_object(part, context));
    }
  }
};

template <typename F, typename... E>
struct ListOf {
  static constexpr size_t kCovers = kCoveredBy<F>;
  const char* name;
  F make;
  std::tuple<E...> entries;

  template <typename T, typename Context>
  void write(const T& of, Json& object, const Context& context) const {
    Json& list = object[name] = Json::array();
    for (const auto& element : made(make, of, context)) {
      write_entries(element, entries, list.emplace_back(Json::object()), context);
    }
  }
};

template <typename Base, typename... E>
struct BaseOf {
  static constexpr size_t kCovers = 1;
  std::tuple<E...> entries;

  template <typename Context>
  void write(const Base& of, Json& object, const Context& context) const {
    write_entries(of, entries, object, context);
  }
};

}  // namespace record

// A figure that follows from the struct. A record that is read skips it.
template <typename F>
constexpr auto derived(const char* name, F make) {
  return record::Derived<0, F>{name, make};
}
// A member as `word` of it, or of it and the context.
template <typename T, typename M, typename F>
constexpr auto field_as(const char* name, M T::*pointer, F word) {
  const auto make = [pointer, word](const T& of, const auto& context) -> decltype(auto) {
    return record::made(word, of.*pointer, context);
  };
  return record::Derived<1, decltype(make)>{name, make};
}
// The same in every file; a record that is read insists on it.
template <typename V>
constexpr auto constant(const char* name, V value) {
  return record::Constant<V>{name, value};
}
// Members that the JSON leaves out, in reading too.
template <typename... M>
constexpr auto unwritten(M...) {
  return record::Unwritten<sizeof...(M)>{};
}
template <typename... F>
constexpr auto array_of(const char* name, F... make) {
  const auto all = [... make = make](const auto& of, const auto& context) {
    return Json::array({record::write_value(record::made(make, of, context), context)...});
  };
  return record::Derived<record::kCoveredBy<F...>, decltype(all)>{name, all};
}
// An object of these entries.
template <typename... E>
constexpr auto nested(const char* name, E... entries) {
  constexpr auto kAlways = [](const auto&) { return true; };
  return record::Group<std::remove_const_t<decltype(kAlways)>, E...>{name, kAlways,
                                                                     std::tuple(entries...)};
}
// Entries that stand only where `condition` makes true.
template <typename When, typename... E>
constexpr auto where(When condition, E... entries) {
  return record::Group<When, E...>{nullptr, condition, std::tuple(entries...)};
}
// A part's entries among the struct's own, or without entries those of its record. An absent part
// has none.
template <typename F, typename... E>
constexpr auto part(F make, E... entries) {
  return record::Part<F, E...>{make, std::tuple(entries...)};
}
// The same of a base.
template <typename Base, typename... E>
constexpr auto base_part(E... entries) {
  return record::BaseOf<Base, E...>{std::tuple(entries...)};
}
// A list whose elements are objects of these entries.
template <typename F, typename... E>
constexpr auto list_of(const char* name, F make, E... entries) {
  return record::ListOf<F, E...>{name, make, std::tuple(entries...)};
}

}  // namespace assay
