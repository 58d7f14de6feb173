import type { FastifyInstance } from 'fastify';
import { pathsOf, type PathTable } from './openapi.ts';

const OPENING = `# tollgate

> One address for many AI providers: chat models are called through one API and MCP tools through one server, priced before the call starts, paid from an escrow balance, and settled by what was really used.

- OpenAI clients work unchanged: base URL \`/api/v1\` of this host, API key \`svc-sk-…\` as \`Authorization: Bearer\` or \`x-api-key\`.
- A Solana or EVM wallet signs in where a key would, with the header \`SIGN-IN-WITH-X\`: \`GET /api/v1/auth/nonce\` answers with a message to sign. To create a key with a wallet, sign one with its nonce.
- MCP clients of every revision: \`/mcp\` has the tools of all services, \`/mcp/{service}\` those of one. \`tools/list\` and \`tools/call\` can be posted without \`initialize\`. A tool's price is in its \`_meta["tollgate/price"]\`, the cost of a call in the result's \`_meta["tollgate/generation"]\`. With many tools, call \`find_tools\` (free), then \`call_tool\`.
- Name a model as \`GET /api/v1/models\` lists it. \`<provider id>:<model>\` pins one provider, the suffix \`:floor\` asks for the cheapest, \`:nitro\` for the fastest.
- \`GET /api/v1/providers\`, \`/api/v1/tools\` and \`/api/v1/agents\` tell who serves what, at what price and how well; \`/api/v1/models/{name}/endpoints\` tells it of one model.
- Whoever has a wallet can sell calls of its own models, tools and agents: \`tollgate provide --config provider.toml\` dials in at \`/api/v1/provider/tunnel\` (a WebSocket). A provider sees what it earned at \`GET /api/v1/provider/earnings\`, and what it has registered at \`GET /api/v1/provider/services\`.
- A reply carries \`usage\` with \`usage.cost\` in USD; streams carry it in the chunk that has \`finish_reason\`.
- Errors are \`{"error": {"message", "type", "code", "param"}}\`. 402: the balance is too low. 429: too many requests, wait for \`Retry-After\`. 503: retry shortly. On \`/mcp\` they are JSON-RPC errors with \`data.type\`, and a tool call without money is a result with \`isError\`.
`;

/** `GET /llms.txt`: what this gateway offers, for language models, from the same route table as the reference. */
export function llmsText(server: FastifyInstance): (app: FastifyInstance) => Promise<void> {
  let text: string | null = null;
  return async (app) => {
    app.get('/llms.txt', { schema: { hide: true } }, async (_request, reply) => {
      text ??= `${OPENING}\n${chapters(pathsOf(server.swagger()))}\n## More\n\n- [OpenAPI 3.1 document](/openapi.json)\n- [Reference for people](/docs)\n`;
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
