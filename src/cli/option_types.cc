// Validators of options' values.
#include "cli/option_types.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/records/device_name.h"
#include "base/text/text.h"

namespace assay::cli {
namespace {

// Mark before the words in the name of a validator, which isn't shown.
const std::string kWords = "words:";

// The whole text as a number, or nothing.
template <typename Number>
std::optional<Number> parse_whole(const std::string& text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

// A validator's answer: empty if all is well, else the end of the error's line.
std::string answer(bool good, const std::string& expected, const std::string& found) {
  return good ? "" : fmt::format("expected {}, found {}", expected, quoted_excerpt(found));
}

}  // namespace

CLI::Validator count_between(int64_t least, int64_t most) {
  return {[=](std::string& text) {
            const auto value = parse_whole<int64_t>(text);
            return answer(value && *value >= least && *value <= most,
                          fmt::format("an integer from {} to {}", least, most), text);
          },
          fmt::format("{}..{}", least, most)};
}

CLI::Validator number_between(double least, double most) {
  return {[=](std::string& text) {
            const auto value = parse_whole<double>(text);
            const bool good = value && std::isfinite(*value) && *value >= least && *value <= most;
            return answer(good, fmt::format("a number from {} to {}", least, most), text);
          },
          fmt::format("{}..{}", least, most)};
}

CLI::Validator share_between(double least, double most) {
  return {[=](std::string& text) {
            std::string number = text;
            const bool percent = number.ends_with('%');
            if (percent) number.pop_back();
            while (percent && number.ends_with(' ')) number.pop_back();
            const auto value = parse_whole<double>(number);
            const double share = value ? *value / (percent ? 100 : 1) : NAN;
            if (!(share >= least && share <= most)) {
              return answer(false,
                            fmt::format("a share such as 2% or 0.02, from {} to {}", least, most),
                            text);
            }
            text = fmt::format("{}", share);
            return std::string();
          },
          ""};
}

CLI::Validator seed_number() {
  return {[](std::string& text) {
            return answer(parse_whole<uint64_t>(text).has_value(),
                          fmt::format("an integer from 0 to {}", UINT64_MAX), text);
          },
          ""};
}

CLI::Validator word_of(std::vector<std::string> words) {
  const std::string listed = join(words, ", ");
  const std::string name = kWords + join(words, ",");
  return {[words = std::move(words), listed](std::string& text) {
            const bool known = std::ranges::find(words, text) != words.end();
            return answer(known, "one of " + listed, text) +
                   (known ? "" : nearest_hint(text, words));
          },
          "", name};
}

CLI::Validator known_words(const std::vector<std::string>& words) {
  return {[](std::string&) { return std::string(); }, "", kWords + join(words, ",")};
}

std::vector<std::string> words_taken(CLI::Option& option) {
  try {
    for (int i = 0;; ++i) {
      const std::string& name = option.get_validator(i)->get_name();
      if (name.starts_with(kWords)) return split(name.substr(kWords.size()), ',');
    }
  } catch (const CLI::OptionNotFound&) {
    return {};  // behind the last one
  }
}

CLI::Validator folder_path() {
  return CLI::Validator(
      [](std::string& text) {
        return text.empty() ? std::string("expected a folder, found \"\"") : std::string();
      },
      "");
}

CLI::Validator device_word() {
  return {[](std::string& text) {
            return answer(parse_device_name(text, "").has_value(), "cpu, cuda or cuda:N", text);
          },
          ""};
}

Status refuse_given(const std::vector<const CLI::Option*>& options, const std::string& expected,
                    const std::string& found) {
  for (const CLI::Option* option : options) {
    if (option->count() == 0) continue;
    return bad_input("{}: expected {} with it, found {}", option->get_name(), expected, found);
  }
  return {};
}

}  // namespace assay::cli
