// YAML events into a tree. yaml-cpp's own nodes aren't used: they take a repeated key without a
// word, and an alias in them can stand for exponentially many values.
#include "study/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <sstream>
#include <utility>

#include "base/text/text.h"

namespace assay {
namespace {

int line_of(const YAML::Mark& mark, int fallback) {
  return mark.line < 0 ? fallback : mark.line + 1;
}

// Keeps the first fault and ignores everything behind it: throwing through the parser would leave
// its state to chance.
class TreeBuilder final : public YAML::EventHandler {
 public:
  struct Problem {
    int line;
    std::string message;
  };

  const std::optional<Problem>& problem() const { return problem_; }
  YamlNode take_root() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) fail(line_of(mark, 1), "expected one document, found a second one");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (!accepts(mark, anchor, "")) return;
    // The parser gives the place of the next token, which may be lines further down.
    const bool of_key = !open_.empty() && !open_.back().keys.empty() && !expects_key();
    add({.line = of_key ? open_.back().keys.back().line : line_of(mark, last_line_)});
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    fail(line_of(mark, last_line_), "expected values written out, found an alias");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    if (!accepts(mark, anchor, tag)) return;
    const int line = line_of(mark, last_line_);
    if (expects_key()) return add_key(value, line);
    add({.kind = YamlNode::Kind::kScalar, .quoted = tag == "!", .line = line, .text = value});
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::kList, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  void fail(int line, std::string message) {
    if (!problem_) problem_ = {line, std::move(message)};
  }

  bool expects_key() const {
    return !open_.empty() && open_.back().kind == YamlNode::Kind::kMap &&
           open_.back().keys.size() == open_.back().values.size();
  }

  bool accepts(const YAML::Mark& mark, YAML::anchor_t anchor, const std::string& tag) {
    if (problem_) return false;
    const int line = line_of(mark, last_line_);
    last_line_ = line;
    if (anchor != 0) fail(line, "expected values written out, found an anchor");
    // "?" stands for a plain scalar or collection, "!" for a scalar in quotes.
    if (!tag.empty() && tag != "?" && tag != "!") {
      fail(line, "expected values without tags, found the tag " + quoted_excerpt(tag));
    }
    if (++nodes_ > kMaxYamlNodes) {
      fail(line, fmt::format("expected at most {} values, found more", kMaxYamlNodes));
    }
    return !problem_;
  }

  void add_key(const std::string& key, int line) {
    YamlNode& map = open_.back();
    const auto twin = std::ranges::find(map.keys, key, &YamlKey::text);
    if (twin != map.keys.end()) {
      return fail(line, fmt::format("expected each key once, found {} again (first on line {})",
                                    quoted_excerpt(key), twin->line));
    }
    // Every key is one of a few dozen that the schema knows; more is an attack on this search.
    if (map.keys.size() == kMaxKeys) {
      return fail(line, fmt::format("expected at most {} keys in a map, found more", kMaxKeys));
    }
    map.keys.push_back({key, line});
  }

  void add(YamlNode node) {
    if (expects_key()) return fail(node.line, "expected a word as key, found another kind");
    if (open_.empty()) {
      root_ = std::move(node);
    } else {
      open_.back().values.push_back(std::move(node));
    }
  }

  void open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    if (!accepts(mark, anchor, tag)) return;
    const int line = line_of(mark, last_line_);
    if (expects_key()) return fail(line, "expected a word as key, found a list or map");
    if (open_.size() == kMaxYamlDepth) {
      return fail(line,
                  fmt::format("expected values nested at most {} deep, found more", kMaxYamlDepth));
    }
    open_.push_back({.kind = kind, .line = line});
  }

  void close() {
    if (problem_) return;
    YamlNode node = std::move(open_.back());
    open_.pop_back();
    add(std::move(node));
  }

  static constexpr size_t kMaxKeys = 64;
  YamlNode root_;
  std::vector<YamlNode> open_;  // from the root down
  std::optional<Problem> problem_;
  size_t nodes_ = 0;
  int documents_ = 0;
  int last_line_ = 1;
};

std::string lower_first(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

}  // namespace

Result<YamlNode> parse_yaml(std::string_view text, std::string_view object) {
  if (text.size() > kMaxYamlBytes) {
    return bad_input("{}: expected at most {} bytes, found {}", object, kMaxYamlBytes, text.size());
  }
  TreeBuilder builder;
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (!builder.problem() && parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    if (!builder.problem()) {
      return bad_input("{} line {}: expected YAML, found: {}", object, line_of(error.mark, 1),
                       lower_first(excerpt(error.msg)));
    }
  } catch (const std::exception& error) {
    return bad_input("{}: expected YAML, found: {}", object, excerpt(error.what()));
  }
  if (builder.problem()) {
    return bad_input("{} line {}: {}", object, builder.problem()->line, builder.problem()->message);
  }
  return builder.take_root();
}

}  // namespace assay
