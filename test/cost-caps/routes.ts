import { randomUUID } from 'node:crypto';

/** The name of a model, of a service of tools and of an agent. */
export const SERVICE = 'capped/all';
/** The one tool, and what is said to every primitive. */
const TOOL = 'do';
const SAID = 'complete';
const ARGUMENTS = { text: SAID };

/** Where a request names a cap. */
export interface Named {
  readonly header?: string;
  /** In the metadata of the wire, or in the body of chat. */
  readonly inside?: unknown;
  /** Another member of the metadata. */
  readonly misspelt?: string;
  /** A member beside the metadata. */
  readonly beside?: string;
}

export interface CapDoor {
  readonly name: string;
  readonly path: string;
  /**
   * What the wire has for metadata: that of the parameters, of the message in them, or of the entry around a chat
   * request.
   */
  readonly metadata: 'none' | 'of the parameters' | 'of the message' | 'of the entry';
  /** It is asked in a session of its address. */
  readonly session?: true;
  readonly headers?: Readonly<Record<string, string>>;
  body(named: Named): unknown;
}

const MAX_COST = 'tollgate/max_cost';

const metaOf = ({ inside, misspelt }: Named): Record<string, unknown> => ({
  ...(inside === undefined ? {} : { [MAX_COST]: inside }),
  ...(misspelt === undefined ? {} : { [misspelt]: '0.000001' }),
});
const besideOf = ({ beside }: Named) => (beside === undefined ? {} : { [beside]: '0.000001' });
const metadataIn = (member: string, named: Named): object => {
  const meta = metaOf(named);
  return Object.keys(meta).length === 0 ? {} : { [member]: meta };
};

const chatBody = (model: string, named: Named) => ({
  model,
  messages: [{ role: 'user', content: model.startsWith('mcp/') ? JSON.stringify(ARGUMENTS) : SAID }],
  max_tokens: 5_000,
  ...(named.inside === undefined ? {} : { max_cost: named.inside }),
});

const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params });
const callOf = (name: string, args: object, named: Named, more: object = {}) =>
  rpc('tools/call', { name, arguments: args, ...metadataIn('_meta', named), ...besideOf(named), ...more });

const mcp = (name: string, path: string, tool: string, args: object, more: Partial<CapDoor> = {}): CapDoor => ({
  name,
  path,
  metadata: 'of the parameters',
  body: (named) => callOf(tool, args, named),
  ...more,
});

const MODERN = '2026-07-28';
const ENVELOPE = {
  'io.modelcontextprotocol/protocolVersion': MODERN,
  'io.modelcontextprotocol/clientCapabilities': {},
};

const sendParams = (named: Named, where: 'request' | 'message' = 'request', text: string = SAID) => ({
  message: {
    kind: 'message',
    messageId: randomUUID(),
    role: 'user',
    parts: [{ kind: 'text', text }],
    ...(where === 'message' ? metadataIn('metadata', named) : {}),
  },
  ...(where === 'request' ? metadataIn('metadata', named) : {}),
  ...besideOf(named),
});
const newParams = (named: Named) => ({
  message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: SAID }] },
  ...metadataIn('metadata', named),
  ...besideOf(named),
});

const a2a = (name: string, service: string, where: 'request' | 'message' = 'request'): CapDoor => ({
  name,
  path: `/a2a/${service}`,
  metadata: 'of the parameters',
  body: (named) =>
    rpc('message/send', sendParams(named, where, service.startsWith('mcp/') ? JSON.stringify(ARGUMENTS) : SAID)),
});

/** The entry of a batch with one more that is free. */
const inBatch = (entry: unknown) => [{ jsonrpc: '2.0', id: 0, method: 'ping' }, entry];

/** Every route that leads to something that is billed. */
export const ENDPOINTS: readonly CapDoor[] = [
  { name: 'chat', path: '/api/v1/chat/completions', metadata: 'none', body: (named) => chatBody(SERVICE, named) },
  {
    name: 'a tool as a chat model',
    path: '/api/v1/chat/completions',
    metadata: 'none',
    body: (named) => chatBody(`mcp/${SERVICE}/${TOOL}`, named),
  },
  {
    name: 'an agent as a chat model',
    path: '/api/v1/chat/completions',
    metadata: 'none',
    body: (named) => chatBody(`a2a/${SERVICE}`, named),
  },
  mcp('MCP, bare', `/mcp/${SERVICE}`, TOOL, ARGUMENTS),
  mcp('MCP, modern', `/mcp/${SERVICE}`, TOOL, ARGUMENTS, {
    headers: { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call', 'mcp-name': TOOL },
    body: (named) =>
      rpc('tools/call', {
        name: TOOL,
        arguments: ARGUMENTS,
        _meta: { ...ENVELOPE, ...metaOf(named) },
        ...besideOf(named),
      }),
  }),
  mcp('MCP, in a session', `/mcp/${SERVICE}`, TOOL, ARGUMENTS, { session: true }),
  mcp('MCP, in a batch', `/mcp/${SERVICE}`, TOOL, ARGUMENTS, {
    session: true,
    body: (named) => inBatch(callOf(TOOL, ARGUMENTS, named)),
  }),
  mcp('MCP, of all services', '/mcp', `capped_all__${TOOL}`, ARGUMENTS),
  mcp('MCP, of all services, in a session', '/mcp', `capped_all__${TOOL}`, ARGUMENTS, { session: true }),
  mcp('MCP, call_tool', '/mcp', 'call_tool', { name: `capped_all__${TOOL}`, arguments: ARGUMENTS }),
  mcp(
    'MCP, call_tool in a session',
    '/mcp',
    'call_tool',
    { name: `capped_all__${TOOL}`, arguments: ARGUMENTS },
    { session: true },
  ),
  mcp('MCP, ask_model', '/mcp', 'ask_model', { model: SERVICE, prompt: SAID, max_tokens: 5_000 }),
  mcp(
    'MCP, ask_model in a session',
    '/mcp',
    'ask_model',
    { model: SERVICE, prompt: SAID, max_tokens: 5_000 },
    { session: true },
  ),
  mcp('MCP, ask_agent', '/mcp', 'ask_agent', { agent: SERVICE, message: SAID }),
  mcp('a model as an MCP tool', `/mcp/model/${SERVICE}`, 'chat', { prompt: SAID, max_tokens: 5_000 }),
  mcp(
    'a model as an MCP tool, in a session',
    `/mcp/model/${SERVICE}`,
    'chat',
    { prompt: SAID, max_tokens: 5_000 },
    { session: true },
  ),
  mcp('an agent as an MCP tool', `/mcp/a2a/${SERVICE}`, 'send_message', { message: SAID }),
  a2a('A2A 0.3', SERVICE),
  { ...a2a('A2A, in the message', SERVICE, 'message'), metadata: 'of the message' },
  {
    ...a2a('A2A 1.0', SERVICE),
    headers: { 'a2a-version': '1.0' },
    body: (named) => rpc('SendMessage', newParams(named)),
  },
  {
    ...a2a('A2A 1.0, HTTP+JSON', SERVICE),
    path: `/a2a/${SERVICE}/message:send`,
    headers: { 'a2a-version': '1.0' },
    body: newParams,
  },
  { ...a2a('A2A, bare', SERVICE), body: (named) => sendParams(named) },
  a2a('a model as an A2A agent', `model/${SERVICE}`),
  a2a('a tool as an A2A agent', `mcp/${SERVICE}/${TOOL}`),
  {
    name: 'JSON-RPC, chat/completions',
    path: '/api/v1/rpc',
    metadata: 'of the entry',
    body: (named) => rpc('chat/completions', { ...chatBody(SERVICE, {}), ...metadataIn('_meta', named) }),
  },
  {
    name: 'JSON-RPC, chat/completions by its body',
    path: '/api/v1/rpc',
    metadata: 'none',
    body: (named) => rpc('chat/completions', chatBody(SERVICE, named)),
  },
  {
    name: 'JSON-RPC, tools/call',
    path: '/api/v1/rpc',
    metadata: 'of the parameters',
    body: (named) => callOf(TOOL, ARGUMENTS, named, { service: SERVICE }),
  },
  {
    name: 'JSON-RPC, in a batch',
    path: '/api/v1/rpc',
    metadata: 'of the parameters',
    body: (named) => inBatch(callOf(TOOL, ARGUMENTS, named, { service: SERVICE })),
  },
  {
    name: 'JSON-RPC, message/send',
    path: '/api/v1/rpc',
    metadata: 'of the parameters',
    body: (named) => rpc('message/send', { agent: SERVICE, ...sendParams(named) }),
  },
  {
    name: 'JSON-RPC, message/send by _meta',
    path: '/api/v1/rpc',
    metadata: 'of the parameters',
    body: (named) =>
      rpc('message/send', { agent: SERVICE, ...sendParams({}), ...metadataIn('_meta', named), ...besideOf(named) }),
  },
];
