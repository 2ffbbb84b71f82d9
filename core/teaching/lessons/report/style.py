"""How a report looks: on a telephone, on a large screen, in light and dark, and on paper, where it is black on white."""

from core.figures.predicted import style_within

LIGHT = "color-scheme:light;--ink:#101418;--soft:#525a64;--line:#d3d9e0;--paper:#fff;--tint:#f2f5f8;--good:#00664a;--other:#8a4600;--open:#00558f"
DARK = "color-scheme:dark;--ink:#e8ecf0;--soft:#a9b2bc;--line:#39424c;--paper:#11151a;--tint:#1c232b;--good:#5fd0ab;--other:#f0b36a;--open:#7cc4f5"
PAGE = """
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;overflow-wrap:anywhere}
main{max-width:46rem;margin:0 auto;padding:2.5rem 1.25rem 4rem}
h1{font-size:2rem;line-height:1.2;margin:0 0 .25rem} h2{font-size:1.35rem;line-height:1.3;margin:0 0 .5rem} h3{font-size:1rem;margin:1.25rem 0 .25rem}
p{margin:.5rem 0} .of,.note,.small,figcaption,dt{color:var(--soft)} .of,.small,figcaption{font-size:.9rem}
.author{font-size:1.2rem;margin:.25rem 0} .question{font-size:1.05rem}
section{border-top:1px solid var(--line);margin-top:2.25rem;padding-top:1.75rem}
dl{display:grid;grid-template-columns:8.5rem 1fr;gap:.35rem 1rem;margin:1rem 0} dt,dd{margin:0}
.verdict{font-weight:600;margin:1rem 0 .5rem;padding:.1rem 0 .1rem .7rem;border-left:4px solid}
.as_predicted{color:var(--good)} .not_as_predicted{color:var(--other)} .undecided{color:var(--open)}
.counts{list-style:none;display:flex;flex-wrap:wrap;gap:.25rem 1.5rem;margin:1rem 0 0;padding:0;font-weight:600}
figure{margin:1.25rem 0} figcaption{margin-bottom:.4rem} .picture svg{display:block;width:100%;max-width:36rem;height:auto}
.typed{white-space:pre-wrap}
pre,code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.85rem}
pre{background:var(--tint);border:1px solid var(--line);border-radius:6px;padding:.9rem 1rem;white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.45}
.links{list-style:none;margin:.75rem 0;padding:0} .links li{margin:.4rem 0}
.table{overflow-x:auto} table{overflow-wrap:break-word;border-collapse:collapse;width:100%;font-size:.85rem;margin:.75rem 0}
th,td{text-align:left;vertical-align:top;padding:.4rem .7rem .4rem 0;border-bottom:1px solid var(--line)}
th{font-weight:600} td.figure,th.figure{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
tbody th{padding-top:1rem} th:last-child,td:last-child{padding-right:0} td code{display:block;color:var(--soft);font-size:.75rem}
"""
NARROW = """
body{font-size:15px} main{padding:1.5rem 1rem 3rem} h1{font-size:1.7rem} dl{grid-template-columns:1fr;gap:0} dd{margin-bottom:.5rem}
table,tbody,tr,td,tbody th{display:block} thead{display:none} table{overflow-wrap:anywhere} td{border:0;padding:.1rem 0} tr{border-bottom:1px solid var(--line);padding:.5rem 0}
tbody th{border:0;padding:.5rem 0 0} td.figure{display:flex;justify-content:space-between;text-align:right} td[data-of]::before{content:attr(data-of);color:var(--soft)}
.picture text{font-size:14px} .picture .figure,.picture .small{font-size:13px}
"""
PRINT = """
body{font-size:10.5pt} main{max-width:none;padding:0} section{margin-top:1.25rem;padding-top:1rem} pre{white-space:pre-wrap;overflow:visible}
h2,h3,.verdict{break-after:avoid} figure,dl,tr,.links li{break-inside:avoid} .picture svg{max-width:28rem} p{orphans:3;widows:3}
thead{display:table-header-group} .table{overflow:visible} table{font-size:8.5pt} td code{font-size:7.5pt} th,td{padding:.25rem .6rem .25rem 0}
"""
STYLE = (
    f":root{{{LIGHT}}}@media (prefers-color-scheme:dark){{:root{{{DARK}}}}}{PAGE}"
    + style_within(".picture")
    + f"@media screen and (max-width:40rem){{{NARROW}}}@media print{{:root{{{LIGHT};--ink:#000;--soft:#333}}{PRINT}}}"
)
