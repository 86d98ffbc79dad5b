// Files by path: opened for reading, read, written whole. Errors name the path: bad_input where
// another path would do (no permission, not a folder, read-only), environment_error where none
// would (no space, a failing device).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/files/descriptor.h"
#include "base/result.h"

namespace assay {

// The largest file that is read whole where the caller knows no better bound.
inline constexpr uint64_t kMaxReadBytes = uint64_t{256} << 20;

// Opens a file for reading; every input goes through here. Anything but a regular file is refused
// and not waited for: a pipe would block for ever, and a device may never end.
Result<Descriptor> open_regular(const std::filesystem::path& path);

// A file larger than `max_bytes` is refused before it is read.
Result<std::string> read_file(const std::filesystem::path& path,
                              uint64_t max_bytes = kMaxReadBytes);

// Writes beside the target, then renames: readers see the old content or the new one. A link of
// that name is replaced, not followed.
Status write_file(const std::filesystem::path& path, std::string_view content);

}  // namespace assay
