import type { Primitive } from '#config';
import { FRONT_STYLE } from './front-style.ts';
import { ICON } from './icon.ts';
import { FIRST_SCRIPT_PATH } from './first-script.ts';

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
  /** The gateway's address for programs, as HTML text. */
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
<a class="in" href="/sign-in">Sign in</a><a class="in own" href="/dashboard">Dashboard</a>
<details class="menu"><summary aria-label="Menu">${BARS}</summary><nav aria-label="Main">${NAV}</nav></details>
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
const BARS =
  '<svg aria-hidden="true" viewBox="0 0 18 18" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round"><path d="M2 4.5h14M2 9h14M2 13.5h14"/></svg>';
const NAV = [
  ['/marketplace', 'Marketplace'],
  ['/rankings', 'Rankings'],
  ['/providers', 'Providers'],
  ['/playground', 'Playground'],
  ['/docs/guide', 'Guide'],
  ['/docs', 'API reference'],
]
  .map(([href, name]) => `<a href="${href}">${name}</a>`)
  .join('');

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
<p>The last two run in a checkout of tollgate, after <code>npm ci</code>. tollgate is not on npm: a package of this name there is somebody else's, and must not see your wallet. <a href="/docs/guide/providers">The guide</a> tells of a small package for providers.</p></div>
</div></section>`;

const links = () => `<section class="wide"><h2>Read on</h2><ul class="links">
${LINKS.map(([href, title, text]) => `<li><a href="${href}"><b>${title}</b><span>${text}</span></a></li>`).join('\n')}
</ul></section>`;
