// The folders that CMake was told.
#include "tests/support/places.h"

namespace assay {

std::filesystem::path built(std::string_view name) {
  return std::filesystem::path(ASSAY_BUILD_FOLDER) / name;
}

std::filesystem::path checked_out(std::string_view path) {
  return std::filesystem::path(ASSAY_SOURCE_FOLDER) / path;
}

}  // namespace assay
