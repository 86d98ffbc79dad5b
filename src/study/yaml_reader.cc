// Typed reads of a YAML tree.
#include "study/yaml_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text/text.h"

namespace assay {
namespace {

constexpr size_t kMaxTextBytes = 200;
constexpr size_t kMaxLongTextBytes = 64 << 10;

// The whole text as a number, or nothing.
template <typename T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

}  // namespace

std::string YamlValue::shown() const {
  switch (node_->kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kList:
      return node_->values.empty() ? "an empty list" : "a list";
    case YamlNode::Kind::kMap:
      return "a map";
    case YamlNode::Kind::kScalar:
      break;
  }
  return quoted_excerpt(node_->text);
}

std::unexpected<Error> YamlValue::error(std::string_view expected, std::string_view found) const {
  return bad_input("{}: expected {}, found {}", where(), expected, found);
}

std::string YamlValue::where() const {
  return fmt::format("{} line {}{}{}", object_, node_->line, what_.empty() ? "" : ": ", what_);
}

Result<std::string> YamlValue::text() const {
  if (node_->kind != YamlNode::Kind::kScalar || node_->text.empty()) return error("a word");
  const bool control =
      std::ranges::any_of(node_->text, [](unsigned char c) { return c < 0x20 || c == 0x7F; });
  if (control || node_->text.size() > kMaxTextBytes) {
    return error(fmt::format("one line of at most {} bytes", kMaxTextBytes));
  }
  return node_->text;
}

Result<std::string> YamlValue::long_text() const {
  if (node_->kind != YamlNode::Kind::kScalar || node_->text.empty()) return error("a text");
  if (node_->text.size() > kMaxLongTextBytes) {
    return error(fmt::format("at most {} bytes of text", kMaxLongTextBytes),
                 fmt::format("{}", node_->text.size()));
  }
  return node_->text;
}

Result<std::string> YamlValue::any_text() const {
  if (node_->kind == YamlNode::Kind::kNull || node_->kind == YamlNode::Kind::kScalar) {
    if (node_->text.size() <= kMaxLongTextBytes && node_->text.find('\0') == std::string::npos) {
      return node_->text;
    }
  }
  return error(fmt::format("a text of at most {} bytes", kMaxLongTextBytes));
}

Result<int64_t> YamlValue::integer(int64_t min, int64_t max) const {
  const auto value = parse_number<int64_t>(node_->text);
  if (node_->kind != YamlNode::Kind::kScalar || node_->quoted || !value || *value < min ||
      *value > max) {
    return error(fmt::format("an integer from {} to {}", min, max));
  }
  return *value;
}

Result<uint64_t> YamlValue::unsigned_integer() const {
  const auto value = parse_number<uint64_t>(node_->text);
  if (node_->kind != YamlNode::Kind::kScalar || node_->quoted || !value) {
    return error("an integer from 0 to 2^64 - 1");
  }
  return *value;
}

Result<double> YamlValue::positive_number(double max) const {
  const auto value = parse_number<double>(node_->text);
  // Written so that NaN fails too.
  if (node_->kind != YamlNode::Kind::kScalar || node_->quoted || !value ||
      !(*value > 0 && *value <= max)) {
    return error(fmt::format("a number above 0, at most {}", max));
  }
  return *value;
}

Result<size_t> YamlValue::one_of(std::span<const std::string> words) const {
  const auto found = std::ranges::find(words, node_->text);
  if (node_->kind == YamlNode::Kind::kScalar && found != words.end()) {
    return static_cast<size_t>(found - words.begin());
  }
  const bool scalar = node_->kind == YamlNode::Kind::kScalar;
  return error(words.size() == 1 ? words.front() : "one of " + join(words, ", "),
               shown() + (scalar ? nearest_hint(node_->text, words) : ""));
}

Result<std::vector<YamlValue>> YamlValue::items() const {
  if (node_->kind == YamlNode::Kind::kNull) return error("a list");
  if (!is_list()) return std::vector<YamlValue>{*this};
  if (node_->values.empty()) return error("a list of at least one");
  std::vector<YamlValue> items;
  for (const YamlNode& value : node_->values) items.emplace_back(value, object_, what_);
  return items;
}

Result<YamlMap> YamlValue::map(std::span<const std::string> known) const {
  if (!is_map()) return error("a map with the keys " + join(known, ", "));
  for (const YamlKey& key : node_->keys) {
    if (std::ranges::find(known, key.text) != known.end()) continue;
    const std::string hint = nearest_hint(key.text, known);
    return bad_input("{} line {}: {}unknown key {}{}", object_, key.line,
                     what_.empty() ? "" : what_ + ": ", quoted_excerpt(key.text),
                     hint.empty() ? "; expected one of " + join(known, ", ") : hint);
  }
  return YamlMap(*node_, object_, what_);
}

Result<std::vector<std::pair<std::string, YamlValue>>> YamlValue::entries() const {
  if (!is_map()) return error("a map");
  std::vector<std::pair<std::string, YamlValue>> entries;
  for (size_t i = 0; i < node_->keys.size(); ++i) {
    const std::string& key = node_->keys[i].text;
    entries.emplace_back(key,
                         YamlValue(node_->values[i], object_, fmt::format("{}.{}", what_, key)));
  }
  return entries;
}

std::optional<YamlValue> YamlMap::find(std::string_view key) const {
  const auto found = std::ranges::find(node_->keys, key, &YamlKey::text);
  if (found == node_->keys.end()) return std::nullopt;
  const auto index = static_cast<size_t>(found - node_->keys.begin());
  return YamlValue(node_->values[index], object_,
                   what_.empty() ? std::string(key) : fmt::format("{}.{}", what_, key));
}

Result<YamlValue> YamlMap::require(std::string_view key) const {
  if (auto value = find(key)) return *value;
  return bad_input("{} line {}: {}expected the key \"{}\", found none", object_, node_->line,
                   what_.empty() ? "" : what_ + ": ", key);
}

std::vector<std::string> YamlMap::keys() const {
  std::vector<std::string> names;
  for (const YamlKey& key : node_->keys) names.push_back(key.text);
  return names;
}

}  // namespace assay
