// The way back from an environment's long form to the identity that is its short one.
#pragma once

#include "base/json.h"
#include "identity/identity.h"

namespace assay {

// As make_identity() made it of the same machine and build; an axis that the environment lacks a
// part of is empty or absent. Bundles are held against it: a change of what stands in an axis is
// one of the bundle's schema.
Identity identity_in(const Json& environment);

}  // namespace assay
