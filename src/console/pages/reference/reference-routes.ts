import type { FastifyInstance } from 'fastify';
import { type GuideOptions, guideRoutes } from '../guide/guide-routes.ts';
import { KINDS_OF_MODELS } from '#config/model-kinds';
import { frontPage, type FrontPageOptions } from '../front/front-page.ts';
import { describeRoutes, type ReferenceOptions, pathsOf } from './openapi.ts';
import type { PathTable } from './complete-operations.ts';

/**
 * `/openapi.json`, the guide, `/llms.txt` and the front page, made from the schemas of the routes. Await this
 * on the root instance before the other routes are registered, because only later routes are described.
 */
export async function referenceRoutes(
  server: FastifyInstance,
  options: ReferenceOptions & FrontPageOptions & GuideOptions & LlmsTextOptions,
): Promise<void> {
  const document = describeRoutes(server, options);
  // Swagger UI, which was here before, answered at both.
  server.get('/docs/', { schema: { hide: true } }, (_request, reply) => reply.redirect('/docs'));
  await server.register(guideRoutes, options);
  await server.register(frontPage(options));
  await server.register(llmsText(document, options));
}

const opening = (
  wires: NonNullable<LlmsTextOptions['chatWires']>,
  marketplace: string,
  dashboard: string,
) => `# tollgate

> One address for many AI providers: chat models are called through one API, MCP tools through one server and A2A agents through one endpoint, priced before the call starts, paid from an escrow balance, and settled by what was really used.

- OpenAI clients work unchanged: base URL \`/api/v1\` of this host, API key \`svc-sk-…\` as \`Authorization: Bearer\` or \`x-api-key\`.
${wires.map(({ prefix, path, clients }) => `- \`POST ${prefix}${path}\`: ${clients}.\n`).join('')}- Other models: ${KINDS_OF_MODELS.map(([, { paths, does }]) => `${paths.map((path) => `\`POST /api/v1${path}\``).join(' or ')} ${does}`).join(', ')}, as OpenAI and Cohere have them. Cohere's clients also find \`/v2/rerank\`.
- OpenAI's Realtime API: a WebSocket at \`/v1/realtime?model=NAME\`, for models that are offered there.
- A Solana or EVM wallet signs in where a key would, with the header \`SIGN-IN-WITH-X\`: \`GET /api/v1/auth/nonce\` answers with a message to sign. To create a key with a wallet, sign one with its nonce.
- MCP clients of every revision: \`/mcp\` has the tools of all services, \`/mcp/{service}\` those of one. \`tools/list\` and \`tools/call\` can be posted without \`initialize\`. A tool's price is in its \`_meta["tollgate/price"]\`, the cost of a call in the result's \`_meta["tollgate/generation"]\`. With many tools, call \`find_tools\` (free), then \`call_tool\`. \`x-max-cost\` (USD) or \`_meta["tollgate/max_cost"]\` caps a call.
- A2A clients of 0.3 and 1.0: \`/a2a/{agent}\` by JSON-RPC (\`message/send\`, \`SendMessage\`) or HTTP+JSON; the card is below it at \`/.well-known/agent-card.json\`, that of all agents at the root. Sending is billed, once for each message: the same words with the same \`messageId\` are a repeat; tasks are looked at for free. \`x-max-cost\` (USD) caps a message with all calls that its agent makes. The reply has \`metadata["tollgate/generation"]\`; \`GET /api/v1/generation?id=\` shows what it and the calls under it cost.
- An agent that finds \`metadata["tollgate/run"]\` (\`token\`, \`url\`, \`budget_usd\`) in a message may use the token as API key below that URL: its calls are paid from the budget of that message.
- Any primitive through any route: chat takes \`a2a/<agent>\`, \`image/<model>\`, \`video/<model>\` and \`mcp/<service>/<tool>\` as model; MCP has \`/mcp/a2a/<agent>\`, \`/mcp/model/<model>\` (\`image\`, \`video\`) and, at \`/mcp\`, \`ask_agent\`, \`ask_model\`, \`generate_image\` and \`generate_video\`; A2A has \`/a2a/model/<model>\` (\`image\`, \`video\`) and \`/a2a/mcp/<service>/<tool>\`. The price is the primitive's.
- Chat with \`tools: [{"type": "mcp", "service": "…", "allowed_tools": ["…"]}]\`: the gateway calls the tools, within \`max_cost\` (USD) and \`max_tool_rounds\`.
- \`POST /api/v1/rpc\` has all of it as JSON-RPC 2.0, batches included; \`rpc.discover\` describes it.
- Name a model as \`GET /api/v1/models\` lists it. \`<provider id>:<model>\` pins one provider, the suffix \`:floor\` asks for the cheapest, \`:nitro\` for the fastest.
- Where \`GET /api/v1/payments/chains\` lists chains, a 402 can be paid in place with x402 (version 2): \`PAYMENT-REQUIRED\` holds the terms; send the same request again with \`PAYMENT-SIGNATURE\`. No account is needed, and what is left over stays as the balance of the paying wallet. \`POST /api/v1/topup\` (\`{"amount_usd": "5"}\`) pays any amount in the same way, \`POST /api/v1/withdrawals\` pays a balance or earnings out.
- People look at \`${marketplace}\` for services and prices, and at \`${dashboard}\` for their account: keys, balance, calls.
- \`GET /api/v1/services\` lists services of every kind with their prices; \`/api/v1/services/{kind}/{name}\` compares the providers of one.
- \`GET /api/v1/providers\`, \`/api/v1/tools\` and \`/api/v1/agents\` tell who serves what, at what price and how well; \`/api/v1/models/{name}/endpoints\` tells it of one model.
- Whoever has a wallet can sell calls of its own models, tools and agents: \`node bin/tollgate.mjs provide --config provider.toml\`, in a checkout of tollgate (it is not on npm), dials in at \`/api/v1/provider/tunnel\` (a WebSocket). A provider sees what it earned at \`GET /api/v1/provider/earnings\`, and what it has registered at \`GET /api/v1/provider/services\`.
- The guide is at \`/docs/guide\`, each page of it also as Markdown: \`/docs/guide/README.md\` lists them.
- A reply carries \`usage\` with \`usage.cost\` in USD; streams carry it in the chunk that has \`finish_reason\`.
- Errors are \`{"error": {"message", "type", "code", "param"}}\`. 402: the balance is too low. 429: too many requests, wait for \`Retry-After\`. 503: retry shortly. On \`/mcp\` they are JSON-RPC errors with \`data.type\`, and a tool call without money is a result with \`isError\`; on \`/a2a\` they are JSON-RPC errors too, and a message without money is answered with a task that is \`input-required\`.
`;

interface LlmsTextOptions {
  /** The APIs for chat models; `clients` says who speaks each. Default: none. */
  readonly chatWires?: readonly { readonly prefix: string; readonly path: string; readonly clients: string }[];
  /** null or absent: the gateway's own page is used. */
  readonly marketplaceUrl?: string | null;
  readonly dashboardUrl?: string | null;
}

/** `GET /llms.txt`: describes this gateway to language models. It is made from the same document as the reference. */
function llmsText(
  document: () => Promise<object>,
  { chatWires = [], marketplaceUrl, dashboardUrl }: LlmsTextOptions,
): (app: FastifyInstance) => Promise<void> {
  let text: string | null = null;
  return async (app) => {
    app.get('/llms.txt', { schema: { hide: true } }, async (_request, reply) => {
      text ??= `${opening(chatWires, marketplaceUrl ?? '/marketplace', dashboardUrl ?? '/dashboard')}\n${chapters(pathsOf(await document()))}\n## More\n\n- [OpenAPI 3.1 document](/openapi.json)\n- [Reference for people](/docs)\n`;
      return reply.header('content-type', 'text/plain; charset=utf-8').send(text);
    });
  };
}

function chapters(paths: PathTable): string {
  const lines = new Map<string, string[]>();
  for (const [path, operations] of Object.entries(paths)) {
    for (const [method, { summary, tags }] of Object.entries(operations)) {
      const chapter = tags?.[0] ?? 'Other';
      const line = `- ${method.toUpperCase()} ${path}${summary ? `: ${summary}` : ''}`;
      const known = lines.get(chapter);
      if (known) known.push(line);
      else lines.set(chapter, [line]);
    }
  }
  return [...lines].map(([chapter, entries]) => `## ${chapter}\n\n${entries.join('\n')}\n`).join('\n');
}

const MEMBERS = ['kty', 'crv', 'x', 'y', 'kid', 'alg', 'use'];

const schema = {
  tags: ['Account'],
  security: [],
  summary: 'Show the keys that receipts and agent cards are signed with',
  operationId: 'showSigningKeys',
  description: 'A JSON Web Key set (RFC 7517).',
  response: {
    200: {
      description: 'The keys.',
      type: 'object',
      required: ['keys'],
      properties: {
        keys: {
          type: 'array',
          items: {
            type: 'object',
            required: ['kty', 'crv', 'kid', 'alg', 'use'],
            properties: Object.fromEntries(MEMBERS.map((name) => [name, { type: 'string' }])),
          },
        },
      },
    },
  },
};

/** `/.well-known/jwks.json`: the public keys that verify this gateway's signatures. */
export function addKeySetRoute(server: FastifyInstance, keys: readonly object[]): void {
  server.get('/.well-known/jwks.json', { schema, config: { anyPage: true } }, () => ({ keys }));
}
