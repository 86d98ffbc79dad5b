// JSON text piece by piece, as nlohmann's serializer lays it out.
#include "base/records/record_text.h"

#include <algorithm>
#include <charconv>

namespace assay {
namespace {

// Characters that stand for themselves between quotation marks.
bool is_plain(char c) {
  return c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
}

template <typename N>
void append_integer(N value, std::string& text) {
  char digits[24];
  const auto [end, error] = std::to_chars(std::begin(digits), std::end(digits), value);
  if (error == std::errc()) text.append(digits, end);
}

}  // namespace

void JsonText::begin(char first, char last) {
  text_ += first;
  open_.push_back({last});
}

void JsonText::new_line() {
  if (!indented_) return;
  text_ += '\n';
  text_.append(2 * open_.size(), ' ');
}

void JsonText::end() {
  const Open ended = open_.back();
  open_.pop_back();
  if (!ended.empty) new_line();
  text_ += ended.end;
}

void JsonText::member(std::string_view name) {
  Open& in = open_.back();
  if (!in.empty) text_ += ',';
  in.empty = false;
  new_line();
  if (in.end == ']') return;
  quoted(name);
  text_ += indented_ ? ": " : ":";
}

void JsonText::number(double value) {
  if (!std::isfinite(value)) return null();
  // The serializer's own function: the digits of the standard's differ in one of some thousands.
  char digits[64];
  text_.append(digits, nlohmann::detail::to_chars(std::begin(digits), std::end(digits), value));
}

void JsonText::number(int64_t value) {
  append_integer(value, text_);
}

void JsonText::number(uint64_t value) {
  append_integer(value, text_);
}

void JsonText::quoted(std::string_view value) {
  if (!std::ranges::all_of(value, is_plain)) {
    text_ += to_json_line(Json(value));
    return;
  }
  text_ += '"';
  text_ += value;
  text_ += '"';
}

void JsonText::tree(const Json& value) {
  if (!value.is_structured()) {
    text_ += to_json_line(value);
    return;
  }
  value.is_object() ? begin_object() : begin_array();
  members_of(value);
  end();
}

void JsonText::members_of(const Json& container) {
  for (auto at = container.begin(); at != container.end(); ++at) {
    member(container.is_object() ? std::string_view(at.key()) : "");
    tree(*at);
  }
}

}  // namespace assay
