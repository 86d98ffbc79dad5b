// Colours and strokes of all plots, for light and dark: those of Okabe and Ito, which colour-blind
// readers tell apart, lightened for dark grounds.
#pragma once

#include <cstddef>
#include <string_view>

namespace assay::plot {

inline constexpr size_t kColours = 7;
inline constexpr size_t kDashes = 4;

// Rules for a <style> element, of a page or of an .svg file.
std::string_view theme_css();

}  // namespace assay::plot
