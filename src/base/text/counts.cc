// Large numbers by their first digits.
#include "base/text/counts.h"

#include <fmt/format.h>

namespace assay {

std::string format_count(double count) {
  const char* suffix = "";
  for (const char* next : {"k", "M", "G", "T"}) {
    if (count < 1000) break;
    count /= 1000;
    suffix = next;
  }
  return format_significant(count, 3) + suffix;
}

std::string counted_about(double count, std::string_view one) {
  const std::string number = fmt::format("{:.3g}", count);
  return fmt::format("{} {}{}", number, one, number == "1" ? "" : "s");
}

}  // namespace assay
