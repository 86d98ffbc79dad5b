// A name may hold any character, so what follows it is found from the end.
#include "base/process/process_parent.h"

#include <cstdlib>

namespace assay {

std::optional<pid_t> parent_in_stat(const std::string& stat) {
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos || name_end + 4 >= stat.size()) return std::nullopt;
  const char* const begin = stat.c_str() + name_end + 4;
  char* end = nullptr;
  const long parent = std::strtol(begin, &end, 10);
  if (end == begin || parent < 0) return std::nullopt;
  return static_cast<pid_t>(parent);
}

}  // namespace assay
