// From a body that can be lowered to its kernel.
#pragma once

#include <cstddef>
#include <optional>

#include "engine/codegen/kernel.h"
#include "engine/codegen/lower/body.h"

namespace assay::engine {

bool is_cache_write(const Graph& body, ValueId value);

// product_packing() for a body with a product.
Packing suitable_packing(const Graph& body, const BodyFacts& facts, TileLayout layout);

// The kernel, its buffers not bound yet: `parameters` of them, then the outputs that aren't caches.
// bad_input for a packing that doesn't fit.
Result<Kernel> lower_body(const Graph& body, const BodyFacts& facts, size_t parameters,
                          const std::optional<Packing>& packing, const Specialization& dims,
                          TileLayout layout);

}  // namespace assay::engine
