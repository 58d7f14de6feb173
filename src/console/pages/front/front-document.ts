import type { Primitive } from '#config';
import { FIRST_SCRIPT_PATH, ICON, NAV, NAV_MENU, THEME_SWITCH } from './page-parts.ts';

const KINDS: readonly (readonly [Primitive, string, string])[] = [
  ['model', 'Models', 'Chat, messages, responses and embeddings'],
  ['tool', 'Tools', 'MCP servers of every revision'],
  ['agent', 'Agents', 'A2A, with a budget for calls of their own'],
  ['image', 'Images', 'Made and edited, priced before'],
  ['video', 'Videos', 'Charged when the file is here'],
];

const LINKS = [
  ['/docs/guide', 'Guide', 'How to use it, run it, and sell on it'],
  ['/docs', 'API reference', 'Every endpoint, to read and to try'],
  ['/rankings', 'Rankings', 'What is used most, by day'],
  ['/providers', 'Providers', 'Who serves it, and how well'],
  ['/llms.txt', 'llms.txt', 'All of it in plain text'],
  ['/api/v1/models', 'Models as JSON', 'With prices, for programs'],
  ['/api/v1/tools', 'Tools as JSON', 'With their prices'],
  ['/api/v1/agents', 'Agents as JSON', 'With their prices'],
] as const;

interface FrontFacts {
  readonly version: string;
  readonly address: string;
  /** Returns the number of services of a kind, or null if it isn't shown. */
  readonly count: (kind: Primitive) => number | null;
}

/** The front page, with links to everything else. It loads only its icon and one script of a line. */
export function frontDocument(facts: FrontFacts): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>tollgate · one address for AI services, paid by the call</title>
<meta name="description" content="Models, tools, agents, images and videos of many providers at one address. Each call is priced before it starts, and settled by what it used.">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="/favicon.svg" type="image/svg+xml">
<script src="${FIRST_SCRIPT_PATH}"></script>
<style>${FRONT_STYLE}</style>
</head>
<body>
<header><div class="wide">
<a class="name" href="/">${MARK} tollgate</a>
<nav aria-label="Main">${NAV}</nav>
${THEME_SWITCH}
<a class="in" href="/sign-in">Sign in</a><a class="in own" href="/dashboard">Dashboard</a><a class="in op" href="/admin">Operator</a>
${NAV_MENU}
</div></header>
<main>
${hero()}
${kinds(facts)}
${promises()}
${clients(facts)}
${links()}
</main>
<footer><div class="wide">tollgate ${facts.version} · Apache-2.0</div></footer>
</body>
</html>
`;
}

const MARK = ICON.replace('<svg ', '<svg aria-hidden="true" ');

/** The amounts are those of a short model call at 0.50 and 1.50 USD per 1M tokens. */
const hero = () => `<div class="wide hero">
<div>
<h1>One address for AI services, paid by the call</h1>
<p class="lead">Models, tools, agents, images and videos of many providers behind one key. Each call is priced before it starts, and charged for what it used.</p>
<div class="go"><a href="/marketplace">Look at the marketplace</a><a href="/dashboard/keys">Get a key</a></div>
</div>
<div class="slip">
<p>An answer of a model <span>$0.50 in, $1.50 out per 1M tokens</span></p>
<ol>
<li><b>Lock</b><span>the most that it can cost</span><data value="0.006144">$0.006144</data></li>
<li><b>Run</b><span>at the provider</span><data value="">53 tokens</data></li>
<li><b>Settle</b><span>what it used</span><data value="-0.000067">−$0.000067</data></li>
<li><b>Release</b><span>the rest comes back</span><data value="0.006077">$0.006077</data></li>
</ol>
<div class="cost"><p><b>Cost, with a signed receipt</b><data value="0.000067">$0.000067</data></p></div>
</div>
</div>`;

const kinds = ({ count }: FrontFacts) => `<div class="wide"><ul class="kinds">
${KINDS.map(([kind, name, text]) => `<li class="${kind}"><a href="/marketplace?kind=${kind}"><b>${name}${countOf(count(kind))}</b><span>${text}</span></a></li>`).join('\n')}
</ul></div>`;

const countOf = (count: number | null) => (count === null ? '' : ` <data value="${count}">${count}</data>`);

const promises = () => `<section class="wide"><h2>One way to pay for all of it</h2>
<div class="three">
<div><h3>Locked, run, settled</h3><p>The highest cost of a call is locked in your USDC escrow. The call runs. What it used is charged, and the rest comes back. A call that fails costs nothing.</p></div>
<div><h3>Agents stay within your cap</h3><p>An agent may call models, tools and other agents. It pays for them from the lock of your call, and you see the whole tree.</p></div>
<div><h3>Books that anybody can check</h3><p>Each charge can be computed again from its record, and each receipt is signed. The dashboard checks the signature in your browser.</p></div>
</div></section>`;

const clients = ({ address }: FrontFacts) => `<section class="wide"><h2>Works with the client that you have</h2>
<div class="code">
<div><h3>OpenAI clients</h3><pre tabindex="0">OPENAI_BASE_URL=${address}/api/v1
OPENAI_API_KEY=svc-sk-…</pre></div>
<div><h3>Claude Code, and other Anthropic clients</h3><pre tabindex="0">ANTHROPIC_BASE_URL=${address}/api
ANTHROPIC_AUTH_TOKEN=svc-sk-…</pre></div>
<div><h3>MCP clients</h3><pre tabindex="0">claude mcp add --transport http tollgate ${address}/mcp \\
    --header "Authorization: Bearer svc-sk-…"</pre></div>
<div><h3>A2A clients</h3><pre tabindex="0">curl ${address}/a2a/&lt;agent&gt; \\
    -H "Authorization: Bearer svc-sk-…" -H 'Content-Type: application/json' \\
    -d '{"message":{"messageId":"m-'$(date +%s)'","role":"user","parts":[{"text":"Hello"}]}}'</pre></div>
<div><h3>A wallet in place of a key</h3><pre tabindex="0">SIGNED=$(node bin/tollgate.mjs siwx --keypair wallet.json \\
    --chain-id solana:mainnet --uri ${address})
curl ${address}/api/v1/session/balance \\
    -H "SIGN-IN-WITH-X: $SIGNED"</pre></div>
<div><h3>Sell calls of your own models, tools and agents</h3><pre tabindex="0">node bin/tollgate.mjs keygen --chain solana --out wallet.json
node bin/tollgate.mjs provide --config provider.toml</pre>
<p>The last two run in a checkout of tollgate, after <code>npm ci --omit=dev</code>. tollgate is not on npm: a package of this name there is somebody else's, and must not see your wallet. <a href="/docs/guide/sell/provide">The guide</a> tells of a small package for providers.</p></div>
</div></section>`;

const links = () => `<section class="wide"><h2>Read on</h2><ul class="links">
${LINKS.map(([href, title, text]) => `<li><a href="${href}"><b>${title}</b><span>${text}</span></a></li>`).join('\n')}
</ul></section>`;

/**
 * The colours of the front page and the guide. Names and values are the same as in the web pages
 * (`web/src/styles.css`).
 */
export const PALETTE = `:root { color-scheme: light dark; --ink: light-dark(#14281d, #e8efe9); --soft: light-dark(#52625a, #9db0a4); --line: light-dark(#dfe5e1, #2b3a31);
  --ground: light-dark(#fafaf8, #101813); --card: light-dark(#fff, #17211b); --sunk: light-dark(#f1f3ef, #0c130f); --accent: light-dark(#1f7a4d, #6fcf97);
  --edge: light-dark(#869389, #6b8073); --deep: light-dark(#17603c, #8fdcb0); --on: light-dark(#fff, #0b1a11); --gold: light-dark(#d9a520, #f4c95d);
  --model: light-dark(#2456b8, #93b7ff); --tool: light-dark(#8a5200, #f0b866); --agent: light-dark(#6d36a3, #cfabf5); --image: light-dark(#a3275f, #f59cc3); --video: light-dark(#0b6a63, #63d6c7); }
:root[data-theme=light] { color-scheme: light; }
:root[data-theme=dark] { color-scheme: dark; }
`;

/** The style of THEME_SWITCH, for the front page and the guide. */
export const THEME_STYLE = `.theme { display: flex; margin-left: auto; padding: 2px; border: 1px solid var(--line); border-radius: 6px; }
.theme button { display: grid; place-items: center; width: 28px; height: 28px; padding: 0; border: 0; border-radius: 4px; color: var(--soft); background: none; cursor: pointer; }
.theme button:hover { color: var(--ink); }
.theme button[aria-pressed=true] { color: var(--ink); background: var(--sunk); }
.theme button:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
header .theme svg { width: 16px; height: 16px; }
.menu .theme { justify-self: start; margin: 6px 8px; }
`;

/** The style of the front page. Its hash is in the page's policy. */
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
${THEME_STYLE}.menu { display: none; margin-left: 6px; }
.menu summary { display: grid; place-items: center; width: 36px; height: 36px; border: 1px solid var(--line); border-radius: 6px; cursor: pointer; list-style: none; }
.menu summary::-webkit-details-marker { display: none; }
.menu svg { width: 18px; height: 18px; }
.menu nav { position: absolute; inset: 64px 12px auto; display: grid; padding: 8px; border: 1px solid var(--line); border-radius: 12px; background: var(--card); box-shadow: 0 12px 30px rgb(0 0 0 / 18%); }
.menu nav a { padding: 10px 12px; font-size: 15px; }
header .in { border: 1px solid var(--line); color: var(--ink); }
header .own, header .op, [data-signed-in] header .in, [data-operator] header .in { display: none; }
[data-signed-in] header .own, [data-operator]:not([data-signed-in]) header .op { display: block; }
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
  header .wide > nav, header .wide > .theme { display: none; }
  header .in { margin-left: auto; }
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
