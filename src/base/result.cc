// Errors: the one function that needs no template.
#include "base/result.h"

namespace assay {

std::unexpected<Error> with_context(std::string_view context, const Error& error) {
  return std::unexpected(Error{error.kind, fmt::format("{}: {}", context, error.message)});
}

}  // namespace assay
