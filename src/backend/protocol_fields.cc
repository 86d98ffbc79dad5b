// Members of messages, found and checked.
#include "backend/protocol_fields.h"

namespace assay::wire {

const Json* find_member(const Json& object, std::string_view name) {
  const auto it = object.find(name);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

Fit wrong_member(std::string_view name, std::string expected, const Json* found) {
  return Misfit{std::string(name), std::move(expected),
                found ? to_json_line(*found).substr(0, 80) : "nothing"};
}

std::optional<int64_t> whole_within(const Json& json, int64_t least, int64_t most) {
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

Fit misfit_array(const Json* found, std::string_view name, size_t most_elements) {
  if (found == nullptr || !found->is_array()) return wrong_member(name, "an array", found);
  if (found->size() <= most_elements) return std::nullopt;
  return Misfit{std::string(name), fmt::format("at most {} elements", most_elements),
                fmt::format("{}", found->size())};
}

namespace {

// The object that holds the column's member, or null where the message lacks it.
const Json* holder_of(const MeasuredColumn& column, const Json& object) {
  return column.group.empty() ? &object : find_member(object, column.group);
}

Fit read_column(const MeasuredColumn& column, const Json& holder, std::optional<double>& value) {
  const Json* found = find_member(holder, column.member);
  // A group that is there has all its members.
  if (found == nullptr && !column.required && column.group.empty()) return std::nullopt;
  if (column.wire_units == 0) {
    const double amount = found && found->is_number() ? found->get<double>() : -1;
    if (!std::isfinite(amount) || amount < 0) {
      return wrong_member(column.member, "a number, not negative", found);
    }
    value = amount;
    return std::nullopt;
  }
  const auto units = found ? whole_within(*found, 0, INT64_MAX) : std::nullopt;
  if (!units) return wrong_member(column.member, range_text(0, INT64_MAX), found);
  value = static_cast<double>(*units) / static_cast<double>(column.wire_units);
  return std::nullopt;
}

}  // namespace

void write_measured(const Measured& measured, Json& object) {
  for (const MeasuredColumn& column : kMeasuredColumns) {
    const auto& value = measured.*column.value;
    if (!value) continue;
    Json& holder = column.group.empty() ? object : object[std::string(column.group)];
    Json& member = holder[std::string(column.member)];
    if (column.wire_units == 0) {
      member = *value;
    } else {
      member = std::llround(*value * static_cast<double>(column.wire_units));
    }
  }
}

Fit read_measured(const Json& object, Measured& measured) {
  for (const MeasuredColumn& column : kMeasuredColumns) {
    const Json* holder = holder_of(column, object);
    if (holder == nullptr || (holder != &object && holder->empty())) continue;
    if (!holder->is_object()) return wrong_member(column.group, "an object", holder);
    if (Fit fit = read_column(column, *holder, measured.*column.value)) return fit;
  }
  return std::nullopt;
}

}  // namespace assay::wire
