// Colours the words that the screen itself has put there: names of arms never end a line of the
// table.
#include "report/screen/colours.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "base/text/text.h"

namespace assay {
namespace {

constexpr std::string_view kGreen = "32";
constexpr std::string_view kYellow = "33";
constexpr std::string_view kRed = "31";
constexpr std::string_view kBold = "1";

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kVerdicts = {
    {{"faster", kGreen},
     {"ahead", kGreen},
     {"equivalent", kGreen},
     {"undecided", kYellow},
     {"no rival", kYellow},
     {"void", kRed},
     {"no arm", kRed}}};

std::string in_colour(std::string_view colour, std::string_view text) {
  return fmt::format("\x1b[{}m{}\x1b[0m", colour, text);
}

// A row of the table ends with its verdict, behind two spaces.
std::string table_line(const std::string& line) {
  for (const auto& [verdict, colour] : kVerdicts) {
    if (!line.ends_with("  " + std::string(verdict))) continue;
    return line.substr(0, line.size() - verdict.size()) + in_colour(colour, verdict);
  }
  return line;
}

}  // namespace

std::string with_colours(const std::string& screen) {
  std::string text;
  bool table = false;
  for (const std::string& line : split(screen, '\n')) {
    if (line.starts_with("-----")) table = true;
    if (line.empty() || line.starts_with("ratio:")) table = false;
    if (!text.empty()) text += "\n";
    if (line == "What voids or weakens this:") {
      text += in_colour(kYellow, line);
    } else if (line == "What changes the choice:") {
      text += in_colour(kBold, line);
    } else {
      text += table ? table_line(line) : line;
    }
  }
  return text;
}

}  // namespace assay
