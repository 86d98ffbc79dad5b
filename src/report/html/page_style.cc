#include "report/html/page_style.h"

#include "report/plot/theme.h"

namespace assay {
namespace {

// Colours of text, which stands out from the paper more than marks have to.
constexpr std::string_view kLightText = "--link:#0066a8;--good:#00714f;--bad:#b54700";
constexpr std::string_view kDarkText = "--link:#6db9f2;--good:#2fcf9f;--bad:#ff8a3d";

constexpr std::string_view kScreen = R"(*{box-sizing:border-box}
body{margin:0 auto;padding:16px;max-width:1568px;background:var(--paper);color:var(--ink);
font:15px/1.45 system-ui,"Segoe UI","DejaVu Sans",sans-serif;overflow-wrap:anywhere}
h1{font-size:1.5rem;margin:0}h2{font-size:1.25rem;margin:2.2rem 0 .6rem;border-bottom:1px solid var(--grid)}
h3{font-size:1rem;margin:1.1rem 0 .4rem;max-width:100ch}
p,li,figcaption{max-width:100ch}p{margin:.4rem 0}ul{margin:.3rem 0;padding-left:1.2rem}
a{color:var(--link)}code,.hash{font-family:ui-monospace,"DejaVu Sans Mono",monospace;font-size:.85em}
.mute,figcaption{color:var(--mute)}figcaption{font-size:.88rem;margin:.4rem 0}
.alert{border-left:4px solid var(--bad);padding:.3rem .7rem;font-weight:600}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;padding:0;margin:.8rem 0}
figure{margin:1.2rem 0 2rem}.long .panels{content-visibility:auto;contain-intrinsic-size:auto 600px}
.panels{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,340px),1fr));gap:14px 28px}
.panels svg{width:100%;max-width:460px;height:auto;display:block}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.1rem 1.2rem;padding:0;font-size:.88rem}
.legend svg{vertical-align:-1px}
summary{cursor:pointer;font-size:.88rem;padding:.2rem 0}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.85rem}
caption{text-align:left;font-weight:600;padding:.5rem 0 .2rem}
th,td{padding:.18rem .6rem;text-align:right;border-bottom:1px solid var(--grid);white-space:nowrap;vertical-align:top}
th{font-weight:600;color:var(--mute)}
.l1>*>*>:nth-child(1),.l2>*>*>:nth-child(2),.l3>*>*>:nth-child(3),.l4>*>*>:nth-child(4),.l5>*>*>:nth-child(5),
.l6>*>*>:nth-child(6),.l7>*>*>:nth-child(7),.l8>*>*>:nth-child(8),.l9>*>*>:nth-child(9),.l10>*>*>:nth-child(10),
.l11>*>*>:nth-child(11),.l12>*>*>:nth-child(12),.l13>*>*>:nth-child(13),.l14>*>*>:nth-child(14),
.l15>*>*>:nth-child(15),.l16>*>*>:nth-child(16),.l17>*>*>:nth-child(17),.l18>*>*>:nth-child(18),
.l19>*>*>:nth-child(19),.l20>*>*>:nth-child(20){text-align:left}
.scroll{overflow-x:auto;max-width:100%;max-height:34rem;overflow-y:auto;margin:.3rem 0 .8rem}
.choices{font-size:.95rem;margin:.7rem 0}.choices td{white-space:normal;overflow-wrap:anywhere;max-width:18rem}
.choices td:first-child,.choices td[data-label=lead],.choices td[data-label=index]{white-space:nowrap}
.word{padding:.05rem .45rem;border-radius:.7rem;border:1px solid var(--rule);font-weight:600;white-space:nowrap}
.faster,.ahead,.pass,.portable{border-color:var(--good);color:var(--good)}
.void,.no-arm,.FAIL,.not-portable{border-color:var(--bad);color:var(--bad)}
.judged .choices td:first-child{white-space:normal}
section>.prose>.scroll{max-height:none}
.prose td{white-space:normal;overflow-wrap:break-word;max-width:34rem}
.identity td{white-space:normal;overflow-wrap:anywhere}.identity td:first-child{min-width:9rem}
.scroll thead th{position:sticky;top:0;background:var(--paper)}
.points th:first-child,.points td,.points thead th{text-align:left}
.differs td{font-weight:600}
button{font:inherit;font-size:.8rem;margin-left:.6rem}
@media screen and (max-width:760px){
.choices thead{position:absolute;clip-path:inset(50%);width:1px;height:1px;overflow:hidden}
.choices,.choices tbody,.choices tr,.choices td{display:block}
.choices tr{border:1px solid var(--grid);border-radius:6px;padding:.3rem .6rem;margin:.5rem 0}
.choices td{max-width:none;display:flex;flex-wrap:wrap;justify-content:space-between;column-gap:1rem;text-align:right;border:0;padding:.1rem 0}
.choices td::before{content:attr(data-label);color:var(--mute);flex:none}}
)";

// Paper is light, whatever the screen.
constexpr std::string_view kPrint =
    R"(body{max-width:none;padding:0;font-size:10pt}nav,button,.points{display:none}
details::details-content{content-visibility:visible;display:block}
.long .panels{content-visibility:visible}.panels svg,tr,li{break-inside:avoid}h2,h3{break-after:avoid}
.choices{font-size:8.5pt}.choices th,.choices td{padding:.15rem .3rem}
.scroll{overflow:visible;max-height:none}.scroll thead th{position:static}.scroll table{font-size:6.5pt}
.scroll th,.scroll td,.prose td{padding:.1rem .25rem;white-space:normal;overflow-wrap:anywhere}
.panels{grid-template-columns:repeat(2,1fr)}}
)";

}  // namespace

const std::string& page_css() {
  static const std::string kCss = [] {
    std::string css =
        ":root{" + std::string(kLightText) + "}\n@media(prefers-color-scheme:dark){:root{";
    css += std::string(kDarkText) + "}}\n" + std::string(kScreen);
    css += "@media print{\n:root{--paper:#fff;--ink:#000;--mute:#444;--grid:#ddd;--rule:#777;\n";
    css += plot::arm_colours(plot::kLight) + ";" + std::string(kLightText) + "}\n";
    return css + std::string(kPrint);
  }();
  return kCss;
}

std::string_view page_script() {
  return R"(<script>
for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.onclick = async () => {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "copied";
  };
}
</script>
)";
}

}  // namespace assay
