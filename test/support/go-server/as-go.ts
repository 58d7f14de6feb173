import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

/* The equivalent of main.go, for machines without Go. It follows the rules of `encoding/json`: a member of an object
   sets the field with its name, otherwise the field whose name is equal under Unicode's simple case folding. Members
   are read in order, so the last matching one counts. */

type Json = Readonly<Record<string, unknown>>;

/**
 * Whether two names are equal under simple case folding, like Go's `strings.EqualFold`. Names of fields consist of
 * letters and `_`.
 */
const foldsTo = (name: string, field: string): boolean => new RegExp(`^${field}$`, 'iu').test(name);

/** Reads the fields of a struct from an object. Missing fields keep their zero values. */
export function decodeAsGo<T extends Json>(value: unknown, zero: T): T {
  const struct: Record<string, unknown> = { ...zero };
  if (typeof value !== 'object' || value === null) return struct as T;
  for (const [name, member] of Object.entries(value)) {
    const field = Object.hasOwn(zero, name) ? name : Object.keys(zero).find((known) => foldsTo(name, known));
    if (field !== undefined) struct[field] = member;
  }
  return struct as T;
}

const CHAT = { model: '', max_tokens: 0, n: 0, stream: false };
const CALL = { id: undefined as unknown, method: '', params: {} as unknown };
const SEND = { taskId: '', contextId: '', messageId: '' };

export async function startAsGo(): Promise<{ readonly url: string; close(): Promise<void> }> {
  const obeyed = { chat: [] as (typeof CHAT)[], tools: [] as string[], sends: [] as (typeof SEND)[] };
  const tool = (name: string) => ({ name, inputSchema: { type: 'object' } });

  function run(method: string, params: unknown): unknown {
    if (method === 'initialize')
      return {
        protocolVersion: '2025-11-25',
        capabilities: { tools: {}, logging: {} },
        serverInfo: { name: 'go', version: '1' },
      };
    if (method === 'tools/list') return { tools: [tool('cheap'), tool('dear')] };
    if (method !== 'tools/call') return {};
    const { name } = decodeAsGo(params, { name: '' });
    obeyed.tools.push(name);
    return { content: [{ type: 'text', text: name }] };
  }

  function answer(path: string, body: unknown, host: string): { readonly status?: number; readonly json?: unknown } {
    if (path === '/obeyed') return { json: obeyed };
    if (path === '/v1/chat/completions') {
      const asked = decodeAsGo(body, CHAT);
      obeyed.chat.push(asked);
      const choices = [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }];
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
      return { json: { id: 'c', object: 'chat.completion', created: 1, model: asked.model, choices, usage } };
    }
    if (path.endsWith('agent-card.json')) return { json: card(`http://${host}/agent`) };
    const { id, method, params } = decodeAsGo(body, CALL);
    if (path === '/agent') {
      obeyed.sends.push(decodeAsGo(decodeAsGo(params, { message: {} }).message, SEND));
      const result = { kind: 'message', messageId: 'reply', role: 'agent', parts: [{ kind: 'text', text: 'ok' }] };
      return { json: { jsonrpc: '2.0', id, result } };
    }
    if (method === 'server/discover')
      return { status: 400, json: { jsonrpc: '2.0', id, error: { code: -32_601, message: 'Method not found' } } };
    const result = run(method, params);
    return id === undefined ? { status: 202 } : { json: { jsonrpc: '2.0', id, result } };
  }

  const server = createServer((request, response) => {
    void (async () => {
      const text = await textOf(request);
      const path = request.url ?? '/';
      if (path === '/mcp' && request.method !== 'POST') return response.writeHead(405).end();
      const { status = 200, json } = answer(path, text === '' ? null : JSON.parse(text), request.headers.host ?? '');
      const head = { 'content-type': 'application/json', ...(path === '/mcp' ? { 'mcp-session-id': 's' } : {}) };
      return response.writeHead(status, head).end(json === undefined ? '' : JSON.stringify(json));
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

const card = (url: string) => ({
  name: 'go',
  description: 'go',
  version: '1',
  protocolVersion: '0.3.0',
  url,
  preferredTransport: 'JSONRPC',
  capabilities: {},
  defaultInputModes: ['text'],
  defaultOutputModes: ['text'],
  skills: [{ id: 's', name: 's', description: 's', tags: [] }],
});

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}
