// Records written as JSON text, without the tree that record.h makes: the same bytes as
// to_json_text() and to_json_line() of record_to_json(), for documents of many megabytes, whose
// tree takes longer to make and to free than their text.
//
// An entry of a description may have `append(of, JsonText&, context)` beside its write(); one that
// hasn't is written into a small object of its own, whose members are copied out. No two entries of
// a record may write the same name: a tree keeps the later one, a text would have both.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/records/record.h"

namespace assay {

class JsonText {
 public:
  enum class Layout { kIndented, kLine };
  explicit JsonText(Layout layout) : indented_(layout == Layout::kIndented) {}

  // A container is begun and ended, and each of its values announced by member(); in an array the
  // name is left out.
  void begin_object() { begin('{', '}'); }
  void begin_array() { begin('[', ']'); }
  void end();
  void member(std::string_view name);

  void null() { text_ += "null"; }
  void boolean(bool value) { text_ += value ? "true" : "false"; }
  void number(double value);  // null where it isn't finite
  void number(int64_t value);
  void number(uint64_t value);
  void quoted(std::string_view value);
  void tree(const Json& value);
  // The members of the object, or the elements of the array, into the container that is open.
  void members_of(const Json& container);

  // The text, once all has ended, with a line's end.
  std::string take() { return std::move(text_ += '\n'); }

 private:
  struct Open {
    char end;
    bool empty = true;
  };
  void begin(char first, char last);
  void new_line();

  bool indented_;
  std::string text_;
  std::vector<Open> open_;
};

namespace record {

template <typename T, typename Context>
void append_value(const T& value, JsonText& out, const Context& context);

template <typename T, typename M, Presence kPresence, typename Context>
void append_entry(const Member<T, M, kPresence>& entry, const T& of, JsonText& out,
                  const Context& context) {
  const M& value = of.*entry.pointer;
  if constexpr (kPresence == Presence::kIfKnown && kIs<M, std::optional>) {
    if (!value) return;
  } else if constexpr (kPresence == Presence::kIfKnown) {
    if (value.empty()) return;
  }
  out.member(entry.name);
  append_value(value, out, context);
}

template <typename T, typename Context>
void append_entry(const TextOrNull<T>& entry, const T& of, JsonText& out, const Context&) {
  const std::string& value = of.*entry.pointer;
  out.member(entry.name);
  value.empty() ? out.null() : out.quoted(value);
}

template <typename Entry, typename T, typename Context>
void append_entry(const Entry& entry, const T& of, JsonText& out, const Context& context) {
  if constexpr (requires { entry.append(of, out, context); }) {
    entry.append(of, out, context);
  } else {
    Json own = Json::object();
    entry.write(of, own, context);
    out.members_of(own);
  }
}

template <typename T, typename Entries, typename Context>
void append_entries(const T& of, const Entries& entries, JsonText& out, const Context& context) {
  std::apply([&](const auto&... entry) { (append_entry(entry, of, out, context), ...); }, entries);
}

template <typename T, typename Context>
void append_value(const T& value, JsonText& out, const Context& context) {
  if constexpr (Worded<T>) {
    out.quoted(EnumWords<T>::name(value));
  } else if constexpr (Described<T>) {
    static_assert(member_count<T>() == described_count<T>(),
                  "Record<T>::kMembers has to say something of every member of T");
    Listed<T> ? out.begin_array() : out.begin_object();
    append_entries(value, Record<T>::kMembers, out, context);
    out.end();
  } else if constexpr (kIs<T, std::optional> || kIs<T, std::shared_ptr>) {
    value ? append_value(*value, out, context) : out.null();
  } else if constexpr (kIs<T, std::vector>) {
    out.begin_array();
    for (const auto& element : value) {
      out.member("");
      append_value(element, out, context);
    }
    out.end();
  } else if constexpr (kIs<T, std::map>) {
    out.begin_object();
    for (const auto& [key, element] : value) {
      out.member(key_text(key));
      append_value(element, out, context);
    }
    out.end();
  } else if constexpr (std::is_same_v<T, bool>) {
    out.boolean(value);
  } else if constexpr (std::is_same_v<T, double>) {
    out.number(value);
  } else if constexpr (std::signed_integral<T>) {
    out.number(int64_t{value});
  } else if constexpr (std::unsigned_integral<T>) {
    out.number(uint64_t{value});
  } else if constexpr (std::is_same_v<T, std::string>) {
    out.quoted(value);
  } else {
    out.tree(write_value(value, context));
  }
}

}  // namespace record
}  // namespace assay
