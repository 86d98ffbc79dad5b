// Fixed parts of printed CPU kernels: types, arguments, and functions without branches.
#pragma once

#include <string_view>

namespace assay::engine {

// The begin of every generated translation unit. Its functions have relative errors of about 1e-7;
// e^x saturates at e^-87 and e^88.
extern const std::string_view kCpuPrelude;

// tile_product<rows>() of a packed weight; needs TILE, INPUTS and `weight_t` before it.
extern const std::string_view kCpuTileProduct;

}  // namespace assay::engine
