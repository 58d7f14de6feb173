import { AGENT, CHAT_STREAM, CHAT_WHOLE, TOOL } from './answers.ts';
import { CHAT_BODIES, MESSAGE, MESSAGE_BODIES, RPC_BODIES, streamed, TOOL_BODIES, TOOL_CALL } from './bodies.ts';
import type { Order } from './crew.ts';

export interface Shape {
  readonly name: string;
  readonly order: Omit<Order, 'width' | 'times'> & { readonly times?: number };
  /** Prepares a round. */
  readonly before?: () => Promise<void>;
}

interface At {
  /** The gateway's origin. */
  readonly origin: string;
  readonly key: string;
  /** The provider's address. */
  readonly provider: string;
}

const slug = (name: string) => name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');

/** The configuration file of a gateway with one service for each answer. */
export function configurationOf(provider: string): string {
  const at = (kind: string, name: string) => `${provider}/${kind}/${encodeURIComponent(name)}`;
  const model = (id: string, url: string) => `
[[models]]
name = "stalls/${id}"
display_name = "Stalls: ${id}"
provider_name = "Stalls ${id}"
context_length = 20000000
max_output_tokens = 10000000
pricing = { prompt = 0, completion = 0 }
params = { model = "m", api_base = "${url}/v1" }
`;
  const service = (table: string, id: string, url: string) => `
[[${table}]]
name = "stalls/${id}"
display_name = "Stalls: ${id}"
provider_name = "Stalls ${id}"
endpoint = "${url}"
pricing = { per_call = 0 }
`;
  return [
    '[limits]\nrequests_per_minute = 10000000\nburst = 10000000\ntokens_per_minute = 1000000000000\n',
    model('small', `${provider}/small`),
    model('kept', `${provider}/kept`).replace('completion = 0', 'completion = 0.001'),
    ...Object.keys(CHAT_WHOLE).map((name) => model(`chat-${slug(name)}`, at('chat', name))),
    ...Object.keys(CHAT_STREAM).map((name) => model(`stream-${slug(name)}`, at('stream', name))),
    ...Object.keys(TOOL).map((name) => service('tools', `tool-${slug(name)}`, at('tool', name))),
    ...Object.keys(AGENT).map((name) => service('agents', `agent-${slug(name)}`, at('agent', name))),
    service('tools', 'tool-many', `${provider}/many`),
    service('agents', 'agent-small', `${provider}/agent/small`),
    service('agents', 'agent-card', `${provider}/card/0`),
  ].join('');
}

/** All shapes that are measured. */
export function shapesOf({ origin, key }: At): readonly Shape[] {
  const auth = { authorization: `Bearer ${key}` };
  const post = (path: string, body: () => Uint8Array, headers: Readonly<Record<string, string>> = {}): Order => {
    let made: Uint8Array | null = null;
    return {
      url: origin + path,
      method: 'POST',
      headers: { ...auth, 'content-type': 'application/json', ...headers },
      get body() {
        return (made ??= body());
      },
      raw: null,
      width: 1,
      times: 1,
    };
  };
  const get = (path: string): Order => ({
    url: origin + path,
    method: 'GET',
    headers: auth,
    body: null,
    raw: null,
    width: 1,
    times: 1,
  });
  const raw = (bytes: () => Uint8Array): Order => ({
    url: origin,
    method: 'POST',
    headers: {},
    body: null,
    get raw() {
      return bytes();
    },
    width: 1,
    times: 1,
  });
  const MCP = { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2026-07-28' };
  const CALL = { ...MCP, 'mcp-method': 'tools/call', 'mcp-name': 'read' };
  const CHAT = '/api/v1/chat/completions';
  const hello =
    (model: string, more = '') =>
    () =>
      Buffer.from(
        `{"model":"stalls/${model}","max_tokens":1000000,"messages":[{"role":"user","content":"hello"}]${more}}`,
      );
  const each = <T>(
    of: Readonly<Record<string, T>>,
    kind: string,
    order: (value: T, name: string) => Order,
  ): readonly Shape[] =>
    Object.entries(of).map(([name, value]) => ({ name: `${kind}: ${name}`, order: order(value, name) }));
  return [
    ...each(CHAT_WHOLE, 'chat reply', (_, name) => post(CHAT, hello(`chat-${slug(name)}`))),
    ...each(CHAT_STREAM, 'chat stream', (_, name) => post(CHAT, hello(`stream-${slug(name)}`, ',"stream":true'))),
    ...each(TOOL, 'MCP reply', (_, name) => post(`/mcp/stalls/tool-${slug(name)}`, () => TOOL_CALL, CALL)),
    ...each(AGENT, 'A2A reply', (_, name) =>
      post(`/a2a/stalls/agent-${slug(name)}`, () => (name.startsWith('SSE') ? streamed(MESSAGE) : MESSAGE), {
        accept: 'application/json, text/event-stream',
      }),
    ),
    ...each(CHAT_BODIES, 'chat request', (body) => post(CHAT, () => body('stalls/small'))),
    ...each(TOOL_BODIES, 'MCP request', (body) => post('/mcp/stalls/tool-20-000-keys', body, CALL)),
    ...each(MESSAGE_BODIES, 'A2A request', (body) => post('/a2a/stalls/agent-small', body)),
    ...each(RPC_BODIES, 'RPC request', (body) => post('/api/v1/rpc', () => body('stalls/small'))),
    { name: 'a kept reply of 0.9 MB', order: { ...post(CHAT, hello('kept'), { 'idempotency-key': 'k' }), times: 10 } },
    {
      name: 'list of 4,000 tools of one server',
      order: post('/mcp/stalls/tool-many', () => LIST, { ...MCP, 'mcp-method': 'tools/list' }),
    },
    { name: 'list of all tools', order: post('/mcp', () => LIST, { ...MCP, 'mcp-method': 'tools/list' }) },
    { name: 'card of 250 KiB', order: get('/a2a/stalls/agent-card/.well-known/agent-card.json') },
    { name: 'list of models', order: get('/api/v1/models') },
    { name: 'list of tools', order: get('/api/v1/tools') },
    { name: 'list of agents', order: get('/api/v1/agents') },
    { name: '5,000 pipelined requests', order: raw(() => pipelined(auth)) },
    { name: 'body in chunks of one byte', order: raw(() => singly(auth)) },
  ];
}

const LIST = Buffer.from(
  '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"stalls","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}',
);

const HELLO = '{"model":"stalls/small","max_tokens":16,"messages":[{"role":"user","content":"hello"}]}';
const head = (auth: { readonly authorization: string }, more: string) =>
  `POST /api/v1/chat/completions HTTP/1.1\r\nhost: gate\r\nauthorization: ${auth.authorization}\r\ncontent-type: application/json\r\n${more}\r\n\r\n`;

function pipelined(auth: { readonly authorization: string }): Buffer {
  const one = head(auth, `content-length: ${HELLO.length}`) + HELLO;
  return Buffer.from(one.repeat(5_000) + head(auth, `connection: close\r\ncontent-length: ${HELLO.length}`) + HELLO);
}

/** 2 MiB, with 6 bytes on the wire for each byte. */
function singly(auth: { readonly authorization: string }): Buffer {
  const text = HELLO.replace('hello', 'a'.repeat(2 * 1024 * 1024));
  const wire = Buffer.alloc(text.length * 6, '1\r\n \r\n');
  for (let i = 0; i < text.length; i++) wire[i * 6 + 3] = text.charCodeAt(i);
  return Buffer.concat([
    Buffer.from(head(auth, 'connection: close\r\ntransfer-encoding: chunked')),
    wire,
    Buffer.from('0\r\n\r\n'),
  ]);
}
