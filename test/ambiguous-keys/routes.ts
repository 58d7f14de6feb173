import { requestOf, WIRES } from '../peers/wires.ts';

/** Objects of a request, by their path in it, and the names in them that the gateway acts on. */
export type Places = readonly (readonly [path: readonly (string | number)[], names: readonly string[]])[];

/** One way in, with a request that is answered there. */
export interface A2aHandler {
  readonly name: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The session whose id goes with it: with one service, or with all. */
  readonly session?: 'service' | 'all';
  /** The request, one of a batch where the body is an array. */
  readonly body: object;
  readonly places: Places;
  readonly wire: 'chat' | 'json-rpc' | 'http+json';
}

export const SERVICE = 'fixture/tools';
export const AGENT = 'fixture/agent';
export const TOOL = 'test_simple_text';
const MODEL = 'test/model';
const MODERN = '2026-07-28';

const below = (path: readonly (string | number)[], places: Places): Places =>
  places.map(([at, names]) => [[...path, ...at], names]);

const ENVELOPE: Places = [[[], ['jsonrpc', 'id', 'method', 'params', 'result', 'error']]];

const CHAT_BODY = {
  model: MODEL,
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'hi' },
        { type: 'image_url', image_url: { url: 'https://pictures.example.com/a.png' } },
      ],
    },
  ],
  max_tokens: 5,
  stream_options: {},
  provider: { max_price: {} },
  tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object', Max_Tokens: 1 } } }],
  metadata: { Model: 'free', max_tokenS: 1 },
};

const CHAT_PLACES: Places = [
  [
    [],
    [
      ...'model messages stream stream_options temperature top_p presence_penalty frequency_penalty n stop tools'.split(
        ' ',
      ),
      ...'tool_choice user metadata models provider session_id max_cost max_tool_rounds tollgate functions'.split(' '),
      ...'function_call response_format logprobs top_logprobs logit_bias seed reasoning reasoning_effort service_tier'.split(
        ' ',
      ),
      ...'max_tokens max_completion_tokens parallel_tool_calls modalities images'.split(' '),
    ],
  ],
  [
    ['messages', 0],
    ['role', 'content', 'name', 'tool_calls', 'tool_call_id', 'images'],
  ],
  [
    ['messages', 0, 'content', 0],
    ['type', 'text', 'image_url', 'input_audio', 'file', 'video_url'],
  ],
  [
    ['messages', 0, 'content', 1],
    ['type', 'image_url'],
  ],
  [
    ['messages', 0, 'content', 1, 'image_url'],
    ['url', 'detail'],
  ],
  [
    ['tools', 0],
    ['type', 'function', 'service', 'allowed_tools', 'disallowed_tools'],
  ],
  [
    ['tools', 0, 'function'],
    ['name', 'description', 'parameters'],
  ],
  [['stream_options'], ['include_usage']],
  [
    ['provider'],
    [
      ...'order only ignore allow_fallbacks content_fallbacks sort max_price require_parameters data_collection zdr quantizations'.split(
        ' ',
      ),
      'region',
    ],
  ],
  [
    ['provider', 'max_price'],
    ['prompt', 'completion', 'image'],
  ],
];

const META = { progressToken: 1 };
const call = (name: string, more: object = {}) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name, arguments: { Name: 'free', METHOD: 'free' }, _meta: META, ...more },
});

const META_NAMES = [
  'progressToken',
  'traceparent',
  'tollgate/idempotency-key',
  'tollgate/max_cost',
  'tollgate/receipt',
  'x402/payment',
];
const MODERN_META_NAMES = [
  'io.modelcontextprotocol/protocolVersion',
  'io.modelcontextprotocol/clientCapabilities',
  'io.modelcontextprotocol/logLevel',
];
const PARAM_NAMES = [
  ...'name arguments uri _meta cursor ref argument context level task taskId requestState inputResponses'.split(' '),
  ...'notifications protocolVersion capabilities clientInfo requestId reason progressToken progress total'.split(' '),
];
const CALL_PLACES: Places = [
  ...ENVELOPE,
  [['params'], PARAM_NAMES],
  [
    ['params', '_meta'],
    [...META_NAMES, ...MODERN_META_NAMES],
  ],
];

const modernCall = {
  ...call(TOOL),
  params: {
    ...call(TOOL).params,
    _meta: {
      ...META,
      'io.modelcontextprotocol/protocolVersion': MODERN,
      'io.modelcontextprotocol/clientCapabilities': { sampling: {} },
      'io.modelcontextprotocol/clientInfo': { name: 't', version: '1' },
    },
  },
};

const METADATA = ['x402.payment.status', 'x402.payment.payload', 'tollgate/run', 'tollgate/max_cost'];
const SEND_NAMES = [
  'id',
  'taskId',
  'contextId',
  'tenant',
  'message',
  'metadata',
  'configuration',
  'pushNotificationConfig',
  'historyLength',
];
const MESSAGE_NAMES = [
  'messageId',
  'taskId',
  'contextId',
  'referenceTaskIds',
  'role',
  'parts',
  'content',
  'metadata',
  'extensions',
];
const CONFIGURATION_NAMES = [
  'acceptedOutputModes',
  'historyLength',
  'blocking',
  'returnImmediately',
  'pushNotificationConfig',
  'taskPushNotificationConfig',
];

const sendPlaces = (parts: readonly string[], file: boolean): Places => [
  [[], SEND_NAMES],
  [['message'], MESSAGE_NAMES],
  [['message', 'metadata'], METADATA],
  [['message', 'parts', 0], parts],
  ...(file
    ? ([
        [
          ['message', 'parts', 1, 'file'],
          ['bytes', 'uri', 'name', 'mimeType'],
        ],
      ] as const)
    : []),
  [['configuration'], CONFIGURATION_NAMES],
];
const FREE = { Task: 1, taskid: 2 };
const NEW_PARTS = [{ text: 'say hi' }, { data: FREE }];
const OLD_PARTS = [
  { kind: 'text', text: 'say hi' },
  { kind: 'file', file: { uri: 'https://files.example.com/a' } },
  { kind: 'data', data: FREE },
];
const send = (role: string, parts: readonly object[]) => ({
  message: { messageId: '', role, parts, metadata: FREE },
  configuration: {},
});
const NEW = send('ROLE_USER', NEW_PARTS);
const OLD = { ...send('user', OLD_PARTS), message: { ...send('user', OLD_PARTS).message, kind: 'message' } };
const NEW_PLACES = sendPlaces(['text', 'data', 'raw', 'url', 'filename', 'mediaType', 'metadata'], false);
const OLD_PLACES = sendPlaces(['kind', 'text', 'file', 'data', 'metadata'], true);
const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params });
const ofVersion = (version: string) => ({ 'a2a-version': version });

/** Every route that leads to a provider. */
export const ENDPOINTS: readonly A2aHandler[] = [
  { name: 'chat', path: '/api/v1/chat/completions', body: CHAT_BODY, places: CHAT_PLACES, wire: 'chat' },
  ...WIRES.filter(({ name }) => name !== 'chat').map((tested) => ({
    name: tested.name,
    ...requestOf(tested, { model: MODEL, ...tested.ask('hi', 5) }),
    places: [[[], tested.fields.split(' ')]] as const,
    wire: 'chat' as const,
  })),
  {
    name: 'chat by JSON-RPC',
    path: '/api/v1/rpc',
    body: rpc('chat/completions', { ...CHAT_BODY, _meta: {} }),
    places: [
      ...ENVELOPE,
      [['params'], ['_meta']],
      [['params', '_meta'], META_NAMES.slice(2)],
      ...below(['params'], CHAT_PLACES),
    ],
    wire: 'json-rpc',
  },
  { name: 'MCP, bare', path: `/mcp/${SERVICE}`, body: call(TOOL), places: CALL_PLACES, wire: 'json-rpc' },
  {
    name: 'MCP, bare, of all services',
    path: '/mcp',
    body: call(`fixture_tools__${TOOL}`),
    places: CALL_PLACES,
    wire: 'json-rpc',
  },
  {
    name: 'MCP, modern',
    path: `/mcp/${SERVICE}`,
    headers: { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call', 'mcp-name': TOOL },
    body: modernCall,
    places: [
      ...CALL_PLACES,
      [
        ['params', '_meta', 'io.modelcontextprotocol/clientCapabilities'],
        ['elicitation', 'sampling', 'roots'],
      ],
    ],
    wire: 'json-rpc',
  },
  {
    name: 'MCP, in a session',
    path: `/mcp/${SERVICE}`,
    session: 'service',
    body: call(TOOL),
    places: CALL_PLACES,
    wire: 'json-rpc',
  },
  {
    name: 'MCP, in a session of all services',
    path: '/mcp',
    session: 'all',
    body: call(`fixture_tools__${TOOL}`),
    places: CALL_PLACES,
    wire: 'json-rpc',
  },
  {
    name: 'MCP, in a batch',
    path: `/mcp/${SERVICE}`,
    session: 'service',
    body: [{ jsonrpc: '2.0', method: 'notifications/progress', params: {} }, call(TOOL)],
    places: below([1], CALL_PLACES),
    wire: 'json-rpc',
  },
  {
    name: 'MCP, a free method',
    path: `/mcp/${SERVICE}`,
    session: 'service',
    body: rpc('completion/complete', {
      ref: { type: 'ref/prompt', name: 'p' },
      argument: { name: 'arg1', value: 'p' },
    }),
    places: [
      ...ENVELOPE,
      [['params'], PARAM_NAMES],
      [
        ['params', 'ref'],
        ['type', 'name', 'uri'],
      ],
      [
        ['params', 'argument'],
        ['name', 'value'],
      ],
    ],
    wire: 'json-rpc',
  },
  {
    name: 'MCP, a notification',
    path: `/mcp/${SERVICE}`,
    session: 'service',
    body: { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'x', progress: 1, _meta: {} } },
    places: CALL_PLACES,
    wire: 'json-rpc',
  },
  {
    name: 'MCP, a response',
    path: `/mcp/${SERVICE}`,
    session: 'service',
    body: { jsonrpc: '2.0', id: 'x', result: {} },
    places: ENVELOPE,
    wire: 'json-rpc',
  },
  {
    name: 'MCP by JSON-RPC',
    path: '/api/v1/rpc',
    body: rpc('tools/call', { service: SERVICE, ...call(TOOL).params }),
    places: [...CALL_PLACES, [['params'], ['service']]],
    wire: 'json-rpc',
  },
  {
    name: 'MCP by JSON-RPC, in a batch',
    path: '/api/v1/rpc',
    body: [rpc('tools/call', { service: SERVICE, ...call(TOOL).params })],
    places: below([0], [...CALL_PLACES, [['params'], ['service']]]),
    wire: 'json-rpc',
  },
  {
    name: 'A2A 1.0',
    path: `/a2a/${AGENT}`,
    headers: ofVersion('1.0'),
    body: rpc('SendMessage', NEW),
    places: [...ENVELOPE, ...below(['params'], NEW_PLACES)],
    wire: 'json-rpc',
  },
  {
    name: 'A2A 0.3',
    path: `/a2a/${AGENT}`,
    headers: ofVersion('0.3'),
    body: rpc('message/send', OLD),
    places: [...ENVELOPE, ...below(['params'], OLD_PLACES)],
    wire: 'json-rpc',
  },
  {
    name: 'A2A 1.0 over HTTP+JSON',
    path: `/a2a/${AGENT}/message:send`,
    headers: ofVersion('1.0'),
    body: NEW,
    places: NEW_PLACES,
    wire: 'http+json',
  },
  {
    name: 'A2A 0.3 over HTTP+JSON',
    path: `/a2a/${AGENT}/v1/message:send`,
    headers: ofVersion('0.3'),
    body: { message: { messageId: '', role: 'ROLE_USER', content: [{ text: 'say hi' }] }, configuration: {} },
    places: [
      [[], ['message', 'request', 'configuration', 'metadata']],
      [['message'], MESSAGE_NAMES],
      [['configuration'], CONFIGURATION_NAMES],
    ],
    wire: 'http+json',
  },
  {
    name: 'A2A, bare',
    path: `/a2a/${AGENT}`,
    body: { message: { messageId: '', role: 'user', parts: [{ text: 'say hi' }] } },
    places: [
      [[], [...SEND_NAMES, 'jsonrpc', 'method', 'params']],
      [['message'], MESSAGE_NAMES],
    ],
    wire: 'http+json',
  },
  {
    name: 'A2A by JSON-RPC',
    path: '/api/v1/rpc',
    body: rpc('message/send', { agent: AGENT, ...OLD }),
    places: [...ENVELOPE, [['params'], ['agent', '_meta']], ...below(['params'], OLD_PLACES)],
    wire: 'json-rpc',
  },
];

/**
 * JSON text of `body` with one more member in the object at `path`, before or behind the others: decoders differ in
 * which of two counts.
 */
export function withMember(
  body: unknown,
  path: readonly (string | number)[],
  name: string,
  value: unknown,
  first: boolean,
): string {
  const [next, ...rest] = path;
  if (next === undefined) {
    const inside = JSON.stringify(body).slice(1, -1);
    const member = `${JSON.stringify(name)}:${JSON.stringify(value)}`;
    return `{${(first ? [member, inside] : [inside, member]).filter((part) => part !== '').join(',')}}`;
  }
  const inner = (key: string | number, held: unknown) =>
    String(key) === String(next) ? withMember(held, rest, name, value, first) : JSON.stringify(held);
  if (Array.isArray(body)) return `[${body.map((held: unknown, i) => inner(i, held)).join(',')}]`;
  return `{${Object.entries(body as object)
    .map(([key, held]) => `${JSON.stringify(key)}:${inner(key, held)}`)
    .join(',')}}`;
}
