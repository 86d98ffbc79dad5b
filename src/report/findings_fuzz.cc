// Any bytes as findings.json, and a whole one that somebody changed: refused in one line, or read
// so that it writes the same text again and shows in every form.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "analysis/findings/whole_findings.h"
#include "report/html/page.h"
#include "report/report.h"
#include "report/screen/screen.h"

namespace {

using namespace assay;

void show(const Findings& findings) {
  for (const OutputFormat format :
       {OutputFormat::kTable, OutputFormat::kMarkdown, OutputFormat::kCsv, OutputFormat::kJson}) {
    render_report(findings, format);
  }
  render_screen(findings, "findings.json", ScreenOf::kFindingsFile);
  render_page(findings, figure_groups(findings, nullptr));
}

void read(const Json& json) {
  const auto findings = findings_from_json(json, "fuzz");
  if (!findings) {
    if (findings.error().message.find('\n') != std::string::npos) std::abort();
    return;
  }
  const std::string written = to_json_text(findings_to_json(*findings));
  const auto again = findings_from_json(*parse_json(written, "fuzz"), "fuzz");
  if (!again || to_json_text(findings_to_json(*again)) != written) std::abort();
  show(*findings);
}

// The value at that place below `json`, which counts down on the way; null: there are fewer.
Json* value_at(Json& json, size_t& place) {
  if (place-- == 0) return &json;
  if (!json.is_structured()) return nullptr;
  for (Json& element : json) {
    if (Json* found = value_at(element, place)) return found;
  }
  return nullptr;
}

// Edits of four bytes: a place, and the new content.
Json changed(std::string_view edits) {
  static const Json kWhole = findings_to_json(whole_findings());
  Json json = kWhole;
  for (; edits.size() >= 4; edits.remove_prefix(4)) {
    const auto byte = [&](size_t at) { return static_cast<uint8_t>(edits[at]); };
    size_t place = byte(0) + (byte(1) << 8);
    Json* value = value_at(json, place);
    if (!value) continue;
    const double number = byte(3) - 64;
    switch (byte(2) % 10) {
      case 0:
        *value = Json();
        break;
      case 1:
        *value = Json::array();
        break;
      case 2:
        *value = Json::object();
        break;
      case 3:
        *value = byte(3) % 2 == 0;
        break;
      case 4:
        *value = std::string(byte(3), 'x') + "\n|<";
        break;
      case 5:
        *value = static_cast<int64_t>(number);
        break;
      case 6:
        *value = number / 8;
        break;
      case 7:
        *value = number * 1e300;
        break;
      case 8:
        *value = byte(3) % 2 == 0 ? INT64_MIN : INT64_MAX;
        break;
      case 9:
        if (value->is_array() && !value->empty()) value->push_back(value->at(0));
        break;
    }
  }
  return json;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (!text.starts_with('{')) {
    read(changed(text.substr(0, 400)));
  } else if (const auto json = parse_json(text, "fuzz")) {
    read(*json);
  }
  return 0;
}
