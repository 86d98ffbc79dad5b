// JSON by simdjson and nlohmann: parse errors become one line, type errors name key, expected and
// found. The tree is built here, in time linear in the text: nlohmann's builders search an object's
// members for each of them, and with a filter all siblings of each object.
#include "base/records/json.h"

#include <simdjson.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

#include "base/files/files.h"
#include "base/text/shown_text.h"

namespace assay {
namespace {

constexpr int kMaxNesting = 64;

// The member, or null where the object has none.
const Json* find_member(const Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(std::string(key));
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

std::unexpected<Error> type_error(std::string_view name, std::string_view key,
                                  std::string_view expected, const Json* found) {
  return bad_input("{}: expected {} at \"{}\", found {}", name, expected, key,
                   found ? to_json_line(*found).substr(0, 80) : "nothing");
}

// The name that comes twice; null where each comes once.
const std::string* twice(std::span<const std::string> names) {
  constexpr size_t kFew = 8;
  if (names.size() <= kFew) {
    for (size_t i = 1; i < names.size(); ++i) {
      const auto before = names.first(i);
      if (std::ranges::find(before, names[i]) != before.end()) return &names[i];
    }
    return nullptr;
  }
  // Sorted, not hashed: nobody can choose names that make it slow.
  std::vector<const std::string*> sorted;
  sorted.reserve(names.size());
  for (const std::string& name : names) sorted.push_back(&name);
  std::ranges::sort(
      sorted, {}, [](const std::string* name) -> const auto& { return *name; });
  const auto same = [](const std::string* a, const std::string* b) { return *a == *b; };
  const auto at = std::ranges::adjacent_find(sorted, same);
  return at == sorted.end() ? nullptr : *at;
}

// A handler for Json::sax_parse and walk(). Values and names wait on two stacks until their
// container ends, and each moves into it once. An event returns false where the text is refused;
// expected() and found() then say why.
class TreeBuilder {
 public:
  explicit TreeBuilder(const Json::parser_callback_t& filter) : filter_(filter) {}

  bool null() { return add(Json()); }
  bool boolean(bool value) { return add(Json(value)); }
  bool number_integer(int64_t value) { return add(Json(value)); }
  bool number_unsigned(uint64_t value) { return add(Json(value)); }
  bool number_float(double value, const std::string&) { return add(Json(value)); }
  bool string(std::string& value) { return add(Json(std::move(value))); }
  bool binary(Json::binary_t&) { return refuse("JSON", "binary data"); }
  bool start_object(size_t) { return open(Event::object_start, true); }
  bool start_array(size_t) { return open(Event::array_start, false); }

  bool key(std::string& name) {
    if (dropping_ > 0) return true;
    Json shown;
    if (filter_) shown = name;
    if (keeps(Event::key, shown)) {
      names_.push_back(std::move(name));
    } else {
      dropping_ = 1;
    }
    return true;
  }

  bool end_object() {
    if (end_dropped()) return true;
    const Open ended = open_.back();
    if (const std::string* name = twice(std::span(names_).subspan(ended.names))) {
      return refuse("each member of an object once", json_quoted(*name) + " twice");
    }
    open_.pop_back();
    Json object = Json::object();
    auto& members = object.get_ref<Json::object_t&>();
    members.reserve(values_.size() - ended.values);
    for (size_t i = ended.values; i < values_.size(); ++i) {
      members.emplace_back(std::move(names_[ended.names + i - ended.values]),
                           std::move(values_[i]));
    }
    values_.resize(ended.values);
    names_.resize(ended.names);
    values_.push_back(std::move(object));
    return true;
  }

  bool end_array() {
    if (end_dropped()) return true;
    const auto first = values_.begin() + static_cast<std::ptrdiff_t>(open_.back().values);
    Json array = Json::array_t(std::move_iterator(first), std::move_iterator(values_.end()));
    values_.erase(first, values_.end());
    open_.pop_back();
    values_.push_back(std::move(array));
    return true;
  }

  bool parse_error(size_t /*position*/, const std::string& /*token*/,
                   const Json::exception& error) {
    constexpr size_t kLongestShown = 240;  // it repeats the token, which may be long
    std::string_view what = error.what();
    if (const size_t colon = what.find("] "); colon != std::string_view::npos) {
      what.remove_prefix(colon + 2);
    }
    return refuse("JSON", shown_line(what, kLongestShown));
  }

  // The tree, once all events came; null where the filter dropped all of it.
  Json take() { return values_.empty() ? Json() : std::move(values_.front()); }
  const std::string& expected() const { return expected_; }
  const std::string& found() const { return found_; }

 private:
  using Event = Json::parse_event_t;
  // A container that hasn't ended: where its values and its members' names begin.
  struct Open {
    size_t values;
    size_t names;
    bool is_object;
  };

  bool keeps(Event event, Json& value) {
    return !filter_ || filter_(static_cast<int>(open_.size()), event, value);
  }

  // The filter sees the value of a member that is dropped, and nothing inside it.
  bool keeps_value(Event event, Json& value) {
    const bool keep = keeps(event, value);
    if (dropping_ == 1) return false;
    if (!keep && !open_.empty() && open_.back().is_object) names_.pop_back();
    return keep;
  }

  bool add(Json value) {
    if (dropping_ > 1) return true;
    if (keeps_value(Event::value, value)) values_.push_back(std::move(value));
    dropping_ = 0;
    return true;
  }

  bool open(Event event, bool is_object) {
    if (++depth_ > kMaxNesting) {
      return refuse(fmt::format("JSON nested at most {} levels", kMaxNesting), "more");
    }
    Json none;
    if (dropping_ > 1) {
      ++dropping_;
    } else if (keeps_value(event, none)) {
      open_.push_back({values_.size(), names_.size(), is_object});
    } else {
      dropping_ = 2;
    }
    return true;
  }

  // True where the container that ends is dropped, or is inside one that is.
  bool end_dropped() {
    --depth_;
    if (dropping_ == 0) return false;
    if (--dropping_ == 1) dropping_ = 0;
    return true;
  }

  bool refuse(std::string expected, std::string found) {
    expected_ = std::move(expected);
    found_ = std::move(found);
    return false;
  }

  const Json::parser_callback_t& filter_;
  std::vector<Open> open_;
  std::vector<Json> values_;
  std::vector<std::string> names_;
  int dropping_ = 0;  // 1 before the value of a member that is dropped, and 1 more a level inside
  int depth_ = 0;
  std::string expected_;
  std::string found_;
};

// Gives the element's events to the builder, as Json::sax_parse does: an integer from 0 on is
// unsigned. False where the builder refuses one, before the nesting can exhaust the stack.
bool walk(const simdjson::dom::element& element, TreeBuilder& builder) {
  using Type = simdjson::dom::element_type;
  switch (element.type()) {
    case Type::OBJECT: {
      if (!builder.start_object(0)) return false;
      for (const auto& [key, value] : simdjson::dom::object(element)) {
        std::string name(key);
        if (!builder.key(name) || !walk(value, builder)) return false;
      }
      return builder.end_object();
    }
    case Type::ARRAY: {
      if (!builder.start_array(0)) return false;
      for (const auto& value : simdjson::dom::array(element)) {
        if (!walk(value, builder)) return false;
      }
      return builder.end_array();
    }
    case Type::STRING: {
      std::string value{std::string_view(element)};
      return builder.string(value);
    }
    case Type::INT64: {
      const int64_t value = element;
      return value < 0 ? builder.number_integer(value)
                       : builder.number_unsigned(static_cast<uint64_t>(value));
    }
    case Type::UINT64:
      return builder.number_unsigned(element);
    case Type::DOUBLE:
      return builder.number_float(element, "");
    case Type::BOOL:
      return builder.boolean(element);
    case Type::NULL_VALUE:
      break;
  }
  return builder.null();
}

// The whole text's events by simdjson, with which a tree takes half the time. Absent where it
// can't: it doesn't say where the text breaks off, has no integers beyond 64 bits, and holds all of
// the text at once, so that it isn't for texts that a filter thins.
std::optional<bool> read_quickly(std::string_view text, TreeBuilder& builder) {
  constexpr size_t kMostBytes = size_t{64} << 20;
  if (text.size() > kMostBytes) return std::nullopt;
  simdjson::dom::parser parser;
  const auto parsed = parser.parse(text.data(), text.size());
  if (parsed.error() != simdjson::SUCCESS) return std::nullopt;
  return walk(parsed.value_unsafe(), builder);
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view object,
                        const Json::parser_callback_t& filter) {
  TreeBuilder builder(filter);
  const auto quickly = filter ? std::nullopt : read_quickly(text, builder);
  if (quickly.value_or(false)) return builder.take();
  if (!quickly && Json::sax_parse(text.begin(), text.end(), &builder)) return builder.take();
  return bad_input("{}: expected {}, found {}", object, builder.expected(), builder.found());
}

Result<Json> read_json_file(const std::filesystem::path& path) {
  ASSAY_TRY(const std::string text, read_file(path));
  return parse_json(text, path.string());
}

std::string to_json_line(const Json& json) {
  return escaped_json(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string to_json_text(const Json& json) {
  return escaped_json(json.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n";
}

std::string json_quoted(std::string_view text) {
  constexpr size_t kLongest = 80;
  if (text.size() <= kLongest) return to_json_line(Json(text));
  return to_json_line(Json(std::string(text.substr(0, kLongest)) + "..."));
}

Result<std::string> json_string(const Json& object, std::string_view key, std::string_view name) {
  const Json* member = find_member(object, key);
  if (!member || !member->is_string()) return type_error(name, key, "a string", member);
  return member->get<std::string>();
}

Result<int64_t> json_int(const Json& object, std::string_view key, std::string_view name) {
  const Json* member = find_member(object, key);
  const bool fits = member && member->is_number_integer() &&
                    !(member->is_number_unsigned() && member->get<uint64_t>() > INT64_MAX);
  if (!fits) return type_error(name, key, "an integer", member);
  return member->get<int64_t>();
}

Result<double> json_number(const Json& object, std::string_view key, std::string_view name) {
  const Json* member = find_member(object, key);
  if (!member || !member->is_number()) return type_error(name, key, "a number", member);
  return member->get<double>();
}

Result<bool> json_bool(const Json& object, std::string_view key, std::string_view name) {
  const Json* member = find_member(object, key);
  if (!member || !member->is_boolean()) return type_error(name, key, "true or false", member);
  return member->get<bool>();
}

Result<std::string> json_string_or(const Json& object, std::string_view key, std::string fallback,
                                   std::string_view name) {
  if (!find_member(object, key)) return fallback;
  return json_string(object, key, name);
}

Result<int64_t> json_int_or(const Json& object, std::string_view key, int64_t fallback,
                            std::string_view name) {
  if (!find_member(object, key)) return fallback;
  return json_int(object, key, name);
}

Result<double> json_number_or(const Json& object, std::string_view key, double fallback,
                              std::string_view name) {
  if (!find_member(object, key)) return fallback;
  return json_number(object, key, name);
}

Result<bool> json_bool_or(const Json& object, std::string_view key, bool fallback,
                          std::string_view name) {
  if (!find_member(object, key)) return fallback;
  return json_bool(object, key, name);
}

}  // namespace assay
