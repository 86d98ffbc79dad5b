// Reading with bounds.
#include "import/source_text.h"

#include "base/files.h"
#include "base/text.h"

namespace assay {
namespace {

// Counts what the parser meets, and drops everything once that is too much.
class JsonBudget {
 public:
  Result<Json> parse(std::string_view text, std::string_view object) {
    members_.clear();
    ASSAY_TRY(Json json,
              parse_json(text, object, [this](int depth, Json::parse_event_t event, Json&) {
                return keep(depth, event);
              }));
    if (values_ > kMostJsonValues) {
      return bad_input("{}: expected at most {} JSON values, found more", object, kMostJsonValues);
    }
    if (too_many_members_) {
      return bad_input("{}: expected JSON objects of at most {} members, found more", object,
                       kMostJsonMembers);
    }
    return json;
  }

 private:
  bool keep(int depth, Json::parse_event_t event) {
    using Event = Json::parse_event_t;
    const auto level = static_cast<size_t>(depth);
    if (event == Event::key) {
      if (members_.size() <= level) members_.resize(level + 1);
      if (++members_[level] > kMostJsonMembers) too_many_members_ = true;
    } else if (event == Event::object_start) {
      if (members_.size() > level + 1) members_[level + 1] = 0;
      ++values_;
    } else if (event == Event::array_start || event == Event::value) {
      ++values_;
    }
    return values_ <= kMostJsonValues && !too_many_members_;
  }

  int64_t values_ = 0;            // of all documents
  std::vector<int64_t> members_;  // of the open object of each depth
  bool too_many_members_ = false;
};

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
  JsonBudget budget;
  std::string_view rest = source.text;
  for (int64_t number = 1; !rest.empty(); ++number) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (blank(line)) continue;
    ASSAY_TRY(Json document, budget.parse(line, fmt::format("{} line {}", source.path, number)));
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
  const size_t first = source.text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) {
    return bad_input("{}: expected results, found an empty file", source.path);
  }
  if (source.text[first] != '{' && source.text[first] != '[') return source;
  source.lines = begins_with_a_document(std::string_view(source.text).substr(first));
  if (source.lines) {
    ASSAY_CHECK(parse_lines(source));
  } else {
    ASSAY_TRY(Json document, JsonBudget().parse(source.text, source.path));
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
