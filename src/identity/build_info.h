// The sources, the compiler and the flags that this program was built from.
#pragma once

#include <optional>
#include <string>

#include "base/records/json.h"

namespace assay {

struct BuildInfo {
  std::string version;             // of assay
  std::optional<std::string> sha;  // commit; absent when not built from git and not given
  std::optional<bool> dirty;       // the code differed from that commit; absent when not known
  std::string compiler;            // "gcc 12.2.0"
  std::string build_type;          // "Release"
  std::string flags;
  std::string sanitizers;  // "address,undefined"; empty: none
  bool optimized = false;

  // The commit, with "-dirty" if the code differed from it; absent where the commit is.
  std::optional<std::string> code() const;
};

BuildInfo build_info();
Json build_info_to_json(const BuildInfo& build);

}  // namespace assay
