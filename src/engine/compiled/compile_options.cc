// Names of the options' values.
#include "engine/compiled/compile_options.h"

namespace assay::engine {

bool verify_passes_by_default() {
#ifdef NDEBUG
  return false;
#else
  return true;
#endif
}

std::optional<Dynamic> parse_dynamic(std::string_view name) {
  if (name == "false") return Dynamic::kFalse;
  if (name == "true") return Dynamic::kTrue;
  if (name == "auto") return Dynamic::kAuto;
  return std::nullopt;
}

}  // namespace assay::engine
