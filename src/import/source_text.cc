// Reading with bounds.
#include "import/source_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/files/files.h"
#include "base/text/text.h"

namespace assay {
namespace {

// A text that is JSON but for the words that Python's json module writes for numbers that are none,
// with null in their place; empty where there are none.
std::string without_python_words(std::string_view text) {
  static constexpr std::array<std::string_view, 3> kWords = {"NaN", "-Infinity", "Infinity"};
  std::string plain;
  if (std::ranges::none_of(kWords, [&](std::string_view each) {
        return text.find(each) != std::string_view::npos;
      })) {
    return plain;
  }
  bool found = false;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool begins = text[i] == 'N' || text[i] == 'I' || text[i] == '-';
    const auto word = in_string || !begins
                          ? kWords.end()
                          : std::ranges::find_if(kWords, [&](std::string_view each) {
                              return text.substr(i).starts_with(each);
                            });
    if (word != kWords.end()) {
      plain += "null";
      found = true;
      i += word->size() - 1;
      continue;
    }
    plain += text[i];
    if (text[i] == '"') in_string = !in_string;
    if (in_string && text[i] == '\\' && i + 1 < text.size()) plain += text[++i];
  }
  return found ? plain : "";
}

// Documents of one file, within the bounds on all of them together: the parser's values are
// counted, and everything is dropped once they are too many.
class JsonDocuments {
 public:
  Result<Json> parse(std::string_view text, std::string_view object) {
    const int64_t before = values_;
    auto json = parse_plain(text, object);
    if (json || dropped_) return json;
    const std::string plain = without_python_words(text);
    if (plain.empty()) return json;
    values_ = before;
    return parse_plain(plain, object);
  }

 private:
  Result<Json> parse_plain(std::string_view text, std::string_view object) {
    auto json = parse_json(text, object, [this](int depth, Json::parse_event_t event, Json&) {
      dropped_ = dropped_ || !keep(static_cast<size_t>(depth), event);
      return !dropped_;
    });
    if (!dropped_) return json;
    if (values_ > kMostJsonValues) {
      return bad_input("{}: expected at most {} JSON values, found more", object, kMostJsonValues);
    }
    return bad_input("{}: expected JSON objects of at most {} members, found more", object,
                     kMostJsonMembers);
  }

  bool keep(size_t depth, Json::parse_event_t event) {
    using Event = Json::parse_event_t;
    if (members_.size() <= depth + 1) members_.resize(depth + 2);
    if (event == Event::key) return ++members_[depth] <= kMostJsonMembers;
    if (event == Event::object_start) members_[depth + 1] = 0;
    return ++values_ <= kMostJsonValues;
  }

  int64_t values_ = 0;            // of all documents
  std::vector<int64_t> members_;  // of the open object of each depth
  bool dropped_ = false;
};

// The name of a packed file's format, by its first bytes; empty: it isn't one that is known.
std::string_view packed_format(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kMarks = {
      {{"\x1F\x8B", "gzip"},
       {"PK\x03\x04", "zip"},
       {"\x28\xB5\x2F\xFD", "zstd"},
       {"\xFD"
        "7zXZ",
        "xz"}}};
  for (const auto& [mark, name] : kMarks) {
    if (text.starts_with(mark)) return name;
  }
  return "";
}

bool blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

// A line that is an object from its first byte to its last, and isn't the only one.
bool begins_with_a_document(std::string_view text) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos || blank(text.substr(end))) return false;
  std::string_view line = text.substr(0, end);
  while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
  return line.starts_with('{') && line.ends_with('}') && line.size() > 2;
}

Status parse_lines(SourceText& source) {
  JsonDocuments documents;
  std::string_view rest = source.text;
  for (int64_t number = 1; !rest.empty(); ++number) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (blank(line)) continue;
    ASSAY_TRY(Json document, documents.parse(line, fmt::format("{} line {}", source.path, number)));
    source.documents.push_back(std::move(document));
  }
  return {};
}

}  // namespace

Result<SourceText> parse_source(std::string text, std::string path) {
  SourceText source{.path = std::move(path),
                    .digest = {text.size(), sha256_hex(text)},
                    .text = std::move(text),
                    .documents = {}};
  if (source.text.starts_with("\xEF\xBB\xBF")) source.text.erase(0, 3);  // a byte order mark
  for (const char* mark : {"\xFF\xFE", "\xFE\xFF"}) {
    if (!source.text.starts_with(mark)) continue;
    return bad_input("{}: expected UTF-8, found UTF-16 (a spreadsheet's \"Unicode text\")",
                     source.path);
  }
  if (const std::string_view packed = packed_format(source.text); !packed.empty()) {
    return bad_input("{}: expected text, found a packed file ({}), which has to be unpacked first",
                     source.path, packed);
  }
  const size_t first = source.text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) {
    return bad_input("{}: expected results, found an empty file", source.path);
  }
  if (source.text[first] != '{' && source.text[first] != '[') return source;
  source.lines = begins_with_a_document(std::string_view(source.text).substr(first));
  if (source.lines) {
    ASSAY_CHECK(parse_lines(source));
  } else {
    ASSAY_TRY(Json document, JsonDocuments().parse(source.text, source.path));
    source.documents.push_back(std::move(document));
  }
  source.text.clear();
  source.text.shrink_to_fit();
  return source;
}

Result<SourceText> read_source(const std::filesystem::path& path) {
  ASSAY_TRY(std::string text, read_file(path, kMostSourceBytes));
  return parse_source(std::move(text), path.string());
}

std::unexpected<Error> unexpected_json(const SourceText& source, std::string_view what,
                                       std::string_view where, const Json& found) {
  return bad_input("{}: expected {} at {}, found {}", source.path, what, where,
                   found.is_null() ? "nothing" : excerpt(to_json_line(found)));
}

}  // namespace assay
