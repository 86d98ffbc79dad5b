// Of commands that take several bundles: that none is named twice.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay {

// bad_input that begins with `command` and names the folder: two of the paths are of one folder, by
// their texts or through links. A bundle that counts twice would look like a second measurement
// that agrees with the first.
Status check_each_once(std::string_view command, std::span<const std::string> folders);

}  // namespace assay
