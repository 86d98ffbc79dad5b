#include "backend/hashed_file.h"

#include "base/files/hash.h"

namespace assay {

Json hashed_file(const std::filesystem::path& path) {
  Json json = {{"path", path.string()}};
  const auto hash = sha256_file_hex(path);
  json["sha256"] = hash ? Json(*hash) : Json(nullptr);
  return json;
}

}  // namespace assay
