import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ScriptedTools {
  /** As in `endpoint`. */
  readonly url: string;
  /** Names of the tools that are running now, and of all that ever ran. */
  readonly running: readonly string[];
  readonly ran: readonly string[];
  /** Resolves when this many run side by side. */
  together(count: number): Promise<void>;
  stop(): Promise<void>;
}

/**
 * A tool server that is posted `tools/list` and `tools/call` and nothing else. Each tool answers when its promise
 * resolves, with the text that it has.
 */
export async function startScriptedTools(
  tools: Readonly<Record<string, () => Promise<string>>>,
): Promise<ScriptedTools> {
  const running: string[] = [];
  const ran: string[] = [];
  const changes = new EventTarget();
  const server = createServer((request, response) => {
    response.on('error', () => {});
    void (async () => {
      const { id, method, params } = JSON.parse(await read(request)) as {
        id: unknown;
        method: string;
        params?: { name: string };
      };
      const reply = (body: object) =>
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id, ...body }));
      if (method === 'tools/list') {
        const list = Object.keys(tools).map((name) => ({
          name,
          description: `Tool ${name}`,
          inputSchema: { type: 'object' },
        }));
        return void reply({ result: { tools: list } });
      }
      const tool = params && tools[params.name];
      if (method !== 'tools/call' || !tool) return void reply({ error: { code: -32601, message: 'Method not found' } });
      running.push(params.name);
      ran.push(params.name);
      changes.dispatchEvent(new Event('change'));
      const text = await tool();
      running.splice(running.indexOf(params.name), 1);
      reply({ result: { content: [{ type: 'text', text }] } });
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    running,
    ran,
    async together(count) {
      while (running.length < count) await once(changes, 'change');
    },
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

async function read(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
