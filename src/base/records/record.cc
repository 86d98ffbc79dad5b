// Errors of records, and their plain members.
#include "base/records/record.h"

#include <charconv>

namespace assay {

Fit misfit(std::string expected, const Json& found) {
  constexpr size_t kShown = 80;
  return Misfit{"", std::move(expected), to_json_line(found).substr(0, kShown)};
}

Fit within(std::string_view key, Fit fit) {
  if (!fit) return fit;
  const bool joined = fit->path.empty() || fit->path.starts_with('[');
  fit->path = fmt::format("{}{}{}", key, joined ? "" : ".", fit->path);
  return fit;
}

Fit within(size_t index, Fit fit) {
  return within(fmt::format("[{}]", index), std::move(fit));
}

std::unexpected<Error> misfit_error(std::string_view object, const Misfit& misfit) {
  return bad_input("{}: expected {}{}{}, found {}", object, misfit.expected,
                   misfit.path.empty() ? "" : " at ", misfit.path, misfit.found);
}

namespace record {

Fit read_plain(const Json& json, bool& value) {
  if (!json.is_boolean()) return misfit("true or false", json);
  value = json.get<bool>();
  return std::nullopt;
}

Fit read_plain(const Json& json, double& value) {
  if (json.is_null()) {
    value = std::numeric_limits<double>::quiet_NaN();
    return std::nullopt;
  }
  if (!json.is_number()) return misfit("a number", json);
  value = json.get<double>();
  return std::nullopt;
}

Fit read_plain(const Json& json, std::string& value) {
  if (!json.is_string()) return misfit("a text", json);
  value = json.get<std::string>();
  return std::nullopt;
}

Fit read_key(const std::string& name, std::string& key) {
  key = name;
  return std::nullopt;
}

Fit read_key(const std::string& name, int64_t& key) {
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data(), end, key);
  if (error != std::errc() || stop != end) {
    return misfit("an integer for a member's name", Json(name));
  }
  return std::nullopt;
}

}  // namespace record
}  // namespace assay
