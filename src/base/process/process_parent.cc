// A name may hold any character, so what follows it is found from the end.
#include "base/process/process_parent.h"

#include <charconv>

namespace assay {

std::optional<pid_t> parent_in_stat(std::string_view stat) {
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos || name_end + 4 >= stat.size()) return std::nullopt;
  pid_t parent = -1;
  std::from_chars(stat.data() + name_end + 4, stat.data() + stat.size(), parent);
  return parent < 0 ? std::nullopt : std::optional(parent);
}

}  // namespace assay
