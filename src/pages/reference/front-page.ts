import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { parseHost } from '#wire';
import { ICON } from './icon.ts';

const STYLE = `
:root { color-scheme: light dark; --ink: #14281d; --soft: #5b6b62; --line: #dfe5e1; --ground: #fafaf8; --card: #fff; --accent: #1f7a4d; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8efe9; --soft: #9db0a4; --line: #2b3a31; --ground: #101813; --card: #17211b; --accent: #6fcf97; } }
* { box-sizing: border-box; }
body { margin: 0; font: 17px/1.6 system-ui, sans-serif; color: var(--ink); background: var(--ground); }
main { max-width: 760px; margin: 0 auto; padding: 12vh 24px 64px; }
h1 { display: flex; align-items: center; gap: 14px; margin: 0 0 12px; font-size: 44px; letter-spacing: -0.03em; line-height: 1.1; }
h1 svg { width: 44px; height: 44px; }
.lead { margin: 0 0 36px; font-size: 20px; color: var(--soft); max-width: 34em; }
nav { display: grid; grid-template-columns: repeat(auto-fit, minmax(210px, 1fr)); gap: 12px; margin: 0 0 36px; }
nav a { display: block; padding: 16px 18px; border: 1px solid var(--line); border-radius: 12px; background: var(--card); color: inherit; text-decoration: none; }
nav a:hover, nav a:focus-visible { border-color: var(--accent); }
nav b { display: block; color: var(--accent); }
nav span { color: var(--soft); font-size: 15px; }
pre { margin: 0; padding: 18px; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; border: 1px solid var(--line); border-radius: 12px; background: var(--card); font: 14px/1.6 ui-monospace, monospace; }
h2 { margin: 28px 0 10px; font-size: 17px; }
footer { margin-top: 36px; color: var(--soft); font-size: 14px; }
`;

const LINKS = [
  ['/docs', 'API reference', 'Every endpoint, to read and to try'],
  ['/api/v1/models', 'Models', 'What can be called, and its prices'],
  ['/api/v1/tools', 'Tools', 'MCP servers, their tools and prices'],
  ['/api/v1/agents', 'Agents', 'A2A agents and their prices'],
  ['/api/v1/providers', 'Providers', 'Who serves it, and how well'],
  ['/openapi.json', 'OpenAPI', 'The reference for machines'],
  ['/llms.txt', 'llms.txt', 'The same in plain text'],
] as const;

export interface FrontPageOptions {
  readonly version: string;
  /** The configured address of the gateway. */
  readonly publicUrl: string | null;
}

/** `GET /`: what this host is and where to go. One document without scripts. */
export function frontPage({ version, publicUrl }: FrontPageOptions): (app: FastifyInstance) => Promise<void> {
  const page = (address: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>tollgate</title>
<meta name="description" content="One address for many AI providers, paid by use.">
<link rel="icon" href="/favicon.svg" type="image/svg+xml">
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>${ICON} tollgate</h1>
<p class="lead">One address for many AI providers. Each call is priced before it starts, paid from your balance, and settled by what it really used.</p>
<nav>
${LINKS.map(([href, title, text]) => `<a href="${href}"><b>${title}</b><span>${text}</span></a>`).join('\n')}
</nav>
<h2>Works with OpenAI clients</h2>
<pre>OPENAI_BASE_URL=${address}/api/v1
OPENAI_API_KEY=svc-sk-…</pre>
<h2>And with MCP clients</h2>
<pre>claude mcp add --transport http tollgate ${address}/mcp \\
    --header "Authorization: Bearer svc-sk-…"</pre>
<h2>And with A2A clients</h2>
<pre>curl ${address}/a2a/&lt;agent&gt; \\
    -H "Authorization: Bearer svc-sk-…" -H 'Content-Type: application/json' \\
    -d '{"message":{"messageId":"m-1","role":"user","parts":[{"text":"Hello"}]}}'</pre>
<h2>Or with a wallet in place of a key</h2>
<pre>SIGNED=$(node bin/tollgate.mjs siwx --keypair wallet.json \\
    --chain-id solana:mainnet --uri ${address})
curl ${address}/api/v1/session/balance \\
    -H "SIGN-IN-WITH-X: $SIGNED"</pre>
<h2>Sell calls of your own models, tools and agents</h2>
<pre>node bin/tollgate.mjs keygen --chain solana --out wallet.json
node bin/tollgate.mjs provide --config provider.toml</pre>
<p>Both commands run in a checkout of tollgate, after <code>npm ci</code>. tollgate is not on npm: a package of this name there is somebody else's, and must not see your wallet.</p>
<footer>tollgate ${version} · Apache-2.0</footer>
</main>
</body>
</html>
`;
  const digest = createHash('sha256').update(STYLE).digest('base64');
  const policy = `default-src 'none'; style-src 'sha256-${digest}'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

  return async (app) => {
    app.get('/', { schema: { hide: true } }, async (request, reply) =>
      reply
        .header('content-type', 'text/html; charset=utf-8')
        .header('content-security-policy', policy)
        .send(page(publicUrl ?? addressOf(request))),
    );
    app.get('/favicon.svg', { schema: { hide: true } }, async (_request, reply) =>
      reply.header('content-type', 'image/svg+xml').header('cache-control', 'public, max-age=86400').send(ICON),
    );
  };
}

/** The address of the request. An invalid host stays out of the page. */
function addressOf({ protocol, host }: FastifyRequest): string {
  return parseHost(host) === null ? '&lt;this address&gt;' : `${protocol}://${host}`;
}
