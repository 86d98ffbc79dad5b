// Folders for files that the program would otherwise make again.
#pragma once

#include <filesystem>
#include <string>

namespace assay {

// $VARIABLE if that is set, else assay/NAME in the user's cache folder ($XDG_CACHE_HOME, else
// ~/.cache). Empty: the user has none. Makes nothing.
std::filesystem::path cache_folder(const char* variable, const std::string& name);

}  // namespace assay
