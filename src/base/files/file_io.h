// Helpers of the sources that read and write files: whole reads and writes by descriptor, and the
// errors' words.
#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay {

// The error for errno, or a given one. environment_error if the machine, not the path, is at fault.
std::unexpected<Error> unreadable(const std::filesystem::path& path, int error = errno);
std::unexpected<Error> unwritable(const std::filesystem::path& path, int error = errno);

// "a symbolic link", "a folder", "a pipe": the finding in an error.
std::string_view file_kind(mode_t mode);

// bad_input unless the descriptor is of a regular file; `path` names it.
Status require_regular(int fd, const std::filesystem::path& path);

// The file from its start to its end, if that is at most `max_bytes`.
Result<std::string> read_whole(int fd, uint64_t max_bytes, const std::filesystem::path& path);

Status write_all(int fd, std::string_view bytes, const std::filesystem::path& path);

}  // namespace assay
