// Typed members: every range is checked here, so that the parsers read as the specification.
#include "backend/members.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace assay {
namespace {

std::optional<int64_t> as_integer(const Json& json, int64_t least, int64_t most) {
  if (!json.is_number_integer()) return std::nullopt;
  if (json.is_number_unsigned() && json.get<uint64_t>() > INT64_MAX) return std::nullopt;
  const int64_t value = json.get<int64_t>();
  if (value < least || value > most) return std::nullopt;
  return value;
}

std::string range_text(int64_t least, int64_t most) {
  return most == INT64_MAX ? fmt::format("an integer >= {}", least)
                           : fmt::format("an integer from {} to {}", least, most);
}

}  // namespace

const Json* Members::find(const char* key) const {
  const auto it = object_.find(key);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

std::unexpected<Error> Members::wrong(const char* key, const std::string& expected) const {
  const Json* found = find(key);
  return bad_input("{}: expected {} at \"{}\", found {}", name_, expected, key,
                   found ? to_json_line(*found).substr(0, 80) : "nothing");
}

Result<int64_t> Members::integer(const char* key, int64_t least, int64_t most) const {
  const Json* member = find(key);
  const auto value = member ? as_integer(*member, least, most) : std::nullopt;
  if (!value) return wrong(key, range_text(least, most));
  return *value;
}

Result<std::optional<int64_t>> Members::optional_integer(const char* key, int64_t least,
                                                         int64_t most) const {
  if (!find(key)) return std::optional<int64_t>();
  ASSAY_TRY(const int64_t value, integer(key, least, most));
  return std::optional<int64_t>(value);
}

Result<double> Members::seconds(const char* key) const {
  const Json* member = find(key);
  if (!member || !member->is_number()) return wrong(key, "seconds");
  const double value = member->get<double>();
  if (!std::isfinite(value) || value < 0) return wrong(key, "seconds, not negative");
  return value;
}

Result<std::optional<double>> Members::optional_amount(const char* key) const {
  const Json* member = find(key);
  if (member == nullptr) return std::optional<double>();
  const double value = member->is_number() ? member->get<double>() : -1;
  if (!std::isfinite(value) || value < 0) return wrong(key, "a number, not negative");
  return std::optional(value);
}

Result<bool> Members::boolean_or(const char* key, bool fallback) const {
  return json_bool_or(object_, key, fallback, name_);
}

Result<std::string> Members::text(const char* key) const {
  return json_string(object_, key, name_);
}

Result<std::string> Members::text_or(const char* key, std::string fallback) const {
  return json_string_or(object_, key, std::move(fallback), name_);
}

Result<std::string> Members::word(const char* key, const std::vector<std::string>& words) const {
  const Json* member = find(key);
  const bool known = member && member->is_string() &&
                     std::ranges::find(words, member->get<std::string>()) != words.end();
  if (!known) return wrong(key, "one of " + join(words, ", "));
  return member->get<std::string>();
}

Result<Json> Members::object(const char* key) const {
  const Json* member = find(key);
  if (!member || !member->is_object()) return wrong(key, "an object");
  return *member;
}

Result<Json> Members::object_or_empty(const char* key) const {
  if (!find(key)) return Json::object();
  return object(key);
}

Result<const Json*> Members::array(const char* key, size_t max_size) const {
  const Json* member = find(key);
  if (!member || !member->is_array()) return wrong(key, "an array");
  if (member->size() > max_size) {
    return bad_input("{}: expected at most {} elements in \"{}\", found {}", name_, max_size, key,
                     member->size());
  }
  return member;
}

Result<std::vector<int64_t>> Members::integers(const char* key, int64_t least, int64_t most,
                                               size_t max_size) const {
  ASSAY_TRY(const Json* list, array(key, max_size));
  std::vector<int64_t> values;
  values.reserve(list->size());
  for (const Json& element : *list) {
    const auto value = as_integer(element, least, most);
    if (!value) return wrong(key, "every element to be " + range_text(least, most));
    values.push_back(*value);
  }
  return values;
}

Result<std::vector<int32_t>> Members::ids(const char* key, size_t max_size) const {
  ASSAY_TRY(const auto values, integers(key, 0, INT32_MAX, max_size));
  return std::vector<int32_t>(values.begin(), values.end());
}

Result<std::vector<std::vector<int32_t>>> Members::id_rows(const char* key) const {
  ASSAY_TRY(const Json* list, array(key, kMaxBatch));
  if (list->empty()) return wrong(key, "at least one row");
  std::vector<std::vector<int32_t>> rows;
  for (const Json& element : *list) {
    const Json holder = Json::object({{key, element}});
    ASSAY_TRY(auto row, Members(holder, name_).ids(key, kMaxPositions));
    if (row.empty() || (!rows.empty() && row.size() != rows.front().size())) {
      return wrong(key, "rows of one length, not empty");
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Result<std::vector<Json>> Members::objects(const char* key, size_t max_size) const {
  ASSAY_TRY(const Json* list, array(key, max_size));
  for (const Json& element : *list) {
    if (!element.is_object()) return wrong(key, "every element to be an object");
  }
  return std::vector<Json>(list->begin(), list->end());
}

}  // namespace assay
