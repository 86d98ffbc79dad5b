// The way back from an environment's long form to the identity that is its short one.
#pragma once

#include "base/records/json.h"
#include "identity/identity.h"

namespace assay {

// The identity that make_identity() made of the same machine and build; an axis of which the
// environment lacks a part is empty or absent. Bundles are held against it: a change of an axis's
// content is a change of the bundle's schema.
Identity identity_in(const Json& environment);

}  // namespace assay
