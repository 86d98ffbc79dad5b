#include "report/plot/theme.h"

#include <fmt/format.h>

namespace assay::plot {

constexpr Palette kLight{"#ffffff",
                         {"#3c3c3c", "#3497fc", "#d2770f", "#037668", "#1709c6", "#6e3082",
                          "#7f9483", "#a03e07", "#7b21fe", "#aa4fb5"}};
constexpr Palette kDark{"#141414",
                        {"#d8d8d8", "#3a88fe", "#e78306", "#6cd585", "#97fe47", "#c73cb5",
                         "#90a28f", "#de3800", "#956b68", "#f89dff"}};

namespace {

// k, kg and kb: text in a tinted field; b, b2 and b3: bars, and shapes under other marks; f:
// filled; h: hollow; l: lines; o: around a mark; x: a cross; r: rules that values are held against;
// p: only for pointers; g: grid; i: intervals; s and q: small marks, stroked and filled; u: makes a
// stroked one hollow; c and e: text about its middle, and up to its end.
constexpr std::string_view kRules =
    R"(.plot{fill:var(--ink);font:11px system-ui,"Segoe UI","DejaVu Sans",sans-serif}
.plot text{paint-order:stroke;stroke:var(--paper);stroke-width:3px;stroke-linejoin:round}
.plot .t{font-weight:600}
.plot .m{fill:var(--mute)}
.plot .n{font-size:10px;fill:var(--mute)}
.plot .v{font-size:10px}
.plot .k{stroke:none}.plot .kg{fill:var(--paper)}.plot .kb{fill:#141414}
.f{fill:currentColor;stroke:none}
.h{fill:var(--paper);stroke:currentColor;stroke-width:1.4}
.l{fill:none;stroke:currentColor;stroke-width:1.6}
.d1{stroke-dasharray:6 2}.d2{stroke-dasharray:2 2}.d3{stroke-dasharray:8 2 2 2}
.i{fill:none;stroke:currentColor;stroke-width:1.4}
.b{fill:currentColor;stroke:none;opacity:.55}
.b2{fill:currentColor;stroke:none;opacity:.28}
.b3{fill:none;stroke:currentColor;stroke-width:1}
.o{fill:none;stroke:var(--ink);stroke-width:1;pointer-events:all}
.x{fill:none;stroke:currentColor;stroke-width:1.6}
.p{fill:none;stroke:none;pointer-events:all}
.g{fill:none;stroke:var(--grid);stroke-width:1}
.r{fill:none;stroke:var(--ink);stroke-width:1}
.s{fill:none;stroke:currentColor;stroke-width:2.2;stroke-linecap:round;opacity:.75}
.c{text-anchor:middle}.e{text-anchor:end}
.q{fill:currentColor;stroke:none;opacity:.75}
.q.h{fill:var(--paper);stroke:currentColor;stroke-width:1}
.u{fill:none;stroke:var(--paper);stroke-width:1;stroke-linecap:round}
)";

}  // namespace

std::string arm_colours(const Palette& palette) {
  std::string css;
  for (size_t i = 0; i < kColours; ++i) {
    css += fmt::format("{}--c{}:{}", i == 0 ? "" : ";", i, palette.arms[i]);
  }
  return css;
}

const std::string& theme_css() {
  static const std::string kCss = [] {
    std::string css = fmt::format(
        ":root{{--paper:{};--ink:#1b1b1b;--mute:#5a5a5a;--grid:#e3e3e3;--rule:#8a8a8a;\n{}}}\n"
        "@media(prefers-color-scheme:dark){{:root{{--paper:{};--ink:#ececec;--mute:#a8a8a8;"
        "--grid:#333;--rule:#8f8f8f;\n{}}}}}\n",
        kLight.paper, arm_colours(kLight), kDark.paper, arm_colours(kDark));
    for (size_t i = 0; i < kColours; ++i) css += fmt::format(".a{0}{{color:var(--c{0})}}", i);
    return css + "\n" + std::string(kRules);
  }();
  return kCss;
}

}  // namespace assay::plot
