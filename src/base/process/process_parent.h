// The process that started another one, as the kernel tells.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string_view>

namespace assay {

// The number behind a process's name and state in the text of /proc/N/stat. Absent: no such text.
std::optional<pid_t> parent_in_stat(std::string_view stat);

}  // namespace assay
