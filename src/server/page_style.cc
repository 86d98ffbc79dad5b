#include "server/page.h"

namespace assay::server {

std::string_view page_css() {
  return R"page(:root{--paper:#fff;--ink:#1b1b1b;--mute:#5c5c5c;--grid:#dcdcdc;--line:#0066a8;--bad:#b54700;--field:#f5f5f5}
@media(prefers-color-scheme:dark){
:root{--paper:#141414;--ink:#e6e6e6;--mute:#a6a6a6;--grid:#3a3a3a;--line:#6db9f2;--bad:#ff8a3d;--field:#1f1f1f}}
*{box-sizing:border-box}[hidden]{display:none!important}
body{margin:0 auto;padding:16px;max-width:1100px;background:var(--paper);color:var(--ink);
font:15px/1.45 system-ui,"Segoe UI","DejaVu Sans",sans-serif;overflow-wrap:anywhere}
header{display:flex;flex-wrap:wrap;align-items:baseline;column-gap:1.2rem}
h1{font-size:1.5rem;margin:0}p{margin:.4rem 0}
.mute,#state,figcaption,dt{color:var(--mute)}
dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:.5rem 1.2rem;margin:1rem 0}
dt{font-size:.85rem}dd{margin:0}
.lines{display:grid;grid-template-columns:repeat(auto-fit,minmax(160px,1fr));gap:12px;margin:1rem 0}
figure{margin:0;padding:.5rem .7rem;border:1px solid var(--grid);border-radius:6px;min-width:0}
figcaption{font-size:.85rem}output{display:block;font-variant-numeric:tabular-nums}
svg{display:block;width:100%;height:48px;margin-top:.3rem;border-bottom:1px solid var(--grid)}
polyline{fill:none;stroke:var(--line);stroke-width:1.5;vector-effect:non-scaling-stroke}
label{display:inline-block}form>label{margin-top:.5rem}
.row{display:flex;flex-wrap:wrap;gap:.4rem 1rem;margin:.5rem 0}
textarea,input:not([type=radio]){font:inherit;color:inherit;background:var(--field);border:1px solid var(--grid);
border-radius:4px;padding:.3rem .5rem}
textarea{display:block;width:100%;resize:vertical;font-family:ui-monospace,"DejaVu Sans Mono",monospace;font-size:.9rem}
.parameters{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:.5rem 1.2rem;margin:.5rem 0}
.parameters input{display:block;width:100%}summary{cursor:pointer;margin-top:.5rem}
button{font:inherit;padding:.3rem .9rem;border:1px solid var(--mute);border-radius:4px;background:var(--field);color:inherit;cursor:pointer}
button:disabled{opacity:.5;cursor:default}
#told{min-height:1.45em}#told.bad,#state.bad{color:var(--bad);font-weight:600}
#answers article{border-top:1px solid var(--grid);padding:.6rem 0}
#answers h2{font-size:.85rem;font-weight:600;color:var(--mute);margin:0}
#answers pre{margin:.2rem 0;white-space:pre-wrap;font:inherit}
)page";
}

}  // namespace assay::server
