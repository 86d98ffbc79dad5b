#include "report/plot/theme.h"

namespace assay::plot {

// b: bars and what is under other marks; f: filled; l: lines; o: around a mark; x: a cross; r:
// rules that values are held against; p: only for pointers; g: grid; i: intervals; s and q: small
// marks, stroked and filled; c and e: text about its middle, and up to its end.
std::string_view theme_css() {
  return R"(:root{--paper:#fff;--ink:#1b1b1b;--mute:#5a5a5a;--grid:#e3e3e3;--rule:#8a8a8a;
--c0:#3c3c3c;--c1:#0072b2;--c2:#d55e00;--c3:#007a58;--c4:#b05a8a;--c5:#2b94d1;--c6:#b97900}
@media(prefers-color-scheme:dark){:root{--paper:#141414;--ink:#ececec;--mute:#a8a8a8;--grid:#333;--rule:#8f8f8f;
--c0:#d8d8d8;--c1:#4aa8e8;--c2:#ff8a3d;--c3:#2fcf9f;--c4:#e79cc6;--c5:#9ad6f8;--c6:#f5c04a}}
.plot{fill:var(--ink);font:11px system-ui,"Segoe UI","DejaVu Sans",sans-serif}
.plot text{paint-order:stroke;stroke:var(--paper);stroke-width:3px;stroke-linejoin:round}
.plot .t{font-weight:600}
.plot .m{fill:var(--mute)}
.plot .n{font-size:10px;fill:var(--mute)}
.plot .v{font-size:10px}
.a0{color:var(--c0)}.a1{color:var(--c1)}.a2{color:var(--c2)}.a3{color:var(--c3)}
.a4{color:var(--c4)}.a5{color:var(--c5)}.a6{color:var(--c6)}
.f{fill:currentColor;stroke:none}
.l{fill:none;stroke:currentColor;stroke-width:1.6}
.d1{stroke-dasharray:6 2}.d2{stroke-dasharray:2 2}.d3{stroke-dasharray:8 2 2 2}
.i{fill:none;stroke:currentColor;stroke-width:1.4}
.b{fill:currentColor;stroke:none;opacity:.55}
.b2{fill:currentColor;stroke:none;opacity:.28}
.o{fill:none;stroke:var(--ink);stroke-width:1;pointer-events:all}
.x{fill:none;stroke:currentColor;stroke-width:1.6}
.p{fill:none;stroke:none;pointer-events:all}
.g{fill:none;stroke:var(--grid);stroke-width:1}
.r{fill:none;stroke:var(--rule);stroke-width:1;stroke-dasharray:4 3}
.s{fill:none;stroke:currentColor;stroke-width:2.2;stroke-linecap:round;opacity:.75}
.c{text-anchor:middle}.e{text-anchor:end}
.q{fill:currentColor;stroke:none;opacity:.75}
)";
}

}  // namespace assay::plot
