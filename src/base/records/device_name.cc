// Numbers of GPUs have no sign, no leading zero, and three digits at most.
#include "base/records/device_name.h"

#include <charconv>
#include <string>

#include "base/text/text.h"

namespace assay {

Result<DeviceName> parse_device_name(std::string_view text, std::string_view object) {
  constexpr std::string_view kCuda = "cuda";
  if (text == "cpu") return DeviceName{};
  if (text == kCuda) return DeviceName{0};
  if (text.starts_with("cuda:")) {
    const std::string_view digits = text.substr(kCuda.size() + 1);
    const bool plain = !digits.empty() && digits.size() <= 3 &&
                       digits.find_first_not_of("0123456789") == std::string_view::npos &&
                       (digits.size() == 1 || digits.front() != '0');
    int number = 0;
    if (plain) {
      std::from_chars(digits.data(), digits.data() + digits.size(), number);
      return DeviceName{number};
    }
  }
  return bad_input("{}: expected cpu, cuda or cuda:N, found {}", object,
                   quoted_excerpt(std::string(text)));
}

}  // namespace assay
