// Folders of the checkout and of the build, for tests. One source knows them, so that the objects
// of all others are the same wherever the checkout lies, and a compiler's cache has them.
#pragma once

#include <filesystem>
#include <string_view>

namespace assay {

// A file of the build folder's top, where programs and the fake libraries are.
std::filesystem::path built(std::string_view name);
// A file of the checkout, by its path from the top.
std::filesystem::path checked_out(std::string_view path);

}  // namespace assay
