// How does a page look? Front door: page_style.
#include "cli/page/page_assets.hpp"

namespace zeroplan {

std::string_view page_style() {
  return R"css(:root {
  --back: #fcfcfb; --card: #ffffff; --text: #1c1d1f; --soft: #55585e; --line: #dcdee2;
  --good: #0b6b4f; --good-back: #dff2ea; --near: #7a5200; --near-back: #fdf0d0;
  --bad: #a33c00; --bad-back: #fde5d8; --none-back: #ececef; --link: #0062a3;
  --capacity: #1c1d1f; --context: #4d5159;
  --heat-0: #8fc7ea; --heat-1: #b5daf1; --heat-2: #d5eaf7; --heat-3: #ebf5fb;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #131417; --card: #1b1d21; --text: #eceef1; --soft: #adb2ba; --line: #363a41;
    --good: #7fd9b6; --good-back: #10392c; --near: #f3c969; --near-back: #3d2f0a;
    --bad: #ffa67a; --bad-back: #47200c; --none-back: #2a2d33; --link: #7cc4f5;
    --capacity: #ffffff; --context: #6f7580;
    --heat-0: #1a6aa3; --heat-1: #17557f; --heat-2: #16415d; --heat-3: #182f41;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; padding: 24px 24px 48px; max-width: 1136px; background: var(--back);
  color: var(--text); font: 16px/1.5 system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif; }
h1 { margin: 0 0 8px; font-size: 28px; line-height: 1.2; overflow-wrap: anywhere; }
h2 { margin: 0 0 8px; font-size: 20px; line-height: 1.3; }
p { margin: 0 0 12px; max-width: 78ch; overflow-wrap: anywhere; }
section { margin: 20px 0 0; padding: 20px 23px; background: var(--card); border: 1px solid var(--line);
  border-radius: 10px; }
.verdict { display: inline-block; margin: 0 0 12px; padding: 3px 12px; border-radius: 999px; font-weight: 650; }
p.v-fits { color: var(--good); background: var(--good-back); }
p.v-tight { color: var(--near); background: var(--near-back); }
p.v-does_not_fit { color: var(--bad); background: var(--bad-back); }
.sentence { font-size: 18px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: 12px; margin: 16px 0 0; }
.tiles div { padding: 10px 11px; background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
.tiles dt { color: var(--soft); font-size: 13px; }
.tiles dd { margin: 0; font-size: 18px; font-weight: 650; white-space: nowrap; font-variant-numeric: tabular-nums; }
.tiles small { display: block; white-space: normal; color: var(--soft); font-size: 13px; font-weight: 400; }
figure { margin: 8px 0 12px; }
figure svg { display: block; width: 100%; height: auto; }
.narrow { display: none; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 8px 0 0; padding: 0; list-style: none;
  font-size: 14px; color: var(--soft); }
.legend li { display: flex; align-items: center; gap: 6px; }
.legend svg { flex: none; width: 14px; height: 14px; }
/* A shadow at an edge beyond which there is more of the table. */
.scroll { overflow-x: auto; margin: 8px 0 12px;
  background: linear-gradient(to right, var(--card) 30%, transparent) 0 0 / 36px 100% no-repeat local,
    linear-gradient(to left, var(--card) 30%, transparent) 100% 0 / 36px 100% no-repeat local,
    linear-gradient(to right, var(--line), transparent) 0 0 / 12px 100% no-repeat scroll,
    linear-gradient(to left, var(--line), transparent) 100% 0 / 12px 100% no-repeat scroll; }
table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; }
caption { padding: 0 0 6px; text-align: left; color: var(--soft); }
th, td { padding: 4px 14px 4px 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; }
.number { text-align: right; white-space: nowrap; }
td:not(.number) { min-width: 7ch; }
td.heading { padding-top: 12px; color: var(--soft); font-weight: 600; }
td.short, .flag { white-space: nowrap; }
.heat-0 { background: var(--heat-0); }
.heat-1 { background: var(--heat-1); }
.heat-2 { background: var(--heat-2); }
.heat-3 { background: var(--heat-3); }
.heat-0, .heat-1, .heat-2, .heat-3, .heat-4 { padding-left: 8px; padding-right: 8px; }
td.taken { outline: 2px solid #d55e00; outline-offset: -2px; font-weight: 650; }
summary { cursor: pointer; color: var(--link); font-size: 14px; padding: 4px 0; }
.code { position: relative; margin: 0 0 14px; }
.code p { margin: 0 0 4px; color: var(--soft); font-size: 14px; padding-right: 80px; }
pre { margin: 0; padding: 12px; overflow: auto; max-height: 420px; background: var(--back);
  border: 1px solid var(--line); border-radius: 8px; font: 13px/1.5 ui-monospace, "Liberation Mono", monospace; }
#commands pre { white-space: pre-wrap; overflow-wrap: anywhere; }
#commands code span { display: inline-block; max-width: 100%; vertical-align: top; }
button { position: absolute; top: -4px; right: 0; padding: 2px 10px; font: inherit; font-size: 13px; color: var(--link);
  background: transparent; border: 1px solid var(--line); border-radius: 6px; cursor: pointer; }
ul { margin: 0; padding-left: 22px; }
li { overflow-wrap: anywhere; }
footer { margin-top: 24px; color: var(--soft); font-size: 14px; }
svg text { fill: var(--text); font: 12px system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif;
  font-variant-numeric: tabular-nums; }
svg .strong { font-weight: 650; }
svg .tick { fill: var(--soft); font-size: 11px; }
svg .small { font-size: 11px; }
.grid { stroke: var(--line); stroke-width: 1; }
.axis { stroke: var(--soft); stroke-width: 1; }
.capacity { stroke: var(--capacity); stroke-width: 2; stroke-dasharray: 6 3; fill: none; }
.whisker { stroke: var(--text); stroke-width: 2; }
.key.ring, .key.on-front, .key.off-front { rx: 6px; }
.key.of-space { fill: #009e73; stroke: none; y: 6px; height: 3px; }
.key.whisker { fill: var(--text); stroke: none; y: 6px; height: 3px; }
.part { stroke: var(--card); stroke-width: 1; }
.area { stroke: none; }
.c-parameters { fill: #0072b2; }
.c-gradients { fill: #e69f00; }
.c-master-parameters { fill: #56b4e9; }
.c-optimizer-states { fill: #009e73; }
.c-activations { fill: #d55e00; }
.c-communication-buffers { fill: #f0e442; }
.c-temporaries { fill: #cc79a7; }
.c-workspace { fill: #f0b0a8; }
.c-fragmentation { fill: #b9bdc5; }
.c-communicators { fill: #8c6b4f; }
.c-context { fill: var(--context); }
.t-compute { fill: #0072b2; }
.t-optimizer { fill: #009e73; }
.t-communication { fill: #e69f00; }
.t-bubble { fill: #b9bdc5; }
.t-straggling { fill: #cc79a7; }
.s-forward { fill: #0072b2; }
.s-backward { fill: #e69f00; }
.s-input_gradient { fill: #d55e00; }
.s-weight_gradient { fill: #009e73; }
.s-reduce { fill: #cc79a7; }
.s-update { fill: #009e73; }
.s-gather { fill: #56b4e9; }
.odd { opacity: .6; }
svg [class^="in-"] { fill: #111; }
svg .in-c-parameters, svg .in-t-compute, svg .in-c-communicators { fill: #fff; }
.resumed { fill: var(--none-back); stroke: var(--soft); stroke-width: 1; stroke-dasharray: 3 2; }
.refused { fill: none; stroke: var(--soft); stroke-dasharray: 3 3; }
.cell { stroke: var(--line); stroke-width: 1; }
.cell.v-fits { fill: var(--good-back); }
.cell.v-tight { fill: var(--near-back); }
.cell.v-does_not_fit { fill: var(--bad-back); }
.cell.v-refused { fill: var(--none-back); }
.cell.same { stroke: var(--text); stroke-width: 2; }
.front { fill: none; stroke: #0072b2; stroke-width: 1.5; stroke-dasharray: 4 3; }
.of-space { fill: none; stroke: #009e73; stroke-width: 1.5; }
.on-front { fill: #0072b2; stroke: var(--card); stroke-width: 1; }
.off-front { fill: var(--card); stroke: var(--soft); stroke-width: 1.5; }
.ring { fill: none; stroke: #d55e00; stroke-width: 2.5; }
.peak { fill: var(--card); stroke: var(--text); stroke-width: 2; }
@media (max-width: 700px) {
  body { padding: 16px 12px 32px; }
  h1 { font-size: 23px; }
  .sentence { font-size: 16px; }
  section { padding: 14px 11px; }
  .wide { display: none; }
  .narrow { display: block; max-width: 480px; }
  .tiles { grid-template-columns: 1fr 1fr; gap: 8px; }
  .tiles div { padding: 8px 10px; }
  th.number { white-space: normal; }
  th, td { padding-right: 10px; }
  caption { max-width: calc(100vw - 50px); }
  .stacked, .stacked thead, .stacked tbody, .stacked caption { display: block; }
  .stacked tr { display: grid; grid-template-columns: 2.5ch repeat(4, 1fr); border-bottom: 1px solid var(--line); }
  .stacked th, .stacked td { border: 0; padding: 3px 6px 3px 0; }
  .stacked td:not(.number) { grid-column: 2 / -1; order: 1; }
  .stacked th:not(.number), .stacked td:empty { display: none; }
}
@media print {
  :root { --back: #fff; --card: #fff; --text: #000; --soft: #444; --line: #ccc; --capacity: #000; --context: #4d5159;
    --good: #0b6b4f; --good-back: #dff2ea; --near: #7a5200; --near-back: #fdf0d0; --bad: #a33c00;
    --bad-back: #fde5d8; --none-back: #ececef; --link: #0062a3;
    --heat-0: #8fc7ea; --heat-1: #b5daf1; --heat-2: #d5eaf7; --heat-3: #ebf5fb; }
  body { padding: 0; max-width: none; font-size: 11pt; -webkit-print-color-adjust: exact; print-color-adjust: exact; }
  section { border: 0; padding: 0; }
  /* Nothing scrolls on paper: tables are small enough for it. */
  .scroll { overflow: visible; background: none; }
  table { font-size: 8pt; }
  th, td { padding: 3px 8px 3px 0; }
  .many { font-size: 6pt; }
  .many th, .many td { padding-right: 4px; }
  th.number { white-space: normal; }
  figure, p, tr, thead, .tiles div { break-inside: avoid; }
  h2, section > p, caption, thead, summary { break-after: avoid; }
  .wide { display: block; }
  .narrow, button { display: none; }
  pre { max-height: none; white-space: pre-wrap; overflow-wrap: anywhere; }
}
)css";
}

}  // namespace zeroplan
