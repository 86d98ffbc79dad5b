// This program's sources, compiler and flags, as the compiler and the build saw them.
#include "identity/build_info.h"

#include "code_version_generated.h"

namespace assay {

std::optional<std::string> BuildInfo::code() const {
  if (!sha) return std::nullopt;
  return *sha + (dirty.value_or(false) ? "-dirty" : "");
}

BuildInfo build_info() {
  BuildInfo build;
  build.version = ASSAY_VERSION;
#ifdef ASSAY_CODE_SHA
  build.sha = ASSAY_CODE_SHA;
#endif
#ifdef ASSAY_CODE_DIRTY
  build.dirty = ASSAY_CODE_DIRTY;
#endif
#if defined(__clang__)
  build.compiler =
      fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  build.compiler = fmt::format("gcc {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
  build.build_type = ASSAY_BUILD_TYPE;
  build.flags = ASSAY_FLAGS;
  build.flags.erase(0, build.flags.find_first_not_of(' '));
  build.sanitizers = ASSAY_SANITIZE;
#ifdef __OPTIMIZE__
  build.optimized = true;
#endif
  return build;
}

Json build_info_to_json(const BuildInfo& build) {
  Json json;
  json["version"] = build.version;
  if (build.sha) json["code_sha"] = *build.sha;
  if (build.dirty) json["code_dirty"] = *build.dirty;
  json["compiler"] = build.compiler;
  json["build_type"] = build.build_type;
  json["flags"] = build.flags;
  json["optimized"] = build.optimized;
  if (!build.sanitizers.empty()) json["sanitizers"] = build.sanitizers;
  return json;
}

}  // namespace assay
