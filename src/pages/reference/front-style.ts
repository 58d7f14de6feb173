import { PALETTE } from './palette.ts';

export const FRONT_STYLE = `
${PALETTE}* { box-sizing: border-box; }
html { overflow-y: scroll; }
body { margin: 0; font: 15px/24px Inter, ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif; color: var(--ink); background: var(--ground); -webkit-font-smoothing: antialiased; }
a { color: inherit; }
a:focus-visible, pre:focus-visible, summary:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.wide { max-width: 1200px; margin: 0 auto; padding-inline: 24px; }
header { background: var(--card); border-bottom: 1px solid var(--line); }
header .wide { display: flex; align-items: center; gap: 4px; height: 56px; }
header a { padding: 6px 10px; border-radius: 6px; font-size: 13.5px; line-height: 20px; font-weight: 500; color: var(--soft); text-decoration: none; }
header a:hover { color: var(--ink); background: var(--sunk); }
header .name { display: flex; align-items: center; gap: 8px; margin: 0 18px 0 -10px; font-size: 17px; font-weight: 700; letter-spacing: -0.025em; color: var(--ink); }
header .name:hover { background: none; }
header svg { width: 26px; height: 26px; }
header { position: relative; z-index: 1; }
.menu { display: none; margin-left: 6px; }
.menu summary { display: grid; place-items: center; width: 36px; height: 36px; border: 1px solid var(--line); border-radius: 6px; cursor: pointer; list-style: none; }
.menu summary::-webkit-details-marker { display: none; }
.menu svg { width: 18px; height: 18px; }
.menu nav { position: absolute; inset: 64px 12px auto; display: grid; padding: 8px; border: 1px solid var(--line); border-radius: 12px; background: var(--card); box-shadow: 0 12px 30px rgb(0 0 0 / 18%); }
.menu nav a { padding: 10px 12px; font-size: 15px; }
header .in { margin-left: auto; border: 1px solid var(--line); color: var(--ink); }
header .own, [data-signed-in] header .in { display: none; }
[data-signed-in] header .own { display: block; }
h1 { margin: 0 0 18px; font-size: clamp(34px, 5.2vw, 54px); line-height: 1.06; font-weight: 680; letter-spacing: -0.035em; text-wrap: balance; }
h2 { margin: 0 0 20px; font-size: 28px; line-height: 34px; font-weight: 650; letter-spacing: -0.02em; }
h3 { margin: 0 0 8px; font-size: 15px; font-weight: 650; letter-spacing: -0.01em; }
p { margin: 0; }
.hero { display: grid; grid-template-columns: minmax(0, 1.15fr) minmax(0, 1fr); gap: 56px; align-items: center; padding-top: 72px; padding-bottom: 72px; }
.lead { margin: 0 0 28px; max-width: 34em; font-size: 18px; line-height: 28px; color: var(--soft); }
.go { display: flex; flex-wrap: wrap; gap: 10px; }
.go a { padding: 10px 18px; border: 1px solid var(--line); border-radius: 8px; background: var(--card); font-weight: 550; text-decoration: none; }
.go a:hover { border-color: var(--soft); }
.go a:first-child { border-color: transparent; background: var(--accent); color: var(--on); }
.go a:first-child:hover { background: var(--deep); }
.slip { border: 1px solid var(--line); border-radius: 14px; background: var(--card); overflow: hidden; }
.slip > p { display: flex; justify-content: space-between; gap: 12px; padding: 14px 20px; border-bottom: 1px dashed var(--line); font: 13px/20px ui-monospace, 'JetBrains Mono', Menlo, Consolas, monospace; color: var(--soft); }
.slip ol { margin: 0; padding: 6px 20px 10px; list-style: none; }
.slip li { display: grid; grid-template-columns: 72px minmax(0, 1fr) auto; gap: 12px; align-items: baseline; padding: 11px 0; border-bottom: 1px solid var(--line); }
.slip li:last-child { border-bottom: 0; }
.slip b { font-weight: 650; }
.slip span { font-size: 13.5px; line-height: 20px; color: var(--soft); }
.slip data { font-weight: 600; font-variant-numeric: tabular-nums; }
.slip .cost { background: light-dark(#e4f1e9, #1a3025); }
.slip .cost data { font-size: 21px; letter-spacing: -0.02em; color: var(--accent); }
.slip .cost p { display: flex; justify-content: space-between; align-items: baseline; padding: 14px 20px; }
.kinds { display: grid; grid-template-columns: repeat(5, minmax(0, 1fr)); gap: 1px; margin: 0; padding: 0; list-style: none; border: 1px solid var(--line); border-radius: 14px; overflow: hidden; background: var(--line); }
.kinds a { display: block; height: 100%; padding: 20px; background: var(--card); text-decoration: none; border-top: 3px solid var(--kind); }
.kinds a:hover { background: var(--sunk); }
.kinds a:focus-visible { outline-offset: -3px; }
.kinds b { display: flex; justify-content: space-between; font-size: 17px; font-weight: 650; letter-spacing: -0.01em; }
.kinds data { font-weight: 500; color: var(--soft); font-variant-numeric: tabular-nums; }
.kinds span { display: block; margin-top: 4px; font-size: 13.5px; line-height: 20px; color: var(--soft); }
.model { --kind: var(--model); } .tool { --kind: var(--tool); } .agent { --kind: var(--agent); } .image { --kind: var(--image); } .video { --kind: var(--video); }
section { padding-top: 72px; }
.three { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 32px; }
.three p { color: var(--soft); }
.code { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 20px; }
.code div { min-width: 0; }
.code p { margin-top: 10px; font-size: 13.5px; line-height: 20px; color: var(--soft); }
pre { margin: 0; padding: 14px 16px; overflow-x: auto; border: 1px solid var(--line); border-radius: 10px; background: var(--sunk); font: 13px/21px ui-monospace, 'JetBrains Mono', Menlo, Consolas, monospace; }
code { font: 0.9em ui-monospace, 'JetBrains Mono', Menlo, Consolas, monospace; }
.links { display: grid; grid-template-columns: repeat(4, minmax(0, 1fr)); gap: 12px; margin: 0; padding: 0; list-style: none; }
.links a { display: block; height: 100%; padding: 14px 16px; border: 1px solid var(--line); border-radius: 10px; background: var(--card); text-decoration: none; }
.links a:hover { border-color: var(--soft); }
.links b { display: block; font-weight: 600; color: var(--accent); }
.links span { display: block; font-size: 13.5px; line-height: 20px; color: var(--soft); }
footer { margin-top: 80px; border-top: 1px solid var(--line); color: var(--soft); font-size: 13.5px; }
footer .wide { padding-top: 24px; padding-bottom: 24px; }
@media (max-width: 960px) {
  .hero { grid-template-columns: minmax(0, 1fr); gap: 36px; padding-top: 48px; padding-bottom: 48px; }
  .links { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  .three, .code { grid-template-columns: minmax(0, 1fr); gap: 20px; }
  section { padding-top: 52px; }
}
@media (max-width: 820px) {
  header .wide > nav { display: none; }
  .menu { display: block; }
}
@media (max-width: 700px) {
  .wide { padding-inline: 16px; }
  .kinds { grid-template-columns: minmax(0, 1fr); }
  .kinds a { padding: 14px 16px; border-top: 0; border-left: 3px solid var(--kind); }
  header nav a:not(:first-child) { display: none; }
  .slip li { grid-template-columns: 68px minmax(0, 1fr) auto; gap: 8px; }
}
`;
