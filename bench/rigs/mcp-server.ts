/**
 * The MCP server behind the rigs, of the revisions with sessions, which all peers speak: over HTTP at /mcp, without a
 * session of its own, or with `--stdio`. Prints `{"port":n}` when it listens.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { LEGACY_TOOL, toolText } from './jobs.ts';

interface Message {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: { readonly protocolVersion?: string };
}

const TOOL = { name: LEGACY_TOOL, inputSchema: { type: 'object', properties: { topic: { type: 'string' } } } };

/** null for a notification. */
function reply({ id, method, params }: Message): string | null {
  if (id === undefined) return null;
  const result =
    method === 'initialize'
      ? {
          protocolVersion: params?.protocolVersion,
          capabilities: { tools: {} },
          serverInfo: { name: 'mock', version: '1' },
        }
      : method === 'tools/list'
        ? { tools: [TOOL] }
        : method === 'tools/call'
          ? { content: [{ type: 'text', text: toolText }], isError: false }
          : {};
  return JSON.stringify({ jsonrpc: '2.0', id, result });
}

if (process.argv.includes('--stdio')) {
  for await (const line of createInterface({ input: process.stdin })) {
    const answer = reply(JSON.parse(line) as Message);
    if (answer !== null) process.stdout.write(`${answer}\n`);
  }
} else {
  const server = createServer((request, response) => {
    void (async () => {
      if (request.method !== 'POST') return response.writeHead(405).end();
      const answer = reply(JSON.parse(await text(request)) as Message);
      if (answer === null) return response.writeHead(202).end();
      return response.writeHead(200, { 'content-type': 'application/json' }).end(answer);
    })();
  });
  server.listen(0, '127.0.0.1', () =>
    process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`),
  );
  // Ends with its parent, however the parent ends.
  process.stdin.resume().once('end', () => process.exit(0));
}
