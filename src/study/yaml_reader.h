// Typed reads of a YAML tree: each checks type and range, and its error names file, line, key,
// expectation and finding. Knows nothing of the study's schema.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "study/yaml_tree.h"

namespace assay {

class YamlMap;

// A value and where it stands. Points into the tree and at the file's name: both must outlive it.
class YamlValue {
 public:
  // `what` is the key that leads here, for errors; empty for the file as a whole.
  YamlValue(const YamlNode& node, std::string_view object, std::string what)
      : node_(&node), object_(object), what_(std::move(what)) {}

  int line() const { return node_->line; }
  bool is_list() const { return node_->kind == YamlNode::Kind::kList; }
  bool is_map() const { return node_->kind == YamlNode::Kind::kMap; }

  // Any scalar as its text: not empty, one line, at most 200 bytes.
  Result<std::string> text() const;
  // A scalar of up to 64 kB, over as many lines as it likes.
  Result<std::string> long_text() const;
  // A scalar of up to 64 kB, which may be empty, without a byte of zero.
  Result<std::string> any_text() const;
  // A decimal integer, unquoted, min <= value <= max.
  Result<int64_t> integer(int64_t min, int64_t max) const;
  Result<uint64_t> unsigned_integer() const;
  // A decimal number, unquoted, 0 < value <= max.
  Result<double> positive_number(double max) const;
  // The index of the word that it is, with a hint at the nearest one.
  Result<size_t> one_of(std::span<const std::string> words) const;
  // The elements of a list that isn't empty; a scalar or map stands for a list of one.
  Result<std::vector<YamlValue>> items() const;
  // A map whose keys are all among `known`.
  Result<YamlMap> map(std::span<const std::string> known) const;

  // Entries of a map with any keys, in the order of the file.
  Result<std::vector<std::pair<std::string, YamlValue>>> entries() const;

  // "OBJECT line N: WHAT"
  std::string where() const;
  // "OBJECT line N: WHAT: expected EXPECTED, found FOUND"
  std::unexpected<Error> error(std::string_view expected, std::string_view found) const;
  // The same with the value itself as the finding.
  std::unexpected<Error> error(std::string_view expected) const { return error(expected, shown()); }

 private:
  std::string shown() const;

  const YamlNode* node_;
  std::string_view object_;
  std::string what_;
};

// A map whose keys were checked.
class YamlMap {
 public:
  YamlMap(const YamlNode& node, std::string_view object, std::string what)
      : node_(&node), object_(object), what_(std::move(what)) {}

  std::optional<YamlValue> find(std::string_view key) const;
  Result<YamlValue> require(std::string_view key) const;
  // In the order of the file.
  std::vector<std::string> keys() const;

 private:
  const YamlNode* node_;
  std::string_view object_;
  std::string what_;
};

}  // namespace assay
