// YAML text as a plain tree with line numbers, bounded in size and depth, so that a hostile file
// costs no more than an error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay {

struct YamlKey {
  std::string text;
  int line = 0;
};

// One value of the tree.
struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  bool quoted = false;             // a scalar in quotes or a block: text, never a number
  int line = 0;                    // 1-based
  std::string text{};              // of a scalar
  std::vector<YamlKey> keys{};     // of a map, unique
  std::vector<YamlNode> values{};  // of a list; of a map: one for each key
};

inline constexpr size_t kMaxYamlBytes = 1 << 20;
inline constexpr size_t kMaxYamlNodes = 20'000;
inline constexpr size_t kMaxYamlDepth = 16;

// One document of lists, maps with scalar keys, and scalars. Anchors, aliases, tags, keys that
// occur twice and anything past the limits above are errors ("OBJECT line N: ...").
Result<YamlNode> parse_yaml(std::string_view text, std::string_view object);

}  // namespace assay
