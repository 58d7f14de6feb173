import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A legacy MCP server of node:http alone that keeps every body as it came. */
export interface RecordingTools {
  readonly url: string;
  readonly bodies: readonly string[];
  close(): Promise<void>;
}

export async function startRecordingTools(tool: string): Promise<RecordingTools> {
  const bodies: string[] = [];
  const results: Readonly<Record<string, unknown>> = {
    initialize: {
      protocolVersion: '2025-11-25',
      capabilities: { tools: {}, completions: {} },
      serverInfo: { name: 'recording', version: '1' },
    },
    'tools/list': { tools: [{ name: tool, inputSchema: { type: 'object' } }] },
    'tools/call': { content: [{ type: 'text', text: 'done' }] },
    'completion/complete': { completion: { values: [] } },
  };
  const server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const text = Buffer.concat(chunks).toString('utf8');
      if (request.method !== 'POST') return response.writeHead(405).end();
      bodies.push(text);
      const { id, method = '' } = JSON.parse(text) as { id?: unknown; method?: string };
      if (id === undefined || method === '') return response.writeHead(202).end();
      const result = results[method];
      const known = result !== undefined;
      const error = { code: -32_601, message: 'Method not found' };
      response.writeHead(known || method !== 'server/discover' ? 200 : 400, {
        'content-type': 'application/json',
        ...(method === 'initialize' ? { 'mcp-session-id': `s-${bodies.length}` } : {}),
      });
      return response.end(JSON.stringify({ jsonrpc: '2.0', id, ...(known ? { result } : { error }) }));
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    bodies,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
