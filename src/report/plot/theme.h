// Colours and strokes of all plots, for light and dark.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace assay::plot {

inline constexpr size_t kColours = 10;
inline constexpr size_t kDashes = 4;

// Colours of arms by number, on the paper that they are drawn on. Chosen by a search for the
// largest smallest distance in OKLab, to normal and to colour-blind eyes (Machado et al. 2009); the
// nearer the front, the further apart. theme_test.cc holds their distances and contrasts. An arm's
// colour in the dark isn't a shade of its colour in the light: the legend is beside every figure.
struct Palette {
  std::string_view paper;
  std::array<std::string_view, kColours> arms;
};
extern const Palette kLight;
extern const Palette kDark;

// Rules for a <style> element, of a page or of an .svg file.
const std::string& theme_css();
// "--c0:#3c3c3c;...": for media that are light on every screen, such as paper.
std::string arm_colours(const Palette& palette);

}  // namespace assay::plot
